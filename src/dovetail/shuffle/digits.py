r"""Digits of a Mallows permutation: independent, exactly geometric, each below its own bound.

.. math:: \Pr[c = k] \propto e^{-\theta k}, \quad k = 0, .., m - 1

A digit is a draw from a wider geometric law, repeated until it falls below m: on all whole numbers while
theta m >= 1, otherwise on [0, 2^j) with 2^(j-1) < m <= 2^j. Both are drawn by comparing words with exact integer
thresholds, so no floating-point number touches the law and the promise stays pure.
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.geometric import geometric

Digits = NDArray[np.int64]  # (count,)
Bounds = NDArray[np.int64]  # (count,), at least 1, never increasing

MOST_THETA = 1000.0  # the chance e^-1000 of any inversion is nobody's; a smaller theta only promises more


def digits(bounds: Bounds, theta: float, rng: Entropy) -> Digits:
    """One digit below each of the bounds, for theta in [0, 1000]; n, n-1, .., 1 for one permutation."""
    result = np.zeros(bounds.size, dtype=np.int64)
    rate = Fraction(theta)
    for start, stop, bits in _classes(bounds, theta):
        while start < stop:  # a digit takes the first value below its bound in an endless list of draws
            left = stop - start
            spare = 0 if bits is None else int(0.4 * left + 3 * left**0.5) + 4
            start = _accept(result, bounds, start, stop, geometric(rate, left + spare, rng, bits=bits))
    return result


def _classes(bounds: Bounds, theta: float) -> Iterator[tuple[int, int, int | None]]:
    """Slices (start, stop) of the bounds that share a wider law: all whole numbers (None) or [0, 2^bits)."""
    start = int(np.count_nonzero(bounds * theta >= 1.0))
    yield 0, start, None
    while start < bounds.size and bounds[start] > 1:  # the digit below 1 is 0
        bits = int(bounds[start] - 1).bit_length()
        stop = bounds.size - int(np.searchsorted(bounds[::-1], 1 << (bits - 1), side="right"))
        yield start, stop, bits
        start = stop


@njit(cache=True, nogil=True)
def _accept(result: Digits, bounds: Bounds, start: int, stop: int, draws: Digits) -> int:
    """Hand out the draws in order, skipping those that are too large; returns the first digit without one."""
    for draw in draws:
        if start == stop:
            break
        if draw < bounds[start]:
            result[start] = draw
            start += 1
    return start
