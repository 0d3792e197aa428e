"""Depth of a candidate among the sentences, by public projections; and the maximum that the paper prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dovetail.text.candidates.candidates import Candidates
from dovetail.text.integer_rows import Rows, inner_products
from dovetail.text.selection.integer_budget import Utilities
from dovetail.text.utilities.utility import Utility


def counts(sentences: NDArray[np.int64], candidates: NDArray[np.int64]) -> tuple[Utilities, Utilities]:
    """How many sentences lie at or above, and at or below, each candidate on one projection."""
    line = np.sort(sentences)
    below = np.searchsorted(line, candidates, side="right")
    return line.size - np.searchsorted(line, candidates, side="left"), below


@dataclass(frozen=True, eq=False)
class Depth(Utility):
    r"""The least depth of a candidate over public projections: approximate Tukey depth, from above.

    .. math:: U_i = \min_j \min\bigl(\#\{s : \langle s, v_j \rangle \ge \langle f_i, v_j \rangle\},\
              \#\{s : \langle s, v_j \rangle \le \langle f_i, v_j \rangle\}\bigr), \qquad C = 2

    Notes
    -----
    Each count changes by at most 1 when a sentence is replaced, and minima are 1-Lipschitz. O(p (m + k) log k) time,
    O(m) memory besides the candidates' projections (m, p).

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), Algorithm 3, with the minimum that its text describes where its line 15 prints
    a maximum, and both counts, so that ties do not depend on the sign of a projection.
    """

    name = "depth"
    label = "depth over public projections"

    candidates: Candidates

    @classmethod
    def of(cls, candidates: Candidates) -> Self:
        return cls(candidates)

    @property
    def spread(self) -> int:
        return 2

    def scores(self, sentences: Rows) -> Utilities:
        lines = inner_products(self.candidates.projections, sentences)  # (p, k)
        least = np.full(self.candidates.m, len(sentences), dtype=np.int64)
        for line, places in zip(lines, self.candidates.projected, strict=True):
            above, below = counts(line, places)
            np.minimum(least, np.minimum(above, below), out=least)
        return least


@dataclass(frozen=True, eq=False)
class PublishedDepth(Utility):
    r"""The utility that the paper prints: the best projection instead of the worst. As private, and useless.

    .. math:: U_i = \max_j -|2 h_{ij} - k|, \qquad h_{ij} = \#\{s : \langle s, v_j \rangle \ge \langle f_i, v_j
              \rangle\}, \qquad C = 4

    Almost all candidates tie at the top, so that the selection is nearly uniform. For comparison only.

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), Algorithm 3, line 15, in halves.
    """

    name = "published"
    label = "the published maximum over projections, which hardly selects"

    candidates: Candidates

    @classmethod
    def of(cls, candidates: Candidates) -> Self:
        return cls(candidates)

    @property
    def spread(self) -> int:
        return 4

    def scores(self, sentences: Rows) -> Utilities:
        lines = inner_products(self.candidates.projections, sentences)
        best = np.full(self.candidates.m, -len(sentences), dtype=np.int64)
        for line, places in zip(lines, self.candidates.projected, strict=True):
            above, _ = counts(line, places)
            np.maximum(best, -np.abs(2 * above - len(sentences)), out=best)
        return best
