"""What no reference order can go below."""

import numpy as np

from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import People, Places

_MOST_LOOKS = 50_000_000


def width_bound(groups: Groups) -> int:
    r"""Lower bound of the largest width of any order.

    .. math:: w \ge \max_G |G| - 1, \qquad w \ge \lceil (|N_2(i)| - 1) / 2 \rceil

    with N_2(i) the union of the groups that contain i: everybody there stands within w of i, on either side.

    Notes
    -----
    Counting N_2 for everybody takes the sum of squared group sizes. Any person gives a valid bound, so the most
    promising ones, with the most fellow members, are counted until 5e7 members were looked at.
    """
    if groups.contiguous or not len(groups):
        return _window_bound(groups)
    rows, around = groups.rows, groups.rows.transpose(groups.n)
    fellows = np.asarray(_fellows(rows.people, rows.starts, rows.stops, groups.n))
    promising = np.argsort(-fellows, kind="stable")
    count = max(1, int(np.searchsorted(np.cumsum(fellows[promising]), _MOST_LOOKS)))
    spread = _widest(
        promising[:count], rows.people, rows.starts, rows.stops, around.people, around.starts, around.stops
    )
    return max(groups.largest - 1, int(spread) // 2)


def _window_bound(groups: Groups) -> int:
    """The same for windows: N_2 reaches from the lowest begin to the highest end of the windows over a place."""
    low, high = np.full(groups.n, groups.n), np.zeros(groups.n, dtype=np.int64)
    if not len(groups):
        return 0
    np.maximum.at(high, groups.rows.starts, groups.rows.stops)
    np.minimum.at(low, groups.rows.stops - 1, groups.rows.starts)
    reach = np.maximum.accumulate(high) - np.minimum.accumulate(low[::-1])[::-1]
    return max(groups.largest - 1, int(reach.max()) // 2)


@njit(cache=True, nogil=True)
def _fellows(people: People, starts: Places, stops: Places, n: int) -> Places:
    """Sizes of the groups of each person (n,), added up."""
    result = np.zeros(n, dtype=np.int64)
    for g in range(starts.size):
        for member in people[starts[g] : stops[g]]:
            result[member] += stops[g] - starts[g]
    return result


@njit(cache=True, nogil=True)
def _widest(
    persons: Places,
    people: People, starts: Places, stops: Places, around: People, around_starts: Places, around_stops: Places,
) -> int:  # fmt: skip
    """Largest number of people who meet one person, the person included."""
    seen = np.full(around_starts.size, -1, dtype=np.int64)
    most = 1
    for i in persons:
        count = 0
        for g in around[around_starts[i] : around_stops[i]]:
            for j in people[starts[g] : stops[g]]:
                if seen[j] != i:
                    seen[j] = i
                    count += 1
        most = max(most, count)
    return most
