"""Exact sensitivities of the distances between orders, Kendall's first, and of points in the plane."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import refuse, whole
from dovetail.core.compiled import njit
from dovetail.shuffle.fitting.components import PartitionedOrder
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.ranges import People, Places
from dovetail.shuffle.sampling.lehmer_code import MOST_THETA

# Where the members of each group stand: width and spread of their positions in a reference order.


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


# The exact sensitivity of Kendall's distance, the number of inversions.
#
# For the sorted positions p_1 < .. < p_g of a group in the reference order, the sensitivity is the largest change of
# the distance to the identity under a reordering of the people at these positions:
#
# .. math:: \Delta(P) = \max_{\kappa,\; \tau \in \mathrm{Sym}(P)} |d(\kappa) - d(\tau \kappa)|


def kendall(positions: ArrayLike) -> int:
    r"""Sensitivity of the number of inversions, exact and attained by (identity, reversal of P).

    .. math:: \Delta(P) = \sum_{i=1}^{\lfloor g/2 \rfloor} \bigl(2 (p_{g+1-i} - p_i) - 1\bigr)
              = \binom{g}{2} + 2 \sum_{f \notin P} \min(a_f, b_f)

    with a_f, b_f the members before and after the outsider f. Pairs of members change by at most C(g, 2); the
    inversions with an outsider by at most 2 min(a_f, b_f). The paper has the upper bound w (w + 1) / 2 instead
    (see `published_width_bound`). O(g).

    Examples
    --------
    >>> kendall([0, 4, 7])
    13
    """
    p = np.asarray(positions, dtype=np.int64)
    half = p.size // 2
    if half == 0:
        return 0
    p = np.partition(p, (half - 1, p.size - half))
    return 2 * int(p[-half:].sum() - p[:half].sum()) - half


def published_width_bound(width: int) -> int:
    """The published w (w + 1) / 2 for the width w = max P - min P: an upper bound on `kendall`, often far above.

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, section 4.4 and Property 4.
    """
    return width * (width + 1) // 2


def kendall_by_group(groups: Groups, positions: Positions) -> Places:
    """`kendall` of each distinct group (groups,); `positions` (n,) is the inverse of the reference order."""
    return np.asarray(2 * spread_by_group(groups, positions) - groups.sizes // 2)


def kendall_between_atoms(groups: Groups, line: PartitionedOrder) -> Places:
    r"""Sensitivity (groups,) of the number of inversions between different atoms.

    .. math:: \Delta(G) = \binom{g}{2} - \sum_{a \subseteq G} \binom{m_a}{2} + 2 \sum_{f \notin G} \min(a_f, b_f)

    Exact for groups that are unions of atoms. Any other group is first filled up with the atoms that it meets, which
    gives an upper bound: reordering more people changes more. With atoms of one person each this is `kendall`.

    Source
    ------
    Proven by enumeration (tests/oracles/test_order.py) and in docs/errata.md: inv(kappa) is the number of inversions
    of the word of atoms plus those inside atoms, and a uniform order inside atoms leaves only the first.
    """
    rows, cells = groups.rows, line.atom_starts
    if groups.contiguous and bool((np.abs(np.diff(line.places[rows.people])) == 1).all()):
        ends = line.places[rows.people[rows.starts]], line.places[rows.people[rows.stops - 1]]
        first, last = line.atom[np.minimum(*ends)], line.atom[np.maximum(*ends)]
        members = cells[last + 1] - cells[first]
        sizes = np.diff(cells)
        inside = np.concatenate(([0], np.cumsum(sizes * (sizes - 1) // 2)))
        return np.asarray(members * (members - 1) // 2 - (inside[last + 1] - inside[first]))
    return np.asarray(_closures(line.atom[line.places], cells, rows.people, rows.starts, rows.stops))


@njit(cache=True, nogil=True)
def _closures(cell: Places, cells: Places, people: People, starts: Places, stops: Places) -> Places:
    """Sensitivity of each group, filled up with atoms; `cell` (n,) is the atom of each person."""
    result = np.zeros(starts.size, dtype=np.int64)
    met = np.full(cells.size - 1, -1, dtype=np.int64)
    for g in range(starts.size):
        count = 0
        touched = np.empty(min(stops[g] - starts[g], met.size), dtype=np.int64)
        for person in people[starts[g] : stops[g]]:
            if met[cell[person]] != g:
                met[cell[person]] = g
                touched[count] = cell[person]
                count += 1
        touched = np.sort(touched[:count])
        members = np.int64(0)
        for a in touched:
            members += cells[a + 1] - cells[a]
        before, end, change = np.int64(0), cells[touched[0]], members * (members - 1) // 2
        for a in touched:
            change += 2 * (cells[a] - end) * min(before, members - before)
            size = cells[a + 1] - cells[a]
            change -= size * (size - 1) // 2
            before, end = before + size, cells[a + 1]
        result[g] = change
    return result


# Exact sensitivity of Spearman's footrule.
#
# .. math:: \Delta(P) = \max_{\kappa,\; \tau \in \mathrm{Sym}(P)} |d(\kappa) - d(\tau \kappa)|
#
# for the positions P of a group in the reference order and the distance d to the identity.


def footrule(positions: ArrayLike) -> int:
    r"""Sensitivity of sum |kappa(i) - i|, exact.

    .. math:: \Delta(P) = 2 \sum_{i=1}^{\lfloor g/2 \rfloor} (p_{g+1-i} - p_i)

    >>> footrule([0, 4, 7])
    14
    """
    return kendall(positions) + np.asarray(positions).size // 2


def footrule_by_group(groups: Groups, scores: Positions) -> Places:
    """`footrule` of each distinct group (groups,), for any whole scores (n,) in place of positions."""
    return 2 * spread_by_group(groups, scores)


# How far the members of a group are from a common centre: what planar noise has to hide.
#
# .. math:: \max_{\tau \in \mathrm{Sym}(G)} \sum_{i \in G} \lVert t_{\tau(i)} - t_i \rVert
#           \le 2 \sum_{i \in G} \lVert t_i - c \rVert \quad \text{for every centre } c
#
# Any centre gives a valid bound, the geometric median the smallest. With a fixed centre the bound falls when people
# are deleted.


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


# The largest dispersion parameter theta of a Mallows distribution that a guarantee allows.


def largest_theta(alpha: float, sensitivity: int) -> float:
    r"""Largest double theta with theta * sensitivity <= alpha in exact arithmetic, at most 1000.

    >>> largest_theta(1.0, 3) * 3 <= 1.0
    True
    """
    sensitivity = whole("sensitivity", sensitivity, least=1)
    if not 0.0 <= alpha < math.inf:
        raise refuse("alpha", "a finite number, at least 0 (nats)", alpha)
    exact = Fraction(alpha) / sensitivity
    theta = float(min(exact, Fraction(MOST_THETA)))
    return math.nextafter(theta, 0.0) if Fraction(theta) > exact else theta


# Sensitivity of the points of the plane on a whole grid, and the finest grid that a guarantee allows.


RATE = Fraction(1, 1 << 32)  # of the noise, in grid steps; the plane is scaled to fit the guarantee
MOST_COORDINATE = 2.0**60


def scale_to_grid(points: Points, scales: Numbers, line: PartitionedOrder) -> Points:
    """Points (n, 2) times the scale of their component, rounded to whole numbers."""
    return np.asarray(np.rint(points * scales[line.component[line.places], None]))


def largest_scales(groups: Groups, line: PartitionedOrder, points: Points, centres: Points, alpha: float) -> Numbers:
    """Scales, nearly the largest, whose rounded points keep alpha."""
    reach = np.maximum.reduceat(np.abs(points[line.order]).max(axis=1), line.component_starts[:-1])
    apart = uniform_distance(points[line.order], line) > 0.0
    scales = np.divide(MOST_COORDINATE / 2, reach, out=np.zeros(reach.size), where=apart & (reach > 0.0))
    for less in range(24):  # rounding to the grid moves Delta_2 by a few steps of 2^32: the second attempt holds
        delta = planar_sensitivities(groups, line, scale_to_grid(points, scales, line), centres, scales) * float(RATE)
        above = delta * (1.0 + 1e-15) > alpha
        if not above.any():
            return scales
        shrink = np.divide(alpha, delta, out=np.ones(delta.size), where=above) * (1.0 - 2.0 ** (less - 33))
        scales = np.where(above, scales * shrink, scales)
    return np.where(above, 0.0, scales)


def uniform_distance(along: Points, line: PartitionedOrder) -> Numbers:
    """Root of the mean squared distance of two people of a component (components,): above the mean distance."""
    sizes = line.sizes[:, None]
    mean = np.add.reduceat(along, line.component_starts[:-1], axis=0) / sizes
    off = (along - mean[line.component]) ** 2
    return np.asarray(np.sqrt(2.0 * (np.add.reduceat(off, line.component_starts[:-1], axis=0) / sizes).sum(axis=1)))


def planar_sensitivities(
    groups: Groups, line: PartitionedOrder, grid: NDArray[Any], centres: Points, scales: Numbers
) -> Numbers:
    """Largest Delta_2 in each component (components,), in grid steps, rounded up."""
    part = line.component_of(groups)
    result = np.zeros(line.components)
    np.maximum.at(result, part, displacement_bounds(groups, grid.astype(np.float64), centres * scales[part, None]))
    return result
