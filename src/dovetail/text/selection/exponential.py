"""The exponential mechanism on whole levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.text.selection.coins import flip
from dovetail.text.selection.integer_budget import IntegerBudget, Levels
from dovetail.text.selection.selection import Selection

_SPARE = 64  # proposals beyond one for each candidate


class Exponential(Selection):
    r"""Selects each candidate with probability proportional to its weight.

    .. math:: \Pr[i] \propto (b/(b+1))^{n_i}

    Several releases of one document compose well (bounded range), which is why it is the rule for repeated releases.
    Its running time tells how many proposals were refused: with m candidates a round of m + 64 is enough with
    probability .63 at least, and nearly surely where many are good.

    Source
    ------
    McSherry, Talwar (2007), Mechanism Design via Differential Privacy, Theorem 6; constants by the spread of the
    change: Durfee, Rogers (2019), Practical Differentially Private Top-k Selection, Lemma 3.2.
    """

    name = "exponential"
    source = "exponential mechanism (McSherry, Talwar 2007; by the spread: Durfee, Rogers 2019, Lemma 3.2)"
    composes_as = "epsilons add; bounded range gives zero-concentrated privacy epsilon^2/8 for each release"

    def draw(self, levels: Levels, budget: IntegerBudget, rng: Entropy) -> int:
        """Propose uniform candidates and take the first whose coin shows heads; the best one's always does."""
        while True:
            proposed = rng.below(levels.size, levels.size + _SPARE)
            heads = flip(levels[proposed], budget.base, rng)
            if heads.any():
                return int(proposed[heads.argmax()])

    def probabilities(self, levels: Levels, budget: IntegerBudget) -> NDArray[np.float64]:
        """Weights over their sum."""
        weights = np.exp(-levels * np.log1p(1.0 / budget.base))
        return np.asarray(weights / weights.sum())
