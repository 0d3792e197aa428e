"""What an attack on values is: what it may know, and when it guesses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.registry import Declared
from dovetail.core.stages import FrequencyRandomizer, Labels, Reports, Shuffler


class Knowledge(ABC):
    """What an attacker on values knows about everybody beforehand."""

    @abstractmethod
    def places(self, targets: Labels, *, votes: int, rng: Entropy) -> Labels:
        """Places (targets, votes) of people like each target, -1 for none."""

    @abstractmethod
    def points(self) -> NDArray[np.float64]:
        """Everybody's place (n, d), each column in units of its standard deviation."""

    @abstractmethod
    def classes(self) -> Labels:
        """Number (n,) of the class of people of whom the same is known."""

    @abstractmethod
    def release(self, randomizer: FrequencyRandomizer, shuffler: Shuffler, rng: Entropy) -> Reports:
        """A released batch of these people to learn from: one that was seen, or in a rehearsal one more."""


class Attack(Declared):
    """Guesses people's values from a released batch and public data.

    Laws: `guess` depends on the batch, on public data and on `rng`, never on the true values.

    Raises
    ------
    UnsupportedError, DataError
        From `prepare`, where an attack does not apply to this randomizer, shuffler or knowledge.

    Examples
    --------
    >>> from dovetail.core.registries import ATTACKS
    >>> "majority" in ATTACKS and issubclass(ATTACKS["majority"], Attack)
    True
    """

    asks_what_is_mixed: ClassVar[bool] = False  # whether it needs the blocks of places that the shuffler mixes

    targets: Labels  # (m,), the people whose values are guessed

    @classmethod
    @abstractmethod
    def prepare(
        cls, known: Knowledge, randomizer: FrequencyRandomizer, shuffler: Shuffler, *, targets: Labels, rng: Entropy,
        **settings: Any,
    ) -> Self:  # fmt: skip
        """An attacker that has learned what it needs; UnsupportedError or DataError where it does not apply."""

    @abstractmethod
    def guess(self, reports: Reports, rng: Entropy | None = None) -> Labels:
        """The value (m,) of each target, from the reports in their released order; `rng` breaks ties."""

    def remark(self, reports: Reports, rng: Entropy) -> str:
        """What whoever reads the result has to know besides, judged on one batch; mostly nothing."""
        return ""

    @classmethod
    def weighed(cls, n: int, settings: dict[str, Any]) -> int | None:
        """Reports that are weighed for each target; None for all that can be the target's."""
        return None
