"""The window mechanism: one number, a report near it or anywhere, made for means of shuffled reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import KRRChannel
from dovetail.core.checks import floats
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.guarantee import LocalDP
from dovetail.core.settings import Count
from dovetail.core.stages import Encoded, NumericRandomizer, Reports, Valid
from dovetail.randomize.sampling.coins import adopt, numbers_below
from dovetail.randomize.sampling.domain import numbers
from dovetail_protocol.checks import number_range
from dovetail_protocol.exact_thresholds import WORD
from dovetail_protocol.mechanisms.window import Window as DeviceWindow

MOST_LEVELS = 4  # at which k-ary response on a coarse grid may be the best member


@final
@dataclass(frozen=True)
class Window(NumericRandomizer):
    r"""A report in a window of W outputs that starts at the value, or any of the m + W outputs.

    .. math:: y = v + U\{0..W-1\} \text{ with probability } \gamma, \quad U\{0..m+W-1\} \text{ otherwise}, \qquad
              \gamma = \frac{(e^{\epsilon} - 1) W}{m + e^{\epsilon} W}

    v in 0..m is the value on the grid, rounded to either neighbour at random, so that the mean is exact. For the mean
    and the sum of bounded numbers: after shuffling among many people it is far more accurate than Laplace noise. A
    histogram or quantiles of a number need `Laplace` or a frequency randomizer.

    Members: W = 1 is k-ary randomized response on m + 1 levels, and with m = 1 one bit (Duchi et al.); W = m /
    sqrt(e^epsilon) is the piecewise mechanism (Wang et al.). The default W is more accurate than both on a fine grid,
    at every epsilon. Below epsilon0 of about 2.4 two to five levels (a coarse `grid`) admit more after shuffling: the
    planner searches them too.

    Parameters
    ----------
    lower, upper : float, lower < upper
        Public range of the values; values outside raise DataError, nothing is clamped.
    epsilon : float, above 0 and at most 700, nats
    window : int, 1 to m, optional
        W, outputs that the value makes likelier, in grid steps. The default, about m / (e^epsilon / 2)^(1/3), is
        the most accurate one.
    grid : float, optional
        Width of a step; (upper - lower) / grid must be a whole number m, at most 2^31, to within 1e-9. The default
        is m = 65536. For whole numbers take 1: nothing is rounded then.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and for a range that is no whole number of grid steps.
    DataError
        From `randomize` for values outside [lower, upper], and from estimates for reports that are none.

    Notes
    -----
    A report is an int64 in 0..m + W - 1. Probabilities are whole multiples of 2^-64, rounded towards more privacy;
    the sampler has exactly this law. Decoded reports are unbiased for the value itself, so `rounding` is 0.

    Examples
    --------
    >>> ages = Window(lower=0.0, upper=100.0, epsilon=7.7, grid=1.0, window=9)
    >>> ages.outputs, round(ages.truthful, 4), round(ages.noise_variance ** 0.5, 2)
    (109, 0.9945, 5.09)

    Source
    ------
    docs/theory/accuracy.md, section A. Members: Wang et al. (2019), Collecting and Analyzing Multidimensional Data
    with Local Differential Privacy, ICDE; Duchi, Jordan, Wainwright (2018), Minimax Optimal Procedures for Locally
    Private Estimation, JASA; Kairouz, Bonawitz, Ramage (2016).
    """

    lower: float
    upper: float
    epsilon: float
    window: Count | None = None
    grid: float | None = None
    name: ClassVar[str] = "window"
    label: ClassVar[str] = "the window mechanism"
    memoryless: ClassVar[bool] = False

    def __post_init__(self) -> None:
        adopt(self, self.device)

    @property
    def device(self) -> DeviceWindow:
        """The same for one value at a time: the mechanism of a device, which owns the parameters."""
        return DeviceWindow(self.lower, self.upper, self.epsilon, window=self.window, grid=self.grid)

    @property
    def guarantee(self) -> LocalDP:
        return LocalDP(self.epsilon, source="window mechanism (docs/theory/accuracy.md)")

    @property
    def accounted(self) -> Window | KRRChannel:
        inside, low = self.device.masses
        return KRRChannel(self.steps + 1, inside, low) if self.width == 1 else self

    @property
    def steps(self) -> int:
        """m, grid steps from `lower` to `upper`."""
        return self.device.steps

    @property
    def step(self) -> float:
        return self.device.step

    @property
    def width(self) -> int:
        """W, outputs in a window."""
        return self.device.width

    @property
    def outputs(self) -> int:
        """m + W, reports that can be sent."""
        return self.steps + self.width

    @property
    def truthful(self) -> float:
        """gamma, probability that the report is drawn from the window on purpose."""
        _, low = self.device.masses
        return (WORD - self.outputs * low) / WORD

    @property
    def report_bits(self) -> int:
        return (self.outputs - 1).bit_length()

    def facts(self) -> dict[str, Any]:
        """The grid and the window as they are, for parameters that were left to the default."""
        return {"window": {"steps": self.steps, "width": self.width, "truthful": self.truthful}}

    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        scaled = self._scaled(values)
        below = np.floor(scaled).astype(np.int64)
        start = below + (rng.words(scaled.size) < ((scaled - below) * float(WORD)).astype(np.uint64))
        inside, low = self.device.masses
        words = rng.words(scaled.size)
        near = start + rng.below(self.width, scaled.size)
        away = (start + self.width + (words // np.uint64(low)).astype(np.int64)) % self.outputs
        return np.where(words < np.uint64(WORD - inside), away, near)

    def _scaled(self, values: ArrayLike) -> NDArray[np.float64]:
        """Values (n,) in grid steps above `lower`, by the same operations as on a device."""
        inside = numbers(values, self.lower, self.upper)
        return np.asarray((inside - self.lower) / (self.upper - self.lower) * self.steps)

    def log_density(self, report: ArrayLike, value: ArrayLike) -> NDArray[np.float64]:
        y, scaled = np.asarray(report), self._scaled(np.ravel(value)).reshape(np.shape(value))
        if y.dtype.kind not in "iu":
            raise DataError(f"`report` must be whole numbers, got values of type {y.dtype}.")
        below = np.floor(scaled)
        away = y.astype(np.int64) - below.astype(np.int64)
        up = scaled - below
        inside, low = self.device.masses
        held = (1.0 - up) * ((away >= 0) & (away < self.width)) + up * ((away >= 1) & (away <= self.width))
        law = held * (inside / self.width / WORD) + (1.0 - held) * (low / WORD)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where((y >= 0) & (y < self.outputs), law, 0.0)))

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        around = floats("reports", reports) - (self.outputs - 1) / 2.0
        return np.asarray(self.lower + self.step * (self.steps / 2.0 + around / self.truthful))

    @property
    def noise_variance(self) -> float:
        r"""Of a decoded report, at the worst value of the range, its rounding included.

        .. math:: \frac{\gamma (1 - \gamma)(m/2 - w)^2 + \gamma w (1 - w) + c}{\gamma^2}, \qquad
                  w = \mathrm{clip}\Bigl(\frac{1 - (1 - \gamma) m}{2 \gamma}, 0, \frac12\Bigr)

        w grid steps from an end, as s = w (1 - w) is the same in each cell, and the outermost one is worst.
        """
        gamma, m = self.truthful, self.steps
        w = min(max((1.0 - (1.0 - gamma) * m) / (2.0 * gamma), 0.0), 0.5)
        return float(self._variance((m / 2.0 - w) ** 2, w * (1.0 - w)))

    def noise_of_mean(self, around: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Of decoded reports, an upper bound for exactly these people: `around` gives the spread of their values.

        .. math:: Q = \frac1n \sum_i \Bigl(y_i - \frac{m + W - 1}{2}\Bigr)^2, \qquad
                  A = \frac{Q - (1 - \gamma)((m + W)^2 - 1)/12}{\gamma} - \frac{W^2 - 1}{12}

        A is unbiased for the mean of (v - m/2)^2; rounding adds at most a quarter of a squared step.
        """
        gamma, m, w = self.truthful, self.steps, self.width
        square = np.asarray(around) * (gamma / self.step) ** 2
        spread = (square - (1.0 - gamma) * _uniform(m + w)) / gamma - _uniform(w)
        inside = np.clip(spread, 0.0, m**2 / 4.0)
        return np.asarray(np.minimum(self._variance(inside - 0.25, 0.25), self.noise_variance))

    def _variance(self, squared: Any, rounded: Any) -> Any:
        """Of a decoded report: (x - m/2)^2 = `squared` and rounding of variance `rounded`, both in grid steps."""
        gamma = self.truthful
        noise = gamma * _uniform(self.width) + (1.0 - gamma) * _uniform(self.outputs)
        return (gamma * (1.0 - gamma) * squared + gamma * rounded + noise) / gamma**2 * self.step**2

    @property
    def rounding(self) -> float:
        return 0.0

    def decode_bytes(self, encoded: Encoded) -> tuple[Reports, Valid]:
        return numbers_below(self.outputs, encoded)

    @classmethod
    def shapes(cls, *, lower: float, upper: float, grid: float | None) -> tuple[Callable[[float], Self], ...]:
        """Members to search: the default, and few levels where the grid is free."""
        low, high, step = number_range(lower, upper, grid)

        def levels(count: int, epsilon: float) -> Self:
            return cls(low, high, epsilon, window=1, grid=(high - low) / count)

        few = () if step is not None else tuple(partial(levels, count) for count in range(1, MOST_LEVELS + 1))
        return (lambda epsilon: cls(low, high, epsilon, grid=step), *few)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(lower=0.0, upper=1.0, epsilon=2.0, window=3, grid=0.125),
            cls(lower=-3.0, upper=5.0, epsilon=1.0, window=2, grid=1.0),
            cls(lower=0.0, upper=3.0, epsilon=1.5, window=1, grid=1.0),  # k-ary randomized response
            cls(lower=10.0, upper=11.0, epsilon=4.0, window=1, grid=1.0),  # one bit
            cls(lower=0.0, upper=1.0, epsilon=3.0, grid=0.0625),  # the default width
        )


def _uniform(count: int) -> float:
    """Variance of a uniform number of `count` in a row."""
    return (count**2 - 1.0) / 12.0
