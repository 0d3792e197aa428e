"""The mean of a number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from dovetail.core.estimate import UNIT, Estimate, Tally, exact_sum
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question, Values
from dovetail.core.stages import NumericRandomizer
from dovetail.estimate.grouped import GroupedEstimator
from dovetail_protocol.asked import Part, Symbol


@final
@dataclass(frozen=True)
class Number(Question):
    """The mean of a number in a public range.

    Parameters
    ----------
    lower, upper : float, lower < upper
    grid : float, optional
        Step of the public grid that values are rounded to.
    """

    lower: float
    upper: float
    grid: float | None = None
    name: ClassVar[str] = "number"
    label: ClassVar[str] = "the mean of a number"
    measure: ClassVar[str] = "mean"
    needs = "mean"
    drowns: ClassVar[bool] = False  # what is learned adds over releases, by group too

    @classmethod
    def of(cls, data: Any, categories: Sequence[str] | None, **settings: Any) -> Self:
        return cls(float(data.lower), float(data.upper), data.grid)

    @property
    def column(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper}

    @property
    def domain(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper, "grid": self.grid}

    @property
    def labels(self) -> list[str]:
        return ["mean"]

    @property
    def span(self) -> tuple[float, float] | None:
        return self.lower, self.upper

    def device_symbols(self, names: Sequence[str], k: int | None) -> tuple[Symbol, ...] | None:
        return () if k is None else (Symbol((Part((names[0],), "even", k),)),)

    def learned(self, noise: Noise, tally: Tally, people: People) -> Estimate:
        return noise.mean(tally, people)

    def truth(self, values: Values) -> list[float]:
        return self.recalled(self.known(values))

    def known(self, values: Values) -> Counter[str]:
        return Counter({"n": len(values), "sum": exact_sum(values)})

    def recalled(self, counted: Mapping[str, int]) -> list[float]:
        return [float(Fraction(counted.get("sum", 0), counted["n"] << UNIT))]

    def within(self, noise: Noise, tally: Tally, mixing: NDArray[np.float64] | None, people: People) -> Estimate:
        assert isinstance(noise.randomizer, NumericRandomizer)
        return GroupedEstimator.of_means(noise.randomizer, len(tally.n)).solve(tally, mixing)

    def described(self, private: str) -> dict[str, Any]:
        return {"kind": "numeric", "lower": self.lower, "upper": self.upper}
