"""Approval votes: each sentence approves of the candidates nearest to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.text.candidates.candidates import Candidates
from dovetail.text.integer_rows import Rows, inner_products
from dovetail.text.selection.integer_budget import Utilities
from dovetail.text.utilities.utility import Utility, add_up

_QUARTERS = (1, 2, 4, 8)


@dataclass(frozen=True, eq=False)
class Approval(Utility):
    """How many sentences have a candidate among their `approved` nearest ones; a replacement spreads by 2.

    Parameters
    ----------
    candidates : Candidates
    approved : int, from 1 to m
        How many candidates each sentence approves of; chosen on public data. Ties go to the earlier candidate.
    """

    name = "approval"
    label = "approval votes"

    candidates: Candidates
    approved: int

    def __post_init__(self) -> None:
        whole("approved", self.approved, least=1, most=self.candidates.m)

    @classmethod
    def of(cls, candidates: Candidates) -> Self:
        return cls(candidates, candidates.approved)

    def variants(self) -> Iterable[Approval]:
        """Fewer and more candidates for each sentence."""
        sizes = {min(self.candidates.m, max(1, self.approved * part // 4)) for part in _QUARTERS}
        return [replace(self, approved=size) for size in sorted(sizes)]

    @property
    def spread(self) -> int:
        return 2

    def scores(self, sentences: Rows) -> Utilities:
        return add_up(sentences, self.candidates.m, self._approvals)

    def _approvals(self, sentences: Rows) -> NDArray[np.bool_]:
        products = inner_products(sentences, self.candidates.doubles)
        last = np.partition(products, -self.approved, axis=1)[:, -self.approved, None]
        nearer, tied = products > last, products == last
        left = self.approved - nearer.sum(axis=1, keepdims=True)
        return np.asarray(nearer | (tied & (tied.cumsum(axis=1) <= left)))
