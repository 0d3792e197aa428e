r"""Exact sensitivities of the other rank distances: Spearman's footrule and rho, Ulam, Hamming and Cayley.

.. math:: \Delta(P) = \max_{\kappa,\; \tau \in \mathrm{Sym}(P)} |d(\kappa) - d(\tau \kappa)|

for the positions P of a group in the reference order and the distance d to the identity.
"""

import numpy as np
from numpy.typing import ArrayLike

from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import Places
from dovetail.shuffle.sensitivity.group_positions import Positions, spread_by_group
from dovetail.shuffle.sensitivity.kendall import kendall


def footrule(positions: ArrayLike) -> int:
    r"""Sensitivity of sum |kappa(i) - i|, exact.

    .. math:: \Delta(P) = 2 \sum_{i=1}^{\lfloor g/2 \rfloor} (p_{g+1-i} - p_i)

    >>> footrule([0, 4, 7])
    14
    """
    return kendall(positions) + np.asarray(positions).size // 2


def spearman_rho(positions: ArrayLike, n: int) -> int:
    r"""Sensitivity of Spearman's sum (kappa(i) - i)^2 among n people, exact; about n times `footrule`.

    .. math:: \Delta(P) = 2 \sum_{i=1}^{\lfloor g/2 \rfloor} (n + 1 - 2i) (p_{g+1-i} - p_i)

    >>> spearman_rho([0, 4, 7], n=8)
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


def footrule_by_group(groups: Groups, scores: Positions) -> Places:
    """`footrule` of each distinct group (groups,), for any whole scores (n,) in place of positions."""
    return 2 * spread_by_group(groups, scores)
