"""What every utility offers: whole-number scores, and how far one sentence can move them apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.text.candidates.candidates import Candidates
from dovetail.text.integer_rows import Rows
from dovetail.text.selection.integer_budget import Utilities

_BLOCK = 32  # sentences


class Utility(ABC):
    """Scores the choices among public candidates for one document.

    Laws: replacing one sentence changes the scores by amounts that differ by at most `spread`, adding or removing
    one by amounts that differ by at most `spread` / 2; the order of sentences does not matter.
    """

    name: ClassVar[str]
    label: ClassVar[str]

    scale: ClassVar[int] = 1  # units of a score in 1

    candidates: Candidates

    @classmethod
    @abstractmethod
    def of(cls, candidates: Candidates) -> Self:
        """This utility with its public parameters for these candidates."""

    @property
    @abstractmethod
    def spread(self) -> int:
        """C, at least 1."""

    @property
    def sensitivity(self) -> float:
        """C/2 in natural units: the most that one replaced sentence moves one score."""
        return self.spread / (2 * self.scale)

    @abstractmethod
    def scores(self, sentences: Rows) -> Utilities:
        """The score of each choice for a document of these sentences (k, d); zeros where there are none."""

    def variants(self) -> Iterable[Utility]:
        """This utility with other public parameters, from which public documents choose; itself among them."""
        return (self,)

    def members(self, choice: int, rng: Entropy) -> int:
        """The candidate that stands for a choice: the choice itself, unless choices are clusters."""
        return choice


def add_up(sentences: Rows, width: int, contributions: Callable[[Rows], NDArray[Any]]) -> Utilities:
    """The sum (m,) over sentences of their contributions (k, m), a block at a time: memory does not grow with k."""
    total = np.zeros(width, dtype=np.int64)
    for start in range(0, len(sentences), _BLOCK):
        total += contributions(sentences[start : start + _BLOCK]).sum(axis=0)
    return total
