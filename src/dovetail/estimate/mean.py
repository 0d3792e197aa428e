"""The mean of a number, or of a vector, among the people who reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from scipy.special import ndtri

from dovetail.core.checks import probability, real, rectangular, refuse
from dovetail.core.display import Display, displayed_by
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.estimate import Estimate, Estimator, Tally, Values
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.estimate.frequency import need_numbers
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.sampling.coins import chunks
from dovetail.randomize.sampling.vector_randomizer import VectorRandomizer

# What a report stands for once it is clamped to the range: unbiased for every function of the value.
#
# Laplace noise has no memory. Given that y = i + d is at or below the lower end of the grid, its distance beyond the
# end is geometric whatever i is; so E[y | clamp(y)] is a known number, unbiased for i, and by Rao-Blackwell of
# smaller variance than y. This holds for reports that the device has clamped and for reports that the analyst clamps.


Steps = NDArray[np.int64]  # (n,), grid steps

MOST_STEPS = 1 << 20  # of a histogram of reports


@final
@dataclass(frozen=True)
class ClampedGrid:
    r"""Geometric noise on the grid 0..m, reports clamped to it.

    .. math:: \Pr[z \mid i] = \Pr[\min(\max(i + d, 0), m) = z], \qquad
              \Pr[d] = \frac{1 - t}{1 + t} t^{|d|}, \qquad o = \frac{t}{1 - t}

    Parameters
    ----------
    steps : int, m, at least 1
    step : float, width of a grid step
    overshoot : float, o
        Mean distance, in steps, of y from the end of the grid that it was clamped to; its variance is o (o + 1),
        half the variance of the noise.
    rounded : float
        Variance, in squared steps, that rounding a value to one of its neighbours at random adds at most.
    """

    steps: int
    step: float
    overshoot: float
    rounded: float = 0.0

    @classmethod
    def of(cls, randomizer: NumericRandomizer) -> Self:
        """The grid and the noise of a randomizer with geometric noise."""
        need_numbers(randomizer, instead="estimate_frequencies")
        if not randomizer.memoryless:
            raise UnsupportedError(
                f"Reports of {randomizer.label} tell the mean and the sum only: this needs geometric noise; collect "
                "with laplace, or the shares of ranges with a frequency randomizer."
            )
        step = randomizer.step
        rounded = 0.25 if randomizer.rounding == 0.0 else 0.0
        return cls(round((randomizer.upper - randomizer.lower) / step), step, randomizer.overshoot, rounded)

    @property
    def half(self) -> float:
        """o (o + 1), variance of y at an edge: half that of the noise, in squared steps."""
        return self.overshoot * (self.overshoot + 1.0)

    def unbiased(self, function: ArrayLike) -> Values:
        r"""h (m + 1,) with E[h(z) | i] = f(i) for every grid point i; `function` is f at 0..m, along the last axis.

        .. math:: h(z) = f(z) - o (o + 1) \bigl(f(z + 1) - 2 f(z) + f(z - 1)\bigr), \quad 0 < z < m, \qquad
                  h(0) = f(0) - o (f(1) - f(0)), \qquad h(m) = f(m) + o (f(m) - f(m - 1))

        Proof: the noise is the inverse of the operator 1 - o (o + 1) (S - 2 + 1/S), S the shift, as applying it to
        t^|d| shows. Continue f linearly beyond the ends: the operator applied there is f itself. So
        g(y) = h(y) inside and g(y) = f(0) - |y| (f(1) - f(0)) for y <= 0 has E[g(i + d)] = f(i); and E[g(y) | y <= 0]
        is h(0) for every i >= 0, because |y| is then geometric with mean o. The same at m.

        Examples
        --------
        The value itself: at the edges E[y | clamp(y)], inside y.

        >>> ClampedGrid(steps=4, step=1.0, overshoot=2.5).unbiased([0, 1, 2, 3, 4]).tolist()
        [-2.5, 1.0, 2.0, 3.0, 6.5]
        """
        f = np.asarray(function, dtype=np.float64)
        h = f.copy()
        h[..., 1:-1] -= self.half * np.diff(f, n=2, axis=-1)
        h[..., 0] -= self.overshoot * (f[..., 1] - f[..., 0])
        h[..., -1] += self.overshoot * (f[..., -1] - f[..., -2])
        return h

    def histogram(self, steps: Steps) -> NDArray[np.int64]:
        """Count the reports (m + 1,) of each kind, once clamped: an order-free tally that adds."""
        if self.steps > MOST_STEPS:
            raise UnsupportedError(
                f"A histogram of reports needs at most {MOST_STEPS:,} grid steps, this grid has {self.steps:,}. "
                "Use a coarser grid: the noise hides the difference."
            )
        return np.bincount(self.clamp(steps), minlength=self.steps + 1)

    def clamp(self, steps: Steps) -> Steps:
        """Reports moved to the nearest point of the grid."""
        return np.clip(steps, 0, self.steps)


def whole_steps(randomizer: NumericRandomizer, reports: ArrayLike) -> Steps:
    """`reports` (n,) as grid steps that `randomizer` may send; DataError otherwise."""
    array = rectangular("reports", reports)
    if not isinstance(randomizer, NumericRandomizer):
        raise refuse("randomizer", "one of numbers", randomizer)
    if array.shape == (0,):
        return np.empty(0, dtype=np.int64)  # an empty list has no type
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise DataError(
            f"`reports` must be whole grid steps, one-dimensional and signed, got {array.dtype} {array.shape}."
        )
    steps = array.astype(np.int64, copy=False)
    ends = np.array([steps.min(), steps.max()]) if steps.size else steps
    if not np.isfinite(randomizer.log_density(ends, randomizer.lower)).all():
        raise DataError(
            f"`reports` must be what {randomizer.label} sends, got steps from {ends[0]:,} to {ends[1]:,}."
        )
    return steps


@final
@dataclass(frozen=True)
class MeanEstimator(Estimator):
    r"""The mean of what the reports stand for once clamped to the range (Rao-Blackwell).

    .. math:: \hat\mu = \frac1n \sum_i r(z_i), \quad r(z) = \mathbb E[y \mid \mathrm{clamp}(y) = z], \qquad
              \mathrm{se}^2 = \frac{\sigma^2}{n} \Bigl(1 - \frac{e}{2 n}\Bigr) + \frac{h^2}{4 n}, \qquad
              \mathrm{pe}^2 = \max\Bigl(\mathrm{se}^2,\ \frac{s^2}{n}\Bigr)

    sigma^2 is the variance of the noise alone, e the number of reports at or beyond an edge, s^2 the sample variance
    of r(z), h the step of a grid that values are rounded to at random: exactly unbiased, and too large an error where
    values lie on the grid and the noise is less than a step. Where values are rounded to the nearest grid point h is
    0 and the bias bound is half a step. The variance is at most that of the plain mean of unclamped reports, and down
    to half of it where the noise is wide: use this for clamped and for unclamped reports alike. The estimate may lie
    outside the range.

    Parameters
    ----------
    randomizer : NumericRandomizer with geometric noise

    Notes
    -----
    se^2 is unbiased but for h: y varies by o (o + 1) = sigma^2 / 2 given a clamped report, and not at all given
    another, so Var[r(z) | i] = sigma^2 (1 - Pr[edge | i] / 2). No report moves the estimate by more than the range
    and 2 o steps over n. A tally is (sum, sum of squares, how many at the lower edge, how many at the upper edge) of
    the clamped reports, as exact Python integers: it cannot overflow and does not depend on the order. `solve` takes
    tallies with leading axes: counts (.., 4) of n (..) reports.

    Where the noise is not geometric, such as that of `Window`, reports are not clamped and r is `decode`, which is
    affine; sigma^2 is then `noise_of_mean`, an upper bound for the values of these people, and there are no edges.
    """

    randomizer: NumericRandomizer

    def tally(self, reports: Reports) -> Tally:
        steps = whole_steps(self.randomizer, reports)
        if not self.randomizer.memoryless:
            parts = [_exact_sums(steps[part], _most(steps)) for part in chunks(steps.size)]
            return Tally(sum(parts, start=np.zeros(4, dtype=object)) * [1, 1, 0, 0], steps.size)
        grid = ClampedGrid.of(self.randomizer)
        sums = [_exact_sums(grid.clamp(steps[part]), grid.steps) for part in chunks(steps.size)]
        return Tally(sum(sums, start=np.zeros(4, dtype=object)), steps.size)

    def solve(self, tally: Tally) -> Estimate:
        n = np.asarray(tally.n)
        if np.any(n < 1):
            raise DataError("there are no reports to estimate from: n must be at least 1.")
        if not self.randomizer.memoryless:
            return self._solve_affine(tally)
        grid, people = ClampedGrid.of(self.randomizer), n.astype(object)
        o, (total, squares, low, high) = grid.overshoot, np.moveaxis(tally.counts, -1, 0)
        mean = _real(total / people) + o * _real((high - low) / people)
        at_edges = _real((low + high) / people)
        noise = (grid.half * (2.0 - at_edges) + grid.rounded) / n
        # n sum r^2 - (sum r)^2 for r = z + o (high - low), in exact parts
        pairs = people * np.maximum(people - 1, 1)
        inside = _real((squares * people - total * total) / pairs)
        across = _real((grid.steps * people * high - total * (high - low)) / pairs)
        beyond = _real((people * (low + high) - (high - low) ** 2) / pairs)
        sample = inside + 2.0 * o * across + o**2 * beyond
        return Estimate(
            value=self.randomizer.lower + grid.step * mean,
            standard_error=grid.step * np.sqrt(noise),
            n=tally.n,
            population_error=grid.step * np.sqrt(np.maximum(noise, sample / n)),
            bias_bound=self.randomizer.rounding,
        )

    def _solve_affine(self, tally: Tally) -> Estimate:
        """`solve` where a report is decoded by itself and by an affine function."""
        n, randomizer = np.asarray(tally.n), self.randomizer
        people, total, squares = n.astype(object), tally.counts[..., 0], tally.counts[..., 1]
        zero, one = randomizer.decode(np.array([0, 1]))
        value = zero + (one - zero) * _real(total / people)
        spread = (one - zero) ** 2 * _real((squares * people - total * total) / (people * people))
        middle = (randomizer.lower + randomizer.upper) / 2.0
        noise = randomizer.noise_of_mean(spread + (value - middle) ** 2) / n
        sample = spread / np.maximum(n - 1, 1)
        return Estimate(
            value=value,
            standard_error=np.sqrt(noise),
            n=tally.n,
            population_error=np.sqrt(np.maximum(noise, sample)),
            bias_bound=randomizer.rounding,
        )


def estimate_mean(randomizer: NumericRandomizer, reports: Reports) -> Estimate:
    """Mean of the values of the people behind `reports`, with its standard error.

    Raises
    ------
    ParameterError
        For a randomizer of symbols, and for other objects.
    DataError
        For reports that are no whole grid steps, and for none at all.

    Examples
    --------
    Nobody at an edge: the plain mean of the reports (Example 4 of the paper on RASE, in tenths).

    >>> from dovetail.randomize.laplace import Laplace
    >>> laplace = Laplace(lower=0.0, upper=10.0, epsilon=5.0, grid=0.1)
    >>> float(estimate_mean(laplace, [95, 11, 84, 28, 32]).value)
    5.0

    Clamped to 10.0, a report stands for a value 1.95 higher: the noise has scale 2.

    >>> round(float(estimate_mean(laplace, [100]).value), 2)
    11.95
    """
    need_numbers(randomizer, instead="estimate_frequencies")
    estimator = MeanEstimator(randomizer)
    return estimator.solve(estimator.tally(reports))


def sample_mean(randomizer: NumericRandomizer, reports: Reports) -> Estimate:
    r"""The plain mean of the reports as they were sent (SE of the paper on RASE): biased where devices clamp.

    .. math:: \mathbb E[z] - x = \frac{o\, (t^{i} - t^{m - i})}{1 + t} \text{ steps}, \qquad
              |\text{bias}| \le \frac{o\, (1 - t^m)}{1 + t}

    For comparison with the paper; `estimate_mean` has no such bias. The bound, at the ends of the range, widens the
    intervals. The variance of a clamped report is at most that of the noise (clamping is 1-Lipschitz) and at most a
    quarter of the squared range (Popoviciu).

    Theorem 4 of the paper bounds the mean absolute error of one report, not of this mean.

    Source
    ------
    Wang, Tao, Zou, RASE, equation (11).
    """
    need_numbers(randomizer, instead="estimate_frequencies")
    if not randomizer.memoryless:
        return estimate_mean(randomizer, reports)
    grid, steps = ClampedGrid.of(randomizer), whole_steps(randomizer, reports)
    if steps.size < 1:
        raise DataError("there are no reports to estimate from: n must be at least 1.")
    noise, bias = randomizer.noise_variance, randomizer.rounding
    if isinstance(randomizer, BudgetLaplace) and randomizer.clamps:
        o = grid.overshoot  # t = o / (1 + o)
        noise = min(noise, (randomizer.upper - randomizer.lower) ** 2 / 4.0)
        bias += grid.step * o * (1.0 + o) / (1.0 + 2.0 * o) * -np.expm1(-randomizer.epsilon)  # t^m = e^-epsilon
    spread = steps.var(ddof=1) * grid.step**2 if steps.size > 1 else 0.0
    return Estimate(
        value=np.asarray(randomizer.lower + grid.step * steps.mean()),
        standard_error=np.asarray(np.sqrt(noise / steps.size)),
        n=steps.size,
        population_error=np.asarray(np.sqrt(max(noise, spread) / steps.size)),
        bias_bound=bias,
    )


def in_range(
    value: float, interval: tuple[float, float], span: tuple[float, float]
) -> tuple[float, tuple[float, float]]:
    r"""The nearest mean that the public range allows, and what it allows of an interval around an unbiased one.

    .. math:: \hat m = \min(\max(m, a), b), \qquad |\hat m - \mu| \le |m - \mu| \text{ for every } \mu \in [a, b]

    Where the interval holds nothing that is allowed, it is put around the projected mean: so it covers no less often,
    and never shrinks to a point. For unbiased noise the projection biases a mean near an end inwards by at most

    .. math:: E[X^+] = E|X| / 2 \le \mathrm{se} / 2

    Examples
    --------
    >>> in_range(-2.0, (-5.0, 1.0), (0.0, 10.0))
    (0.0, (0.0, 1.0))
    >>> in_range(-5.0, (-8.0, -2.0), (0.0, 10.0))
    (0.0, (0.0, 3.0))
    """
    lower, upper = span
    possible = min(max(value, lower), upper)
    low, high = interval
    if high <= lower or low >= upper:
        low, high = low - value + possible, high - value + possible
    return possible, (min(max(low, lower), upper), min(max(high, lower), upper))


def _real(exact: Any) -> NDArray[np.float64]:
    return np.asarray(exact, dtype=np.float64)


def _most(steps: Steps) -> int:
    return int(steps.max(initial=0))


def _exact_sums(steps: Steps, top: int) -> NDArray[Any]:
    """Sum, sum of squares, how many are 0 and `top`: in int64 where that cannot overflow."""
    exact: NDArray[Any] = steps if top * top * steps.size < 1 << 63 else steps.astype(object)
    edges = (steps == 0).sum(), (steps == top).sum()
    return np.array([int(part) for part in (exact.sum(), (exact * exact).sum(), *edges)], dtype=object)


# Sums, variances, counts above a threshold and quantiles from numeric reports.
#
# Everything comes from one order-free tally, the histogram of the clamped reports, and from one fact: the law of a
# clamped report has a tridiagonal inverse (`ClampedGrid.unbiased`), so the mean of any function of the grid point has
# an unbiased estimate. How useful it is depends on the function: the noise of a report enters with the curvature of
# f, nothing for straight lines, q = o (o + 1) for a jump. Jumps on fine grids drown, so choose a coarse grid for
# counts and quantiles.


Function = Callable[[Values], ArrayLike]


@final
@dataclass(frozen=True)
class FunctionEstimator(Estimator):
    r"""The mean of f(x) among the people who reported, f a straight line between grid points.

    .. math:: \hat f = \frac1n \sum_i h(z_i), \qquad \mathbb E[h(z) \mid x] = f(x), \qquad
              \mathrm{se}^2 = \frac{1}{n^2} \Bigl( \sum_i v(z_i) + \max |v| \Bigr), \qquad
              v = h^2 - \mathrm{unbiased}(f^2 - u)

    v(z) is unbiased for the variance of h(z) given the value on the grid, and for no less given one between two grid
    points, as u(i) is a quarter of the larger squared step of f beside i: rounding at random to neighbours f apart
    varies by at most that. Where values are rounded to the nearest grid point u is 0, and f is taken there. One
    report more, the most uncertain one, keeps the error above zero where few reports tell. f may be anything, but see
    the module on functions that jump.

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
        apart = np.pad(grid.rounded * np.diff(f) ** 2, 1)
        v = h**2 - grid.unbiased(f**2 - np.maximum(apart[1:], apart[:-1]))
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

    Exactly unbiased for values on the grid where errors are, since the first term is unbiased for the mean square
    around the estimated mean but for the noise of the latter. The bias bound is that of rounding: at random it adds
    at most h^2 with h half a step, to the nearest grid point it moves the estimate by h (range + h) at most. May be
    negative where the noise is wide.

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
    grid, half = ClampedGrid.of(randomizer), randomizer.rounding
    noise = mean.standard_error**2 - grid.rounded * grid.step**2 / mean.n
    bias = half * (randomizer.upper - randomizer.lower + half) + grid.rounded * grid.step**2
    return replace(around, value=around.value + noise, bias_bound=bias)


def estimate_count_above(randomizer: NumericRandomizer, reports: Reports, threshold: float) -> Estimate:
    r"""Number of people whose value is at least `threshold`.

    .. math:: h(z) = [z \ge c] + w_c [z = c] - w_{c-1} [z = c - 1], \qquad
              w_z = o\,(o + 1) \text{ inside}, \quad o \text{ at the edges}

    Unbiased for values on the grid; one between two grid points counts as either of them, by chance. The standard
    error is about s^(3/2) sqrt(n) with noise of s grid steps: choose a grid of few steps.

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
    (True, 33)
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
    at = -np.diff(tail, prepend=n, append=0.0)  # unbiased counts of people at each grid point
    single = weight * (weight + 1.0)
    variance = (single * counts)[1:] + (single * counts)[:-1] + np.maximum(single[1:], single[:-1])
    variance += grid.rounded * np.maximum(at[1:] + at[:-1], 0.0)  # who lies beside the cut was put on either side
    return 1.0 - tail / n, np.sqrt(variance) / n


def _check_reports(n: Any) -> None:
    if np.any(np.asarray(n) < 1):
        raise DataError("there are no reports to estimate from: n must be at least 1.")


# The mean of vectors.


@final
@dataclass(frozen=True)
class VectorEstimator(Estimator):
    """The mean (d,) of shortened vectors; its bias bounds that of each coordinate.

    Parameters
    ----------
    randomizer : VectorRandomizer
    """

    randomizer: VectorRandomizer

    def tally(self, reports: Reports) -> Tally:
        return Tally(self.randomizer.tally(self.randomizer.check_reports(reports)), len(reports))

    def solve(self, tally: Tally) -> Estimate:
        made, n = self.randomizer, int(tally.n)
        noise, drawn = made.coordinate_error(n), made.radius / np.sqrt(n)  # no coordinate is further from 0
        return Estimate(
            made.invert(tally.counts, n), np.full(made.d, noise), n, np.full(made.d, np.hypot(noise, drawn)),
            bias_bound=made.bias,
        )  # fmt: skip
