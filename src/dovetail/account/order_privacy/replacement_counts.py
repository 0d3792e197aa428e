"""How many members of a set are replaced by others: exact laws under Mallows permutations."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import not_negative_or_infinite, refuse, whole
from dovetail.core.errors import UnsupportedError

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
