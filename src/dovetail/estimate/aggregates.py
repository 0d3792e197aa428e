r"""Sums, variances, counts above a threshold and quantiles from numeric reports.

Everything comes from one order-free tally, the histogram of the clamped reports, and from one fact: the law of a
clamped report has a tridiagonal inverse (`ClampedGrid.unbiased`), so the mean of any function of the grid point has
an unbiased estimate. How useful it is depends on the function: the noise of a report enters with the curvature of f,
nothing for straight lines, q = o (o + 1) for a jump. Jumps on fine grids drown, so choose a coarse grid for counts
and quantiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from scipy.special import ndtri

from dovetail.core.checks import probability, real, refuse
from dovetail.core.display.display import Display, displayed_by
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.estimate import Estimate, Estimator, Tally, Values
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.estimate.mean import estimate_mean
from dovetail.estimate.pairing import need_numbers
from dovetail.estimate.rao_blackwell import ClampedGrid, whole_steps

Function = Callable[[Values], ArrayLike]


@final
@dataclass(frozen=True)
class FunctionEstimator(Estimator):
    r"""The mean of f(x) among the people who reported, x rounded to the grid.

    .. math:: \hat f = \frac1n \sum_i h(z_i), \qquad \mathbb E[h(z) \mid x] = f(x), \qquad
              \mathrm{se}^2 = \frac{1}{n^2} \Bigl( \sum_i v(z_i) + \max |v| \Bigr), \qquad
              v = h^2 - \mathrm{unbiased}(f^2)

    v(z) is unbiased for the variance of h(z) given the value; one report more, the most uncertain one, keeps the
    error above zero where few reports tell. f may be anything, but see the module on functions that jump.

    Parameters
    ----------
    randomizer : NumericRandomizer with geometric noise, at most 2^20 grid steps
    function : callable
        f at an array of numbers on the value's scale, elementwise and finite.

    Notes
    -----
    A tally is the histogram (m + 1,) of the clamped reports. It does not depend on f: one tally answers everything.
    """

    randomizer: NumericRandomizer
    function: Function

    def tally(self, reports: Reports) -> Tally:
        steps = whole_steps(self.randomizer, reports)
        return Tally(ClampedGrid.of(self.randomizer).histogram(steps), steps.size)

    def solve(self, tally: Tally) -> Estimate:
        grid, n = ClampedGrid.of(self.randomizer), np.asarray(tally.n)
        _check_reports(n)
        points = np.asarray(self.randomizer.lower + grid.step * np.arange(grid.steps + 1))
        values = self._values_at(points)
        shift = values.mean()  # unbiasedness survives a shift, and digits survive better after one
        f: Values = values - shift
        h = grid.unbiased(f)
        v = h**2 - grid.unbiased(f**2)
        mean: Values = tally.counts @ h / n
        square: Values = tally.counts @ h**2 / n
        noise = (np.maximum(tally.counts @ v, 0.0) + np.abs(v).max()) / n
        sample = np.maximum(square - mean**2, 0.0) * n / np.maximum(n - 1, 1)
        return Estimate(
            value=mean + shift,
            standard_error=np.sqrt(noise / n),
            n=tally.n,
            population_error=np.sqrt(np.maximum(noise, sample) / n),
        )

    def _values_at(self, points: Values) -> Values:
        """f at the grid points; ParameterError where it does not work elementwise or is not finite."""
        wanted = "a function that maps an array of numbers to as many finite numbers"
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(self.function(points), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise refuse("function", f"{wanted} ({error})", self.function) from error
        if values.shape != points.shape or not np.isfinite(values).all():
            raise refuse("function", wanted, self.function)
        return values


def estimate_function(randomizer: NumericRandomizer, reports: Reports, function: Function) -> Estimate:
    """Mean of f(x) among the people behind `reports`; see `FunctionEstimator`."""
    estimator = FunctionEstimator(randomizer, function)
    return estimator.solve(estimator.tally(reports))


def estimate_sum(randomizer: NumericRandomizer, reports: Reports) -> Estimate:
    """Sum of the values of the people behind `reports`.

    Raises
    ------
    ParameterError
        For a randomizer of symbols.
    DataError
        For reports that are no whole grid steps, and for none at all.

    Examples
    --------
    >>> from dovetail.randomize.laplace import Laplace
    >>> float(estimate_sum(Laplace(lower=0.0, upper=10.0, epsilon=5.0, grid=1.0), [2, 5, 7]).value)
    14.0
    """
    mean = estimate_mean(randomizer, reports)
    return replace(
        mean,
        value=mean.value * mean.n,
        standard_error=mean.standard_error * mean.n,
        population_error=mean.population_error * mean.n,
        bias_bound=mean.bias_bound * mean.n,
    )


def estimate_variance(randomizer: NumericRandomizer, reports: Reports) -> Estimate:
    r"""Variance (1/n) sum (x - mean x)^2 of the values among the people behind `reports`.

    .. math:: \hat V = \frac1n \sum_i h(z_i) + \mathrm{se}(\hat\mu)^2, \qquad
              f(x) = (x - \hat\mu)^2, \quad h = \mathrm{unbiased}(f)

    Exactly unbiased for values on the grid, since the first term is unbiased for the mean square around the
    estimated mean but for the noise of the latter. The bias bound is that of rounding, h (range + h) with h half a
    step. May be negative where the noise is wide.

    Raises
    ------
    ParameterError
        For a randomizer of symbols.
    DataError
        For reports that are no whole grid steps, and for none at all.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.laplace import Laplace
    >>> laplace = Laplace(lower=0.0, upper=10.0, epsilon=20.0)
    >>> estimate = estimate_variance(laplace, laplace.randomize([2.0, 4.0] * 5000, rng=simulation(1)))
    >>> abs(float(estimate.value) - 1.0) < 3 * float(estimate.standard_error)
    True
    """
    mean = estimate_mean(randomizer, reports)
    centre = float(mean.value)
    around = estimate_function(randomizer, reports, lambda x: (x - centre) ** 2)
    width, half = randomizer.upper - randomizer.lower, randomizer.rounding
    return replace(around, value=around.value + mean.standard_error**2, bias_bound=half * (width + half))


def estimate_count_above(randomizer: NumericRandomizer, reports: Reports, threshold: float) -> Estimate:
    r"""Number of people whose value is at least `threshold`.

    .. math:: h(z) = [z \ge c] + w_c [z = c] - w_{c-1} [z = c - 1], \qquad
              w_z = o\,(o + 1) \text{ inside}, \quad o \text{ at the edges}

    Unbiased for values on the grid; others count by their grid point. The standard error is about s^(3/2) sqrt(n)
    with noise of s grid steps: choose a grid of few steps.

    Parameters
    ----------
    threshold : float, above `lower` and at most `upper`

    Raises
    ------
    ParameterError
        For a randomizer of symbols.
    UnsupportedError
        For a threshold that everybody or nobody reaches.
    DataError
        For reports that are no whole grid steps, and for none at all.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.laplace import Laplace
    >>> laplace = Laplace(lower=0.0, upper=4.0, epsilon=4.0, grid=1.0)
    >>> count = estimate_count_above(laplace, laplace.randomize([1.0] * 700 + [3.0] * 300, rng=simulation(1)), 2.0)
    >>> low, high = count.interval()
    >>> bool(low < 300 < high), round(float(count.standard_error))
    (True, 31)
    """
    need_numbers(randomizer, instead="estimate_frequencies")
    bound = real("threshold", threshold)
    if not randomizer.lower < bound <= randomizer.upper:
        raise UnsupportedError(
            f"Everybody or nobody is above {bound!r}: `threshold` must lie in ({randomizer.lower!r}, "
            f"{randomizer.upper!r}], no estimate is needed outside."
        )
    step = ClampedGrid.of(randomizer).step
    first = ceil((bound - randomizer.lower) / step - 1e-9)  # the threshold is a grid point but for its last digits
    cut = randomizer.lower + step * (first - 0.5)
    share = estimate_function(randomizer, reports, lambda x: x >= cut)
    return replace(
        share,
        value=share.value * share.n,
        standard_error=share.standard_error * share.n,
        population_error=share.population_error * share.n,
    )


def _show_quantile(estimate: QuantileEstimate) -> Display:
    value, low, high = (f"{end:,.12g}" for end in (estimate.value, estimate.low, estimate.high))
    level, people = f"{100 * estimate.level:g} %", f"{estimate.n:,} reports"
    return Display(
        brief=f"QuantileEstimate from {people}: {value} ({level} interval {low} to {high})",
        title=f"QuantileEstimate from {people}",
        facts=(("estimate", value), (f"{level} interval", f"{low} to {high}")),
    )


@final
@displayed_by(_show_quantile)
@dataclass(frozen=True)
class QuantileEstimate:
    """A quantile of the values of n people with an interval.

    Parameters
    ----------
    value, low, high : float
        Grid points on the value's scale.
    level : float
        The interval covers at least with this probability (normal approximation of counts). The whole range means
        that the noise hides the quantile at this budget and grid: use a coarser grid, more people or more epsilon.
    n : int
    """

    value: float
    low: float
    high: float
    level: float
    n: int


def estimate_quantile(
    randomizer: NumericRandomizer, reports: Reports, *, share: float, level: float = 0.95
) -> QuantileEstimate:
    r"""The smallest grid point c with at least a `share` of the people at or below it.

    .. math:: \hat F(c) = 1 - \widehat{\mathrm{share}}(x \ge c + 1), \qquad
              \text{interval} = \{ c : \hat F(c) + z\,\mathrm{se} \ge p,\ \hat F(c - 1) - z\,\mathrm{se} < p \}

    The value is read off the monotone regression of the unbiased F; the interval inverts tests of one grid point
    each, so it covers whatever the values are; where the noise leaves everything possible it is the whole range. For
    the quantile 1/2 of a narrow crowd under wide noise, `estimate_median` is far more precise, but biased.

    Parameters
    ----------
    share : float strictly between 0 and 1
    level : float strictly between 0 and 1

    Raises
    ------
    ParameterError
        For a randomizer of symbols, and for a `share` or `level` outside (0, 1).
    DataError
        For reports that are no whole grid steps, and for none at all.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.laplace import Laplace
    >>> laplace = Laplace(lower=0.0, upper=4.0, epsilon=8.0, grid=1.0)
    >>> reports = laplace.randomize([1.0] * 700 + [3.0] * 300, rng=simulation(1))
    >>> estimate_quantile(laplace, reports, share=0.9)
    QuantileEstimate from 1,000 reports: 3 (95 % interval 3 to 3)
    """
    p, z = probability("share", share), float(ndtri(0.5 + probability("level", level) / 2))
    grid, steps = ClampedGrid.of(randomizer), whole_steps(randomizer, reports)
    _check_reports(steps.size)
    below, error = _distribution(grid, grid.histogram(steps), steps.size)
    reached = np.append(below + z * error >= p, True)  # c can be high enough
    needed = np.insert(below - z * error < p, 0, True)  # c - 1 can be too low
    possible = np.flatnonzero(reached & needed)
    smooth = isotonic_regression(below).x
    best = int(np.argmax(np.append(smooth, np.inf) >= p))
    low, high = min(best, possible[0]), max(best, possible[-1])
    value, low, high = (float(randomizer.lower + grid.step * int(point)) for point in (best, low, high))
    return QuantileEstimate(value=value, low=low, high=high, level=level, n=steps.size)


def _distribution(grid: ClampedGrid, counts: NDArray[np.int64], n: int) -> tuple[Values, Values]:
    """Unbiased shares (m,) of people at or below grid point 0..m-1, and their standard errors; see the counts."""
    weight = np.full(grid.steps + 1, grid.half)
    weight[[0, -1]] = grid.overshoot
    tail = n - np.cumsum(counts)[:-1] + (weight * counts)[1:] - (weight * counts)[:-1]
    single = weight * (weight + 1.0)
    variance = (single * counts)[1:] + (single * counts)[:-1] + np.maximum(single[1:], single[:-1])
    return 1.0 - tail / n, np.sqrt(variance) / n


def _check_reports(n: Any) -> None:
    if np.any(np.asarray(n) < 1):
        raise DataError("there are no reports to estimate from: n must be at least 1.")
