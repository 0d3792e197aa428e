"""Whether every group of one grouping lies inside a group of another."""

import numpy as np
from numpy.typing import NDArray

from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.groups.ranges import People, Places, Ranges


def covers_by_window(outer: Ranges, inner: Ranges, n: int) -> bool:
    """For outer rows that are windows of a list of everybody: the first and last place of a row decide."""
    if not len(outer):
        return not len(inner)
    place = np.empty(n, dtype=np.int64)
    place[outer.people] = np.arange(n)
    reach = np.zeros(n, dtype=np.int64)  # how far the windows that begin at or before a place extend
    np.maximum.at(reach, outer.starts, outer.stops)
    reach = np.maximum.accumulate(reach)
    return bool(_windows_hold(place, reach, inner.people, inner.starts, inner.stops))


def covers_by_member(outer: Ranges, inner: Ranges, n: int) -> bool:
    """For any outer rows: try the rows around the member of each inner row that has the fewest."""
    around = outer.transpose(n)
    return bool(
        _members_held(
            outer.people, outer.starts, outer.stops, around.people, around.starts, around.stops,
            inner.people, inner.starts, inner.stops,
        )
    )  # fmt: skip


@njit(cache=True, nogil=True)
def rows_hold_owners(
    people: People, starts: Places, stops: Places, owners: People, owner_starts: Places, owner_stops: Places,
    n: int, contiguous: bool,
) -> NDArray[np.bool_]:  # fmt: skip
    """Whether each row holds all its owners; contiguous rows are windows of a list of everybody."""
    result = np.ones(starts.size, dtype=np.bool_)
    mark = np.full(n, -1, dtype=np.int64)  # place of a person, or last row that holds the person
    if contiguous:
        for place in range(people.size):
            mark[people[place]] = place
    for g in range(starts.size):
        if not contiguous:
            for member in people[starts[g] : stops[g]]:
                mark[member] = g
        for owner in owners[owner_starts[g] : owner_stops[g]]:
            inside = starts[g] <= mark[owner] < stops[g] if contiguous else mark[owner] == g
            result[g] = result[g] and inside
    return result


@njit(cache=True, nogil=True)
def _windows_hold(place: Places, reach: Places, people: People, starts: Places, stops: Places) -> bool:
    for h in range(starts.size):
        low = high = place[people[starts[h]]]
        for member in people[starts[h] : stops[h]]:
            low, high = min(low, place[member]), max(high, place[member])
        if high >= reach[low]:
            return False
    return True


@njit(cache=True, nogil=True)
def _members_held(
    outer: People, outer_starts: Places, outer_stops: Places,
    around: People, around_starts: Places, around_stops: Places,
    people: People, starts: Places, stops: Places,
) -> bool:  # fmt: skip
    stamp = np.full(around_starts.size, -1, dtype=np.int64)
    for h in range(starts.size):
        rare = people[starts[h]]
        for member in people[starts[h] : stops[h]]:
            stamp[member] = h
            if around_stops[member] - around_starts[member] < around_stops[rare] - around_starts[rare]:
                rare = member
        held = False
        for g in around[around_starts[rare] : around_stops[rare]]:
            common = 0
            for member in outer[outer_starts[g] : outer_stops[g]]:
                common += stamp[member] == h
            if common == stops[h] - starts[h]:
                held = True
                break
        if not held:
            return False
    return True
