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
from dovetail.shuffle.digits import MOST_THETA
from dovetail.shuffle.groups import Groups
from dovetail.shuffle.ranges import People, Places

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
    rows = groups.rows
    if _in_line(groups, positions):
        return rows.sizes * (rows.sizes - 1) // 2
    return np.asarray(_kendall_rows(positions, rows.people, rows.starts, rows.stops))


def width_by_group(groups: Groups, positions: Positions) -> Places:
    """Width max P - min P of each distinct group (groups,)."""
    rows = groups.rows
    if _in_line(groups, positions):
        return rows.sizes - 1
    return np.asarray(_width_rows(positions, rows.people, rows.starts, rows.stops))


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


def _in_line(groups: Groups, positions: Positions) -> bool:
    """Whether the list behind the groups is the reference order itself, forwards or backwards."""
    return groups.lined and bool((np.abs(np.diff(positions[groups.rows.people])) == 1).all())


@njit(cache=True, nogil=True)
def _kendall_rows(positions: Positions, people: People, starts: Places, stops: Places) -> Places:
    result = np.zeros(starts.size, dtype=np.int64)
    for g in range(starts.size):
        p = np.sort(positions[people[starts[g] : stops[g]]])
        for i in range(p.size // 2):
            result[g] += 2 * (p[p.size - 1 - i] - p[i]) - 1
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
