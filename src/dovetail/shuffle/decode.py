"""From digits to a permutation: place t takes the (c_t + 1)-th smallest value that is still unused.

Unused values are the set bits of 64-bit words. `window` walks from the words around t, where the answer is nearly
always found when digits are small; `tree` walks down a binary tree of counts, the same O(log n) for all digits.
Digits must satisfy 0 <= c_t < n - t.
"""

import numpy as np
from numba import njit

from dovetail.core.entropy import Permutation
from dovetail.shuffle.digits import Digits

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)


def _byte_table() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Place of the (r + 1)-th set bit of byte b, at 8 b + r."""
    table = np.zeros(8 * 256, dtype=np.uint8)
    for byte in range(256):
        places = [place for place in range(8) if byte >> place & 1]
        table[8 * byte : 8 * byte + len(places)] = places
    return table


_SELECT = _byte_table()


@njit(cache=True, nogil=True)
def window(digits: Digits) -> Permutation:
    """Decode by walking from word t / 64, with the number of unused values before it at hand; O(1 / theta) words."""
    n = digits.size
    words = np.full(n // 64 + 1, _ALL)
    result = np.empty(n, dtype=np.int64)
    behind = np.int64(0)  # unused values in the words before t / 64
    for t in range(n):
        if t & 63 == 0 and t:
            behind += _count(words[(t >> 6) - 1])
        word, rank = t >> 6, digits[t]
        if rank >= behind:
            rank -= behind
            unused = _count(words[word])
            while rank >= unused:
                rank -= unused
                word += 1
                unused = _count(words[word])
        else:
            before = behind
            while before > rank:
                word -= 1
                before -= _count(words[word])
            rank -= before
            behind -= 1
        place = _place(words[word], rank)
        words[word] &= ~(np.uint64(1) << np.uint64(place))
        result[t] = 64 * word + place
    return result


@njit(cache=True, nogil=True)
def tree(digits: Digits) -> Permutation:
    """Decode by a binary tree whose nodes count the unused values on their left; values beyond n are never met."""
    n = digits.size
    leaves = 1
    while 64 * leaves < n:
        leaves *= 2
    words = np.full(leaves, _ALL)
    left = np.empty(leaves, dtype=np.int64)
    first, size = 1, 64 * leaves
    while first < leaves:  # level by level: nodes first..2 first - 1 have `size` values each
        left[first : 2 * first] = size // 2
        first, size = 2 * first, size // 2
    result = np.empty(n, dtype=np.int64)
    for t in range(n):
        rank, node = digits[t], np.int64(1)
        while node < leaves:
            unused = left[node]
            right = np.int64(rank >= unused)
            left[node] = unused - 1 + right
            rank -= unused * right
            node = 2 * node + right
        word = node - leaves
        place = _place(words[word], rank)
        words[word] &= ~(np.uint64(1) << np.uint64(place))
        result[t] = 64 * word + place
    return result


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
