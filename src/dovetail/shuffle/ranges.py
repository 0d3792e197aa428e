"""Rows of different lengths, each a contiguous range of one list of people; rows may overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array

from dovetail.core.errors import UnsupportedError

People = NDArray[np.int32]  # indices of people, 0..n-1
Places = NDArray[np.int64]  # indices into a list of people
Prints = NDArray[np.uint64]  # (rows, 2)

MOST_ENTRIES = 200_000_000


def refuse_beyond_memory(entries: int) -> None:
    """UnsupportedError when rows with this many entries would have to be listed."""
    if entries > MOST_ENTRIES:
        raise UnsupportedError(
            f"These groups have {entries:,} members when listed one by one, above {MOST_ENTRIES:,}; use smaller "
            "groups, or label groups (Groups.from_labels), which are kept as windows of the sorted labels."
        )


@dataclass(frozen=True, eq=False)
class Ranges:
    """Row g is people[starts[g]:stops[g]].

    A compressed sparse matrix is the special case in which rows do not overlap. Windows over a sorted list of
    labels overlap, and cost two numbers per row instead of one per member.

    Parameters
    ----------
    people : int array (entries,)
    starts, stops : int arrays (rows,)
    """

    people: People
    starts: Places
    stops: Places

    def __post_init__(self) -> None:
        for array in (self.people, self.starts, self.stops):
            array.setflags(write=False)

    @classmethod
    def compress(cls, rows: ArrayLike, people: ArrayLike, *, shape: tuple[int, int]) -> Ranges:
        """Rows from (row, person) pairs; repeated pairs count once, people of a row come in increasing order."""
        pairs = (np.asarray(rows), np.asarray(people))
        table = coo_array((np.ones(pairs[0].size, dtype=np.bool_), pairs), shape=shape).tocsr()
        table.sum_duplicates()
        ends = table.indptr.astype(np.int64)
        return cls(table.indices.astype(np.int32), ends[:-1].copy(), ends[1:].copy())

    def __len__(self) -> int:
        return self.starts.size

    def row(self, g: int) -> People:
        """The people of row g, as listed."""
        return self.people[self.starts[g] : self.stops[g]]

    @property
    def sizes(self) -> Places:
        """Length of each row (rows,)."""
        return self.stops - self.starts

    @property
    def entries(self) -> int:
        """Sum of the lengths."""
        return int(self.sizes.sum())

    def take(self, keep: NDArray[Any]) -> Ranges:
        """The chosen rows of the same list."""
        return Ranges(self.people, self.starts[keep], self.stops[keep])

    def listed(self) -> Ranges:
        """The same rows one after the other, each in increasing order, without overlaps and gaps."""
        sizes = self.sizes
        refuse_beyond_memory(self.entries)
        ends = np.cumsum(sizes)
        return Ranges(_list_rows(self.people, self.starts, self.stops, self.entries), ends - sizes, ends)

    def transposed(self, n: int) -> Ranges:
        """For each of n people the rows that hold them."""
        flat = self.listed()
        rows = np.repeat(np.arange(len(self), dtype=np.int32), flat.sizes)
        return Ranges.compress(flat.people, rows, shape=(n, len(self)))

    def mask(self, n: int) -> NDArray[np.bool_]:
        """Which of n people are in some row; O(n + rows) whatever the overlaps."""
        steps = np.zeros(self.people.size + 1, dtype=np.int64)
        np.add.at(steps, self.starts, 1)
        np.add.at(steps, self.stops, -1)
        present = np.zeros(n, dtype=np.bool_)
        present[self.people[np.cumsum(steps[:-1]) > 0]] = True
        return present

    def prints(self) -> Prints:
        """128 bits of each row that depend on the set of its people only: sums of pseudo-random words."""
        columns = []
        for salt in (1, 2):
            sums = np.zeros(self.people.size + 1, dtype=np.uint64)
            np.cumsum(_mix(self.people.astype(np.uint64) * np.uint64(2) + np.uint64(salt)), out=sums[1:])
            columns.append(sums[self.stops] - sums[self.starts])
        return np.stack(columns, axis=1)


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea, Flood 2014): a fixed bijection whose outputs look independent."""
    z = (words + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def _list_rows(people: People, starts: Places, stops: Places, entries: int) -> People:
    result = np.empty(entries, dtype=np.int32)
    end = 0
    for g in range(starts.size):
        size = stops[g] - starts[g]
        result[end : end + size] = np.sort(people[starts[g] : stops[g]])
        end += size
    return result
