"""The exponential mechanism on whole levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.text.selection.integer_budget import IntegerBudget, Levels
from dovetail.text.selection.selection import Selection, below


class Exponential(Selection):
    r"""Selects each candidate with probability proportional to its weight.

    .. math:: \Pr[i] \propto (b/(b+1))^{n_i}

    Several releases of one document compose well (bounded range), which is why it is the rule for repeated releases.
    Its running time and memory grow with how far the levels spread, so an outsider who can time it learns of that;
    with thousands of sentences and a small epsilon it takes seconds.

    Source
    ------
    McSherry, Talwar (2007), Mechanism Design via Differential Privacy, Theorem 6; constants by the spread of the
    change: Durfee, Rogers (2019), Practical Differentially Private Top-k Selection, Lemma 3.2.
    """

    name = "exponential"
    source = "exponential mechanism (McSherry, Talwar 2007; by the spread: Durfee, Rogers 2019, Lemma 3.2)"
    composes_as = "epsilons add; bounded range gives zero-concentrated privacy epsilon^2/8 for each release"

    def draw(self, levels: Levels, budget: IntegerBudget, rng: Entropy) -> int:
        """First the level, by exact integer weights; then one of its candidates."""
        weights = level_weights(levels, budget.base)
        left = below(sum(weights.values()), rng)
        chosen = 0
        for level, weight in weights.items():
            if left < weight:
                chosen = level
                break
            left -= weight
        members = np.flatnonzero(levels == chosen)
        return int(members[below(members.size, rng)])

    def probabilities(self, levels: Levels, budget: IntegerBudget) -> NDArray[np.float64]:
        """Weights over their sum."""
        weights = np.exp(-levels * np.log1p(1.0 / budget.base))
        return np.asarray(weights / weights.sum())


def level_weights(levels: Levels, base: int) -> dict[int, int]:
    r"""Whole weights of the levels, from the last one upwards: :math:`\#\{i : n_i = n\}\, b^n (b+1)^{\max - n}`."""
    found, counts = np.unique(levels, return_counts=True)
    weights, power, at = {}, 1, int(found[-1])
    for level, count in zip(found[::-1].tolist(), counts[::-1].tolist(), strict=True):
        power *= (base + 1) ** (at - level)
        at = level
        weights[level] = count * power * base**level
    return weights
