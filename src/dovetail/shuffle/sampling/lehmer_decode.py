"""From a Lehmer code to its permutation: place t takes the (c_t + 1)-th smallest value that is still unused.

Unused values are the set bits of 64-bit words, and rows of prefix counts find the word. `decode_by_window` keeps one
row, for the values where the answer nearly always is when digits are small; `decode_by_tiers` keeps three tiers of
rows and costs the same for all digits. Digits must satisfy 0 <= c_t < n - t.
"""

import numpy as np
from numpy.typing import NDArray

from dovetail.core.compiled import COMPILED, njit
from dovetail.core.entropy import Permutation, Words
from dovetail.shuffle.sampling.lehmer_code import BlockStarts, LehmerCode, Thetas
from dovetail.shuffle.sampling.prefix_counts import LANES16, LANES32, Counts16, Counts32, lower, take

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
    _decode_windows(digits, starts, windowed, result)
    for block in np.flatnonzero(~windowed):
        _decode_tiers(digits, int(starts[block]), int(starts[block + 1]), result)
    return result


def decode_by_window(digits: LehmerCode) -> Permutation:
    """Decode by a row of counts over the 2048 values from the first unused one on, walking on where that is short."""
    result = np.empty(digits.size, dtype=np.int64)
    _decode_windows(digits, np.array([0, digits.size]), np.ones(1, dtype=np.bool_), result)
    return result


def decode_by_tiers(digits: LehmerCode) -> Permutation:
    """Decode by three tiers of counts, for 2048, 65536 and all values."""
    result = np.empty(digits.size, dtype=np.int64)
    _decode_tiers(digits, 0, digits.size, result)
    return result


def _decode_windows(digits: LehmerCode, starts: BlockStarts, windowed: Chosen, result: Permutation) -> None:
    largest = int(np.diff(starts).max(initial=0, where=windowed))
    words = np.empty(largest // 64 + 2 * LANES16, dtype=np.uint64)
    _windows_kernel(digits, starts, windowed, words, np.empty(LANES16, dtype=np.uint16), result)


def _decode_tiers(digits: LehmerCode, start: int, stop: int, result: Permutation) -> None:
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
