"""How one number follows others: linear regression by least squares."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np
from annotated_types import Ge, Le

from dovetail.core.checks import range_between, refuse, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question, Values
from dovetail.estimate.moments import Products
from dovetail_protocol.asked import Part, Symbol

MOST_NUMBERS = 12
_ONE = re.compile(r"\s*(?P<name>.+?)\s*=\s*(?P<low>\S+?)\s*\.\.\s*(?P<high>\S+?)\s*")
FORM = 'written as "age = 0..100, income = 0..15"'


@final
@dataclass(frozen=True)
class Regression(Question):
    r"""Coefficients of the least squares line of one number by others, for exactly these people.

    .. math:: \hat\beta = A^{-1} b, \qquad A = \overline{z z^T}, \quad b = \overline{z y}, \quad z = (1, x_1, .., x_d)

    A person says each number and each product of two, rounded at random, in a message of its own: none of them can be
    linked. Their means are known with errors that do not depend on the data; those of the coefficients do. Where the
    noise alone could make A singular, no coefficients are quoted. Intervals for a population are not given: they need
    fourth moments, which are not asked.

    Parameters
    ----------
    lower, upper : float, lower < upper
        Of the number that is explained.
    others : text, or mapping from a column to its range
        Numbers that explain it, private too: "age = 0..100, income = 0..15".
    points : int, 2 to 64
        Of the grids. `dovetail plan` chooses them.

    Raises
    ------
    ParameterError
        For an empty range, and for other numbers that are not written in this form.

    Examples
    --------
    >>> asked = Regression(0.0, 10.0, "age = 0..100, income = 0..15", points=3)
    >>> asked.labels, asked.symbols, asked.further
    (['intercept', 'age', 'income'], 8, {'age': (0.0, 100.0), 'income': (0.0, 15.0)})

    Source
    ------
    docs/theory/distributions.md.
    """

    lower: float
    upper: float
    others: Any
    points: int = 5
    name: ClassVar[str] = "regression"
    label: ClassVar[str] = "a linear regression"
    measure: ClassVar[str] = "coefficient"
    needs = "frequency"
    hidden: ClassVar[Missing | None] = Missing(
        "guesses are measured of one answer of a list; here several numbers are asked"
    )
    planned: ClassVar[Mapping[str, Sequence[Any]]] = {"points": (2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 64)}
    planned_measure: ClassVar[str] = "mean product"
    planned_of: ClassVar[str] = (
        "of a mean product in ranges; how far off coefficients are depends on what people hold"
    )
    needs_names: ClassVar[bool] = True
    several: ClassVar[bool] = True
    of_samples: ClassVar[bool] = False

    @dataclass
    class Settings:
        """Of a configuration.

        Parameters
        ----------
        others
            The other columns, private too, with their ranges: "age = 0..100, income = 0..15".
        points
            To which each product is rounded; a plan chooses them.
        """

        others: str
        points: Annotated[int, Ge(2), Le(64)] = 5

    def __post_init__(self) -> None:
        whole("points", self.points, least=2, most=64)
        object.__setattr__(self, "others", _ranges(self.others))
        for name, low, high in (("upper", self.lower, self.upper), *self.others):
            range_between(low, high, lower="", upper=name)

    @classmethod
    def of(cls, data: Any, categories: Sequence[str] | None, **settings: Any) -> Self:
        if not data.numeric:
            raise ParameterError("a regression is of numbers: declare `lower` and `upper` in [data]")
        found = cls(float(data.lower), float(data.upper), **settings)
        if data.private in found.further:
            raise ParameterError(f"`others` must be other columns than {data.private!r}.")
        return found

    @cached_property
    def products(self) -> Products:
        """The products that each person is asked for."""
        return Products(1 + len(self.others), self.points)

    @property
    def symbols(self) -> int:
        return len(self.products.pairs)

    @property
    def column(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper}

    @property
    def domain(self) -> dict[str, Any]:
        return {"k": self.products.size}

    @property
    def names(self) -> list[str] | None:
        every = ["", *(name for name, _, _ in self.others)]
        every[0] = "explained"
        called = [every[i] if j == len(every) else f"{every[i]} x {every[j]}" for i, j in self.products.pairs]
        return [f"{one}: {place}" for one in called for place in range(self.points)]

    @property
    def labels(self) -> list[str]:
        return ["intercept", *(name for name, _, _ in self.others)]

    @property
    def span(self) -> tuple[float, float] | None:
        return -math.inf, math.inf

    @property
    def further(self) -> Mapping[str, tuple[float, float]]:
        return {name: (low, high) for name, low, high in self.others}

    @property
    def _ends(self) -> Values:
        """Lower and upper ends (numbers, 2)."""
        return np.array([(self.lower, self.upper), *((low, high) for _, low, high in self.others)])

    def answer(self, values: Values, rng: Entropy) -> Values:
        low, high = self._ends.T
        return self.products.symbols((values - low) / (high - low) - 0.5, rng)

    def device_symbols(self, names: Sequence[str], k: int | None) -> tuple[Symbol, ...] | None:
        factors = [tuple(names[one] for one in pair if one < len(names)) for pair in self.products.pairs]
        return tuple(Symbol((Part(of, "even", self.points),)) for of in factors)

    def learned(self, noise: Noise, tally: Tally, people: People) -> Estimate:
        means, sigma = noise.moments(tally, self.products.weights, people)
        rounded = sigma + np.diag(self.products.rounding) / people.n
        power = 1.0 if noise.kept == 1.0 else 0.5
        beta, spread = self.products.least_squares(means + self.products.middles, rounded, power=power)
        scale = self._scale
        value = scale @ beta
        value[0] += 0.5 * (self.lower + self.upper)
        error = np.sqrt(np.maximum(0.0, np.diag(scale @ spread @ scale.T)))
        return Estimate(value, error, people.n, np.full(error.shape, np.inf))

    @property
    def _scale(self) -> Values:
        """From coefficients in ranges and from their middles to those in units."""
        low, high = self._ends.T
        width, middle = high - low, 0.5 * (low + high)
        found = np.diag([width[0], *(width[0] / width[1:])])
        found[0, 1:] = -width[0] * middle[1:] / width[1:]
        return found

    def _variances(self, noise: Noise, people: People) -> Values:
        """The largest of the mean products, in ranges."""
        steps = self.products.steps
        noisy = noise.part(0).deviation(steps, np.ones_like(steps), people)
        return np.asarray(noisy**2 + self.products.rounding / people.n)

    def error(self, noise: Noise, people: People) -> float:
        """Of a mean product of two numbers, in ranges, the largest: errors of coefficients depend on the data."""
        return float(np.sqrt(self._variances(noise, people).max()))

    def noise_ratio(self, noise: Noise, people: People) -> float:
        """Of the matrix A, as its refusal has it, over 1/4: numbers in a range have no larger least eigenvalue."""
        return 4.0 * self.products.refused(self._variances(noise, people))

    def truth(self, values: Values) -> list[float]:
        design = np.column_stack([np.ones(len(values)), values[:, 1:]])
        return [float(one) for one in np.linalg.lstsq(design, values[:, 0], rcond=None)[0]]

    def described(self, private: str) -> dict[str, Any]:
        by = ", ".join(f"{name} between {low:g} and {high:g}" for name, low, high in self.others)
        return {
            "kind": "regression",
            "domain": f"{private} between {self.lower:g} and {self.upper:g} by {by}",
            "columns": [private, *self.further], "points": self.points,
        }  # fmt: skip

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.0, 10.0, "second = -1..1", points=3),)


def _ranges(given: Any) -> tuple[tuple[str, float, float], ...]:
    """Columns with their ranges, from text, a mapping or what was recorded."""
    try:
        if isinstance(given, str):
            parts = [_ONE.fullmatch(part) for part in given.split(",")]
            rows = [(one["name"], one["low"], one["high"]) for one in parts if one is not None]
            if len(rows) < len(parts):
                raise ValueError
        else:
            rows = [(name, *ends) for name, ends in given.items()] if isinstance(given, Mapping) else list(given)
        found = tuple((str(name), float(low), float(high)) for name, low, high in rows)
    except (TypeError, ValueError):
        raise refuse("others", f"columns with their ranges, {FORM}", given) from None
    names = {name for name, _, _ in found}
    if not 1 <= len(found) < MOST_NUMBERS or len(names) < len(found):
        raise refuse("others", f"1 to {MOST_NUMBERS - 1} different columns with their ranges, {FORM}", given)
    return found
