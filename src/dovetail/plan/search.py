"""One wish solved for the noise of one kind of randomizer; answers are points that were evaluated."""

from __future__ import annotations

from bisect import bisect_left
from math import ceil, inf, log

from dovetail.account.amplify import amplify, central_epsilon
from dovetail.account.calibrate import max_epsilon
from dovetail.account.clones.stronger_clones import MOST_PEOPLE
from dovetail.account.threshold_search import bracket_root
from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.plan.accuracy import predict
from dovetail.plan.families import Family
from dovetail.plan.requirements import Wish

TOLERANCE = 1e-6  # of the smallest epsilon0
ROOM = 1e-3  # of the largest epsilon0, and of the smallest n


def error_at(family: Family, epsilon0: float, wish: Wish, *, n: int) -> float:
    """95 % error of this kind; infinite where it cannot be built."""
    try:
        return predict(family.make(epsilon0, n), n=n, shares=wish.shares).error95
    except ParameterError:
        return inf


def promise(family: Family, epsilon0: float, wish: Wish, *, n: int) -> CentralDP:
    """The central guarantee of n people of whom the same share is honest."""
    honest = max(1, n * wish.honest // wish.n)
    return amplify(family.make(epsilon0, n), n=n, delta=wish.delta, honest=honest)


def central(family: Family, epsilon0: float, wish: Wish, *, n: int) -> float:
    """The epsilon of `promise`, without what stands beside it."""
    return central_epsilon(family.make(epsilon0, n), n=max(1, n * wish.honest // wish.n), delta=wish.delta)


def smallest_epsilon0(family: Family, wish: Wish, *, error: float, n: int) -> float | None:
    """The least epsilon0 with an error of at most `error`; None where no epsilon0 reaches it.

    The error falls between breaks and so does its value from break to break: the first piece that ends low enough
    holds the answer.
    """
    ends = (*family.breaks, family.most)
    piece = bisect_left(ends, True, key=lambda end: error_at(family, end, wish, n=n) <= error)
    if piece == len(ends):
        return None
    start = ends[piece - 1] * (1.0 + 1e-9) if piece else 0.0

    def excess(epsilon0: float) -> float:
        if epsilon0 <= start:
            return inf
        reached = error_at(family, epsilon0, wish, n=n)
        return log(reached / error) if reached > 0.0 else -inf

    guess = min(max(1.0, 1.01 * start), ends[piece])
    return bracket_root(excess, guess, steepness=1.0, most=ends[piece], tolerance=TOLERANCE)[1]


def best_epsilon0(family: Family, wish: Wish, *, epsilon: float, n: int) -> float:
    """The epsilon0 with the smallest error among those whose shuffled reports are (epsilon, delta)-private."""
    largest = largest_epsilon0(family, wish, epsilon=epsilon, n=n)
    before = family.breaks[: bisect_left(family.breaks, largest)][-1:]  # a little less may be more accurate
    return min((largest, *before), key=lambda epsilon0: error_at(family, epsilon0, wish, n=n))


def largest_epsilon0(family: Family, wish: Wish, *, epsilon: float, n: int) -> float:
    """The largest epsilon0 found admissible: every randomizer's, or more where this kind amplifies more."""
    honest = max(1, n * wish.honest // wish.n)
    start = min(max_epsilon(epsilon=epsilon, n=honest, delta=wish.delta), family.most)

    def room(epsilon0: float) -> float:
        reached = central(family, epsilon0, wish, n=n)
        return log(epsilon / reached) if reached > 0.0 else inf

    slack = room(start)
    if 0.0 <= slack < ROOM or (slack >= 0.0 and start == family.most):
        return start
    found, _ = bracket_root(room, start, steepness=max(1.0, start / 2.0), most=family.most, tolerance=ROOM)
    return max(found, min(epsilon, family.most))  # shuffling never takes privacy away


def smallest_people(family: Family, wish: Wish, *, error: float, epsilon: float) -> int | None:
    """The least n, to within a thousandth, at which both wishes hold with the same share of honest people."""

    def excess(people: float) -> float:
        n = max(1, ceil(people))
        epsilon0 = smallest_epsilon0(family, wish, error=error, n=n)
        if epsilon0 is None:
            return inf
        return log(max(central(family, epsilon0, wish, n=n), 1e-300) / epsilon)

    if excess(1) <= 0.0:
        return 1
    if excess(MOST_PEOPLE) > 0.0:
        return None
    return ceil(bracket_root(excess, wish.n, steepness=1.0, most=MOST_PEOPLE, tolerance=ROOM)[1])
