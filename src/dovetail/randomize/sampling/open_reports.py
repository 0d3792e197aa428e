"""No local noise: what a device sends where others are trusted to add it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import Channel
from dovetail.core.checks import floats, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.guarantee import LocalDP
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports
from dovetail.randomize.sampling.domain import symbols
from dovetail_protocol.checks import number_range

# No local noise: what a device sends where the shuffler alone is trusted to add it.


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


# No local noise on a number: what a device sends where others are trusted to add dummies.


MOST_POINTS = 1 << 16
TOP53 = np.uint64(11)  # bits of a word that a uniform double leaves out


@final
@dataclass(frozen=True)
class OpenNumbers(NumericRandomizer):
    r"""The number of a grid point next to the value, right on average: protects nobody against whoever opens it.

    .. math:: y = \lfloor s \rfloor + \mathrm{Bernoulli}(s - \lfloor s \rfloor), \qquad
              s = \frac{x - \mathrm{lower}}{\mathrm{upper} - \mathrm{lower}} (\mathrm{points} - 1)

    It goes with `Dummies` and `UserDummies` of so many symbols; no choice of a configuration.

    Parameters
    ----------
    lower, upper : float, lower < upper
    points : int, 2 to 2^16
        Of an even grid on the range, both ends included.
    """

    lower: float
    upper: float
    points: int
    name: ClassVar[str] = "none"
    label: ClassVar[str] = "no local noise"
    names_values: ClassVar[bool] = True
    memoryless: ClassVar[bool] = False

    def __post_init__(self) -> None:
        low, high, _ = number_range(self.lower, self.upper, None)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "points", whole("points", self.points, least=2, most=MOST_POINTS))

    @property
    def guarantee(self) -> LocalDP:
        return LocalDP(inf, source="no local noise: shuffler and analyst together read every answer")

    @property
    def step(self) -> float:
        return (self.upper - self.lower) / (self.points - 1)

    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        place = self._scaled(values)
        below = np.minimum(np.floor(place).astype(np.int64), self.points - 2)
        uniform = (rng.words(place.size) >> TOP53).astype(np.float64) * 2.0**-53
        return below + (uniform < place - below)

    def _scaled(self, values: ArrayLike) -> NDArray[np.float64]:
        """Values (n,) in grid steps above `lower`."""
        given = floats("values", values)
        if given.ndim != 1 or not given.size or not ((given >= self.lower) & (given <= self.upper)).all():
            raise DataError(f"`values` must be numbers (n,) in [{self.lower:g}, {self.upper:g}].")
        return np.asarray((given - self.lower) / (self.upper - self.lower) * (self.points - 1))

    def log_density(self, report: ArrayLike, value: ArrayLike) -> NDArray[np.float64]:
        away = np.abs(np.asarray(report) - self._scaled(np.ravel(value)).reshape(np.shape(value)))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(0.0, 1.0 - away)))

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(self.lower + self.step * np.asarray(reports))

    @property
    def noise_variance(self) -> float:
        """Of the rounding, half a step from both neighbours."""
        return self.step**2 / 4.0

    @property
    def rounding(self) -> float:
        return 0.0

    @property
    def report_bits(self) -> int:
        return (self.points - 1).bit_length()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(lower=0.0, upper=1.0, points=5),)
