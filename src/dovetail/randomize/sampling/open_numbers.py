"""No local noise on a number: what a device sends where others are trusted to add dummies."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import floats, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.guarantee import LocalDP
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail_protocol.checks import number_range

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
