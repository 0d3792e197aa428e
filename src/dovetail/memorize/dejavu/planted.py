"""Encoders with planted memorization: a table of answers with exact counts, so the attack has one right result."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.core.errors import ParameterError
from dovetail.memorize.dejavu.pairs import Pair
from dovetail.memorize.dejavu.score import Partition

_Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Planted:
    r"""Two encoders, each of which remembers a share rho of its training images and guesses q of the others right.

    Right answers on other images are independent of the reference's, which is right on q of all:

    .. math::
        \text{target} = \rho + (1 - \rho) q, \quad \text{score}(1) = \rho (1 - q), \quad
        \text{memorized} = \rho (1 - q) + (1 - \rho) q (1 - q), \quad
        \text{misrepresented} = (1 - \rho) q (1 - q)

    The encoder is sure (all K neighbours agree) of what it remembers, and unsure of all else; so score(p) is 1 - q
    for every p up to rho.

    Parameters
    ----------
    images : int
        In each of A and B.
    remembered, accuracy : Fraction, or text such as "1/4"
        rho and q; every count must come out whole.
    classes : int, at least 3
    neighbours : int, at least 5
        K of the attack, and the size of each cluster of the public set.
    """

    images: int
    remembered: Fraction | str
    accuracy: Fraction | str
    classes: int = 10
    neighbours: int = 10

    def __post_init__(self) -> None:
        whole("images", self.images, least=1)
        whole("classes", self.classes, least=3)
        whole("neighbours", self.neighbours, least=5)
        for name in ("remembered", "accuracy"):
            value = Fraction(getattr(self, name))
            if not 0 <= value <= 1:
                raise ParameterError(f"`{name}` must be from 0 to 1, got {value}.")
        if any(count.denominator > 1 for count in self._counts()):
            raise ParameterError(
                f"`images` must make every count whole at remembered {self.remembered} and accuracy {self.accuracy}, "
                f"got {self.images}."
            )

    @property
    def partition(self) -> Partition:
        """Exact counts for one direction."""
        known, lost, both, one, other, neither = (float(count) for count in self._counts())
        return Partition(known + both, lost + one, other, neither)

    def pair(self) -> Pair:
        """Embeddings of both directions."""
        labels = np.arange(self.images) % self.classes
        target, reference, sure = self._answers()
        codes = {"own": self._code(labels, target, sure), "other": self._code(labels, reference, np.zeros_like(sure))}
        public, given = self._public()
        rows = {
            (name, model): codes["own" if name == model else "other"] for name in ("a", "b") for model in ("a", "b")
        }
        return Pair(
            {"a": labels, "b": labels, "public": given},
            {**rows, ("public", "a"): public, ("public", "b"): public},
        )

    def _counts(self) -> tuple[Fraction, ...]:
        """Remembered and guessed by the reference; remembered alone; others: both, target, reference, neither."""
        n, rho, q = Fraction(self.images), Fraction(self.remembered), Fraction(self.accuracy)
        rest = (1 - rho) * n
        return (rho * q * n, rho * (1 - q) * n, q * q * rest, q * (1 - q) * rest, q * (1 - q) * rest,
                (1 - q) ** 2 * rest)  # fmt: skip

    def _answers(self) -> tuple[NDArray[np.bool_], ...]:
        """For each image: is the target right, is the reference, is the target sure."""
        kinds = [(1, 1, 1), (1, 0, 1), (1, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 0)]
        table = np.repeat(np.array(kinds, dtype=bool), [int(count) for count in self._counts()], axis=0)
        return table[:, 0], table[:, 1], table[:, 2]

    def _code(self, labels: _Codes, right: NDArray[np.bool_], sure: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The centre of the cluster whose majority is the answer; a wrong answer is the next class."""
        answer = np.where(right, labels, (labels + 1) % self.classes)
        return np.eye(2 * self.classes)[np.where(sure, answer, self.classes + answer)]

    def _public(self) -> tuple[NDArray[np.float64], _Codes]:
        """Two clusters of K rows for each class: one of that class alone, one with a bare majority of it."""
        others = (self.neighbours - 1) // 3
        rows, labels = [], []
        for code in range(self.classes):
            pure = np.full(self.neighbours, code)
            mixed = pure.copy()
            mixed[:others], mixed[others : 2 * others] = (code + 1) % self.classes, (code + 2) % self.classes
            rows += [code] * self.neighbours + [self.classes + code] * self.neighbours
            labels += [pure, mixed]
        return np.eye(2 * self.classes)[rows], np.concatenate(labels)
