"""The mechanism: a document goes in, one public candidate comes out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.text.candidates.candidates import Candidates
from dovetail.text.candidates.tuning import best_variant
from dovetail.text.guarantee import SentenceDP
from dovetail.text.integer_rows import Rows, check_rows
from dovetail.text.rules import SELECTIONS, UTILITIES, choose
from dovetail.text.selection.integer_budget import IntegerBudget, Levels
from dovetail.text.selection.selection import Selection
from dovetail.text.utilities.utility import Utility


@dataclass(frozen=True, eq=False)
class DeepCandidate:
    r"""Releases one of m public candidates for a private document, near its sentences.

    .. math:: \Pr[i] \propto \exp(\epsilon U_i / C) \quad \text{in exact whole numbers}

    The released candidate is the document's embedding; whatever is done with it costs nothing more.

    Parameters
    ----------
    utility : Utility
        How good candidates are; it knows the candidates.
    selection : Selection
        How one is drawn.
    budget : IntegerBudget
        Epsilon for one replaced sentence.

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), Algorithm 3; utilities and exact selection are ours.
    """

    utility: Utility = field(repr=False)
    selection: Selection
    budget: IntegerBudget

    @classmethod
    def of(
        cls,
        candidates: Candidates,
        *,
        epsilon: float,
        utility: str = "clipped",
        selection: str = "permute-and-flip",
    ) -> DeepCandidate:
        """The mechanism by its names.

        Parameters
        ----------
        candidates : Candidates
        epsilon : float in (0, 700], nats
            For one replaced sentence.
        utility : str
            clipped, approval, votes, inner, depth, or, for comparison, published. Its parameters are chosen by a
            rehearsal on public documents.
        selection : str
            permute-and-flip for one release of a document, exponential for several.
        """
        made, budget = choose("utility", utility, UTILITIES).of(candidates), IntegerBudget.of(epsilon)
        return cls(best_variant(made, budget), choose("selection", selection, SELECTIONS)(), budget)

    @property
    def guarantee(self) -> SentenceDP:
        """Pure sentence privacy, for randomness of the operating system."""
        return SentenceDP(self.budget.epsilon, source=f"{self.selection.source} over {self.utility.label}")

    def release(self, sentences: Rows, rng: Entropy | None = None) -> int:
        """The index of the released candidate for a document of these sentence rows (k, d); k may be 0."""
        source = entropy_or_system(rng)
        choice = self.selection.draw(self.levels(sentences), self.budget, source)
        return self.utility.members(choice, source)

    def levels(self, sentences: Rows) -> Levels:
        """Steps of each choice below the best: private, as the sentences are."""
        check_rows("sentences", sentences, dimension=self.utility.candidates.d)
        speaking = sentences[sentences.any(axis=1)]  # a zero row has no direction, and no say
        return self.budget.levels(self.utility.scores(speaking), self.utility.spread)

    def probabilities(self, sentences: Rows) -> NDArray[np.float64]:
        """The law of the choices for this document: private, for tests and rehearsals."""
        return self.selection.probabilities(self.levels(sentences), self.budget)
