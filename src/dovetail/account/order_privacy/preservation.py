r"""(eta, delta)-preservation: how much of a set of people stays at the places of the set.

.. math:: \Pr\bigl[\, |\sigma(S) \cap S| \ge \eta |S| \,\bigr] \ge 1 - \delta

With l = |S| (here `size`) the event is that at most k = floor((1 - eta) l) members are replaced. Everything here is
a public computation about the law of the shuffler; no report is touched.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from dovetail.account.order_privacy.replacement_counts import hamming_counts, prefix_preservation
from dovetail.core.bracket import Bracket
from dovetail.core.checks import not_negative_or_infinite, probability, refuse, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.stages import Shuffler

__all__ = [
    "Preservation",
    "block_retained",
    "failure_of_prefix",
    "hamming_preservation",
    "least_alpha_of_members",
    "least_alpha_of_prefix",
    "most_replaced",
    "prefix_preservation",
    "preservation",
    "replaced",
    "retained_at",
]

CONFIDENCE = 0.99
_LOOKS = 64  # most alphas tried in one search; each interval has a share of what may go wrong
_MOST_ALPHA = 1e6
_ROUNDING = 1e-9  # allowance for the inverse incomplete beta function


@dataclass(frozen=True)
class Preservation:
    """Whether a set keeps a share eta of its members, from draws.

    Parameters
    ----------
    eta : float in [0, 1]
    failures, draws : int
        In how many of the draws more than (1 - eta) of the members were replaced.
    delta : Bracket
        Clopper-Pearson interval for the probability of a failure.
    confidence : float
        With which the interval holds.
    """

    eta: float
    failures: int
    draws: int
    delta: Bracket
    confidence: float


def most_replaced(size: int, eta: float) -> int:
    """k = floor((1 - eta) l), with eta read as the decimal that is written.

    >>> most_replaced(10, 0.9), most_replaced(3, 0.9)
    (1, 0)
    """
    if not 0.0 <= not_negative_or_infinite("eta", eta) <= 1.0:
        raise refuse("eta", "a number in [0, 1]", eta)
    return math.floor((1 - Fraction(repr(float(eta)))) * size)


def hamming_preservation(n: int, size: int, *, eta: float, theta: float) -> float:
    r"""Smallest delta of a set of l among n under Mallows with Hamming's distance.

    .. math:: \delta = \frac{1}{\psi} \sum_{h=2k+2}^{n} c_h e^{-\theta h}, \qquad
              \psi = \sum_{h=0}^{n} \binom{n}{h} D_h e^{-\theta h}, \quad k = \lfloor (1 - \eta) l \rfloor

    For comparison only: at a given alpha, Mallows with Kendall's distance keeps far more.

    Notes
    -----
    Exact integers, then logs: relative error below 1e-11, for n up to 200. The paper prints a ceiling for k, which
    overclaims: n = 7, l = 3, eta = .9, theta = 1 has delta = .860, and the ceiling says .335.

    Examples
    --------
    >>> round(hamming_preservation(7, 3, eta=0.9, theta=1.0), 3)
    0.86

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, Theorem A.4, corrected.
    """
    n = whole("n", n, least=1)
    size = whole("size", size, least=0, most=n)
    k = most_replaced(size, eta)
    if math.isinf(not_negative_or_infinite("theta", theta)):
        return 0.0
    fails, everything = hamming_counts(n, size, k), hamming_counts(n, 0, -1)
    return math.exp(_log_sum(fails, theta) - _log_sum(everything, theta)) if any(fails) else 0.0


def failure_of_prefix(n: int, size: int, *, eta: float, theta: float) -> float:
    """Smallest delta of the first l of n places under Mallows' Kendall law, exactly.

    >>> failure_of_prefix(1000, 100, eta=0.9, theta=0.2) < 0.01
    True
    """
    return float(prefix_preservation(n, size, theta)[most_replaced(size, eta) + 1 :].sum())


def block_retained(n: int, size: int, theta: float) -> float:
    r"""About the expected share of an interior block of l places that stays, under Mallows' Kendall law.

    .. math:: \eta \approx \max\left(1 - \frac{2 \ln 2}{\theta l}, \frac{l}{n}\right)

    Each of the two edges loses ln 2 / theta people; no law of this family keeps less than a uniform shuffle.
    A rule of thumb for 1 / theta much below l; use `preservation` for a statement.
    """
    edges = 2.0 * math.log(2.0) / (theta * size) if theta * size > 0.0 else math.inf
    return max(1.0 - edges, size / n)


def replaced(shuffler: Shuffler, members: ArrayLike, *, draws: int, rng: Entropy | None = None) -> NDArray[np.int64]:
    """Number of members replaced in each of `draws` permutations (draws,)."""
    rng = entropy_or_system(rng)
    own = _checked_members(members, shuffler.n)
    inside = np.zeros(shuffler.n, dtype=np.bool_)
    inside[own] = True
    each = (own.size - int(inside[shuffler.permutation(rng)[own]].sum()) for _ in range(draws))
    return np.fromiter(each, dtype=np.int64, count=whole("draws", draws, least=1))


def preservation(
    shuffler: Shuffler,
    members: ArrayLike,
    *,
    eta: float,
    draws: int,
    rng: Entropy | None = None,
    confidence: float = CONFIDENCE,
) -> Preservation:
    """Smallest delta with which these people keep a share eta of their places, by simulation.

    Parameters
    ----------
    shuffler : Shuffler
    members : int array, people 0..n-1
        Any set; a person named twice counts once.
    eta : float in [0, 1]
    draws : int, at least 1
    rng : Entropy, optional
        A simulation generator: these permutations protect nobody.
    confidence : float in (0, 1)

    Source
    ------
    Meehan et al. (2022), Definition A.4; Clopper, Pearson (1934) for the interval.
    """
    rng = entropy_or_system(rng)
    lost = replaced(shuffler, members, draws=draws, rng=rng)
    k = most_replaced(_checked_members(members, shuffler.n).size, eta)
    failures = int((lost > k).sum())
    return Preservation(eta, failures, draws, _clopper_pearson(failures, draws, confidence), confidence)


def retained_at(law: ArrayLike, size: int, *, delta: float) -> float:
    """Largest eta that holds with probability at least 1 - delta, from a law of the number of replaced members.

    >>> retained_at([0.5, 0.4, 0.1], 4, delta=0.1)
    0.75
    """
    beyond = np.cumsum(np.asarray(law, dtype=np.float64)[::-1])[::-1]  # Pr[at least j replaced]
    return (size - int((beyond[1:] > delta).sum())) / size


def least_alpha_of_prefix(n: int, size: int, *, eta: float, delta: float, sensitivity: int) -> Bracket:
    """Smallest alpha with which the first `size` of n places keep a share eta, with probability 1 - delta.

    For one Mallows order of this exact sensitivity; from the exact law, to a relative width of 1e-6. An upper end
    of 0 says that even the uniform shuffle keeps it.

    >>> bracket = least_alpha_of_prefix(1000, 100, eta=0.9, delta=0.01, sensitivity=45)
    >>> 1.0 < bracket.lower < bracket.upper < 8.0
    True
    """
    probability("delta", delta)
    reach = whole("sensitivity", sensitivity, least=1)

    def failure(alpha: float) -> float:
        return failure_of_prefix(n, size, eta=eta, theta=alpha / reach)

    return Bracket(*_smallest(lambda alpha: failure(alpha) <= delta, tolerance=1e-6))


def least_alpha_of_members(
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
    level = 1.0 - (1.0 - CONFIDENCE) / (2 * _LOOKS)

    def failure(alpha: float) -> Bracket:
        return preservation(fit(alpha), members, eta=eta, draws=draws, rng=rng, confidence=level).delta

    upper = _smallest(lambda alpha: failure(alpha).upper <= delta, tolerance=0.01)[1]
    lower = _smallest(lambda alpha: failure(alpha).lower <= delta, tolerance=0.01)[0]
    return Bracket(min(lower, upper), upper)


def _smallest(holds: Callable[[float], bool], *, tolerance: float) -> tuple[float, float]:
    """Neighbouring alphas low, high with holds(high) and, unless low is 0, not holds(low); at most `_LOOKS` looks."""
    if holds(0.0):
        return 0.0, 0.0
    low, high, looks = 0.0, 1.0, 1
    while not holds(high):
        low, high, looks = high, 2.0 * high, looks + 1
        if high > _MOST_ALPHA:
            raise UnsupportedError(
                f"No alpha up to {_MOST_ALPHA:g} is shown to keep this share of the set; ask for a smaller eta, a "
                "larger delta, or more draws."
            )
    while high - low > tolerance * high and looks < _LOOKS - 1:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
        looks += 1
    return low, high


def _clopper_pearson(failures: int, draws: int, confidence: float) -> Bracket:
    r"""Interval for a probability from `failures` in `draws`: quantiles of Beta(x, n-x+1) and Beta(x+1, n-x)."""
    half = (1.0 - probability("confidence", confidence)) / 2.0
    lower = 0.0 if failures == 0 else float(betaincinv(failures, draws - failures + 1, half)) * (1.0 - _ROUNDING)
    upper = 1.0 if failures == draws else float(betaincinv(failures + 1, draws - failures, 1.0 - half))
    return Bracket(lower, min(1.0, upper * (1.0 + _ROUNDING)))


def _log_sum(counts: list[int], theta: float) -> float:
    """log of the sum of counts[h] e^{-theta h}."""
    logs = np.array([math.log(count) - theta * h for h, count in enumerate(counts) if count])
    return float(logs.max() + np.log(np.exp(logs - logs.max()).sum()))


def _checked_members(members: ArrayLike, n: int) -> NDArray[np.int64]:
    given = np.unique(np.asarray(members))
    if given.size == 0 or given.dtype.kind not in "iu" or given[0] < 0 or given[-1] >= n:
        raise DataError(
            f"`members` must be people 0..{n - 1}, at least one, got {np.asarray(members).tolist()!r:.80}."
        )
    return given.astype(np.int64)
