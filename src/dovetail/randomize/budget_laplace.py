"""The budget-aware randomizer of RASE: Laplace noise, clamped to the range where the budget cannot be precise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, expm1, floor, inf, log, log1p, sinh
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.guarantee import LocalDP
from dovetail.core.settings import Share
from dovetail.core.stages import Encoded, NumericRandomizer, Reports, Valid
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.sampling.coins import adopt, chunks
from dovetail.randomize.sampling.domain import symbols
from dovetail_protocol.mechanisms import budget_laplace
from dovetail_protocol.mechanisms.budget_laplace import Precision

_UP = 1.0 + 1e-12  # far beyond the rounding of a root


@final
@dataclass(frozen=True)
class BudgetLaplace(NumericRandomizer):
    r"""Laplace noise on a grid of m steps; the report is clamped to the range unless epsilon meets the precision.

    .. math:: y = i(x) + d, \qquad z = \begin{cases} y & \epsilon \ge \text{threshold} \\
              \min(\max(y, 0), m) & \text{otherwise} \end{cases}, \qquad
              \Pr[\,|y - x| \le \beta |x|\,] \ge \rho

    For a mean among devices that agreed on a precision; `Laplace` is the same without the requirement.

    Parameters
    ----------
    lower, upper, epsilon
        As for `Laplace`, whose noise this is.
    grid : float, optional
        As for `Laplace`, but the default is m = 1024, and values are rounded to the nearest grid point: rounding at
        random moves a value by up to a whole step, which few precision intervals have room for.
    beta : float strictly between 0 and 1
        Relative half-width of the precision interval.
    rho : float strictly between 0 and 1
        Probability with which a report must lie in it.
    precision : "guaranteed" or "published"
        Whether the threshold holds for every value of the range, or is the one printed in the paper, which holds at
        the value farthest from zero only.

    Raises
    ------
    UnsupportedError
        "guaranteed" for a range that touches or crosses zero, where the interval shrinks to a point, or for a grid
        too coarse to hold the interval.

    Notes
    -----
    Clamping is post-processing: the guarantee is pure, with the full epsilon, in both cases. A report is an int64 in
    0..m if `clamps`, and any whole number otherwise. `decode` is unbiased even for clamped reports: at an edge it
    returns E[y | clamp(y)], which is t / (1 - t) steps beyond it (t = e^(-epsilon / m)) for every value of the
    range, because geometric tails have no memory. Hence (Rao-Blackwell) the variance of a decoded report is
    `noise_variance` (1 - Pr[z at an edge | x] / 2): `noise_variance`, of the noise itself, is an upper bound.

    Examples
    --------
    >>> device = BudgetLaplace(lower=3.9, upper=178.3, epsilon=4.5, beta=0.5, rho=0.9)
    >>> device.clamps, round(device.published_threshold, 2), round(device.guaranteed_threshold, 2)
    (True, 4.5, 223.97)

    Source
    ------
    Wang, Tao, Zou, RASE, Algorithm 1 and Definition 4, with the branches in the order of its section IV-A. Lemma 1
    bounds epsilon by x_max where the proof needs x_min.
    """

    lower: float
    upper: float
    epsilon: float
    beta: Share
    rho: Share
    precision: Precision = "guaranteed"
    grid: float | None = None
    name: ClassVar[str] = "budget_laplace"
    label: ClassVar[str] = "Laplace noise"

    def __post_init__(self) -> None:
        adopt(self, self.device)

    @property
    def device(self) -> budget_laplace.BudgetLaplace:
        """The same for one value at a time: the mechanism of a device, which owns the parameters."""
        return budget_laplace.BudgetLaplace(
            self.lower, self.upper, self.epsilon, self.beta, self.rho, precision=self.precision, grid=self.grid
        )

    @property
    def noise(self) -> Laplace:
        """The randomizer without clamping."""
        return Laplace(lower=self.lower, upper=self.upper, epsilon=self.epsilon, grid=self.grid)

    @property
    def guarantee(self) -> LocalDP:
        return self.noise.guarantee

    @property
    def steps(self) -> int:
        """m, grid steps from `lower` to `upper`."""
        return self.noise.steps

    @property
    def step(self) -> float:
        """Width of one grid step."""
        return self.noise.step

    @property
    def rate(self) -> Fraction:
        """epsilon / m: log ratio per grid step, exactly."""
        return self.noise.rate

    @property
    def clamps(self) -> bool:
        """True if reports are clamped to the range, because epsilon is below the threshold, decided in fractions.

        The thresholds below are rounded up, so an epsilon that is at least the threshold never clamps.
        """
        return self.device.clamps

    @property
    def published_threshold(self) -> float:
        r"""Lemma 1 as printed, for continuous noise, rounded up: it holds at the value farthest from zero.

        .. math:: \epsilon \ge -\frac{\Delta \ln(1 - \rho)}{\beta\, x_{\max}}
        """
        farthest = max(abs(self.lower), abs(self.upper))
        return -(self.upper - self.lower) * log1p(-self.rho) / (self.beta * farthest) * _UP

    @property
    def guaranteed_threshold(self) -> float:
        r"""An epsilon that suffices for the precision of every value of the range; infinite if this bound has none.

        .. math:: \frac{2 t^{k+1}}{1 + t} \le 1 - \rho, \qquad t = e^{-\epsilon / m}, \qquad
                  k = \Bigl\lfloor \frac{\beta\, x_{\min}}{\mathrm{step}} - \frac12 \Bigr\rfloor

        x_min is the value nearest to zero; half a step is what rounding may add at worst. It suffices; on coarse
        grids, whose points need not be where that happens, a smaller epsilon may do. For fine grids this tends to
        Lemma 1 with x_min in place of x_max.
        """
        from scipy.optimize import brentq  # seldom used, and slow to import

        k = self.device.reach
        if k < 0:
            return inf

        def excess(rate: float) -> float:  # log((1 - rho) (1 + t) / (2 t^(k+1))), without cancellation
            return (k + 0.5) * rate + log1p(2.0 * sinh(rate / 4.0) ** 2) + log1p(-self.rho)

        most = -log1p(-self.rho) / (k + 0.5)
        return self.steps * float(brentq(excess, 0.0, most * _UP, xtol=1e-300, rtol=1e-15)) * _UP

    @property
    def accounted(self) -> Laplace:
        return self.noise  # clamped or not: reports beyond an end say as much as the end itself

    def decode_bytes(self, encoded: Encoded) -> tuple[Reports, Valid]:
        steps, valid = self.noise.decode_bytes(encoded)
        return steps, valid & (steps >= 0) & (steps <= self.steps) if self.clamps else valid

    def facts(self) -> dict[str, Any]:
        """Precision of one report at both ends of the range, beside what was asked for, and what it would take."""
        ends = [self.lower, self.upper]
        precision = {
            "beta": self.beta,
            "rho": self.rho,
            "values": ends,
            "achieved": [self.precision_at(value) for value in ends],
            "clamps": self.clamps,
            "guaranteed_threshold": self.guaranteed_threshold,
            "published_threshold": self.published_threshold,
        }
        return {"precision": precision}

    def precision_at(self, value: float) -> float:
        r"""Pr[|z - x| <= beta |x|] for the report z as it is sent: exact sums of the discrete law.

        Examples
        --------
        Lemma 1 holds at the largest value only, here on a fine grid and just above its threshold.

        >>> public = dict(lower=3.9, upper=178.3, beta=0.5, rho=0.9, precision="published", grid=174.4 / 2**20)
        >>> fine = BudgetLaplace(**public, epsilon=4.51)
        >>> [round(fine.precision_at(value), 3) for value in (3.9, 50.0, 178.3)]
        [0.049, 0.476, 0.9]
        """
        point = int(self.nearest([value])[0])
        low, high = self._interval(Fraction(float(value)))
        below = 0.0 if self.clamps and low <= 0 else self._at_least(point - low + 1)
        above = 0.0 if self.clamps and high >= self.steps else self._at_least(high + 1 - point)
        return max(0.0, 1.0 - below - above)

    def _interval(self, x: Fraction) -> tuple[int, int]:
        """First and last report within beta |x| of x."""
        lower, reach = Fraction(self.lower), Fraction(self.beta) * abs(x)
        step = (Fraction(self.upper) - lower) / self.steps
        return ceil((x - reach - lower) / step), floor((x + reach - lower) / step)

    def _at_least(self, d: int) -> float:
        """Pr[noise >= d] = t^d / (1 + t) for d above 0; by symmetry otherwise."""
        rate = float(self.rate)
        tail = exp(-rate * max(d, 1 - d)) / (1.0 + exp(-rate))
        return tail if d > 0 else 1.0 - tail

    def nearest(self, values: ArrayLike) -> NDArray[np.int64]:
        """Grid points i(x) (n,), 0..m, of values (n,) in [lower, upper]."""
        return np.rint(self.noise.scaled(values)).astype(np.int64)

    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        reports = self.nearest(values)
        for part in chunks(reports.size):
            reports[part] += self.noise.noise(part.stop - part.start, rng.at(part))
        return np.clip(reports, 0, self.steps, out=reports) if self.clamps else reports

    def log_density(self, report: ArrayLike, value: ArrayLike) -> NDArray[np.float64]:
        inside = self.noise.log_mass(report, self.nearest(np.ravel(value)).reshape(np.shape(value)))
        if not self.clamps:
            return inside
        z = np.asarray(report, dtype=np.int64)
        atom = inside - log(-expm1(-float(self.rate)))  # a tail holds 1 / (1 - t) times its first term
        law = np.where((z == 0) | (z == self.steps), atom, inside)
        return np.where((z < 0) | (z > self.steps), -np.inf, law)

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        if not self.clamps:
            return self.noise.decode(reports)
        z = symbols(np.ravel(reports), self.steps + 1, name="reports").reshape(np.shape(reports))
        return self.noise.decode(z + self.overshoot * ((z == self.steps) * 1.0 - (z == 0)))

    @property
    def noise_variance(self) -> float:
        return self.noise.geometric_variance

    @property
    def overshoot(self) -> float:
        return self.noise.overshoot

    @property
    def rounding(self) -> float:
        return self.step / 2

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(lower=1.0, upper=2.0, epsilon=2.0, beta=0.5, rho=0.9, grid=0.125),  # clamps
            cls(lower=-8.0, upper=-4.0, epsilon=0.5, beta=0.5, rho=0.5, grid=2.0),  # clamps
            cls(lower=0.0, upper=1.0, epsilon=1.0, beta=0.25, rho=0.5, precision="published", grid=1.0),  # clamps
            cls(lower=10.0, upper=14.0, epsilon=4.0, beta=0.5, rho=0.9, grid=1.0),  # precise: does not clamp
        )
