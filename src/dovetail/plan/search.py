"""Requirements solved for the epsilon0 of one kind of randomizer, or for n; every answer is an evaluated point."""

from __future__ import annotations

from bisect import bisect_left
from math import ceil, inf, log

from dovetail.account.amplify import amplify, central_epsilon
from dovetail.account.blanket.expected_positive_part import POINTS
from dovetail.account.calibrate import max_epsilon
from dovetail.account.clones.stronger_clones import MOST_PEOPLE
from dovetail.account.threshold_search import bracket_root
from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.plan.accuracy import predict_accuracy
from dovetail.plan.families import RandomizerFamily
from dovetail.plan.requirements import Requirements

EPSILON0_TOLERANCE = 1e-6  # of the smallest epsilon0
SEARCH_TOLERANCE = 1e-3  # of the largest epsilon0, and of the smallest n
SEARCH_POINTS = POINTS // 4  # an epsilon that is larger by 1e-4 of itself at most, in a quarter of the time


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
    honest = requirements.honest_with_anyone(n)
    start = min(max_epsilon(epsilon=epsilon, n=honest, delta=requirements.delta), family.largest_epsilon0)

    def log_slack(epsilon0: float) -> float:
        reached = guaranteed_epsilon(family, epsilon0, requirements, n=n, points=SEARCH_POINTS)
        return log(epsilon / reached) if reached > 0.0 else inf

    slack = log_slack(start)
    if 0.0 <= slack < SEARCH_TOLERANCE or (slack >= 0.0 and start == family.largest_epsilon0):
        return start
    found, _ = bracket_root(
        log_slack, start, steepness=max(1.0, start / 2.0), most=family.largest_epsilon0, tolerance=SEARCH_TOLERANCE
    )
    return max(found, min(epsilon, family.largest_epsilon0))  # shuffling never takes privacy away


def smallest_n(family: RandomizerFamily, requirements: Requirements, *, error: float, epsilon: float) -> int | None:
    """The least n, to within a thousandth, at which both requirements hold with the same share of honest people."""

    def log_ratio(people: float) -> float:
        n = max(1, ceil(people))
        epsilon0 = smallest_epsilon0(family, requirements, error=error, n=n)
        if epsilon0 is None:
            return inf
        reached = guaranteed_epsilon(family, epsilon0, requirements, n=n, points=SEARCH_POINTS)
        return log(max(reached, 1e-300) / epsilon)

    if log_ratio(1) <= 0.0:
        return 1
    if log_ratio(MOST_PEOPLE) > 0.0:
        return None
    return ceil(
        bracket_root(log_ratio, requirements.n, steepness=1.0, most=MOST_PEOPLE, tolerance=SEARCH_TOLERANCE)[1]
    )
