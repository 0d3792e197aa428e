"""People whose epsilon is set by a public column: who randomizes how, and what each class is promised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.account.mechanisms.mixture.krr_mixture import amplify_mixture
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError, UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import Reports
from dovetail.randomize.krr import KRR


@final
@dataclass(frozen=True)
class EpsilonClasses:
    """k-ary randomized response with the epsilon of one's class; reports carry no class.

    Parameters
    ----------
    k : int
    column : str
        Public, and must not depend on the private value.
    epsilons : mapping from a text of the column to its epsilon
    default : float
        Epsilon of every other text.
    """

    k: int
    column: str
    epsilons: Mapping[str, float]
    default: float

    @property
    def largest(self) -> float:
        """Epsilon that nobody spends more than."""
        return max(self.default, *self.epsilons.values())

    def refuse_misspelled(self, public: pl.DataFrame) -> None:
        """ConfigError for an epsilon of nobody whose text is nearly that of people who would get the default."""
        held = public[self.column].cast(pl.String).unique().to_list()
        others = [text for text in held if text not in self.epsilons]
        for text in self.epsilons:
            near = [] if text in held else get_close_matches(text, others, n=1)
            if near:
                raise ConfigError(
                    f"[randomize] epsilons: nobody has {text!r} in column {self.column!r}; did you mean {near[0]!r}?"
                )

    def members(self, public: pl.DataFrame) -> tuple[tuple[float, NDArray[np.int64]], ...]:
        """Each epsilon that occurs, and the places of its people, from the smallest one on."""
        texts = public[self.column].cast(pl.String)
        own = np.array([self.epsilons.get(text, self.default) for text in texts.to_list()])
        return tuple((float(one), np.flatnonzero(own == one)) for one in np.unique(own))

    def classes(self, public: pl.DataFrame) -> list[tuple[int, KRR]]:
        """How many people use which randomizer."""
        return [(places.size, KRR(self.k, epsilon)) for epsilon, places in self.members(public)]

    def randomize(self, values: NDArray[np.int64], public: pl.DataFrame, rng: Entropy) -> Reports:
        """Reports in the order of the people."""
        reports = np.empty(len(values), dtype=np.int64)
        for epsilon, places in self.members(public):
            reports[places] = KRR(self.k, epsilon).randomize(values[places], rng)
        return reports

    def promises(
        self, public: pl.DataFrame, *, delta: float, honest: int | None
    ) -> tuple[tuple[float, int, CentralDP], ...]:
        """Epsilon0, people and guarantee of each class, whichever people are not honest."""
        found = self.members(public)
        if len(public) < 2:
            raise UnsupportedError("one person is shuffled with nobody: her local guarantee is all there is.")
        pairs = [(places.size, epsilon) for epsilon, places in found]
        trusted = len(public) if honest is None else min(honest, len(public))
        promised = amplify_mixture(self.k, pairs, delta=delta, honest=trusted)
        return tuple((epsilon, size, one) for (size, epsilon), one in zip(pairs, promised, strict=True))
