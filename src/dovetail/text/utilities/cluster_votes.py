"""Cluster votes: each sentence votes for one public cluster, and any candidate of the winner is released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dovetail.core.entropy import Entropy
from dovetail.text.candidates.candidates import Candidates
from dovetail.text.integer_rows import Rows, inner_products
from dovetail.text.selection.integer_budget import Utilities
from dovetail.text.utilities.utility import Utility


@dataclass(frozen=True, eq=False)
class ClusterVotes(Utility):
    """How many sentences are nearest to each cluster's centre; a replacement spreads by 2.

    The selection is among clusters; the candidate is drawn uniformly from the selected one, which tells nothing.
    """

    name = "votes"
    label = "cluster votes"

    candidates: Candidates

    @classmethod
    def of(cls, candidates: Candidates) -> Self:
        return cls(candidates)

    @property
    def spread(self) -> int:
        return 2

    def scores(self, sentences: Rows) -> Utilities:
        centres = self.candidates.centres
        votes = inner_products(sentences, centres).argmax(axis=1) if len(sentences) else np.zeros(0, dtype=np.int64)
        return np.bincount(votes, minlength=len(centres)).astype(np.int64)

    def members(self, choice: int, rng: Entropy) -> int:
        inside = np.flatnonzero(self.candidates.clusters == choice)
        return int(inside[rng.below(inside.size, 1)[0]])
