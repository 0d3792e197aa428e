r"""How far the members of a group are from a common centre: what planar noise has to hide.

.. math:: \max_{\tau \in \mathrm{Sym}(G)} \sum_{i \in G} \lVert t_{\tau(i)} - t_i \rVert
          \le 2 \sum_{i \in G} \lVert t_i - c \rVert \quad \text{for every centre } c

Any centre gives a valid bound, the geometric median the smallest. With a fixed centre the bound falls when people are
deleted.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import People, Places

Points = NDArray[np.float64]  # (n, 2)
Numbers = NDArray[np.float64]

ROUNDING = 1e-9  # relative, far above the rounding of sums of up to 1e6 distances

_STEPS = 32


def choose_centres(groups: Groups, points: Points, part: Places) -> Points:
    """A centre (groups, 2) for each group, good where the bound is largest among groups with the same `part`.

    The mean, or what Weiszfeld's iteration for the geometric median leads to from it; a group is not looked at any
    further once it cannot be the largest of its part.
    """
    rows, parts = groups.rows, int(part.max(initial=-1)) + 1
    return np.asarray(_centres(points, part, parts, rows.people, rows.starts, rows.stops))


def displacement_bounds(groups: Groups, points: Points, centres: Points) -> Numbers:
    """2 sum |t - c| for each group (groups,), rounded up."""
    rows = groups.rows
    return np.asarray(_sums(points, centres, rows.people, rows.starts, rows.stops) * (2.0 * (1.0 + ROUNDING)))


@njit(cache=True, nogil=True)
def _sums(points: Points, centres: Points, people: People, starts: Places, stops: Places) -> Numbers:
    result = np.zeros(starts.size)
    for g in range(starts.size):
        for i in people[starts[g] : stops[g]]:
            result[g] += math.sqrt((points[i, 0] - centres[g, 0]) ** 2 + (points[i, 1] - centres[g, 1]) ** 2)
    return result


@njit(cache=True, nogil=True)
def _centres(points: Points, part: Places, parts: int, people: People, starts: Places, stops: Places) -> Points:
    result, largest = np.zeros((starts.size, 2)), np.zeros(parts)
    for g in range(starts.size):
        members = people[starts[g] : stops[g]]
        x = y = 0.0
        for i in members:
            x, y = x + points[i, 0], y + points[i, 1]
        x, y = x / members.size, y / members.size
        best = math.inf
        for _ in range(_STEPS):
            total = weight = right = up = 0.0
            for i in members:
                distance = math.sqrt((points[i, 0] - x) ** 2 + (points[i, 1] - y) ** 2)
                pull = 1.0 / distance if distance > 0.0 else 0.0
                total, weight = total + distance, weight + pull
                right, up = right + pull * points[i, 0], up + pull * points[i, 1]
            better = total < best * (1.0 - 1e-6)
            if total < best:
                best, result[g, 0], result[g, 1] = total, x, y
            if best <= largest[part[g]] or not better or weight == 0.0:
                break
            x, y = right / weight, up / weight
        largest[part[g]] = max(largest[part[g]], best)
    return result
