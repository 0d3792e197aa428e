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

from dovetail.core.compiled import COMPILED, njit
from dovetail.core.entropy import Entropy, Permutation, Words
from dovetail.shuffle.sampling.prefix_counts import LANES16, LANES32, Counts16, Counts32, lower, take
from dovetail_protocol.exact_thresholds import GeometricLaw

# -log(w / 2^64) of many words with a proven error, in loops that compilers turn into vector instructions.


Numbers = NDArray[np.float64]

ERROR = 2e-15  # |minus_logs(w) - L| <= ERROR (1 + L) for L = -log(w / 2^64)

_LOG2 = 0.6931471805599453
_SQRT_HALF = np.uint64(0x3FE6A09E667F3BCD)  # bits of the double


@njit(cache=True, nogil=True, error_model="numpy")
def minus_logs(numbers: Numbers, exponents: Numbers, count: int) -> None:
    r"""Replace the first `count` numbers w, whole and 1 to 2^64, by -log(w / 2^64).

    .. math:: w = 2^e m, \quad \sqrt{1/2} \le m < \sqrt2, \quad
              \log m = 2 \sum_{i \ge 0} \frac{s^{2i+1}}{2i+1}, \quad s = \frac{m-1}{m+1}

    Parameters
    ----------
    numbers : float array (at least count,), contiguous
    exponents : float array (at least count,)
        Room for the exponents e.

    Notes
    -----
    Rounding a 64-bit word to a double moves the logarithm by at most 2^-53. As s^2 < 0.0295, the terms left out are
    below 3e-17 of the sum; a dozen roundings of at most 2^-53 each make the rest. Where e = 64 nothing cancels. Each
    loop does one kind of step for all numbers, because a loop that changes between integers and doubles is not
    vectorized; the bits of a double are read and written through a view of the same memory.
    """
    bits = numbers.view(np.uint64)
    for i in range(count):
        exponent = np.int64(bits[i] - _SQRT_HALF) >> np.int64(52)
        bits[i] -= np.uint64(exponent << 52)
        exponents[i] = np.float64(exponent)
    for i in range(count):
        m = numbers[i]
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        series = 1 / 19.0
        series = series * z + 1 / 17.0
        series = series * z + 1 / 15.0
        series = series * z + 1 / 13.0
        series = series * z + 1 / 11.0
        series = series * z + 1 / 9.0
        series = series * z + 1 / 7.0
        series = series * z + 1 / 5.0
        series = series * z + 1 / 3.0
        numbers[i] = (64 - exponents[i]) * _LOG2 - 2.0 * (s + s * z * series)


# The digits themselves, and the rare ones that exact arithmetic decides.

LehmerCode = NDArray[np.int32]  # (n,)
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


# From a Lehmer code to its permutation: place t takes the (c_t + 1)-th smallest value that is still unused.
#
# Unused values are the set bits of 64-bit words, and rows of prefix counts find the word. `decode_by_window` keeps
# one row, for the values where the answer nearly always is when digits are small; `decode_by_tiers` keeps three tiers
# of rows and costs the same for all digits. Digits must satisfy 0 <= c_t < n - t.


if COMPILED:
    from dovetail.shuffle.sampling.simd_prefix_counts import lower, take

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)

_WINDOW = 60.0  # the window wins up to about this 1 / theta, and for blocks of a few words
_FEW = 2048
_MOVE = 511  # the row moves on every 512 values
_NODE = 64 * LANES16  # values under one row of the lowest tier
_TREE = _NODE * LANES16  # values under one row of the middle tier
_NEVER = 1 << 31  # above all ranks, and stays above them

Chosen = NDArray[np.bool_]  # (blocks,)


def _byte_table() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Place of the (r + 1)-th set bit of byte b, at 8 b + r."""
    table = np.zeros(8 * 256, dtype=np.uint8)
    for byte in range(256):
        places = [place for place in range(8) if byte >> place & 1]
        table[8 * byte : 8 * byte + len(places)] = places
    return table


_SELECT = _byte_table()


def decode_lehmer_code(digits: LehmerCode, starts: BlockStarts, thetas: Thetas) -> Permutation:
    """The permutation of 0..n-1 that maps each block starts[b]..starts[b + 1] - 1 to itself, from its digits."""
    result = np.empty(digits.size, dtype=np.int64)
    windowed = (thetas * _WINDOW >= 1.0) | (np.diff(starts) <= _FEW)
    decode_by_window(digits, starts, windowed, result)
    for block in np.flatnonzero(~windowed):
        decode_by_tiers(digits, int(starts[block]), int(starts[block + 1]), result)
    return result


def decode_by_window(digits: LehmerCode, starts: BlockStarts, windowed: Chosen, result: Permutation) -> None:
    """Write the permutations of the blocks that are `windowed`, by a row of counts over 2048 values."""
    largest = int(np.diff(starts).max(initial=0, where=windowed))
    words = np.empty(largest // 64 + 2 * LANES16, dtype=np.uint64)
    _windows_kernel(digits, starts, windowed, words, np.empty(LANES16, dtype=np.uint16), result)


def decode_by_tiers(digits: LehmerCode, start: int, stop: int, result: Permutation) -> None:
    """Write the permutation of one block, by three tiers of counts, for 2048, 65536 and all values."""
    trees = -(-(stop - start) // _TREE)
    words = np.full(trees * (_TREE // 64), _ALL)
    low = np.tile(np.arange(0, _NODE, 64, dtype=np.uint16), trees * LANES16)
    middle = np.tile(np.arange(0, _TREE, _NODE, dtype=np.uint16), trees)
    top = np.full(-(-trees // LANES32) * LANES32, _NEVER, dtype=np.uint32)
    top[:trees] = np.arange(trees, dtype=np.uint32) * np.uint32(_TREE)
    _tiers_kernel(digits, start, stop, words, low, middle, top, result)


@njit(cache=True, nogil=True)
def _windows_kernel(
    digits: LehmerCode, starts: BlockStarts, windowed: Chosen, words: Words, row: Counts16, result: Permutation
) -> None:
    for block in range(windowed.size):
        if windowed[block]:
            _window_block(digits, starts[block], starts[block + 1], words, row, result)


@njit(cache=True, nogil=True)
def _window_block(
    digits: LehmerCode, start: int, stop: int, words: Words, row: Counts16, result: Permutation
) -> None:
    words[: (stop - start) // 64 + 2 * LANES16] = _ALL
    base = held = np.int64(0)  # the row counts the unused values of 32 words from `base` on; all of them are `held`
    for t in range(stop - start):
        if t & _MOVE == 0:
            while words[base] == np.uint64(0):
                base += 1
            held = np.int64(0)
            for lane in range(LANES16):
                row[lane] = held
                held += _count(words[base + lane])
        rank = np.int64(digits[start + t])
        if rank < held:
            found = take(row, 0, rank)
            word, rank = base + (found >> 16), rank - (found & 0xFFFF)
            held -= 1
        else:
            word, rank = base + LANES16, rank - held
            unused = _count(words[word])
            while rank >= unused:
                word, rank = word + 1, rank - unused
                unused = _count(words[word])
        place = _place(words[word], rank)
        words[word] &= ~(np.uint64(1) << np.uint64(place))
        result[start + t] = start + 64 * word + place


@njit(cache=True, nogil=True)
def _tiers_kernel(
    digits: LehmerCode,
    start: int,
    stop: int,
    words: Words,
    low: Counts16,
    middle: Counts16,
    top: Counts32,
    result: Permutation,
) -> None:
    for t in range(start, stop):
        rank = np.int64(digits[t])
        tree = np.int64(top.size - 1)
        for row in range(top.size // LANES32):
            tree -= lower(top, LANES32 * row, rank)
        rank -= np.int64(top[tree])
        found = take(middle, LANES16 * tree, rank)
        rank -= found & 0xFFFF
        node = LANES16 * tree + (found >> 16)
        found = take(low, LANES16 * node, rank)
        rank -= found & 0xFFFF
        word = LANES16 * node + (found >> 16)
        place = _place(words[word], rank)
        words[word] &= ~(np.uint64(1) << np.uint64(place))
        result[t] = start + 64 * word + place


@njit(cache=True, nogil=True, inline="always")
def _byte_counts(word: np.uint64) -> np.uint64:
    """In each byte, how many bits are set in it and in the bytes below."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    return ((word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)) * _ONES


@njit(cache=True, nogil=True, inline="always")
def _count(word: np.uint64) -> np.int64:
    """Number of set bits; LLVM turns this into one instruction."""
    return np.int64(_byte_counts(word) >> np.uint64(56))


@njit(cache=True, nogil=True, inline="always")
def _place(word: np.uint64, rank: np.int64) -> np.int64:
    """Place of the (rank + 1)-th set bit (Vigna 2008, Broadword implementation of rank/select queries, section 4)."""
    counts = _byte_counts(word)
    below = ((np.uint64(rank) * _ONES | _HIGH) - counts) & _HIGH  # marks the bytes with counts <= rank
    shift = ((below >> np.uint64(7)) * _ONES) >> np.uint64(56) << np.uint64(3)
    rest = np.uint64(rank) - (((counts << np.uint64(8)) >> shift) & np.uint64(0xFF))
    byte = (word >> shift) & np.uint64(0xFF)
    return np.int64(shift) + np.int64(_SELECT[np.int64(byte * np.uint64(8) + rest)])
