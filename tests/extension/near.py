"""A question of another distribution: how many people have two whole numbers that lie near one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np
from annotated_types import Ge, Le

from dovetail.core.checks import range_between, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question, Values
from dovetail_protocol.asked import Part, Symbol

MOST = 64  # whole numbers of a range


@final
@dataclass(frozen=True)
class Near(Question):
    """The share of people whose two whole numbers differ by at most `apart`: a person answers with the pair.

    Parameters
    ----------
    lower, upper : float, whole
        Of the first number.
    other : str
        Column of the second number, private too.
    other_lower, other_upper : float, whole
    apart : int, at least 0
    """

    lower: float
    upper: float
    other: str
    other_lower: float
    other_upper: float
    apart: int = 1
    name: ClassVar[str] = "near"
    label: ClassVar[str] = "how many have two numbers near one another"
    measure: ClassVar[str] = "share"
    needs = "frequency"
    needs_names: ClassVar[bool] = True
    of_table: ClassVar[tuple[str, ...]] = ("other",)
    hidden: ClassVar[Missing | None] = Missing("guesses are measured of one answer of a list")

    @dataclass
    class Settings:
        """Of a configuration.

        Parameters
        ----------
        other
            Column of the second number, private too.
        other_lower
            Its least value, a whole number.
        other_upper
            Its largest value.
        apart
            How far apart two numbers are that still are near one another.
        """

        other: str
        other_lower: float
        other_upper: float
        apart: Annotated[int, Ge(0), Le(MOST)] = 1

    def __post_init__(self) -> None:
        whole("apart", self.apart, least=0, most=MOST)
        for name, (low, high) in self._ranges.items():
            range_between(low, high, lower=f"{name}lower", upper=f"{name}upper")
            if not (float(low).is_integer() and float(high).is_integer() and high - low < MOST):
                raise ParameterError(
                    f"`{name}lower` and `{name}upper` must be whole numbers, less than {MOST} apart."
                )

    @property
    def _ranges(self) -> dict[str, tuple[float, float]]:
        return {"": (self.lower, self.upper), "other_": (self.other_lower, self.other_upper)}

    @classmethod
    def of(cls, data: Any, categories: Sequence[str] | None, **settings: Any) -> Self:
        if not data.numeric:
            raise ParameterError("two numbers are asked: declare `lower` and `upper` in [data]")
        return cls(float(data.lower), float(data.upper), **settings)

    @property
    def column(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper}

    @property
    def further(self) -> Mapping[str, tuple[float, float]]:
        return {self.other: (self.other_lower, self.other_upper)}

    @property
    def _points(self) -> list[int]:
        return [int(high - low) + 1 for low, high in self._ranges.values()]

    @property
    def _pairs(self) -> Values:
        """All pairs of whole numbers (k, 2)."""
        grids = [np.arange(low, high + 1.0) for low, high in self._ranges.values()]
        return np.array(list(product(*grids)))

    @property
    def domain(self) -> dict[str, Any]:
        one, other = self._points
        return {"k": one * other}

    @property
    def names(self) -> list[str] | None:
        return [f"{one:g} and {other:g}" for one, other in self._pairs]

    @property
    def labels(self) -> list[str]:
        return [f"at most {self.apart} apart"]

    @property
    def span(self) -> tuple[float, float] | None:
        return 0.0, 1.0

    def _is_near(self, pairs: Values) -> Values:
        return np.asarray(np.abs(pairs[:, 0] - pairs[:, 1]) <= self.apart, dtype=float)

    def answer(self, values: Values, rng: Entropy) -> Values:
        return self._place(values)

    def _place(self, values: Values) -> Values:
        """The pair of each person; a number that is not whole counts for one beside it."""
        place = np.zeros(len(values), dtype=np.int64)
        for own, points, (low, high) in zip(values.T, self._points, self._ranges.values(), strict=True):
            place = place * points + np.minimum((own - low) / (high - low) * points, points - 1).astype(np.int64)
        return place

    def device_symbols(self, names: Sequence[str], k: int | None) -> tuple[Symbol, ...] | None:
        parts = zip(names, self._points, strict=True)
        return (Symbol(tuple(Part((name,), "bins", points, bins=points) for name, points in parts)),)

    def learned(self, noise: Noise, tally: Tally, people: People) -> Estimate:
        (value,), off = noise.moments(tally, self._is_near(self._pairs)[None], people)
        error = np.sqrt([off[0, 0], off[0, 0] + np.clip(value * (1.0 - value), 0.0, 0.25) / people.n])
        return Estimate(np.asarray(value), error[0], people.n, error[1])

    def error(self, noise: Noise, people: People) -> float:
        shares = np.full(self.domain["k"], 1.0 / self.domain["k"])
        return float(self.learned(noise, noise.expected(shares, people), people).standard_error)

    def truth(self, values: Values) -> list[float]:
        return [float(self._is_near(self._pairs[self._place(values)]).mean())]

    def described(self, private: str) -> dict[str, Any]:
        each = " and ".join(
            f"{column} between {low:g} and {high:g}"
            for column, (low, high) in zip((private, self.other), self._ranges.values(), strict=True)
        )
        return {"kind": self.name, "domain": f"two whole numbers: {each}", "columns": [private, self.other]}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.0, 3.0, "second", 1.0, 4.0),)
