"""Requirements solved for the epsilon0 of one kind of randomizer, or for n; every answer is an evaluated point."""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from math import asinh, ceil, inf, log, sqrt

from dovetail.account.amplify import amplify, central_epsilon, log_delta_ratio
from dovetail.account.blanket.expected_positive_part import POINTS
from dovetail.account.threshold_search import bracket_root
from dovetail.core.checks import MOST_PEOPLE
from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.plan.accuracy import predict_accuracy
from dovetail.plan.families import RandomizerFamily, shapes_of
from dovetail.plan.requirements import Requirements

EPSILON0_TOLERANCE = 1e-6  # of the smallest epsilon0
SEARCH_TOLERANCE = 1e-3  # of the smallest n
LARGEST_TOLERANCE = 1e-4  # of the largest epsilon0
MARGIN = 2e-5  # the epsilon of an answer is searched to 1e-5, and is not to exceed what was asked for
SEARCH_POINTS = POINTS // 4  # a bound on epsilon about 1e-4 of itself from the finer one, in a quarter of the time


def predict_error95(family: RandomizerFamily, epsilon0: float, requirements: Requirements, *, n: int) -> float:
    """95 % error of this kind; infinite where it cannot be built."""
    try:
        return predict_accuracy(family.make(epsilon0, n), n=n, shares=requirements.shares).error95
    except ParameterError:
        return inf


def central_guarantee(family: RandomizerFamily, epsilon0: float, requirements: Requirements, *, n: int) -> CentralDP:
    """The central guarantee of n people of whom the same share is honest, and sits in the smallest group."""
    mixed = n if requirements.smallest_group is None else n * requirements.smallest_group // requirements.n
    honest = requirements.honest_with_anyone(n)
    return amplify(family.make(epsilon0, n), n=max(honest, mixed), delta=requirements.delta, honest=honest)


def guaranteed_epsilon(
    family: RandomizerFamily, epsilon0: float, requirements: Requirements, *, n: int, points: int = POINTS
) -> float:
    """The epsilon of `central_guarantee`, without its other fields; for searches, with fewer points."""
    honest = requirements.honest_with_anyone(n)
    return central_epsilon(family.make(epsilon0, n), n=honest, delta=requirements.delta, points=points)


def log_excess(
    family: RandomizerFamily, epsilon0: float, requirements: Requirements, *, epsilon: float, n: int
) -> float:
    """At most 0 where `guaranteed_epsilon` is at most `epsilon`: one evaluation instead of a search for it."""
    honest = requirements.honest_with_anyone(n)
    randomizer = family.make(epsilon0, n)
    asked = epsilon * (1.0 - MARGIN)
    return log_delta_ratio(randomizer, asked, n=honest, delta=requirements.delta, points=SEARCH_POINTS)


def steepness_of_delta(requirements: Requirements) -> float:
    """About -d log delta / d log epsilon where delta is that of the requirements."""
    return 2.0 * log(1.0 / max(requirements.delta, 1e-300)) + 1e-3


def smallest_epsilon0(family: RandomizerFamily, requirements: Requirements, *, error: float, n: int) -> float | None:
    """The least epsilon0 with an error of at most `error`; None where no epsilon0 reaches it.

    The error falls between breaks and so does its value from break to break: the first piece that ends low enough
    holds the answer.
    """
    ends = (*family.breaks, family.largest_epsilon0)
    piece = bisect_left(ends, True, key=lambda end: predict_error95(family, end, requirements, n=n) <= error)
    if piece == len(ends):
        return None
    start = ends[piece - 1] * (1.0 + 1e-9) if piece else 0.0

    def log_ratio(epsilon0: float) -> float:
        if epsilon0 <= start:
            return inf
        reached = predict_error95(family, epsilon0, requirements, n=n)
        return log(reached / error) if reached > 0.0 else -inf

    guess = min(max(1.0, 1.01 * start), ends[piece])
    return bracket_root(log_ratio, guess, steepness=1.0, most=ends[piece], tolerance=EPSILON0_TOLERANCE)[1]


def best_epsilon0(family: RandomizerFamily, requirements: Requirements, *, epsilon: float, n: int) -> float:
    """The epsilon0 with the smallest error among those whose shuffled reports are (epsilon, delta)-private."""
    largest = largest_epsilon0(family, requirements, epsilon=epsilon, n=n)
    before = family.breaks[: bisect_left(family.breaks, largest)][-1:]  # a little less may be more accurate
    return min((largest, *before), key=lambda epsilon0: predict_error95(family, epsilon0, requirements, n=n))


def largest_epsilon0(family: RandomizerFamily, requirements: Requirements, *, epsilon: float, n: int) -> float:
    """The largest epsilon0 found admissible: every randomizer's, or more where this kind amplifies more."""
    most, honest = family.largest_epsilon0, requirements.honest_with_anyone(n)
    if requirements.delta == 0.0:
        return min(epsilon, most)

    @cache
    def excess(epsilon0: float) -> float:
        return log_excess(family, epsilon0, requirements, epsilon=epsilon, n=n)

    spread = steepness_of_delta(requirements)
    start = min(max(2.0 * asinh(0.5 * epsilon * sqrt(honest / spread)), epsilon), most)  # stronger clones, as normals
    if excess(start) <= 0.0 and excess(most) <= 0.0:
        return most
    found, _ = bracket_root(
        lambda epsilon0: -excess(epsilon0) or 1e-12,
        start,
        steepness=spread * max(1.0, start / 2.0),
        most=most,
        tolerance=LARGEST_TOLERANCE,
    )
    return max(found, min(epsilon, most))  # shuffling never takes privacy away


def smallest_n(name: str, requirements: Requirements, *, error: float, epsilon: float) -> int | None:
    """The least n, to within a thousandth, at which a kind meets both with the same share of honest people."""
    least: int | None = None
    for family in shapes_of(name, requirements):
        n = _smallest_n(family, requirements, error=error, epsilon=epsilon, most=least or MOST_PEOPLE)
        least = n or least
    return least


def _smallest_n(
    family: RandomizerFamily, requirements: Requirements, *, error: float, epsilon: float, most: int
) -> int | None:
    """The same of one shape of the kind, if it is at most `most`."""

    def log_ratio(people: float) -> float:
        n = max(1, ceil(people))
        epsilon0 = smallest_epsilon0(family, requirements, error=error, n=n)
        return inf if epsilon0 is None else log_excess(family, epsilon0, requirements, epsilon=epsilon, n=n)

    if log_ratio(1) <= 0.0:
        return 1
    if log_ratio(most) > 0.0:
        return None
    steepness = steepness_of_delta(requirements)  # with a smaller epsilon0, and more people to hide among
    guess = min(requirements.n, 0.95 * most)
    return ceil(bracket_root(log_ratio, guess, steepness=steepness, most=most, tolerance=SEARCH_TOLERANCE)[1])
