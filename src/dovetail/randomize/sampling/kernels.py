"""k-ary randomized response by table and by word, compiled: imported when it is computed with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.core.compiled import njit
from dovetail.core.entropy import Words
from dovetail.core.stages import Reports
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


# Drawing and counting reports of several kinds, compiled: imported when it is computed with.


_HALF = np.uint64(32)


@njit(cache=True, nogil=True)
def place_reports(rows: Symbols, chosen: Symbols, places: NDArray[np.uint32], width: int, reports: Symbols) -> None:
    """Reports inside the chosen half blocks: element `places` mod width / 2 of those with the chosen parity.

    Half block 2 b + s holds the y of block b with parity(popcount(row & y)) = s. Leaving out of y the lowest bit of
    the row numbers them, because that bit follows from the others and the parity.
    """
    for i in range(rows.size):
        row = rows[i]
        lowest = row & -row
        place = np.int64(places[i]) & (width // 2 - 1)
        report = ((place & ~(lowest - 1)) << 1) | (place & (lowest - 1))
        parity = row & report
        for shift in (32, 16, 8, 4, 2, 1):
            parity ^= parity >> shift
        report |= lowest * ((parity ^ chosen[i]) & 1)
        reports[i] = (chosen[i] >> 1) * width + report


@njit(cache=True, nogil=True)
def count_support(reports: Reports, k: int, g: int) -> NDArray[np.int64]:
    """Count the reports (a, b, y) with h(x) = y, for each x.

    Bucket y holds the high halves from ceil(y 2^32 / g) up to ceil((y + 1) 2^32 / g), so h(x) = y if and only if
    a x + b lies in one interval of 64-bit words: a single comparison after a shift of b.
    """
    counts = np.zeros(k, dtype=np.int64)
    for i in range(reports.shape[0]):
        a, b, y = reports[i, 0], reports[i, 1], np.int64(reports[i, 2])
        start = np.uint64(((y << 32) + g - 1) // g)
        size = np.uint64((((y + 1) << 32) + g - 1) // g) - start
        shifted, reach = b - (start << _HALF), size << _HALF
        for x in range(k):
            counts[x] += np.int64(a * np.uint64(x) + shifted < reach)
    return counts


@njit(cache=True, nogil=True)
def count_ones(reports: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Count how often each bit is set: (width, 8), first bit of a byte first.

    Multiplying a byte by 0x8040201008040201 puts its i-th bit on top of byte i of a word; 255 such words add without
    a carry between the bytes.
    """
    people, width = reports.shape
    counts = np.zeros((width, 8), dtype=np.int64)
    for start in range(0, people, 255):
        sums = np.zeros(width, dtype=np.uint64)
        for i in range(start, min(start + 255, people)):
            for j in range(width):
                spread = np.uint64(reports[i, j]) * np.uint64(0x8040201008040201)
                sums[j] += (spread >> np.uint64(7)) & np.uint64(0x0101010101010101)
        for j in range(width):
            for bit in range(8):
                counts[j, bit] += np.int64((sums[j] >> np.uint64(8 * bit)) & np.uint64(255))
    return counts
