"""The smallest alpha with which a set of people keeps a share of its places."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike

from dovetail.account.order_privacy.preservation import CONFIDENCE, preservation
from dovetail.account.order_privacy.replacement_counts import prefix_failure_probability
from dovetail.core.bracket import Bracket
from dovetail.core.checks import probability, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import Shuffler

MOST_EVALUATIONS = 64  # most alphas tried in one search; each interval has a share of what may go wrong
MOST_ALPHA = 1e6


def smallest_alpha_for_prefix(n: int, size: int, *, eta: float, delta: float, sensitivity: int) -> Bracket:
    """Smallest alpha with which the first `size` of n places keep a share eta, with probability 1 - delta.

    For one Mallows order of this exact sensitivity; from the exact law, to a relative width of 1e-6. An upper end
    of 0 says that even the uniform shuffle keeps it.

    >>> bracket = smallest_alpha_for_prefix(1000, 100, eta=0.9, delta=0.01, sensitivity=45)
    >>> 1.0 < bracket.lower < bracket.upper < 8.0
    True
    """
    probability("delta", delta)
    reach = whole("sensitivity", sensitivity, least=1)

    def failure(alpha: float) -> float:
        return prefix_failure_probability(n, size, eta=eta, theta=alpha / reach)

    return Bracket(*_smallest(lambda alpha: failure(alpha) <= delta, tolerance=1e-6))


def smallest_alpha_for_members(
    fit: Callable[[float], Shuffler],
    members: ArrayLike,
    *,
    eta: float,
    delta: float,
    draws: int,
    rng: Entropy | None = None,
) -> Bracket:
    """Smallest alpha with which these people keep a share eta of their places, with probability 1 - delta.

    Parameters
    ----------
    fit : alpha -> Shuffler
        Such as `lambda alpha: Mallows.single(groups, alpha=alpha, reference=order)`.
    members : int array, people 0..n-1
    eta : float in [0, 1]
    delta : float strictly between 0 and 1
    draws : int
        For each alpha that is tried; below about 12 / delta draws no alpha can be confirmed.
    rng : Entropy, optional
        A simulation generator.

    Returns
    -------
    Bracket
        At `upper` the failure probability is at most delta, at `lower` it is above (or lower is 0), both together
        with confidence .99; a relative width of each search of 1 % is added by stopping early.

    Raises
    ------
    UnsupportedError
        When no alpha up to 1e6 is confirmed: take more draws, a smaller eta or a larger delta.
    """
    rng = entropy_or_system(rng)
    probability("delta", delta)
    level = 1.0 - (1.0 - CONFIDENCE) / (2 * MOST_EVALUATIONS)

    def failure(alpha: float) -> Bracket:
        return preservation(fit(alpha), members, eta=eta, draws=draws, rng=rng, confidence=level).delta

    upper = _smallest(lambda alpha: failure(alpha).upper <= delta, tolerance=0.01)[1]
    lower = _smallest(lambda alpha: failure(alpha).lower <= delta, tolerance=0.01)[0]
    return Bracket(min(lower, upper), upper)


def _smallest(holds: Callable[[float], bool], *, tolerance: float) -> tuple[float, float]:
    """Alphas low, high with holds(high) and, unless low is 0, not holds(low); at most `MOST_EVALUATIONS` tries."""
    if holds(0.0):
        return 0.0, 0.0
    low, high, looks = 0.0, 1.0, 1
    while not holds(high):
        low, high, looks = high, 2.0 * high, looks + 1
        if high > MOST_ALPHA:
            raise UnsupportedError(
                f"No alpha up to {MOST_ALPHA:g} is shown to keep this share of the set; ask for a smaller eta, a "
                "larger delta, or more draws."
            )
    while high - low > tolerance * high and looks < MOST_EVALUATIONS - 1:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
        looks += 1
    return low, high
