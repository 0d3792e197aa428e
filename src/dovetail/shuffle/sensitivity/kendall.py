r"""The exact sensitivity of Kendall's distance, the number of inversions.

For the sorted positions p_1 < .. < p_g of a group in the reference order, the sensitivity is the largest change of
the distance to the identity under a reordering of the people at these positions:

.. math:: \Delta(P) = \max_{\kappa,\; \tau \in \mathrm{Sym}(P)} |d(\kappa) - d(\tau \kappa)|
"""

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.fitting.components import PartitionedOrder
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import People, Places
from dovetail.shuffle.sensitivity.group_positions import Positions, spread_by_group


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
    Meehan et al. (2022), Privacy Implications of Shuffling, section 4.3.
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
