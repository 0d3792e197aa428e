"""Permute-and-flip on whole levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.text.selection.coins import flip
from dovetail.text.selection.integer_budget import IntegerBudget, Levels
from dovetail.text.selection.selection import Selection

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)


class PermuteAndFlip(Selection):
    r"""Visits candidates in random order and takes the first whose coin shows heads.

    .. math:: \Pr[\text{heads of } i] = (b/(b+1))^{n_i}, \qquad
              \Pr[i] = p_i \int_0^1 \prod_{j \ne i} (1 - t p_j)\, dt

    Never worse in expectation than the exponential mechanism at the same epsilon: the rule for one release. All
    coins are flipped whatever they show; about one flip in 2^37 takes longer.

    Source
    ------
    McKenna, Sheldon (2020), Permute-and-Flip: A New Mechanism for Differentially Private Selection, Theorem 2.
    """

    name = "permute-and-flip"
    source = "permute-and-flip (McKenna, Sheldon 2020, Theorem 2; by the spread, as it ignores shifts)"
    composes_as = "epsilons add"

    def draw(self, levels: Levels, budget: IntegerBudget, rng: Entropy) -> int:
        """All coins at once, then the first that shows heads in a random order; the best one always does."""
        heads = flip(levels, budget.base, rng)
        order = rng.permutation(levels.size)
        return int(order[heads[order].argmax()])

    def probabilities(self, levels: Levels, budget: IntegerBudget) -> NDArray[np.float64]:
        """The integral by Gauss-Legendre quadrature of 400 nodes in 1 - exp(-t sum p), in which it is nearly flat."""
        heads = np.exp(-levels * np.log1p(1.0 / budget.base))
        found, at, counts = np.unique(heads, return_inverse=True, return_counts=True)
        t, weights = arrival_times(float(heads.sum()))
        misses = np.log1p(-np.outer(t, found))  # nodes lie inside (0, 1)
        each = found * (np.exp(misses @ counts)[:, None] / np.exp(misses) * weights[:, None]).sum(axis=0)
        return np.asarray(each[at])


def arrival_times(rate: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Nodes t in (0, 1) and weights of an integral whose integrand falls like :math:`e^{-t \cdot rate}`."""
    reach = -np.expm1(-rate)
    s = (_NODES + 1) / 2
    return -np.log1p(-s * reach) / rate, _WEIGHTS / 2 * reach / (rate * (1.0 - s * reach))
