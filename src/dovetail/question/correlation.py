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
from dovetail.core.question import Values, people_needed
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
    needed : text
        Where nothing is known: how many people it takes.

    Source
    ------
    Fieller (1954), Some problems in interval estimation, Journal of the Royal Statistical Society B 16.
    """

    places: NDArray[np.float64]
    errors: NDArray[np.float64]
    sampled: bool = False
    needed: str = ""

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
        means, sigma = noise.moments(tally, self._means, people)
        (cuu, cvv), doubt = self._variances(means, sigma, people)
        u, v, _, _, uv = means
        cuv = uv - u * v + sigma[0, 1]
        if cuu <= doubt[0] or cvv <= doubt[1]:
            needed = self._needed(noise, people, means, np.maximum((cuu, cvv), doubt / 2.0))
            unknown = RatioIntervals(PLACES, np.full((2, PLACES.size), math.inf), needed=needed)
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

    def _needed(self, noise: Noise, people: People, means: Values, variances: Values) -> str:
        """How many people of these variances it takes for noise to be half of neither, but in one of 40 cases."""

        def enough(n: int) -> bool:
            more = noise.more(people, n)
            sigma = noise.moments(self._filling(noise, more), self._means, more)[1]
            return bool((self._variances(means, sigma, more)[1] <= variances / 2.0).all())

        return people_needed(enough, people.n)

    def beside(self, noise: Noise, found: Estimate, truth: Sequence[float] | None) -> Mapping[str, Any]:
        """That nothing is known, and how many people it takes."""
        assert isinstance(found.spread, RatioIntervals)
        if not found.spread.needed:
            return {}
        return {
            "hidden": f"noise hides {self.label} of {found.n:,} people, one of which may be the same for everybody: "
            f"with as much noise it takes about {found.spread.needed}, or narrower ranges"
        }

    def _variances(self, means: Values, sigma: Values, people: People) -> tuple[Values, Values]:
        """Variances of both numbers (2,), and how much of them may be the noise."""
        u, v, uu, vv, _ = means
        slopes = np.array([[-2 * u, 0, 1, 0, 0], [0, -2 * v, 0, 1, 0]])
        noisy = np.maximum(0.0, np.einsum("ij,jk,ik->i", slopes, sigma, slopes))
        found = np.array([uu - u * u + sigma[0, 0], vv - v * v + sigma[1, 1]])
        return found, 2.0 * np.sqrt(noisy + self._rounded(people))

    def _errors(
        self, noise: Noise, tally: Tally, people: People, gradient: NDArray[np.float64]
    ) -> tuple[float, float]:
        """Standard errors for these people and for their population of a correlation with this gradient."""
        means, sigma = noise.moments(tally, self._means, people)
        variance = float(gradient @ sigma @ gradient) + self._charged(noise, tally, people, gradient) / people.n
        worth = gradient @ self._means  # of each answer: its square holds the fourth moments
        (square,), off = noise.moments(tally, worth[None] ** 2, people)
        spread = max(0.0, float(square) + 2.0 * math.sqrt(float(off[0, 0])) - float(gradient @ means) ** 2)
        population = float(gradient @ sigma @ gradient) + spread / people.n
        return math.sqrt(max(variance, 0.0)), math.sqrt(max(variance, population, 0.0))

    def _rounded(self, people: People) -> float:
        """The largest variance that rounding adds to the mean of a square."""
        return (self.step**2 * 0.25 * 4.0 + self.step**4) * 0.25 / people.n

    def _charged(self, noise: Noise, tally: Tally, people: People, gradient: NDArray[np.float64]) -> float:
        r"""Bound the variance that rounding adds to a sum of the five means, of a person on average.

        A number x goes to x + e, where e has moments 0, s^2 / 4, (a/4 - a^3) s^3 and (1/4 - 3/2 a^2 + 3 a^4) s^4 if x
        lies a <= 1/2 steps s from the nearest point. With \alpha = g_u + 2 g_{uu} x + g_{uv} y, and \beta alike,

        .. math:: V = \frac{s^2}{4} (\alpha^2 + \beta^2) + 2 \alpha g_{uu} \mu_3 + g_{uu}^2 (\mu_4 - s^4/16) + ..
                  \le \frac{7 s^2}{24} (\alpha^2 + \beta^2) + \frac{s^4}{16} (3 g_{uu}^2 + 3 g_{vv}^2 + g_{uv}^2),

        as 2 \alpha g \mu_3 <= \alpha^2 s^2 / 24 + 24 g^2 \mu_3^2 / s^2, and \mu_4 + 24 \mu_3^2 / s^2 <= s^4 / 4.
        """
        u, v = np.repeat(self.grid, self.points), np.tile(self.grid, self.points)
        of_u, of_v, of_uu, of_vv, of_uv = gradient
        slopes = (of_u + 2.0 * of_uu * u + of_uv * v) ** 2 + (of_v + 2.0 * of_vv * v + of_uv * u) ** 2
        most, rounded = float(slopes.max()), self.step**2 * (of_uu**2 + of_vv**2 + of_uv**2 / 2.0)
        (mean,), off = noise.moments(tally, slopes[None], people)  # of reports: `rounded` more than of numbers
        above = mean + 2.0 * math.sqrt(float(off[0, 0]) + most * max(float(mean), 0.0) / people.n)
        held = max(0.0, min(most, above) - rounded)
        curved = 3.0 * (of_uu**2 + of_vv**2) + of_uv**2
        return float(7.0 / 24.0 * self.step**2 * held + self.step**4 / 16.0 * curved)

    def error(self, noise: Noise, people: People) -> float:
        """Of people whose numbers fill their ranges alike, and whose correlation is 0."""
        return float(self.learned(noise, self._filling(noise, people), people).standard_error)

    def noise_ratio(self, noise: Noise, people: People) -> float:
        """Of the correlation or, if that is larger, of a variance, which vanishes for half of them from 1 on."""
        means, sigma = noise.moments(self._filling(noise, people), self._means, people)
        doubts = [one / variance for variance, one in zip(*self._variances(means, sigma, people), strict=True)]
        return float(max(super().noise_ratio(noise, people), *doubts))

    def _filling(self, noise: Noise, people: People) -> Tally:
        """What is expected of people whose numbers fill their ranges alike."""
        shares = np.convolve(np.ones(self.points - 2), [1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0]) / (self.points - 2)
        return noise.expected(np.outer(shares, shares).ravel(), people)

    def truth(self, values: Values) -> list[float]:
        spread = values.std(axis=0)
        return [0.0 if (spread == 0.0).any() else float(np.corrcoef(values.T)[0, 1])]

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.0, 10.0, "second", -1.0, 1.0, points=4),)
