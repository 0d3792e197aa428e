"""No local noise: what a device sends where the shuffler alone is trusted to add it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import Channel
from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import LocalDP
from dovetail.core.stages import FrequencyRandomizer, Reports
from dovetail.randomize.sampling.domain import symbols


@final
@dataclass(frozen=True)
class OpenAnswers(FrequencyRandomizer):
    """The value itself: protects nobody against whoever opens a report, and is no choice of a configuration.

    It goes with `Dummies`, whose shuffler is then trusted with every answer.
    """

    k: int
    name: ClassVar[str] = "none"
    label: ClassVar[str] = "no local noise"
    names_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 24))

    @property
    def guarantee(self) -> LocalDP:
        return LocalDP(inf, source="no local noise: shuffler and analyst together read every answer")

    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        return symbols(values, self.k)

    def channel(self) -> Channel:
        raise UnsupportedError("no local noise: a report is the answer, and has no channel to speak of.")

    def tally(self, reports: Reports) -> NDArray[np.int64]:
        return np.bincount(self.check_reports(reports), minlength=self.k)

    def invert(self, counts: NDArray[Any], n: Any) -> NDArray[np.float64]:
        return np.asarray(counts / np.asarray(n)[..., None], dtype=np.float64)

    def variance(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros(np.shape(shares))

    def check_reports(self, reports: ArrayLike) -> Reports:
        return symbols(reports, self.k, name="reports")

    @property
    def ratio(self) -> Fraction:
        raise UnsupportedError("no local noise: no finite ratio bounds what a report tells.")

    @property
    def report_bits(self) -> int:
        return (self.k - 1).bit_length()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(k=3),)
