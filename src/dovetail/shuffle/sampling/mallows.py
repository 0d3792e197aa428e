r"""The Mallows law on permutations under Kendall's distance.

.. math:: \Pr[\kappa] = e^{-\theta\, \mathrm{inv}(\kappa)} / \psi_n(\theta), \qquad
          \psi_n(\theta) = \prod_{m=1}^{n} \frac{1 - e^{-m\theta}}{1 - e^{-\theta}}

inv is a sum of independent digits, one for each m = 1..n, geometric with rate theta on [0, m).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from dovetail.core.checks import not_negative_or_infinite, refuse, whole
from dovetail.core.compiled import njit
from dovetail.core.entropy import Entropy, Permutation, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.stages import Reports
from dovetail.shuffle.sampling.lehmer_code import MOST_THETA, LehmerCode, decode_lehmer_code, draw_lehmer_code
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


# Mallows shuffling of a line that never fits into memory: reports come in reference order and go out shuffled.


_BATCH = 1 << 16
_ENDLESS = (1 << 31) - 1 - _BATCH  # places that may follow: digits are drawn as if so many did


def shuffle_out_of_core(batches: Iterable[ArrayLike], theta: float, rng: Entropy | None = None) -> Iterator[Reports]:
    r"""The reports of `batches`, shuffled by the Mallows law of all of them, without knowing how many there are.

    Place t releases the (c + 1)-th of the reports that are still held back, reading on until there are so many. The
    digit c is drawn as if the line had no end; where the input ends before it, c is thrown away and drawn again
    below the number of reports that are left. That is rejection, so the law is exactly the one of a known length.

    Parameters
    ----------
    batches : iterable of arrays (any number, ..)
        Reports in reference order, below 2^31 in all; the last place must not depend on the values.
    theta : float above 0, at most 1000, or infinite
    rng : Entropy, optional

    Yields
    ------
    array (any number, ..)
        Released reports, in order.

    Notes
    -----
    Holds back about (log n + 30) / theta reports and a batch of 65,536; with theta = 0 nothing could be released
    before the end, so use `Uniform`.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> list(shuffle_out_of_core([[10, 11, 12], [13, 14]], 1.0, simulation(3)))
    [array([11, 13, 10, 12]), array([14])]
    """
    rng = entropy_or_system(rng)
    rate = not_negative_or_infinite("theta", theta)
    if rate == 0.0 or MOST_THETA < rate < math.inf:
        raise refuse("theta", "above 0 and at most 1000, or infinite", theta)
    return _flow(batches, rate, rng)


def _flow(batches: Iterable[ArrayLike], theta: float, rng: Entropy) -> Iterator[Reports]:
    held: Reports | None = None
    drawn = np.empty(0, dtype=np.int32)  # digits that were not used yet
    read = 0
    for batch in _gathered(batches, max(_BATCH, int(4.0 / theta))):
        read += len(batch)
        if read > _ENDLESS:
            raise DataError(f"`batches` must hold at most {_ENDLESS:,} reports.")
        if math.isinf(theta):
            yield batch
            continue
        pool = batch if held is None else np.concatenate((held, batch))
        while drawn.size < len(pool):
            drawn = np.concatenate((drawn, _endless(theta, rng)))
        taken, left = _release(drawn, len(pool), theta)
        drawn, held = drawn[taken.size :], pool[left]
        if taken.size:
            yield pool[taken]
    if held is not None and len(held):
        last = np.array([0, len(held)]), np.array([theta])
        yield held[decode_lehmer_code(draw_lehmer_code(*last, rng), *last)]


def _endless(theta: float, rng: Entropy) -> LehmerCode:
    return draw_lehmer_code(np.array([0, _BATCH]), np.array([theta]), rng, beyond=_ENDLESS)


def _gathered(batches: Iterable[ArrayLike], least: int) -> Iterator[Reports]:
    """Batches joined until they hold at least so many reports; the last one may be smaller."""
    parts: list[Reports] = []
    for batch in batches:
        rows = np.asarray(batch)
        if rows.ndim == 0:
            raise DataError("`batches` must be arrays of reports, got a single value.")
        for start in range(0, len(rows), least):
            parts.append(rows[start : start + least])
            if sum(map(len, parts)) >= least:
                yield np.concatenate(parts)
                parts = []
    if parts:
        yield np.concatenate(parts)


def _release(drawn: LehmerCode, held: int, theta: float) -> tuple[Permutation, Permutation]:
    """Reports at hand that are released, in order, and those left when a digit is too large for them."""
    late = np.flatnonzero(drawn[:held] >= np.arange(held, 0, -1))
    count = int(late[0]) if late.size else held
    padded = np.zeros(held, dtype=np.int32)  # digits 0 line up what is left
    padded[:count] = drawn[:count]
    order = decode_lehmer_code(padded, np.array([0, held]), np.array([theta]))
    return order[:count], order[count:]
