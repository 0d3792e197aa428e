"""What another distribution may bring: a randomizer, a shuffler, an attack and a section, known by entry points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, final

import numpy as np

import dovetail as dt
from dovetail.core.channel import DenseChannel
from dovetail.core.checks import whole
from dovetail.core.settings import Count
from dovetail.core.stages import PublicData, ReportSection
from dovetail.shuffle.fitting.fitted_shuffler import check_present
from dovetail.shuffle.sampling.permutations import check_labels, check_permutation


@final
@dataclass(frozen=True)
class Rotated(dt.FrequencyRandomizer):
    """k-ary randomized response whose report names the symbol `shift` places further on.

    Parameters
    ----------
    k : int, at least 2
    epsilon : float, nats
    shift : int, at least 1
        Places by which reports are rotated.
    """

    k: int
    epsilon: float
    shift: Count = 1
    name: ClassVar[str] = "rotated"
    label: ClassVar[str] = "rotated response"
    largest_k: ClassVar[int] = 1 << 20

    def __post_init__(self) -> None:
        whole("k", self.k, least=2, most=self.largest_k)
        _ = self._response  # refuses what k-ary randomized response refuses

    @property
    def _response(self) -> dt.KRR:
        return dt.KRR(k=self.k, epsilon=self.epsilon)

    @property
    def guarantee(self) -> dt.LocalDP:
        return dt.LocalDP(self.epsilon, source="post-processing of k-ary randomized response")

    @property
    def ratio(self) -> Fraction:
        return self._response.ratio

    @property
    def report_bits(self) -> int:
        return (self.k - 1).bit_length()

    def channel(self) -> DenseChannel:
        return DenseChannel(np.roll(self._response.channel().matrix(), self.shift, axis=1))

    def _randomize(self, values: Any, rng: dt.Entropy) -> Any:
        return (self._response.randomize(values, rng) + self.shift) % self.k

    def check_reports(self, reports: Any) -> Any:
        return self._response.check_reports(reports)

    def tally(self, reports: Any) -> Any:
        return np.roll(self._response.tally(reports), -self.shift)

    def invert(self, counts: Any, n: Any) -> Any:
        return self._response.invert(counts, n)

    def variance(self, shares: Any) -> Any:
        return self._response.variance(shares)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(k=2, epsilon=1.0), cls(k=3, epsilon=0.5, shift=2), cls(k=5, epsilon=2.0, shift=4))


@final
@dataclass(frozen=True)
class Pairs(dt.Shuffler):
    """Each two people who follow each other change places, or not, with equal probability."""

    n: int
    name: ClassVar[str] = "pairs"
    label: ClassVar[str] = "pairs of neighbours"
    needs_groups: ClassVar[bool] = False
    needs_alpha: ClassVar[bool] = False

    @classmethod
    def from_public(cls, public: PublicData, *, alpha: float | None = None, **settings: Any) -> Self:
        return cls(public.n)

    @property
    def guarantee(self) -> dt.OrderPrivacy:
        pairs = [[first, first + 1] for first in range(0, self.n - 1, 2)]
        return dt.OrderPrivacy(0.0, dt.Groups.from_lists(pairs, self.n), source="both orders of a pair are alike")

    def uniform_blocks(self) -> Any:
        return np.arange(self.n) // 2

    def _permutation(self, rng: dt.Entropy) -> Any:
        order = np.arange(self.n)
        first = 2 * np.flatnonzero(rng.below(2, self.n // 2))
        order[first], order[first + 1] = first + 1, first
        return order

    def log_weight(self, permutation: Any) -> float:
        inside = (check_permutation(permutation, self.n) // 2 == self.uniform_blocks()).all()
        return -(self.n // 2) * math.log(2.0) if inside else -math.inf

    def mixing(self, labels: Any) -> Any:
        labels = check_labels(labels, self.n)
        size = int(labels.max()) + 1
        seats = np.zeros((size, int(self.uniform_blocks().max()) + 1))
        np.add.at(seats, (labels, self.uniform_blocks()), 1.0)
        flow = (seats / seats.sum(axis=0)) @ seats.T
        return (flow / flow.sum(axis=0)).T

    def restrict(self, present: Any) -> Self:
        return type(self)(int(check_present(present, self.n).sum()))

    def summary(self) -> dict[str, Any]:
        return {"shuffler": self.name, "n": self.n, "alpha": 0.0}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(2), cls(4), cls(5))


@final
@dataclass(frozen=True, eq=False)
class Echo(dt.Attack):
    """Believes the report that stands at somebody's own place.

    Example: whoever is not shuffled is read off.
    """

    @dataclass(frozen=True)
    class Settings:
        """What the attacker may choose.

        Parameters
        ----------
        patience : int, at least 1
            Says nothing; shows that settings travel.
        """

        patience: Count = 1

    name: ClassVar[str] = "echo"
    label: ClassVar[str] = "echo"
    randomizer: dt.FrequencyRandomizer
    targets: Any

    @classmethod
    def prepare(cls, known: Any, randomizer: Any, shuffler: Any, *, targets: Any, rng: Any, **settings: Any) -> Self:
        assert settings.get("patience", 1) >= 1
        return cls(randomizer, targets)

    def guess(self, reports: Any, rng: dt.Entropy | None = None) -> Any:
        return self.randomizer.support(np.asarray(reports)[self.targets]).argmax(axis=1)


@final
class PeopleCounted(ReportSection):
    """How many people took part."""

    name = "people_counted"
    label = "number of people"

    @classmethod
    def measure(cls, collection: Any, rng: dt.Entropy) -> Any:
        return {"people": collection.n}

    @classmethod
    def notes(cls, found: dict[str, Any]) -> tuple[str, ...]:
        return (f"{found['people']:,} people took part.",)
