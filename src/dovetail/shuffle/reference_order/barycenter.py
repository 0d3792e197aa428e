r"""Improving a reference order: everybody moves to the middle of their neighbours, again and again.

.. math:: p \leftarrow \mathrm{rank}\Bigl(\tfrac12 \bigl(\min_{j \in N(i)} p_j + \max_{j \in N(i)} p_j\bigr)\Bigr)

with N(i) the person and their neighbours, ties by the current position; then the same with the mean. No step is
guaranteed to help, so each order is scored exactly and the best one seen is kept.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Permutation
from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.groups.ranges import People, Places, Ranges
from dovetail.shuffle.reference_order.breadth_first import PeopleGraph, RowAdjacency
from dovetail.shuffle.sampling.permutations import inverse

Middles = NDArray[np.float64]  # (n,)

_SHORT = 64  # below this many members insertion sort is the fastest


def score_components(
    rows: Ranges, positions: Permutation, *, within: Places, part: Places, parts: int
) -> tuple[Places, Places]:
    r"""Largest exact sensitivity and largest width of each part of the rows, for an order given by positions (n,).

    .. math:: \max_G \; \Delta(G) - c_G

    with c_G = `within` the pairs of members of a common atom, 0 where atoms are not used (`pairs_within_atoms`), and
    `part` the number 0..parts-1 of the connected component that holds each row. One pass over the members; a row is
    sorted only when the bound 2 h (w - h + 1) - h with h = floor(g / 2) could make it the largest of its part so far.
    """
    largest, widest = _score(rows.people, rows.starts, rows.stops, positions, within, part, parts)
    return np.asarray(largest), np.asarray(widest)


def barycenter_sweep(graph: PeopleGraph, order: Permutation, *, mean: bool) -> Permutation:
    """The order after everybody moved to the middle (or the mean) of themselves and their neighbours."""
    middle = np.asarray((_means if mean else _midranges)(graph, inverse(order)))
    return order[np.argsort(middle[order], kind="stable")]


@njit(cache=True, nogil=True)
def _score(
    people: People, starts: Places, stops: Places, positions: Permutation, within: Places, part: Places, parts: int
) -> tuple[Places, Places]:  # fmt: skip
    largest, widest = np.zeros(parts, dtype=np.int64), np.zeros(parts, dtype=np.int64)
    places = np.empty(_SHORT, dtype=np.int64)
    for g in range(starts.size):
        low = high = positions[people[starts[g]]]
        for member in people[starts[g] : stops[g]]:
            low, high = min(low, positions[member]), max(high, positions[member])
        width = high - low
        widest[part[g]] = max(widest[part[g]], width)
        size = stops[g] - starts[g]
        half = size // 2
        if 2 * half * (width - half + 1) - half - within[g] <= largest[part[g]]:  # nested pairs shrink by 2 at least
            continue
        if size > _SHORT:
            p = np.sort(positions[people[starts[g] : stops[g]]])
        else:
            p = places
            for k in range(size):
                position = positions[people[starts[g] + k]]
                m = k
                while m > 0 and p[m - 1] > position:
                    p[m] = p[m - 1]
                    m -= 1
                p[m] = position
        change = -within[g]
        for i in range(half):
            change += 2 * (p[size - 1 - i] - p[i]) - 1
        largest[part[g]] = max(largest[part[g]], change)
    return largest, widest


@njit(cache=True, nogil=True)
def _midranges(graph: PeopleGraph, positions: Permutation) -> Middles:
    n = positions.size
    low, high = positions.astype(np.float64), positions.astype(np.float64)
    for steps in graph:
        least, most = _extremes(steps, positions)
        for i in range(n):
            for g in steps.rows[steps.rows_from[i] : steps.rows_to[i]]:
                low[i], high[i] = min(low[i], least[g]), max(high[i], most[g])
    return low + high


@njit(cache=True, nogil=True)
def _extremes(steps: RowAdjacency, positions: Permutation) -> tuple[Middles, Middles]:
    least = np.full(steps.people_from.size, math.inf)
    most = np.full(steps.people_from.size, -math.inf)
    for g in range(least.size):
        for j in steps.people[steps.people_from[g] : steps.people_to[g]]:
            least[g], most[g] = min(least[g], positions[j]), max(most[g], positions[j])
    return least, most


@njit(cache=True, nogil=True)
def _means(graph: PeopleGraph, positions: Permutation) -> Middles:
    n = positions.size
    total, count = positions.astype(np.float64), np.ones(n)
    for steps in graph:
        sums = np.zeros(steps.people_from.size)
        for g in range(sums.size):
            for j in steps.people[steps.people_from[g] : steps.people_to[g]]:
                sums[g] += positions[j]
        for i in range(n):
            for g in steps.rows[steps.rows_from[i] : steps.rows_to[i]]:
                total[i] += sums[g]
                count[i] += steps.people_to[g] - steps.people_from[g]
    return total / count
