r"""(eta, delta)-preservation: how much of a set of people stays at the places of the set.

.. math:: \Pr\bigl[\, |\sigma(S) \cap S| \ge \eta |S| \,\bigr] \ge 1 - \delta

With l = |S| (here `size`) the event is that at most k = floor((1 - eta) l) members are replaced. Everything here is
a public computation about the law of the shuffler; no report is touched. `query_preservation` asks the same of a
query and of data like those to be collected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from dovetail.core.certified import Bracket
from dovetail.core.checks import not_negative_or_infinite, probability, refuse, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.stages import Shuffler

# How many members of a set are replaced by others: exact laws under Mallows permutations.


Pmf = NDArray[np.float64]  # (most + 1,): probability of 0, 1, .., most replaced members

MOST_HAMMING = 200


@cache
def arrangements(p: int, m: int) -> int:
    r"""Ways to place p objects that must leave their place and m that may go anywhere on p + m places.

    .. math:: f(p, m) = \sum_{t=0}^{p} (-1)^t \binom{p}{t} (p + m - t)!

    >>> arrangements(4, 0), arrangements(0, 3), arrangements(1, 1)
    (9, 6, 1)
    """
    return sum((-1) ** t * math.comb(p, t) * math.factorial(p + m - t) for t in range(p + 1))


def hamming_counts(n: int, size: int, k: int) -> list[int]:
    r"""c_h for h = 0..n: permutations that move h people and bring more than k outsiders into a set of l = `size`.

    .. math:: c_h = \sum_{j > k} \binom{l}{j} \binom{n-l}{j} \sum_i \binom{l-j}{i} f(i, j)
              \binom{n-l-j}{h-2j-i} f(h-2j-i, j)

    Notes
    -----
    Exact integers, for n up to 200. The paper prints a further factor C(i + j, j) and a factorial on the last f.

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, Theorem A.4, corrected.
    """
    if n > MOST_HAMMING:
        raise UnsupportedError(
            f"Theorem A.4 is summed for at most {MOST_HAMMING} people, got {n:,}; use preservation."
        )
    counts = [0] * (n + 1)
    for j in range(k + 1, min(size, n - size) + 1):
        inside = [math.comb(size - j, i) * arrangements(i, j) for i in range(size - j + 1)]
        others = n - size - j
        outside = [math.comb(others, i) * arrangements(i, j) for i in range(others + 1)]
        ways = math.comb(size, j) * math.comb(n - size, j)
        for i, left in enumerate(inside):
            for o, right in enumerate(outside):
                counts[2 * j + i + o] += ways * left * right
    return counts


def prefix_replacement_distribution(n: int, size: int, theta: float) -> Pmf:
    r"""Law of the number of replaced members of the first (or last) l = `size` places under Mallows' Kendall law.

    .. math:: \Pr[j] = q^{j^2} \binom{l}{j}_q \binom{n-l}{j}_q \Big/ \binom{n}{l}_q, \qquad q = e^{-\theta}

    Parameters
    ----------
    n : int, at least 1
    size : int, 0 .. n
    theta : float, at least 0
        0 gives the hypergeometric law, infinity no replacement.

    Returns
    -------
    float array (min(size, n - size) + 1,)

    Notes
    -----
    O(l). Summed outwards from the mode in logs, where each step q^{2j-1} [l-j+1] [n-l-j+1] / [j]^2 is known to its
    last digits: relative error below 1e-10 where the law is above 1e-30, for n up to 1e6 and every theta.

    Source
    ------
    Counting inversions between the set and the others; the terms sum to 1 by the q-Vandermonde identity.
    """
    n = whole("n", n, least=1)
    size = whole("size", size, least=0, most=n)
    most = min(size, n - size)
    if math.isinf(not_negative_or_infinite("theta", theta)):
        return np.asarray(np.arange(most + 1) == 0, dtype=np.float64)
    j = np.arange(1.0, most + 1.0)
    steps = _log_number(size - j + 1, theta) + _log_number(n - size - j + 1, theta) - 2 * _log_number(j, theta)
    steps -= theta * (2 * j - 1)
    mode = int((steps > 0.0).sum())  # steps fall
    above, below = np.cumsum(steps[mode:]), -np.cumsum(steps[:mode][::-1])[::-1]
    weights = np.exp(np.concatenate((below, [0.0], above)))
    return np.asarray(weights / weights.sum())


def max_replacements(size: int, eta: float) -> int:
    """k = floor((1 - eta) l), with eta read as the decimal that is written.

    >>> max_replacements(10, 0.9), max_replacements(3, 0.9)
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
    k = max_replacements(size, eta)
    if math.isinf(not_negative_or_infinite("theta", theta)):
        return 0.0
    fails, everything = hamming_counts(n, size, k), hamming_counts(n, 0, -1)
    return math.exp(_log_sum(fails, theta) - _log_sum(everything, theta)) if any(fails) else 0.0


def prefix_failure_probability(n: int, size: int, *, eta: float, theta: float) -> float:
    """Smallest delta of the first l of n places under Mallows' Kendall law, exactly.

    >>> prefix_failure_probability(1000, 100, eta=0.9, theta=0.2) < 0.01
    True
    """
    return float(prefix_replacement_distribution(n, size, theta)[max_replacements(size, eta) + 1 :].sum())


def _log_number(m: NDArray[np.float64], theta: float) -> NDArray[np.float64]:
    """log of (1 - e^{-m theta}) / theta, which at theta = 0 is m."""
    y = m * theta
    return np.asarray(np.log(m) + np.log(np.divide(-np.expm1(-y), y, out=np.ones_like(y), where=y > 0.0)))


def _log_sum(counts: list[int], theta: float) -> float:
    """log of the sum of counts[h] e^{-theta h}."""
    logs = np.array([math.log(count) - theta * h for h, count in enumerate(counts) if count])
    return float(logs.max() + np.log(np.exp(logs - logs.max()).sum()))


CONFIDENCE = 0.99
_ROUNDING = 1e-9  # allowance for the inverse incomplete beta function


@dataclass(frozen=True)
class Preservation:
    """A test from draws that a set keeps a share eta of its members.

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


def sample_replacements(
    shuffler: Shuffler, members: ArrayLike, *, draws: int, rng: Entropy | None = None
) -> NDArray[np.int64]:
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
    lost = sample_replacements(shuffler, members, draws=draws, rng=rng)
    k = max_replacements(_checked_members(members, shuffler.n).size, eta)
    failures = int((lost > k).sum())
    return Preservation(eta, failures, draws, clopper_pearson(failures, draws, confidence), confidence)


def query_preservation(
    shuffler: Shuffler,
    values: ArrayLike,
    query: Callable[[NDArray[np.float64]], float],
    *,
    tolerance: float,
    draws: int,
    rng: Entropy | None = None,
    confidence: float = CONFIDENCE,
) -> Preservation:
    r"""Smallest delta with which the answer to a query about these values in order moves by at most a tolerance.

    .. math:: \Pr[\, |q(x_\sigma) - q(x)| > t \,] \le \delta

    (eta, delta)-preservation looks at people alone: a set may lose members to others who hold the same, and a query
    may be about few of them. This looks at the data and the query. Use it where population data like those to be
    collected are known; what it says depends on them.

    Parameters
    ----------
    shuffler : Shuffler
    values : float array (n,)
        In the order of people.
    query : function of a float array (n,) to a number
        Of values in the order of places, such as the mean of a region's.
    tolerance : float, at least 0
        In units of the answer; an infinite or missing answer is a failure.
    draws, rng, confidence : as in `preservation`

    Returns
    -------
    preservation : Preservation
        With the tolerance as `eta`.

    Source
    ------
    Ours, after Meehan et al. (2022), Definition A.4.
    """
    rng = entropy_or_system(rng)
    held = np.asarray(values, dtype=np.float64)
    if held.shape != (shuffler.n,):
        raise DataError(f"`values` must hold a number for each of {shuffler.n:,} people, got shape {held.shape}.")
    limit, truth = not_negative_or_infinite("tolerance", tolerance), float(query(held))
    whole("draws", draws, least=1)
    kept = sum(abs(float(query(held[shuffler.permutation(rng)])) - truth) <= limit for _ in range(draws))
    failures = draws - kept
    return Preservation(limit, failures, draws, clopper_pearson(failures, draws, confidence), confidence)


def clopper_pearson(failures: int, draws: int, confidence: float) -> Bracket:
    r"""Interval for a probability from `failures` in `draws`: quantiles of Beta(x, n-x+1) and Beta(x+1, n-x)."""
    half = (1.0 - probability("confidence", confidence)) / 2.0
    lower = 0.0 if failures == 0 else float(betaincinv(failures, draws - failures + 1, half)) * (1.0 - _ROUNDING)
    upper = 1.0 if failures == draws else float(betaincinv(failures + 1, draws - failures, 1.0 - half))
    return Bracket(lower, min(1.0, upper * (1.0 + _ROUNDING)))


def _checked_members(members: ArrayLike, n: int) -> NDArray[np.int64]:
    given = np.unique(np.asarray(members))
    if given.size == 0 or given.dtype.kind not in "iu" or given[0] < 0 or given[-1] >= n:
        raise DataError(
            f"`members` must be people 0..{n - 1}, at least one, got {np.asarray(members).tolist()!r:.80}."
        )
    return given.astype(np.int64)


# The smallest alpha with which a set of people keeps a share of its places.


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
