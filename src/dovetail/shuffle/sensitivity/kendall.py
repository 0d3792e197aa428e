r"""Exact sensitivities of rank distances, and the largest dispersion parameter that a promise allows.

For the sorted positions p_1 < .. < p_g of a group in the reference order, the sensitivity is the largest change of
the distance to the identity under a reordering of the people at these positions:

.. math:: \Delta(P) = \max_{\kappa,\; \tau \in \mathrm{Sym}(P)} |d(\kappa) - d(\tau \kappa)|
"""

import math
from fractions import Fraction

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import refuse, whole
from dovetail.shuffle.fitting.components import Line
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import People, Places
from dovetail.shuffle.sampling.lehmer_code import MOST_THETA

Crossing = NDArray[np.bool_]  # (groups,)
Positions = NDArray[np.int64]  # (g,) of a group, or (n,) of everybody, in the reference order


def kendall(positions: ArrayLike) -> int:
    r"""Sensitivity of the number of inversions, exact and attained by (identity, reversal of P).

    .. math:: \Delta(P) = \sum_{i=1}^{\lfloor g/2 \rfloor} \bigl(2 (p_{g+1-i} - p_i) - 1\bigr)
              = \binom{g}{2} + 2 \sum_{f \notin P} \min(a_f, b_f)

    with a_f, b_f the members before and after the outsider f. Pairs of members change by at most C(g, 2); the
    inversions with an outsider by at most 2 min(a_f, b_f). The paper has the upper bound w (w + 1) / 2 instead
    (see `paper`). O(g).

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


def footrule(positions: ArrayLike) -> int:
    r"""Sensitivity of sum |kappa(i) - i|, exact.

    .. math:: \Delta(P) = 2 \sum_{i=1}^{\lfloor g/2 \rfloor} (p_{g+1-i} - p_i)

    >>> footrule([0, 4, 7])
    14
    """
    return kendall(positions) + np.asarray(positions).size // 2


def rho(positions: ArrayLike, n: int) -> int:
    r"""Sensitivity of Spearman's sum (kappa(i) - i)^2 among n people, exact; about n times `footrule`.

    .. math:: \Delta(P) = 2 \sum_{i=1}^{\lfloor g/2 \rfloor} (n + 1 - 2i) (p_{g+1-i} - p_i)

    >>> rho([0, 4, 7], n=8)
    98
    """
    p = np.sort(np.asarray(positions, dtype=np.int64))
    half = p.size // 2
    weights = n - 1 - 2 * np.arange(half)
    return 2 * int((weights * (p[p.size - half :][::-1] - p[:half])).sum())


def ulam(positions: ArrayLike) -> int:
    """Upper bound of the sensitivity of the least number of people to be moved elsewhere: the members of the group.

    Never more than 1 above the exact value for up to 8 people (enumerated); independent of the order.
    """
    return hamming(positions)


def hamming(positions: ArrayLike) -> int:
    """Sensitivity of the number of places that move, exact: g, or 0 for fewer than two members."""
    g = np.asarray(positions).size
    return g if g >= 2 else 0


def cayley(positions: ArrayLike) -> int:
    """Sensitivity of the least number of transpositions, exact: g - 1, or 0 without members."""
    return max(np.asarray(positions).size - 1, 0)


def paper(width: int) -> int:
    """The paper's w (w + 1) / 2 for the width w = max P - min P: an upper bound on `kendall`, often far above."""
    return width * (width + 1) // 2


def kendall_by_group(groups: Groups, positions: Positions) -> Places:
    """`kendall` of each distinct group (groups,); `positions` (n,) is the inverse of the reference order."""
    return np.asarray(2 * spread_by_group(groups, positions) - groups.sizes // 2)


def footrule_by_group(groups: Groups, scores: Positions) -> Places:
    """`footrule` of each distinct group (groups,), for any whole scores (n,) in place of positions."""
    return 2 * spread_by_group(groups, scores)


def spread_by_group(groups: Groups, values: Positions) -> Places:
    r"""Sum of the upper half minus sum of the lower half of the values (n,) of each group (groups,).

    .. math:: \sum_{i=1}^{\lfloor g/2 \rfloor} (v_{(g+1-i)} - v_{(i)})

    Windows of a list along which the values rise or fall cost O(1) each, whatever their sizes.
    """
    rows = groups.rows
    if groups.lined and _monotone(values[rows.people]):
        sums = np.concatenate(([0], np.cumsum(values[rows.people])))
        half = rows.sizes // 2
        upper = sums[rows.stops] - sums[rows.stops - half]
        return np.asarray(np.abs(upper - (sums[rows.starts + half] - sums[rows.starts])))
    return np.asarray(_spread_rows(values, rows.people, rows.starts, rows.stops))


def width_by_group(groups: Groups, positions: Positions) -> Places:
    """Width max P - min P of each distinct group (groups,)."""
    rows = groups.rows
    if groups.lined and _monotone(positions[rows.people]):
        return np.asarray(np.abs(positions[rows.people[rows.stops - 1]] - positions[rows.people[rows.starts]]))
    return np.asarray(_width_rows(positions, rows.people, rows.starts, rows.stops))


def crosses(groups: Groups, line: Line) -> Crossing:
    """Which groups meet more than one component (groups,)."""
    rows, part = groups.rows, line.part[line.places]
    if groups.lined:
        along = part[rows.people]
        changes = np.concatenate(([0], np.cumsum(along[1:] != along[:-1])))
        return np.asarray(changes[rows.starts] != changes[rows.stops - 1])
    return np.asarray(_crossing(part, rows.people, rows.starts, rows.stops))


def between_atoms(groups: Groups, line: Line) -> Places:
    r"""Sensitivity (groups,) of the number of inversions between different atoms.

    .. math:: \Delta(G) = \binom{g}{2} - \sum_{a \subseteq G} \binom{m_a}{2} + 2 \sum_{f \notin G} \min(a_f, b_f)

    Exact for groups that are unions of atoms. Any other group is first filled up with the atoms that it meets, which
    gives an upper bound: reordering more people changes more. With atoms of one person each this is `kendall`.

    Source
    ------
    Proven by enumeration (tests/oracles/test_order.py) and in docs/errata.md: inv(kappa) is the number of inversions
    of the word of atoms plus those inside atoms, and a uniform order inside atoms leaves only the first.
    """
    rows, cells = groups.rows, line.cells
    if groups.lined and bool((np.abs(np.diff(line.places[rows.people])) == 1).all()):
        ends = line.places[rows.people[rows.starts]], line.places[rows.people[rows.stops - 1]]
        first, last = line.cell[np.minimum(*ends)], line.cell[np.maximum(*ends)]
        members = cells[last + 1] - cells[first]
        sizes = np.diff(cells)
        inside = np.concatenate(([0], np.cumsum(sizes * (sizes - 1) // 2)))
        return np.asarray(members * (members - 1) // 2 - (inside[last + 1] - inside[first]))
    return np.asarray(_closures(line.cell[line.places], cells, rows.people, rows.starts, rows.stops))


def theta_for(alpha: float, sensitivity: int) -> float:
    r"""Largest double theta with theta * sensitivity <= alpha in exact arithmetic, at most 1000.

    >>> theta_for(1.0, 3) * 3 <= 1.0
    True
    """
    sensitivity = whole("sensitivity", sensitivity, least=1)
    if not 0.0 <= alpha < math.inf:
        raise refuse("alpha", "a finite number, at least 0 (nats)", alpha)
    exact = Fraction(alpha) / sensitivity
    theta = float(min(exact, Fraction(MOST_THETA)))
    return math.nextafter(theta, 0.0) if Fraction(theta) > exact else theta


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
def _crossing(part: Places, people: People, starts: Places, stops: Places) -> Crossing:
    result = np.zeros(starts.size, dtype=np.bool_)
    for g in range(starts.size):
        first = part[people[starts[g]]]
        for person in people[starts[g] : stops[g]]:
            result[g] |= part[person] != first
    return result


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


@njit(cache=True, nogil=True)
def _width_rows(positions: Positions, people: People, starts: Places, stops: Places) -> Places:
    result = np.zeros(starts.size, dtype=np.int64)
    for g in range(starts.size):
        low = high = positions[people[starts[g]]]
        for member in people[starts[g] : stops[g]]:
            low, high = min(low, positions[member]), max(high, positions[member])
        result[g] = high - low
    return result
