"""Shuffling reports that are only approximately private: the clone pair plus what every delta0 adds."""

from __future__ import annotations

import math
from collections.abc import Callable

from dovetail.account.bound import Bound
from dovetail.account.clones.stronger_clones import RESOLUTION, ClonePair, normal_threshold
from dovetail.account.threshold_search import bracket_root, log_ratio
from dovetail.core.bracket import Bracket
from dovetail.core.checks import share

NAME = "clones, approximate"
SOURCE = "Feldman, McMillan, Talwar (2021), Hiding Among the Clones, Proposition 2.2 of the workshop version"
LOCAL = "post-processing of the local guarantee"
TURNS = 60  # golden section gains a fifth of a digit a turn


def amplify_approximate(epsilon0: float, delta0: float, *, n: int, delta: float) -> Bound:
    r"""An upper bound on the central epsilon of n shuffled (epsilon0, delta0)-private reports.

    .. math:: \delta_{\mathrm{total}}(\epsilon) = \delta_{\mathrm{clone}}(\epsilon)
              + (e^{\epsilon} + 1)(1 + e^{-\epsilon_0})\, n\, \delta_0

    For Gaussian and other randomizers without a pure guarantee; `amplify` is tighter for pure ones. The second term
    grows with epsilon, so the answer is the smallest epsilon on the falling branch. From delta >= delta0 on the local
    epsilon0 holds in any case.

    Parameters
    ----------
    epsilon0 : float, above 0, at most 700, nats
    delta0 : float, at least 0, below 1
        The guarantee of one report; each randomizer may be chosen after seeing the reports before.
    n : int, 1 .. 1e12
        Honest reports in the batch.
    delta : float, at least 0, below 1

    Returns
    -------
    bound : Bound
        Without a value, and with the reason "n * delta0 too large", where neither theorem says anything.

    Examples
    --------
    >>> bound = amplify_approximate(1.0, 1e-14, n=10_000, delta=1e-6)
    >>> bound.name, round(bound.epsilon, 4)
    ('clones, approximate', 0.053)
    >>> amplify_approximate(1.0, 1e-8, n=10_000, delta=1e-9).epsilon is None
    True

    Source
    ------
    Feldman, McMillan, Talwar (2021), Hiding Among the Clones, Proposition 2.2 of the workshop version.
    """
    pair, target = ClonePair(epsilon0, n, "clones"), share("delta", delta)
    slack = total_variation(pair, share("delta0", delta0))
    found = _ends(pair, target, slack) if target > 0.0 else None
    if found is not None:
        return Bound(NAME, found.upper, SOURCE, lower=found.lower)
    reason = too_large_reason(slack, target) if slack > 0.0 else "at delta 0 shuffling amplifies nothing"
    if target >= delta0:
        return Bound("local", pair.epsilon0, LOCAL, reason)
    return Bound.inapplicable(NAME, reason, source=SOURCE)


def _ends(pair: ClonePair, delta: float, slack: float) -> Bracket | None:
    """Ends of the smallest epsilon with delta_total(epsilon) <= delta; None without one."""
    blocks = pair.blocks(1e-8 * delta, RESOLUTION)
    guess = pair.gaussian_scale * normal_threshold(delta / pair.gaussian_scale)[0]
    found = smallest_epsilon(lambda e: pair.upper(e, blocks), delta, slack=slack, most=pair.epsilon0, guess=guess)
    if found is None:
        return None
    high = found[1]
    below = smallest_epsilon(lambda e: pair.lower(e, blocks), delta, slack=slack, most=pair.epsilon0, guess=high)
    return Bracket(0.0 if below is None else min(below[0], high), high)


def total_variation(pair: ClonePair, delta0: float) -> float:
    r"""How far n such reports may be from purely private ones: (1 + e^-epsilon0) n delta0."""
    return (1.0 + math.exp(-pair.epsilon0)) * pair.n * delta0


def too_large_reason(slack: float, delta: float) -> str:
    """Why there is no amplification."""
    return f"n * delta0 too large: it adds at least {2.0 * slack:.3g} to delta, of {delta:.3g}"


def smallest_epsilon(
    curve: Callable[[float], float], delta: float, *, slack: float, most: float, guess: float
) -> tuple[float, float] | None:
    """Two points around the smallest epsilon with curve(epsilon) + (e^epsilon + 1) slack <= delta; None without one.

    Both are evaluated: above `delta` at the first (or 0), at most `delta` at the second. Both terms are convex in
    e^epsilon, so the points that qualify are an interval, found by golden section.

    Parameters
    ----------
    curve : function of epsilon that falls and is convex in e^epsilon
    slack : float, at least 0
    most : float, nats
        Where to stop looking.
    guess : float, above 0, nats
        About the answer; a wrong one costs time only.
    """

    def total(epsilon: float) -> float:
        return curve(epsilon) + (math.exp(epsilon) + 1.0) * slack if slack > 0.0 else curve(epsilon)

    if 2.0 * slack > delta:
        return None
    if total(0.0) <= delta:
        return 0.0, 0.0
    end = min(most, math.log(max(delta / slack - 1.0, 1.0))) if slack > 0.0 else most
    feasible = _feasible(total, delta, end)
    if feasible is None:
        return None
    start = guess if guess < feasible else 0.5 * feasible
    return bracket_root(lambda e: log_ratio(total(e), delta), start, steepness=10.0, most=feasible, tolerance=1e-8)


def _feasible(total: Callable[[float], float], delta: float, end: float) -> float | None:
    """A point of [0, end] with total <= delta, looked for around the minimum."""
    if total(end) <= delta:
        return end
    golden, low, high = 0.5 * (math.sqrt(5.0) - 1.0), 0.0, end
    left, right = high - golden * high, golden * high
    at_left, at_right = total(left), total(right)
    for _ in range(TURNS):
        if min(at_left, at_right) <= delta:
            return left if at_left <= delta else right
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = total(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = total(right)
    return None
