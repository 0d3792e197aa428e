"""Which rows are the same, and which people hang together through common rows."""

import numpy as np
from numpy.typing import NDArray

from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.groups.ranges import People, Places, Ranges


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
    boss = np.arange(n)
    for g in range(starts.size):
        for place in range(starts[g] + 1, stops[g]):
            one, other = _boss(boss, people[starts[g]]), _boss(boss, people[place])
            boss[max(one, other)] = min(one, other)
    for i in range(n):
        boss[i] = _boss(boss, i)
    return boss


@njit(cache=True, nogil=True)
def _boss(boss: Places, person: int) -> int:
    while boss[person] != person:
        boss[person] = boss[boss[person]]
        person = boss[person]
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
