"""No local noise: what a device sends where others are trusted to add it."""

from __future__ import annotations

from dataclasses import dataclass, fields
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
from dovetail.core.stages import (
    RANDOMIZERS,
    Encoded,
    FrequencyRandomizer,
    NumericRandomizer,
    Randomizer,
    Reports,
    Valid,
)
from dovetail.randomize.sampling.domain import symbols
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS
from dovetail_protocol.checks import number_range
from dovetail_protocol.dummies import Unrandomized
from dovetail_protocol.mechanism import Mechanism

# No local noise: what a device sends where the shuffler alone is trusted to add it.


@final
@dataclass(frozen=True)
class OpenAnswers(FrequencyRandomizer):
    """The value itself: protects nobody against those who open a report, and is no choice of a configuration.

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
    r"""The number of a grid point next to the value, right on average: protects nobody against those who open it.

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
        if given.ndim != 1 or not ((given >= self.lower) & (given <= self.upper)).all():
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


# From the device to the analyst: the randomizer that belongs to a mechanism, and its reports read from bytes.


_OPEN = 700.0  # nats: next to no lies, where only the form of reports matters


def randomizer_kind(name: str) -> type[Randomizer]:
    """The class of a randomizer of symbols, numbers or vectors."""
    return VECTOR_RANDOMIZERS[name] if name in VECTOR_RANDOMIZERS else RANDOMIZERS[name]


def from_device(mechanism: Mechanism) -> Randomizer:
    """The analyst's randomizer of a device's mechanism: the same parameters and the same law.

    Of answers that are sent as they are it has the form alone: symbols, the blank among them, and their counts.

    >>> from dovetail_protocol.mechanism import mechanism
    >>> from_device(mechanism("krr", k=3, epsilon=1.0)).channel().shape
    (3, 3)
    """
    if isinstance(mechanism, Unrandomized):
        krr: Any = RANDOMIZERS["krr"]
        form: Randomizer = krr(k=mechanism.k + 1, epsilon=_OPEN)
        return form
    kind: Any = randomizer_kind(mechanism.name)
    randomizer: Randomizer = kind(**{field.name: getattr(mechanism, field.name) for field in fields(kind)})
    return randomizer


def decode_reports(mechanism: Mechanism, encoded: Encoded) -> tuple[Reports, Valid]:
    """`mechanism.decode` of many reports at once: the reports of the valid rows, and which rows are valid.

    Parameters
    ----------
    encoded : uint8 array (n, mechanism.report_bytes)

    Returns
    -------
    reports : array (m,) or (m, width), as `from_device(mechanism).randomize` makes them, of the m valid rows
    valid : bool array (n,)
        False for what no device could send.

    Examples
    --------
    >>> from dovetail_protocol.mechanism import mechanism
    >>> decode_reports(mechanism("krr", k=3, epsilon=1.0), np.array([[2], [3], [0]], dtype=np.uint8))
    (array([2, 0]), array([ True, False,  True]))
    """
    if encoded.dtype != np.uint8 or encoded.ndim != 2 or encoded.shape[1] != mechanism.report_bytes:
        raise DataError(
            f"`encoded` must be uint8 (n, {mechanism.report_bytes}), got {encoded.dtype} {encoded.shape}."
        )
    reports, valid = from_device(mechanism).decode_bytes(encoded)
    return reports[valid], valid
