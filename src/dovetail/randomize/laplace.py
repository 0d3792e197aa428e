"""Laplace noise on a public grid: the discrete law, because the bits of a double would leak."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log, sinh, tanh
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
from dovetail_protocol.mechanisms import laplace


@final
@dataclass(frozen=True)
class Laplace(NumericRandomizer):
    r"""The geometric mechanism on the grid lower, lower + grid, .., upper of m steps.

    .. math:: y = i(x) + d, \qquad \Pr[d] = \tanh(\lambda / 2)\, e^{-\lambda |d|}, \qquad \lambda = \epsilon / m

    i(x) is the nearest grid point. For the mean of a bounded number; a histogram of it needs a frequency randomizer.

    Parameters
    ----------
    lower, upper : float, lower < upper
        Public range of the values; values outside raise DataError, nothing is clamped.
    epsilon : float, above 0 and at most 700, nats
    grid : float, optional
        Width of a step; (upper - lower) / grid must be a whole number m, at most 2^31, to within 1e-9. The default
        is m = 1024. A finer grid lowers the rounding, not the noise.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and for a range that is no whole number of grid steps.
    DataError
        From `randomize` for values outside [lower, upper], and from estimates for reports that are no whole steps.

    Notes
    -----
    A report is an int64: grid steps above `lower`, not clamped. The noise is exact, so the guarantee is pure and
    holds with the full epsilon: two values differ by at most m steps.

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
        reports = self.nearest(values)
        for part in chunks(reports.size):
            reports[part] += discrete_laplace(self.rate, part.stop - part.start, rng.at(part))
        return reports

    def nearest(self, values: ArrayLike) -> NDArray[np.int64]:
        """Grid points i(x) (n,), 0..m, of values (n,) in [lower, upper]."""
        inside = numbers(values, self.lower, self.upper)
        return np.rint((inside - self.lower) / (self.upper - self.lower) * self.steps).astype(np.int64)

    def log_density(self, report: ArrayLike, value: ArrayLike) -> NDArray[np.float64]:
        points = self.nearest(np.ravel(value)).reshape(np.shape(value))
        steps = np.asarray(report)
        if steps.dtype.kind not in "iu":
            raise DataError(f"`report` must be whole grid steps, got values of type {steps.dtype}.")
        away = np.abs(steps.astype(np.int64) - points)
        return np.asarray(log(tanh(float(self.rate) / 2)) - float(self.rate) * away)

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(self.lower + self.step * floats("reports", reports))

    @property
    def noise_variance(self) -> float:
        # 2 t / (1 - t)^2 steps^2 with t = e^-rate
        return 0.5 * (self.step / sinh(float(self.rate) / 2)) ** 2

    @property
    def rounding(self) -> float:
        return self.step / 2

    def decode_bytes(self, encoded: Encoded) -> tuple[Reports, Valid]:
        steps = whole_words(encoded).view(np.int64)
        return steps, (steps >= -laplace.FARTHEST) & (steps <= laplace.FARTHEST)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(lower=0.0, upper=1.0, epsilon=2.0, grid=0.25),
            cls(lower=-3.0, upper=5.0, epsilon=1.0, grid=1.0),
            cls(lower=10.0, upper=11.0, epsilon=4.0, grid=1.0),
        )
