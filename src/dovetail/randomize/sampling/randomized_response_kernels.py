"""k-ary randomized response by table and by word, compiled: imported when it is computed with."""

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Words
from dovetail.core.numeric.compiled import njit
from dovetail.randomize.sampling.domain import Symbols


@njit(cache=True, nogil=True)
def look_up(
    values: Symbols,
    halves: NDArray[np.uint16],
    table: NDArray[np.int16],
    k: int,
    reports: Symbols,
    unsure: NDArray[np.int64],
) -> tuple[int, int]:
    """Fill `reports` where 16 bits decide; returns how many values are outside 0..k-1 and how many are unsure."""
    bad, count = 0, 0
    for i in range(values.size):
        value = values[i]
        bad += int(value < 0) | int(value >= k)
        offset = np.int64(table[halves[i]])
        report = value + offset
        reports[i] = report - k if report >= k else report
        unsure[count] = i
        count += int(offset < 0)
    return bad, count


@njit(cache=True, nogil=True)
def decide_words(values: Symbols, words: Words, k: int, keep: np.uint64, lie: np.uint64) -> Symbols:
    reports = np.empty_like(values)
    for i in range(values.size):
        report = values[i]
        if words[i] >= keep:
            report += np.int64(np.uint64(1) + (words[i] - keep) // lie)
        reports[i] = report - k if report >= k else report
    return reports
