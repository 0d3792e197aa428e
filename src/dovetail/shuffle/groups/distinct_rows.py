"""Rows with their owners, made distinct: equal groups become one, and groups of fewer than two are dropped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.shuffle.groups import neighbours
from dovetail.shuffle.groups.connected_components import first_equal_rows
from dovetail.shuffle.groups.ranges import People, Places, Ranges, refuse_beyond_memory


class DistinctRows(NamedTuple):
    """Rows that differ, their owners, how many rows were too small, and whether rows are windows of everybody.

    The fields are those of `Groups`.
    """

    rows: Ranges
    owners: Ranges
    dropped: int
    contiguous: bool


def one_row_each(rows: Ranges) -> DistinctRows:
    """Row i belongs to person i."""
    everybody = np.arange(len(rows))
    return distinct_rows(rows, everybody, everybody, n=len(rows))


def label_windows(codes: Places, first: Places, last: Places) -> DistinctRows:
    """Each of the sorted distinct labels with the people of the labels first[i], .., last[i] - 1 around it."""
    people = np.argsort(codes, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(codes, minlength=first.size))
    begins = ends - np.diff(ends, prepend=0)
    # windows are monotone in the label: equal ones are neighbours
    new = np.flatnonzero(np.diff(first, prepend=-1) | np.diff(last, prepend=-1))
    rows = Ranges(people, begins[first[new]], ends[last[new] - 1])
    owners = Ranges(people, begins[new], ends[np.append(new[1:], first.size) - 1])
    keep = rows.sizes >= 2
    return DistinctRows(rows.take(keep), owners.take(keep), int((~keep).sum()), contiguous=True)


def own_windows(numbers: NDArray[np.float64], reach: NDArray[np.float64]) -> DistinctRows:
    """For each person everybody whose number is at most the person's own reach away."""
    codes, values = neighbours.encode_labels(numbers)
    first, last = neighbours.windows(values, numbers, reach)
    people = np.argsort(codes, kind="stable").astype(np.int32)
    ends = np.append(0, np.cumsum(np.bincount(codes, minlength=values.size)))
    return distinct_windows(people, ends[first], ends[last], np.arange(numbers.size))


def distinct_windows(people: People, starts: Places, stops: Places, owner: Places) -> DistinctRows:
    """From (owner, window of one list of everybody); equal windows become one."""
    windows, number = np.unique(np.column_stack((starts, stops)), axis=0, return_inverse=True)
    rows = Ranges(people, windows[:, 0].copy(), windows[:, 1].copy())
    owners = Ranges.compress(number.reshape(-1), owner, shape=(len(rows), people.size))
    keep = rows.sizes >= 2
    return DistinctRows(rows.take(keep), owners.take(keep).materialize(), int((~keep).sum()), contiguous=True)


def distinct_rows(rows: Ranges, owner: ArrayLike, owned: ArrayLike, *, n: int) -> DistinctRows:
    """From rows that list each person once, and (owner, row) pairs; identical rows become one."""
    same = first_equal_rows(rows)
    first = same == np.arange(len(rows))
    keep = first & (rows.sizes >= 2)
    number = np.where(keep, np.cumsum(keep) - 1, -1)[same]
    groups = number[np.asarray(owned)]
    owners = Ranges.compress(groups[groups >= 0], np.asarray(owner)[groups >= 0], shape=(int(keep.sum()), n))
    return DistinctRows(rows.take(keep).materialize(), owners, int((first & ~keep).sum()), contiguous=False)


def union(n: int, groupings: list[DistinctRows]) -> DistinctRows:
    """All rows of several groupings of the same n people, each with all its owners."""
    people = groupings[0].rows.people
    flat = [each.owners.materialize().people for each in groupings]
    owned = [np.repeat(np.arange(len(each.rows)), each.owners.sizes) for each in groupings]
    shift = np.cumsum([0, *(len(each.rows) for each in groupings)])
    owner = np.concatenate(flat).astype(np.int64)
    row = np.concatenate([which + before for which, before in zip(owned, shift, strict=False)])
    if all(each.contiguous and np.array_equal(each.rows.people, people) for each in groupings):
        starts, stops = (
            np.concatenate([getattr(each.rows, end) for each in groupings]) for end in ("starts", "stops")
        )
        joined = distinct_windows(people, starts[row], stops[row], owner)
    else:
        refuse_beyond_memory(sum(each.rows.entries for each in groupings))
        joined = distinct_rows(Ranges.concatenate([each.rows.materialize() for each in groupings]), owner, row, n=n)
    return joined._replace(dropped=sum(each.dropped for each in groupings))
