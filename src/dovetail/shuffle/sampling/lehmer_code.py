r"""Lehmer codes of Mallows permutations: digits are independent, exactly geometric, each below its own bound.

.. math:: \Pr[c = k] \propto e^{-\theta k}, \quad k = 0, .., m - 1

A uniform number U is a list of 64-bit words of which only as many are drawn as the outcome needs. While theta m > 1
the digit is floor(-log(1 - U) / theta), drawn again until it falls below m; otherwise a uniform k below m is kept
when 1 - U <= e^(-theta k). One word and double precision nearly always decide; where the outcome lies within the
proven error of a step, exact rational arithmetic and further words decide. The law is therefore the ideal one,
whatever theta is, without tables, and the promise stays pure.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dovetail.core.compiled import njit
from dovetail.core.entropy import Entropy, Words
from dovetail.shuffle.sampling.log_kernel import ERROR, minus_logs
from dovetail_protocol.exact_thresholds import GeometricLaw

LehmerCode = NDArray[np.int32]  # (n,)
Numbers = NDArray[np.float64]
BlockStarts = NDArray[np.int64]  # (blocks + 1,), from 0 to n
Thetas = NDArray[np.float64]  # (blocks,), theta of each block

MOST_THETA = 1000.0  # the chance e^-1000 of any inversion is nobody's; a smaller theta only promises more

_CHUNK = 1 << 14  # words at a time, so that they stay in the cache
_BATCH = 512  # logarithms at a time
_DECIDED, _INVERSION_OPEN, _REJECTION_OPEN = 0, 1, 2  # whether a word left the outcome open, and on which path
_UNIT = 2.0**-64
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_RARE = np.uint64(1 << 52)  # below it 1 / w is above the error of the logarithm


def draw_lehmer_code(starts: BlockStarts, thetas: Thetas, rng: Entropy, *, beyond: int = 0) -> LehmerCode:
    """The digits (n,) of one Mallows permutation of each block, with bounds m = size, size - 1, .., 1.

    theta lies in [0, 1000]. A block with theta = 0 gets zeros: shuffle it uniformly instead. All bounds are larger by
    `beyond` when as many places follow each block that are not asked for; bounds stay below 2^31.
    """
    result = np.zeros(int(starts[-1]), dtype=np.int32)
    scratch = np.empty((2, _BATCH))  # logarithms, and room to compute them
    block = place = 0
    while block < thetas.size:
        words, used, doubt = rng.words(min(_CHUNK, 2 * (result.size - place) + 2)), 0, _INVERSION_OPEN
        while doubt:
            block, place, used, doubt, word = _fill(
                result, starts, beyond, thetas, words, scratch, block, place, used
            )
            if doubt:
                bound = int(starts[block + 1]) + beyond - place
                place += _decide_exactly(
                    result, place, doubt == _REJECTION_OPEN, int(word), bound, float(thetas[block]), rng
                )
    return result


def _decide_exactly(
    result: LehmerCode, place: int, flat: bool, word: int, bound: int, theta: float, rng: Entropy
) -> int:
    """Decide exactly what `word`, the first 64 bits of U, means for this place; returns how many digits are fixed."""
    c = GeometricLaw(Fraction(theta)).settle(word, lambda: int(rng.words(1)[0]))
    if flat:  # 1 - U <= e^(-theta k) exactly when the geometric number of U is at least k
        return int(c >= int(result[place]))
    if c < bound:
        result[place] = c
    return int(c < bound)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(
    result: LehmerCode,
    starts: BlockStarts,
    beyond: int,
    thetas: Thetas,
    words: Words,
    scratch: Numbers,
    block: int,
    place: int,
    used: int,
) -> tuple[int, int, int, int, np.uint64]:
    """Fill places until the words end or one of them leaves the outcome open: (block, place, used, doubt, word)."""
    while block < thetas.size:
        theta, stop = thetas[block], starts[block + 1]
        end = stop + beyond
        if theta == 0.0:
            place = stop
        elif (end - place) * theta > 1.0:
            last = min(end - np.int64(1.0 / theta), np.int64(stop))
            place, used, doubt, word = _by_inversion(result, theta, place, last, end, words, scratch, used)
            if place < last:
                return block, place, used, doubt, word
        if place < stop:
            place, used, doubt, word = _by_rejection(result, theta, place, stop, end, words, used)
            if place < stop:
                return block, place, used, doubt, word
        block += 1
    return block, place, used, _DECIDED, np.uint64(0)


@njit(cache=True, nogil=True, error_model="numpy")
def _by_inversion(
    result: LehmerCode, theta: float, place: int, last: int, end: int, words: Words, scratch: Numbers, used: int
) -> tuple[int, int, int, np.uint64]:
    """Places below `last` by floor(-log(1 - U) / theta)."""
    scale, logs = 1.0 / theta, scratch[0]
    flat = 2.0 * ERROR * scale
    while place < last and used < words.size:
        batch = min(words.size - used, logs.size, last - place + 8)
        for i in range(batch):
            logs[i] = np.float64(~words[used + i])
        minus_logs(logs, scratch[1], batch)
        for i in range(batch):
            y, word = logs[i] * scale, ~words[used + i]  # 1 - U lies in [word, word + 1] / 2^64
            digit = np.int64(y)
            slack = flat + 2.0 * ERROR * y
            if y - digit < slack or digit + 1 - y < slack or word < _RARE:
                low = y - slack - scale / np.float64(word)  # minus infinity for word = 0
                if not (low >= end - place or (low >= digit and y + slack < digit + 1)):
                    return place, used + i + 1, _INVERSION_OPEN, words[used + i]
            result[place] = digit  # written over when it is too large
            place += int(digit < end - place)
            if place == last:
                return place, used + i + 1, _DECIDED, np.uint64(0)
        used += batch
    return place, used, _DECIDED, np.uint64(0)


@njit(cache=True, nogil=True)
def _by_rejection(
    result: LehmerCode, theta: float, place: int, stop: int, end: int, words: Words, used: int
) -> tuple[int, int, int, np.uint64]:
    """Places below `stop` by a uniform k below the bound (Lemire 2019), kept with probability e^(-theta k)."""
    while place < stop and end - place > 1:
        if used + 2 > words.size:
            return place, used, _DECIDED, np.uint64(0)
        bound, word = np.uint64(end - place), words[used]
        used += 1
        product = (word & _LOW) * bound
        rest = product & _LOW
        if rest < bound and rest < ((np.uint64(1) << _HALF) - bound) % bound:
            continue
        k = np.int64(product >> _HALF)
        half = ~word >> _HALF  # 1 - U lies in [half, half + 1] / 2^32
        result[place] = k
        if np.float64(half + np.uint64(1)) * 2.0**-32 > 1.0 - theta * k - 4e-16 * (1.0 + theta * k):
            whole = (half << _HALF) | (~words[used] >> _HALF)
            used += 1
            gap = math.exp(-theta * k) - np.float64(whole) * _UNIT
            if abs(gap) < 2.0 * ERROR:
                return place, used, _REJECTION_OPEN, ~whole
            if gap < 0.0:
                continue
        place += 1
    if place < stop:  # the digit below 1 is 0
        result[place] = 0
        place += 1
    return place, used, _DECIDED, np.uint64(0)
