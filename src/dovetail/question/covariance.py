"""How two numbers of a person go together."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from dovetail.core.checks import range_between, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import UNIT, Estimate, Tally, exact_sum
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question, Values
from dovetail.randomize.sampling.open_reports import OpenNumbers
from dovetail_protocol.asked import Part, Symbol


def _noisy(sigma: NDArray[np.float64], mean_u: float, mean_v: float) -> float:
    """The variance of an estimate by the noise, from that of both means and of the mean product."""
    slope = np.array([-mean_v, -mean_u, 1.0])
    return float(max(0.0, slope @ sigma @ slope) + sigma[0, 0] * sigma[1, 1] + sigma[0, 1] ** 2)


@dataclass(frozen=True)
class TwoNumbers(Question):
    """A question about two numbers of a person, who answers with a pair of points of even grids."""

    lower: float
    upper: float
    other: str
    other_lower: float
    other_upper: float
    points: int
    least: ClassVar[int]  # points of a grid
    rounding: ClassVar[str]
    needs = "frequency"
    needs_names: ClassVar[bool] = True
    of_table: ClassVar[tuple[str, ...]] = ("other",)
    hidden: ClassVar[Missing | None] = Missing(
        "guesses are measured of one answer of a list; here two numbers are asked"
    )

    @dataclass
    class Settings:
        """Of a configuration.

        Parameters
        ----------
        other
            Column of the second number, private too.
        other_lower
            Least value of the second number, public.
        other_upper
            Its largest value.
        points
            To which either number is rounded; a plan chooses them.
        """

        other: str
        other_lower: float
        other_upper: float
        points: Annotated[int, Ge(2), Le(64)] = 2

    def __post_init__(self) -> None:
        whole("points", self.points, least=self.least, most=64)
        for prefix, low, high in (("", self.lower, self.upper), ("other_", self.other_lower, self.other_upper)):
            range_between(low, high, lower=f"{prefix}lower", upper=f"{prefix}upper")

    @classmethod
    def of(cls, data: Any, categories: Sequence[str] | None, **settings: Any) -> Self:
        if not data.numeric:
            raise ParameterError(f"a {cls.name} is of two numbers: declare `lower` and `upper` in [data]")
        if settings["other"] == data.private:
            raise ParameterError(f"`other` must be another column than {data.private!r}.")
        return cls(float(data.lower), float(data.upper), **settings)

    @property
    def column(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper}

    @property
    def domain(self) -> dict[str, Any]:
        return {"k": self.points**2}

    @property
    @abstractmethod
    def places(self) -> tuple[Values, Values]:
        """Points of either grid, in the unit of its number."""

    @property
    def names(self) -> list[str] | None:
        return [f"{one:.6g} and {other:.6g}" for one, other in product(*self.places)]

    @property
    def labels(self) -> list[str]:
        return [self.name]

    @property
    def further(self) -> Mapping[str, tuple[float, float]]:
        return {self.other: (self.other_lower, self.other_upper)}

    def device_symbols(self, names: Sequence[str], k: int | None) -> tuple[Symbol, ...] | None:
        return (Symbol(tuple(Part((name,), self.rounding, self.points) for name in names)),)

    def described(self, private: str) -> dict[str, Any]:
        ranges = ((private, self.lower, self.upper), (self.other, self.other_lower, self.other_upper))
        each = " and ".join(f"{column} between {low:g} and {high:g}" for column, low, high in ranges)
        return {
            "kind": self.name, "domain": f"two numbers: {each}", "columns": [private, self.other],
            "ranges": [[self.lower, self.upper], [self.other_lower, self.other_upper]], "points": self.points,
        }  # fmt: skip


@final
@dataclass(frozen=True)
class Covariance(TwoNumbers):
    r"""The covariance of two numbers, each rounded at random to an even grid: a person answers with a pair of points.

    .. math:: \hat\theta = \widehat{\overline{uv}} - \hat{\bar u} \hat{\bar v} + \hat\Sigma_{12}, \qquad
              \mathrm{se}^2 = g^T \hat\Sigma g + \hat\Sigma_{11} \hat\Sigma_{22} + \hat\Sigma_{12}^2 + \frac{R}{n},
              \qquad g = (-\bar v, -\bar u, 1)

    Both numbers are measured from the middle of their ranges, in ranges. Rounding is independent and right on
    average, so u, v and uv are; Sigma is how the noise in their means varies together, R what rounding adds at most.

    Parameters
    ----------
    lower, upper : float, lower < upper
        Of the first number.
    other : str
        Column of the second number, private too.
    other_lower, other_upper : float
    points : int, 2 to 64
        Of either grid: points^2 answers in all. `dovetail plan` chooses them: few for local noise, more where others
        add it.

    Raises
    ------
    ParameterError
        For an empty range, and for fewer than two points or more than 64.

    Examples
    --------
    >>> asked = Covariance(0.0, 10.0, "weight", 40.0, 120.0, points=3)
    >>> asked.domain, asked.span
    ({'k': 9}, (-200.0, 200.0))

    Source
    ------
    docs/theory/accuracy.md, section G.
    """

    points: int = 2
    name: ClassVar[str] = "covariance"
    label: ClassVar[str] = "the covariance of two numbers"
    measure: ClassVar[str] = "covariance"
    least: ClassVar[int] = 2
    rounding: ClassVar[str] = "even"
    planned: ClassVar[Mapping[str, Sequence[Any]]] = {"points": (*range(2, 9), 10, 12, 16, 24, 32, 48, 64)}

    @property
    def _grids(self) -> tuple[OpenNumbers, OpenNumbers]:
        return (
            OpenNumbers(self.lower, self.upper, self.points),
            OpenNumbers(self.other_lower, self.other_upper, self.points),
        )

    @property
    def places(self) -> tuple[Values, Values]:
        one, other = (grid.decode(np.arange(self.points)) for grid in self._grids)
        return one, other

    @property
    def _scale(self) -> float:
        return (self.upper - self.lower) * (self.other_upper - self.other_lower)

    @property
    def span(self) -> tuple[float, float] | None:
        return -self._scale / 4.0, self._scale / 4.0

    def answer(self, values: Values, rng: Entropy) -> Values:
        one, other = (grid.randomize(values[:, place], rng) for place, grid in enumerate(self._grids))
        return np.asarray(one * self.points + other)

    def learned(self, noise: Noise, tally: Tally, people: People) -> Estimate:
        u, v = self._products[:2]
        (mean_u, mean_v, both), sigma = noise.moments(tally, self._products, people)
        mean_u, mean_v = np.clip([mean_u, mean_v], -0.5, 0.5)
        value = both - mean_u * mean_v + sigma[0, 1]
        apart = (u - mean_u) * (v - mean_v)
        (square,), off = noise.moments(tally, apart[None] ** 2, people)
        most = float((apart**2).max())
        spread = float(np.clip(square - value**2, 0.0, most))
        # few people far from both means decide the spread: taken two of its standard deviations up
        above = square + 2.0 * math.sqrt(float(off[0, 0]) + most * max(float(square), 0.0) / people.n)
        coarse = 1.0 / (self.points - 1) ** 2
        rounding = coarse * (0.5 - mean_u**2 - mean_v**2) / 4.0 + coarse**2 / 16.0
        noisy = _noisy(sigma, mean_u, mean_v) + min(rounding, max(spread, above)) / people.n
        error = self._scale * np.sqrt([noisy, noisy + spread / people.n])
        return Estimate(np.asarray(self._scale * value), error[0], people.n, error[1])

    @property
    def _products(self) -> NDArray[np.float64]:
        """Both numbers of each answer and their product (3, points^2), in ranges from the middles."""
        step = np.linspace(-0.5, 0.5, self.points)
        u, v = np.repeat(step, self.points), np.tile(step, self.points)
        return np.array([u, v, u * v])

    def error(self, noise: Noise, people: People) -> float:
        """The largest among populations of which either number is the same for everybody, in the last step of its
        grid, or at either end for half of the people; a random search finds none that is 4 % larger.
        """
        ends = np.eye(self.points)
        step = 1.0 / (self.points - 1)
        held = [(0.0, 0.25, 0.0, (ends[0] + ends[-1]) / 2.0)]  # mean, variance in people and of rounding, shares
        for t in np.linspace(0.0, 0.5, 6):
            held.append((0.5 - t * step, 0.0, t * (1.0 - t) * step**2, t * ends[-2] + (1.0 - t) * ends[-1]))
        worst = 0.0
        for (mean_u, own_u, coin_u, u), (mean_v, own_v, coin_v, v) in product(held, repeat=2):
            tally = noise.expected(np.outer(u, v).ravel(), people)
            _, sigma = noise.moments(tally, self._products, people)
            rounding = coin_u * (own_v + coin_v) + own_u * coin_v
            worst = max(worst, _noisy(sigma, mean_u, mean_v) + rounding / people.n)
        return self._scale * math.sqrt(worst)

    def truth(self, values: Values) -> list[float]:
        return self.recalled(self.known(values))

    def known(self, values: Values) -> Counter[str]:
        middles = [(self.lower + self.upper) / 2.0, (self.other_lower + self.other_upper) / 2.0]
        u, v = (values - middles).T
        return Counter({"n": len(values), "u": exact_sum(u), "v": exact_sum(v), "uv": exact_sum(u * v)})

    def recalled(self, counted: Mapping[str, int]) -> list[float]:
        u, v, uv = (Fraction(counted.get(name, 0), counted["n"] << UNIT) for name in ("u", "v", "uv"))
        return [float(uv - u * v)]

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.0, 10.0, "second", -1.0, 1.0, points=3),)
