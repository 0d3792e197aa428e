"""The mean of a number among the people who reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate, Estimator, Tally
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.estimate.pairing import need_numbers
from dovetail.estimate.rao_blackwell import ClampedGrid, Steps, whole_steps
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.sampling.chunks import chunks


@final
@dataclass(frozen=True)
class MeanEstimator(Estimator):
    r"""The mean of what the reports stand for once clamped to the range (Rao-Blackwell).

    .. math:: \hat\mu = \frac1n \sum_i r(z_i), \quad r(z) = \mathbb E[y \mid \mathrm{clamp}(y) = z], \qquad
              \mathrm{se}^2 = \frac{\sigma^2}{n} \Bigl(1 - \frac{e}{2 n}\Bigr), \qquad
              \mathrm{pe}^2 = \max\Bigl(\mathrm{se}^2,\ \frac{s^2}{n}\Bigr)

    sigma^2 is the noise variance of one report, e the number of reports at or beyond an edge, s^2 the sample variance
    of r(z). Exactly unbiased for values on the grid; the bias bound is the deterministic rounding to it. The variance
    is at most that of the plain mean of unclamped reports, and down to half of it where the noise is wide: use this
    for clamped and for unclamped reports alike. The estimate may lie outside the range.

    Parameters
    ----------
    randomizer : NumericRandomizer with geometric noise

    Notes
    -----
    se^2 is unbiased: y varies by o (o + 1) = sigma^2 / 2 given a clamped report, and not at all given another, so
    Var[r(z) | x] = sigma^2 (1 - Pr[edge | x] / 2). No report moves the estimate by more than the range and 2 o steps
    over n. A tally is (sum, sum of squares, how many at the lower edge, how many at the upper edge) of the clamped
    reports, as exact Python integers: it cannot overflow and does not depend on the order. `solve` takes tallies
    with leading axes: counts (.., 4) of n (..) reports.

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
        noise = grid.half * (2.0 - at_edges) / n
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
        For a randomizer of symbols, and for what is none.
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
