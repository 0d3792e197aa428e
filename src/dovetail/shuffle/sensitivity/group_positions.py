"""Where the members of each group stand: width and spread of their positions in a reference order."""

import numpy as np
from numpy.typing import NDArray

from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import People, Places

Positions = NDArray[np.int64]  # (g,) of a group, or (n,) of everybody, in the reference order


def spread_by_group(groups: Groups, values: Positions) -> Places:
    r"""Sum of the upper half minus sum of the lower half of the values (n,) of each group (groups,).

    .. math:: \sum_{i=1}^{\lfloor g/2 \rfloor} (v_{(g+1-i)} - v_{(i)})

    Windows of a list along which the values rise or fall cost O(1) each, whatever their sizes.
    """
    rows = groups.rows
    if groups.contiguous and _monotone(values[rows.people]):
        sums = np.concatenate(([0], np.cumsum(values[rows.people])))
        half = rows.sizes // 2
        upper = sums[rows.stops] - sums[rows.stops - half]
        return np.asarray(np.abs(upper - (sums[rows.starts + half] - sums[rows.starts])))
    return np.asarray(_spread_rows(values, rows.people, rows.starts, rows.stops))


def width_by_group(groups: Groups, positions: Positions) -> Places:
    """Width max P - min P of each distinct group (groups,)."""
    rows = groups.rows
    if groups.contiguous and _monotone(positions[rows.people]):
        return np.asarray(np.abs(positions[rows.people[rows.stops - 1]] - positions[rows.people[rows.starts]]))
    return np.asarray(_width_rows(positions, rows.people, rows.starts, rows.stops))


def _monotone(values: Positions) -> bool:
    steps = np.diff(values)
    return bool((steps >= 0).all() or (steps <= 0).all())


@njit(cache=True, nogil=True)
def _spread_rows(values: Positions, people: People, starts: Places, stops: Places) -> Places:
    result = np.zeros(starts.size, dtype=np.int64)
    for g in range(starts.size):
        p = np.sort(values[people[starts[g] : stops[g]]])
        for i in range(p.size // 2):
            result[g] += p[p.size - 1 - i] - p[i]
    return result


@njit(cache=True, nogil=True)
def _width_rows(positions: Positions, people: People, starts: Places, stops: Places) -> Places:
    result = np.zeros(starts.size, dtype=np.int64)
    for g in range(starts.size):
        low = high = positions[people[starts[g]]]
        for member in people[starts[g] : stops[g]]:
            low, high = min(low, positions[member]), max(high, positions[member])
        result[g] = high - low
    return result
