"""Laplace noise on a public grid: the discrete law, because the bits of a double would leak."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import expm1, log, sinh, tanh
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import floats
from dovetail.core.discrete_noise import discrete_laplace
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.guarantee import LocalDP
from dovetail.core.stages import Encoded, NumericRandomizer, Reports, Valid
from dovetail.randomize.sampling.coins import adopt, chunks, whole_words
from dovetail.randomize.sampling.domain import numbers
from dovetail_protocol.exact_thresholds import WORD
from dovetail_protocol.mechanisms import laplace

FINE_STEPS = 1024  # of the other grid that a planner tries; those in between admit no more, and round more


@final
@dataclass(frozen=True)
class Laplace(NumericRandomizer):
    r"""The geometric mechanism on the grid lower, lower + grid, .., upper of m steps.

    .. math:: y = i + d, \qquad \Pr[d] = \tanh(\lambda / 2)\, e^{-\lambda |d|}, \qquad \lambda = \epsilon / m

    i is one of the two grid points beside the value, at random, so that its mean is the value. For the mean of a
    bounded number; a histogram of it needs a frequency randomizer.

    Parameters
    ----------
    lower, upper : float, lower < upper
        Public range of the values; values outside raise DataError, nothing is clamped.
    epsilon : float, above 0 and at most 700, nats
    grid : float, optional
        Width of a step; (upper - lower) / grid must be a whole number m, at most 2^31, to within 1e-9. The default
        is m = 32, and `grid` is then the number that this makes of it. Rounding adds at most step^2 / 4 to the
        variance. After a shuffle up to 64 steps admit the most: the accountant compares what everybody else may hold.
        A finer grid is more accurate from epsilon of about 90 on, and where the mean is not all that is asked.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and for a range that is no whole number of grid steps.
    DataError
        From `randomize` for values outside [lower, upper], and from estimates for reports that are no whole steps.

    Notes
    -----
    A report is an int64: grid steps above `lower`, not clamped. The noise is exact, so the guarantee is pure and
    holds with the full epsilon: two values differ by at most m steps. Random rounding mixes the laws of two grid
    points, and mixtures are no further apart than what they are made of.

    Examples
    --------
    >>> Laplace(lower=0.0, upper=10.0, epsilon=1.0, grid=0.5).decode([0, 20, 23]).tolist()
    [0.0, 10.0, 11.5]

    Source
    ------
    Ghosh, Roughgarden, Sundararajan (2012), Universally Utility-Maximizing Privacy Mechanisms, SIAM Journal on
    Computing 41(6), the geometric mechanism.
    """

    lower: float
    upper: float
    epsilon: float
    grid: float | None = None
    name: ClassVar[str] = "laplace"
    label: ClassVar[str] = "Laplace noise"

    def __post_init__(self) -> None:
        adopt(self, self.device)

    @property
    def device(self) -> laplace.Laplace:
        """The same for one value at a time: the mechanism of a device, which owns the parameters."""
        return laplace.Laplace(self.lower, self.upper, epsilon=self.epsilon, grid=self.grid)

    @property
    def guarantee(self) -> LocalDP:
        source = "geometric mechanism (Ghosh, Roughgarden, Sundararajan 2012) on a public grid"
        return LocalDP(self.epsilon, source=source)

    @property
    def steps(self) -> int:
        """m, grid steps from `lower` to `upper`."""
        return self.device.steps

    @property
    def step(self) -> float:
        """Width of one grid step."""
        return self.device.step

    @property
    def rate(self) -> Fraction:
        """lambda = epsilon / m: log ratio per grid step, exactly."""
        return self.device.rate

    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        scaled = self.scaled(values)
        reports = np.floor(scaled).astype(np.int64)
        for part in chunks(reports.size):
            own, up = rng.at(part), ((scaled[part] - reports[part]) * float(WORD)).astype(np.uint64)
            reports[part] += own.words(up.size) < up
            reports[part] += self.noise(up.size, own)
        return reports

    def noise(self, count: int, rng: Entropy) -> NDArray[np.int64]:
        """Grid steps d (count,) that reports are away from their grid points."""
        return discrete_laplace(self.rate, count, rng)

    def scaled(self, values: ArrayLike) -> NDArray[np.float64]:
        """Values (n,) in grid steps above `lower`, by the same operations as on a device."""
        inside = numbers(values, self.lower, self.upper)
        return np.asarray((inside - self.lower) / (self.upper - self.lower) * self.steps)

    def log_density(self, report: ArrayLike, value: ArrayLike) -> NDArray[np.float64]:
        scaled = self.scaled(np.ravel(value)).reshape(np.shape(value))
        below = np.floor(scaled)
        low, high = (self.log_mass(report, below + up) for up in (0, 1))
        with np.errstate(divide="ignore"):
            return np.asarray(np.logaddexp(low + np.log1p(below - scaled), high + np.log(scaled - below)))

    def log_mass(self, report: ArrayLike, point: ArrayLike) -> NDArray[np.float64]:
        """Log probability of `report` given the grid point."""
        steps = np.asarray(report)
        if steps.dtype.kind not in "iu":
            raise DataError(f"`report` must be whole grid steps, got values of type {steps.dtype}.")
        away = np.abs(steps.astype(np.int64) - np.asarray(point).astype(np.int64))
        return np.asarray(log(tanh(float(self.rate) / 2)) - float(self.rate) * away)

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(self.lower + self.step * floats("reports", reports))

    @property
    def noise_variance(self) -> float:
        return self.geometric_variance + self.step**2 / 4.0

    @property
    def geometric_variance(self) -> float:
        """Of the noise alone: 2 t / (1 - t)^2 steps^2 with t = e^-rate."""
        return 0.5 * (self.step / sinh(float(self.rate) / 2)) ** 2

    @property
    def overshoot(self) -> float:
        return 1.0 / expm1(float(self.rate))

    @property
    def rounding(self) -> float:
        return 0.0

    def decode_bytes(self, encoded: Encoded) -> tuple[Reports, Valid]:
        steps = whole_words(encoded).view(np.int64)
        return steps, (steps >= -laplace.FARTHEST) & (steps <= laplace.FARTHEST)

    @classmethod
    def shapes(cls, *, lower: float, upper: float, grid: float | None) -> tuple[Callable[[float], Self], ...]:
        """The default, and a fine grid for an epsilon so large that rounding is most of the noise."""

        def on(step: float | None, epsilon: float) -> Self:
            return cls(lower, upper, epsilon, grid=step)

        grids = (None, (upper - lower) / FINE_STEPS) if grid is None else (grid,)
        return tuple(partial(on, step) for step in grids)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(lower=0.0, upper=1.0, epsilon=2.0, grid=0.25),
            cls(lower=-3.0, upper=5.0, epsilon=1.0, grid=1.0),
            cls(lower=10.0, upper=11.0, epsilon=4.0, grid=1.0),
        )
