r"""The Mallows law on permutations under Kendall's distance.

.. math:: \Pr[\kappa] = e^{-\theta\, \mathrm{inv}(\kappa)} / \psi_n(\theta), \qquad
          \psi_n(\theta) = \prod_{m=1}^{n} \frac{1 - e^{-m\theta}}{1 - e^{-\theta}}

inv is a sum of independent digits, one for each m = 1..n, geometric with rate theta on [0, m).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from dovetail.core.checks import not_negative_or_infinite, refuse, whole
from dovetail.core.compiled import njit
from dovetail.core.entropy import Entropy, Permutation, entropy_or_system
from dovetail.shuffle.sampling.lehmer_code import MOST_THETA, decode_lehmer_code, draw_lehmer_code
from dovetail.shuffle.sampling.permutations import inverse

Terms = NDArray[np.float64]  # one per digit

_CHUNK = 1 << 20


def draw_mallows(n: int, theta: float, rng: Entropy | None = None) -> Permutation:
    """A draw from the Mallows law around the identity, exact for every theta in [0, 1000] and for infinity."""
    rng = entropy_or_system(rng)
    n = whole("n", n, least=1)
    if MOST_THETA < not_negative_or_infinite("theta", theta) < math.inf:
        raise refuse("theta", "at most 1000 or infinite", theta)
    if theta == 0.0:
        return rng.permutation(n)
    if math.isinf(theta):
        return np.arange(n, dtype=np.int64)
    starts, thetas = np.array([0, n]), np.array([theta], dtype=np.float64)
    return decode_lehmer_code(draw_lehmer_code(starts, thetas, rng), starts, thetas)


def inversions(permutation: ArrayLike) -> int:
    """Pairs i < j with permutation[i] > permutation[j]; merge sort, O(n log n).

    >>> inversions([2, 1, 0, 4, 3, 5, 7, 6])
    5
    """
    return int(_merge_count(np.array(permutation, dtype=np.int64)))


def kendall_distance(order: Permutation, other: Permutation) -> int:
    """Pairs of items that stand in different order in two orders of the same items.

    >>> kendall_distance(np.array([2, 0, 1]), np.array([0, 1, 2]))
    2

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, Definition A.2.
    """
    return inversions(inverse(other)[order])


def hamming_distance(order: Permutation, other: Permutation) -> int:
    """Places at which two orders have different items: 0, or 2 and more.

    >>> hamming_distance(np.array([2, 0, 1]), np.array([0, 2, 1]))
    2

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, Definition A.3.
    """
    return int(np.count_nonzero(order != other))


def log_normalizer(n: int, theta: float) -> float:
    r"""log psi_n(theta), from log n! at theta = 0 down to 0 at infinity.

    Notes
    -----
    O(n). Each factor has relative error of about 1e-15 in its logarithm or in its distance from 1, near theta = 0 by
    factoring out m, for large theta by log1p.
    """
    if theta == 0.0:
        return float(gammaln(n + 1.0))
    if math.isinf(theta):
        return 0.0
    if theta >= 1.0:
        return _sum(n, lambda m: np.log1p(-np.exp(-m * theta)) - math.log1p(-math.exp(-theta)))
    return _sum(n, lambda m: np.log(m) + _log_shrink(m * theta) - _log_shrink(np.float64(theta)))


def _sum(n: int, term: Callable[[Terms], Terms]) -> float:
    """Sum of term(m) over m = 1..n without n doubles in memory."""
    starts = range(1, n + 1, _CHUNK)
    return math.fsum(float(term(np.arange(m, min(m + _CHUNK, n + 1), dtype=np.float64)).sum()) for m in starts)


def _log_shrink(y: Terms | np.float64) -> Terms:
    """log((1 - e^-y) / y) for y > 0, without cancellation near 0."""
    return np.asarray(np.log(-np.expm1(-y) / y))


@njit(cache=True, nogil=True)
def _merge_count(items: Permutation) -> int:
    """Inversions of `items`, which is sorted in the process."""
    n, count, width = items.size, 0, 1
    spare = np.empty_like(items)
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for place in range(start, stop):
                if j >= stop or (i < middle and items[i] <= items[j]):
                    spare[place] = items[i]
                    i += 1
                else:
                    spare[place] = items[j]
                    count += middle - i
                    j += 1
        items, spare = spare, items
        width *= 2
    return count
