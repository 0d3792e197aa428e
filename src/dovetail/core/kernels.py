"""Compiled loops of `entropy` and `geometric`, imported by the first draw: the compiler costs more than all else."""

import numpy as np
from numpy.typing import NDArray

from dovetail.core.compiled import njit

GUIDE_BITS = 12  # leading bits of a word that point to the first cell it can mean


@njit(cache=True, nogil=True)
def fisher_yates(items: NDArray[np.int64], todo: int, words: NDArray[np.uint64]) -> int:
    """Shuffle items[:todo] in place from the top; returns how many places are left when words run out."""
    used = 0
    while todo > 1:
        bound = np.uint64(todo)
        # the largest multiple of `bound` not above 2^64 is 2^64 - excess
        excess = (np.uint64(0xFFFFFFFFFFFFFFFF) % bound + np.uint64(1)) % bound
        while True:
            if used == words.size:
                return todo
            word = words[used]
            used += 1
            if word <= np.uint64(0xFFFFFFFFFFFFFFFF) - excess:
                break
        other = np.int64(word % bound)
        todo -= 1
        items[todo], items[other] = items[other], items[todo]
    return todo


@njit(cache=True, nogil=True)
def look_up(
    words: NDArray[np.uint64],
    thresholds: NDArray[np.uint64],
    guide: NDArray[np.int32],
    complete: bool,
    shift: int,
    total: NDArray[np.int64],
    unsure: NDArray[np.bool_],
) -> int:
    """Add the cell of each word to `total`, or mark it unsure; returns how many are unsure."""
    last, count = thresholds.size, 0
    for i in range(words.size):
        word = words[i]
        cell = guide[np.int64(word >> np.uint64(64 - GUIDE_BITS))]
        while cell < last and word >= thresholds[cell]:
            cell += 1
        if (cell > 0 and word == thresholds[cell - 1]) or (cell == last and not complete):
            unsure[i] = True
            count += 1
        else:
            total[i] += np.int64(cell) << shift
    return count


@njit(cache=True, nogil=True)
def number_blocks(
    low: NDArray[np.uint64], numbers: NDArray[np.uint64], each: int, blocks: NDArray[np.uint64]
) -> bool:
    """Blocks (n each, 2) to encrypt: an id in the lower 96 bits, and its block number in the upper 32.

    The numbers of each row move on; returns whether those of some row are used up.
    """
    over, one = False, np.uint64(1 << 32)
    if each == 1:  # the usual request
        for i in range(low.size):
            blocks[i, 0] = low[i]
            blocks[i, 1] = numbers[i]
            numbers[i] += one
            over |= numbers[i] < one
        return over
    for i in range(low.size):
        number = numbers[i]
        for j in range(each):
            blocks[i * each + j, 0] = low[i]
            blocks[i * each + j, 1] = number
            number += one
        over |= number < numbers[i]
        numbers[i] = number
    return over
