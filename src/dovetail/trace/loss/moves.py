r"""The worst move of a secret: :math:`\sup \Delta' J \Delta` when every secret location moves by at most 1.

One location: maxeig J. Several in one coordinate: a convex function on a box, so a vertex is worst. Several in the
plane, coordinates independent: a product of discs, and

.. math:: \sup \le \min \Big\{ \sum_k w_k : \mathrm{diag}(w) \succeq J_i \text{ for every coordinate } i \Big\}

which is never worse than S maxeig J, the bound of Theorem 5.3.3, and exact for S = 2 in one coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from scipy.optimize import minimize

from dovetail.core.bracket import Bracket
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.information import Information

MOST_VERTICES = 10  # secret times whose 2^(S-1) sign vectors are listed


def worst_move(found: Sequence[Information]) -> Bracket:
    """The worst move, between its ends, of a secret with independent coordinates.

    Parameters
    ----------
    found : one Information for each coordinate, the same secret times in all of them
    """
    count = len(found[0].matrix)
    if count == 1:
        values = [one.largest for one in found]
        return Bracket(max(one.lower for one in values), max(one.upper for one in values))
    if len(found) == 1 and count <= MOST_VERTICES:
        return found[0].bracket(worst_vertex(found[0].matrix))
    lower = max(one.bracket(_some_vertex(one.matrix)).lower for one in found)
    weights = diagonal_bound([one.matrix for one in found])
    return Bracket(lower, max(lower, float(weights.sum()) * (1.0 + max(one.error for one in found))))


def worst_vertex(matrix: Floats) -> float:
    """max e' J e over sign vectors e, by listing them."""
    signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=len(matrix) - 1)])
    return float(np.einsum("ij,jk,ik->i", signs, matrix, signs).max())


def _some_vertex(matrix: Floats) -> float:
    """e' J e at a good sign vector, improved one sign at a time."""
    if len(matrix) <= MOST_VERTICES:
        return worst_vertex(matrix)
    signs = np.where(np.linalg.eigh(matrix)[1][:, -1] >= 0, 1.0, -1.0)
    for _ in range(len(matrix)):
        gains = -signs * (matrix @ signs) + np.diag(matrix)  # a quarter of what a flip gains
        if gains.max() <= 0.0:
            break
        signs[gains.argmax()] *= -1.0
    return float(signs @ matrix @ signs)


def diagonal_bound(matrices: Sequence[Floats]) -> Floats:
    """Weights w (S,) with diag(w) >= J for every J of `matrices`, of small sum: any such w is a valid bound."""
    sizes = np.mean([np.diag(one) for one in matrices], axis=0)

    def scaled(logs: Floats) -> tuple[Floats, float]:
        weights = np.exp(logs) * sizes
        root = 1.0 / np.sqrt(weights)
        return weights, max(float(np.linalg.eigvalsh(root[:, None] * one * root)[-1]) for one in matrices)

    def cost(logs: Floats) -> float:
        weights, largest = scaled(logs)
        return float(np.log(weights.sum()) + np.log(largest))

    starts = [np.zeros(len(sizes)), np.log(np.max([np.abs(one).sum(axis=1) for one in matrices], axis=0) / sizes)]
    best = min((minimize(cost, start, method="Powell").x for start in starts), key=cost)
    flat = np.log(np.ones(len(sizes)) / sizes)  # equal weights are the printed bound, S maxeig J
    weights, largest = scaled(min((best, *starts, flat), key=cost))
    return weights * largest * (1.0 + 1e-12)
