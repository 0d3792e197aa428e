"""The sum of inner products, whose spread is the diameter of the candidates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dovetail.text.candidates.candidates import Candidates
from dovetail.text.integer_rows import UNIT, Rows, inner_products
from dovetail.text.selection.integer_budget import Utilities
from dovetail.text.utilities.utility import Utility, add_up

_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class InnerProduct(Utility):
    r"""The sum of inner products of the sentences with a candidate.

    .. math:: U_i = \sum_{s} \langle s, f_i \rangle, \qquad C = 2 \max_{i,j} |f_i - f_j|

    Notes
    -----
    The change :math:`\langle s - s', f_i \rangle` differs over i by at most :math:`|s - s'| |f_i - f_j|`, and
    sentences have norm at most 1.
    """

    name = "inner"
    label = "inner products, by the diameter of the candidates"
    scale = UNIT * UNIT

    candidates: Candidates

    @classmethod
    def of(cls, candidates: Candidates) -> Self:
        return cls(candidates)

    @property
    def spread(self) -> int:
        return self._spread

    @cached_property
    def _spread(self) -> int:
        rows = self.candidates.rows
        squares = (rows.astype(np.int64) ** 2).sum(axis=1)
        farthest = 0
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            apart = squares[block, None] + squares[None, :] - 2 * inner_products(rows[block], rows)
            farthest = max(farthest, int(apart.max()))
        return max(1, 1 + math.isqrt(4 * UNIT * UNIT * farthest))  # rounded up

    def scores(self, sentences: Rows) -> Utilities:
        rows = self.candidates.doubles
        return add_up(sentences, self.candidates.m, lambda block: inner_products(block, rows))
