"""How many people give which answer of a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from dovetail.core.estimate import Estimate, Tally
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question, Values
from dovetail.core.stages import FrequencyRandomizer
from dovetail.estimate.grouped import GroupedEstimator
from dovetail_protocol.asked import Part, Symbol


@final
@dataclass(frozen=True)
class Shares(Question):
    """The share of each answer.

    Parameters
    ----------
    categories : tuple of str
        Every answer that can be given, public.
    """

    categories: tuple[str, ...]
    name: ClassVar[str] = "shares"
    label: ClassVar[str] = "shares of answers"
    measure: ClassVar[str] = "share"
    needs = "frequency"
    drowns: ClassVar[bool] = False  # what is learned adds over releases, by group too
    of_numbers: ClassVar[bool] = False

    @classmethod
    def of(cls, data: Any, categories: Sequence[str] | None, **settings: Any) -> Self:
        return cls(tuple(categories or ()))

    @property
    def column(self) -> dict[str, Any]:
        return {"categories": list(self.categories)}

    @property
    def domain(self) -> dict[str, Any]:
        return {"k": len(self.categories)}

    @property
    def names(self) -> list[str] | None:
        return list(self.categories)

    @property
    def labels(self) -> list[str]:
        return list(self.categories)

    def device_symbols(self, names: Sequence[str], k: int | None) -> tuple[Symbol, ...] | None:
        return (Symbol((Part((names[0],), "list", len(self.categories)),)),)

    def learned(self, noise: Noise, tally: Tally, people: People) -> Estimate:
        return noise.shares(tally, people)

    def truth(self, values: Values) -> list[float]:
        return [float(one) for one in np.bincount(values, minlength=len(self.categories)) / len(values)]

    def known(self, values: Values) -> Counter[str]:
        counts = np.bincount(values, minlength=len(self.categories)).tolist()
        return Counter({str(code): count for code, count in enumerate(counts) if count})

    def recalled(self, counted: Mapping[str, int]) -> list[float]:
        n = sum(counted.values())
        return [counted.get(str(code), 0) / n for code in range(len(self.categories))]

    def within(self, noise: Noise, tally: Tally, mixing: NDArray[np.float64] | None, people: People) -> Estimate:
        assert isinstance(noise.randomizer, FrequencyRandomizer)
        return GroupedEstimator.of_shares(noise.randomizer, len(tally.n)).solve(tally, mixing)

    def described(self, private: str) -> dict[str, Any]:
        return {"kind": "categorical", "categories": list(self.categories)}
