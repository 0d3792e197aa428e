"""Rows of different lengths, each a contiguous range of one list of people; rows may overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.compiled import njit
from dovetail.core.errors import UnsupportedError

People = NDArray[np.int32]  # indices of people, 0..n-1
Places = NDArray[np.int64]  # indices into a list of people
Fingerprints = NDArray[np.uint64]  # (rows, 2)

MOST_ENTRIES = 200_000_000


def refuse_beyond_memory(entries: int) -> None:
    """UnsupportedError when rows with this many entries would have to be listed."""
    if entries > MOST_ENTRIES:
        raise UnsupportedError(
            f"These groups have {entries:,} members when listed one by one ({4e-9 * entries:,.1f} GB, as much again "
            f"to plan), above {MOST_ENTRIES:,}; use smaller groups, or label groups (Groups.from_labels), which are "
            "kept as windows of the sorted labels."
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
        given = np.asarray(rows, dtype=np.int64), np.asarray(people, dtype=np.int64)
        return cls(*_compress(*given, shape[0]))

    @classmethod
    def empty(cls, rows: int) -> Ranges:
        """Rows without people."""
        return cls(np.empty(0, np.int32), np.zeros(rows, np.int64), np.zeros(rows, np.int64))

    @classmethod
    def concatenate(cls, tables: Sequence[Ranges]) -> Ranges:
        """The rows of several tables one after the other."""
        shifts = np.cumsum([0, *(table.people.size for table in tables)])[: len(tables)]
        moved = [(table.starts + shift, table.stops + shift) for table, shift in zip(tables, shifts, strict=True)]
        people = np.concatenate([table.people for table in tables])
        return cls(people, np.concatenate([start for start, _ in moved]), np.concatenate([stop for _, stop in moved]))

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

    def materialize(self) -> Ranges:
        """The same rows one after the other, each in increasing order, without overlaps and gaps."""
        sizes = self.sizes
        refuse_beyond_memory(self.entries)
        ends = np.cumsum(sizes)
        return Ranges(_list_rows(self.people, self.starts, self.stops, self.entries), ends - sizes, ends)

    def transpose(self, n: int) -> Ranges:
        """For each of n people the rows that hold them."""
        refuse_beyond_memory(self.entries)
        return Ranges(*_transpose(self.people, self.starts, self.stops, n))

    def mask(self, n: int) -> NDArray[np.bool_]:
        """Mark the people of n who are in some row; O(n + rows) whatever the overlaps."""
        steps = np.zeros(self.people.size + 1, dtype=np.int64)
        np.add.at(steps, self.starts, 1)
        np.add.at(steps, self.stops, -1)
        present = np.zeros(n, dtype=np.bool_)
        present[self.people[np.cumsum(steps[:-1]) > 0]] = True
        return present

    def fingerprints(self) -> Fingerprints:
        """128 bits of each row that depend on the set of its people only: sums of pseudo-random words."""
        overlap = self.entries > self.people.size
        return np.asarray(
            (_overlapping_fingerprints if overlap else _fingerprints)(self.people, self.starts, self.stops)
        )


@njit(cache=True, nogil=True)
def splitmix64(word: np.uint64) -> np.uint64:
    """SplitMix64 (Steele, Lea, Flood 2014): a fixed bijection whose outputs look independent."""
    z = (word + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def _fingerprints(people: People, starts: Places, stops: Places) -> Fingerprints:
    result = np.zeros((starts.size, 2), dtype=np.uint64)
    for g in range(starts.size):
        for place in range(starts[g], stops[g]):
            word = np.uint64(people[place]) * np.uint64(2)
            result[g, 0] += splitmix64(word + np.uint64(1))
            result[g, 1] += splitmix64(word + np.uint64(2))
    return result


@njit(cache=True, nogil=True)
def _overlapping_fingerprints(people: People, starts: Places, stops: Places) -> Fingerprints:
    result = np.empty((starts.size, 2), dtype=np.uint64)
    sums = np.zeros(people.size + 1, dtype=np.uint64)
    for column in range(2):
        for place in range(people.size):
            word = np.uint64(people[place]) * np.uint64(2) + np.uint64(column + 1)
            sums[place + 1] = sums[place] + splitmix64(word)
        result[:, column] = sums[stops] - sums[starts]
    return result


@njit(cache=True, nogil=True)
def _compress(rows: Places, people: Places, size: int) -> tuple[People, Places, Places]:
    """Counting sort by row, then each row sorted and rid of repetitions, in place."""
    ends = np.zeros(size + 1, dtype=np.int64)
    for row in rows:
        ends[row + 1] += 1
    ends = np.cumsum(ends)
    fill = ends[:-1].copy()
    table = np.empty(rows.size, dtype=np.int32)
    for pair in range(rows.size):
        table[fill[rows[pair]]] = people[pair]
        fill[rows[pair]] += 1
    stops = np.empty(size, dtype=np.int64)
    end = 0
    for row in range(size):
        begin = end
        for person in np.sort(table[ends[row] : ends[row + 1]]):
            if end == begin or person != table[end - 1]:
                table[end] = person
                end += 1
        stops[row] = end
    starts = np.zeros(size, dtype=np.int64)
    starts[1:] = stops[:-1]
    return table[:end].copy(), starts, stops


@njit(cache=True, nogil=True)
def _transpose(people: People, starts: Places, stops: Places, n: int) -> tuple[People, Places, Places]:
    ends = np.zeros(n + 1, dtype=np.int64)
    for row in range(starts.size):
        for place in range(starts[row], stops[row]):
            ends[people[place] + 1] += 1
    ends = np.cumsum(ends)
    fill = ends[:-1].copy()
    table = np.empty(ends[n], dtype=np.int32)
    for row in range(starts.size):
        for place in range(starts[row], stops[row]):
            person = people[place]
            table[fill[person]] = row
            fill[person] += 1
    return table, ends[:-1].copy(), ends[1:].copy()


@njit(cache=True, nogil=True)
def _list_rows(people: People, starts: Places, stops: Places, entries: int) -> People:
    result = np.empty(entries, dtype=np.int32)
    end = 0
    for g in range(starts.size):
        size = stops[g] - starts[g]
        result[end : end + size] = np.sort(people[starts[g] : stops[g]])
        end += size
    return result


# Which rows are the same, and which people hang together through common rows.


def first_equal_rows(rows: Ranges) -> Places:
    """For each row the first row with the same people; rows list people in increasing order."""
    columns = np.column_stack((rows.fingerprints(), rows.sizes.astype(np.uint64)))
    order = np.lexsort(columns.T)
    sorted_columns = columns[order]
    new = np.ones(len(rows), dtype=np.bool_)
    new[1:] = (sorted_columns[1:] != sorted_columns[:-1]).any(axis=1)
    first = np.empty(len(rows), dtype=np.int64)
    first[order] = order[np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))]
    return np.asarray(_confirm(rows.people, rows.starts, rows.stops, first))


@njit(cache=True, nogil=True)
def _confirm(people: People, starts: Places, stops: Places, first: Places) -> Places:
    """Compare each row with its supposed twin, member by member; equal fingerprints are not taken on trust."""
    for g in range(first.size):
        shift = starts[first[g]] - starts[g]
        for place in range(starts[g], stops[g]):
            if people[place] != people[place + shift]:
                first[g] = g
                break
    return first


def components(rows: Ranges, n: int) -> Places:
    """Connected component (n,) of each person under sharing a row; -1 for people in no row."""
    return _numbered(np.asarray(_joined(rows.people, rows.starts, rows.stops, n)), rows.mask(n))


@njit(cache=True, nogil=True)
def _joined(people: People, starts: Places, stops: Places, n: int) -> Places:
    """Union-find: the representative (n,) of each person, always the smallest of the component."""
    parent = np.arange(n)
    for g in range(starts.size):
        for place in range(starts[g] + 1, stops[g]):
            one, other = _root(parent, people[starts[g]]), _root(parent, people[place])
            parent[max(one, other)] = min(one, other)
    for i in range(n):
        parent[i] = _root(parent, i)
    return parent


@njit(cache=True, nogil=True)
def _root(parent: Places, person: int) -> int:
    while parent[person] != person:
        parent[person] = parent[parent[person]]
        person = parent[person]
    return person


def components_of_windows(rows: Ranges, n: int) -> Places:
    """The same for rows whose list holds everybody once: unions of overlapping ranges."""
    steps = np.zeros(n + 1, dtype=np.int64)
    np.add.at(steps, rows.starts + 1, 1)  # place p hangs together with p - 1 when a row holds both
    np.add.at(steps, rows.stops, -1)
    found = np.empty(n, dtype=np.int64)
    found[rows.people] = np.cumsum(np.cumsum(steps[:-1]) == 0)
    return _numbered(found, rows.mask(n))


def _numbered(found: Places, present: NDArray[np.bool_]) -> Places:
    result = np.full(present.size, -1, dtype=np.int64)
    if present.any():
        result[present] = np.unique(found[present], return_inverse=True)[1]
    return result
