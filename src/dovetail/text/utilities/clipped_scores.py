"""Clipped scores: how much each sentence agrees with a candidate, within public limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.text.candidates.candidates import Candidates
from dovetail.text.integer_rows import UNIT, Rows, inner_products
from dovetail.text.selection.integer_budget import Utilities
from dovetail.text.utilities.utility import Utility, add_up

_TWENTIETHS = (20, 14, 10, 7, 5, 3)


@dataclass(frozen=True, eq=False)
class ClippedScores(Utility):
    r"""Each sentence's inner products with the candidates, centred and clipped.

    .. math:: U_i = \sum_{s} \mathrm{clip}\bigl(2 \langle s, f_i \rangle
              - \max_j \langle s, f_j \rangle - \min_j \langle s, f_j \rangle,\ -B,\ B\bigr), \qquad C = 4B

    The default: one sentence's scores spread far less than the candidates' diameter allows, and the limit B says so.

    Parameters
    ----------
    candidates : Candidates
    limit : int, at least 1
        B, in halves of 4096^-2: the median half-range of public sentences; public, like the candidates.

    Notes
    -----
    A sentence's part of U lies in [-B, B] for every candidate, so that a replacement changes U by amounts in
    [-2B, 2B], which differ by at most 4B.
    """

    name = "clipped"
    label = "clipped scores"
    scale = 2 * UNIT * UNIT

    candidates: Candidates
    limit: int

    def __post_init__(self) -> None:
        whole("limit", self.limit, least=1)

    @classmethod
    def of(cls, candidates: Candidates) -> Self:
        return cls(candidates, candidates.half_range)

    def variants(self) -> Iterable[ClippedScores]:
        """Smaller limits: one sentence says less, and its noise shrinks with it."""
        return [replace(self, limit=max(1, self.limit * part // 20)) for part in _TWENTIETHS]

    @property
    def spread(self) -> int:
        return 4 * self.limit

    def scores(self, sentences: Rows) -> Utilities:
        return add_up(sentences, self.candidates.m, self._clipped)

    def _clipped(self, sentences: Rows) -> NDArray[np.int64]:
        products = 2 * inner_products(sentences, self.candidates.doubles)
        middle = (products.max(axis=1, keepdims=True) + products.min(axis=1, keepdims=True)) // 2
        return np.asarray((products - middle).clip(-self.limit, self.limit))
