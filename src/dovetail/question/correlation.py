"""How closely two numbers of a person go together, between -1 and 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from dovetail.core.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.noise import Noise, People
from dovetail.core.question import Values
from dovetail.question.covariance import TwoNumbers

TOP53 = np.uint64(11)  # bits of a word that a uniform double leaves out
PLACES = np.linspace(-1.0, 1.0, 9)  # where errors are worked out; in between they are below straight lines


@final
@mute
@dataclass(frozen=True, eq=False)
class RatioIntervals:
    r"""Intervals of a ratio whose error grows with the ratio: of all r with \|value - r\| <= z error(r).

    Behind noise a denominator may be a few of its standard deviations. Where it was drawn too large the value is too
    small, and its own error with it: an interval of value +- z error(value) misses above.

    Parameters
    ----------
    places : float array (places,), ascending, the value among them
    errors : float array (2, places)
        Standard errors for these people and for their population, if the truth is there.

    Source
    ------
    Fieller (1954), Some problems in interval estimation, Journal of the Royal Statistical Society B 16.
    """

    places: NDArray[np.float64]
    errors: NDArray[np.float64]
    sampled: bool = False

    def drawn(self, share: Any) -> RatioIntervals:
        """With sampling added."""
        return replace(self, sampled=True)

    def each(self, pick: Callable[[Any], Any]) -> RatioIntervals:
        """The same: it is one number."""
        return self

    def interval(self, value: Values, z: float) -> tuple[Values, Values]:
        """As in `Intervals`."""
        reach = z * self.errors[int(self.sampled)]
        low = -_outermost(-self.places[::-1], (value - self.places - reach)[::-1])
        return np.asarray(low), np.asarray(_outermost(self.places, self.places - value - reach))


def _outermost(places: NDArray[np.float64], over: NDArray[np.float64]) -> float:
    """The last place up to which a broken line through `over` is at most 0 somewhere."""
    last = int(np.flatnonzero(over <= 0.0)[-1])
    return float(np.interp(0.0, over[last : last + 2], places[last : last + 2]))


@final
@dataclass(frozen=True)
class Correlation(TwoNumbers):
    r"""The correlation of two numbers: a person answers with a pair of points of an even grid, as for a covariance.

    .. math:: \hat\rho = \frac{\hat c_{uv}}{\sqrt{\hat c_{uu} \hat c_{vv}}}, \qquad
              \mathrm{se}^2 = g^T \hat\Sigma g + \frac{R}{n}, \qquad g = \frac{\partial \rho}{\partial m}

    of the five means m of u, v, u^2, v^2 and uv, in ranges from their middles. Rounding goes to the three points
    around a number with the weights of a quadratic spline: right on average, and its variance is a quarter of a step
    squared wherever the number lies, so that squares are right too. Sigma is how the noise in the means varies
    together, R the mean variance that rounding adds to the correlation, both estimated.

    Intervals hold all correlations whose own error explains the estimate (Fieller). Where the noise could make a
    variance vanish they are -1 to 1. The error of a population takes its fourth
    moments from the pairs themselves: the textbook's formula is for normal numbers.

    Parameters
    ----------
    lower, upper, other, other_lower, other_upper
        As of a `Covariance`.
    points : int, 3 to 64
        Of either grid, one beyond each end of the range: points^2 answers. `dovetail plan` chooses them.

    Raises
    ------
    ParameterError
        As `Covariance`, and for two points.

    Examples
    --------
    >>> Correlation(0.0, 10.0, "weight", 40.0, 120.0, points=4).domain
    {'k': 16}

    Source
    ------
    docs/theory/distributions.md.
    """

    points: int = 4
    name: ClassVar[str] = "correlation"
    label: ClassVar[str] = "the correlation of two numbers"
    measure: ClassVar[str] = "correlation"
    least: ClassVar[int] = 3
    planned_of: ClassVar[str] = "where all pairs of numbers are as frequent"
    rounding: ClassVar[str] = "spline"
    planned: ClassVar[Mapping[str, Sequence[Any]]] = {"points": (*range(3, 9), 10, 12, 16, 24, 32, 48, 64)}

    @dataclass
    class Settings(TwoNumbers.Settings):
        """Those of a covariance, and at least three points."""

        points: Annotated[int, Ge(3), Le(64)] = 4

    @property
    def step(self) -> float:
        """Of the grid, in ranges."""
        return 1.0 / (self.points - 2)

    @property
    def grid(self) -> Values:
        """Its points (points,), in ranges from the middle."""
        return np.asarray((np.arange(self.points) - 0.5 * (self.points - 1)) * self.step)

    @property
    def places(self) -> tuple[Values, Values]:
        ranges = ((self.lower, self.upper), (self.other_lower, self.other_upper))
        one, other = (0.5 * (low + high) + (high - low) * self.grid for low, high in ranges)
        return one, other

    @property
    def span(self) -> tuple[float, float] | None:
        return -1.0, 1.0

    def answer(self, values: Values, rng: Entropy) -> Values:
        low = np.array([self.lower, self.other_lower])
        high = np.array([self.upper, self.other_upper])
        place = (values - low) / (high - low) / self.step + 0.5  # 0.5 to points - 1.5
        nearest = np.clip(np.floor(place + 0.5), 1, self.points - 2)
        away = place - nearest
        uniform = (rng.words(values.size) >> TOP53).astype(np.float64).reshape(values.shape) * 2.0**-53
        below, above = 0.5 * (0.5 - away) ** 2, 0.5 * (0.5 + away) ** 2
        found = (nearest - (uniform < below) + (uniform >= 1.0 - above)).astype(np.int64)
        return np.asarray(found[:, 0] * self.points + found[:, 1])

    @property
    def _means(self) -> NDArray[np.float64]:
        """Contribution of each answer to the five means (5, points^2)."""
        u, v = np.repeat(self.grid, self.points), np.tile(self.grid, self.points)
        over = self.step**2 / 4.0
        return np.array([u, v, u**2 - over, v**2 - over, u * v])

    def learned(self, noise: Noise, tally: Tally, people: People) -> Estimate:
        (u, v, uu, vv, uv), sigma = noise.moments(tally, self._means, people)
        cuu, cvv, cuv = uu - u * u + sigma[0, 0], vv - v * v + sigma[1, 1], uv - u * v + sigma[0, 1]
        slopes = np.array([[-2 * u, 0, 1, 0, 0], [0, -2 * v, 0, 1, 0]])
        doubt = 2.0 * np.sqrt(
            np.maximum(0.0, np.einsum("ij,jk,ik->i", slopes, sigma, slopes)) + self._rounded(people)
        )
        if cuu <= doubt[0] or cvv <= doubt[1]:
            unknown = RatioIntervals(PLACES, np.full((2, PLACES.size), math.inf))
            return Estimate(np.asarray(0.0), np.asarray(1.0), people.n, np.asarray(1.0), spread=unknown)
        root = math.sqrt(cuu * cvv)
        rho = float(np.clip(cuv / root, -1.0, 1.0))
        places = np.unique([*PLACES, rho])
        fixed = np.array([-v, -u, 0.0, 0.0, 1.0]) / root
        slope = np.array([u / cuu, v / cvv, -0.5 / cuu, -0.5 / cvv, 0.0])  # of the gradient, in the correlation
        gradients = [fixed + one * slope for one in places]
        errors = np.array([self._errors(noise, tally, people, gradient) for gradient in gradients]).T
        own, drawn = errors[:, np.searchsorted(places, rho)]
        return Estimate(
            np.asarray(rho), np.asarray(own), people.n, np.asarray(drawn), spread=RatioIntervals(places, errors)
        )

    def _errors(
        self, noise: Noise, tally: Tally, people: People, gradient: NDArray[np.float64]
    ) -> tuple[float, float]:
        """Standard errors for these people and for their population of a correlation with this gradient."""
        means, sigma = noise.moments(tally, self._means, people)
        rounding = self._variance(gradient)
        most = float(rounding.max())
        (spent,), off = noise.moments(tally, rounding[None], people)
        above = spent + 2.0 * math.sqrt(float(off[0, 0]) + most * max(float(spent), 0.0) / people.n)
        variance = float(gradient @ sigma @ gradient) + min(most, max(above, 0.0)) / people.n
        worth = gradient @ self._means  # of each answer: its square holds the fourth moments
        (square,), off = noise.moments(tally, worth[None] ** 2, people)
        spread = max(0.0, float(square) + 2.0 * math.sqrt(float(off[0, 0])) - float(gradient @ means) ** 2)
        population = float(gradient @ sigma @ gradient) + spread / people.n
        return math.sqrt(max(variance, 0.0)), math.sqrt(max(variance, population, 0.0))

    def _rounded(self, people: People) -> float:
        """The largest variance that rounding adds to the mean of a square."""
        return (self.step**2 * 0.25 * 4.0 + self.step**4) * 0.25 / people.n

    def _variance(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Variance that rounding adds to a sum of the five means, of a person at each pair of points (points^2,).

        The largest over numbers that lie on a point and half a step beside it: in between it is between them, nearly.
        """
        around, found = np.arange(-2, 3) * self.step, np.zeros(self.points**2)
        u, v = np.repeat(self.grid, self.points), np.tile(self.grid, self.points)
        for one, other in np.ndindex(2, 2):
            weights = []
            for half in (one, other):
                away = 0.5 * half
                weights.append(np.array([0.0, 0.5 * (0.5 - away) ** 2, 0.75 - away**2, 0.5 * (0.5 + away) ** 2, 0.0]))
            law = np.outer(*weights).ravel()
            a, b = np.repeat(around, 5)[:, None], np.tile(around, 5)[:, None]
            p, q = u + a, v + b
            sums = gradient @ np.array([p, q, p**2, q**2, p * q]).transpose(1, 0, 2)
            mean = law @ sums
            found = np.maximum(found, law @ (sums - mean) ** 2)
        return found

    def error(self, noise: Noise, people: People) -> float:
        """Of people who hold all pairs of numbers alike, whose correlation is 0."""
        shares = np.full(self.points**2, 1.0 / self.points**2)
        return float(self.learned(noise, noise.expected(shares, people), people).standard_error)

    def truth(self, values: Values) -> list[float]:
        spread = values.std(axis=0)
        return [0.0 if (spread == 0.0).any() else float(np.corrcoef(values.T)[0, 1])]

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.0, 10.0, "second", -1.0, 1.0, points=4),)
