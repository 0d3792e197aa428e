"""The mean of a number among the people who reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.stages import Estimator, NumericRandomizer, Reports
from dovetail.randomize.chunk import chunks


@final
@dataclass(frozen=True)
class MeanEstimator(Estimator):
    r"""The mean of the decoded reports.

    .. math:: \hat\mu = \mathrm{decode}\Bigl(\frac1n \sum_i y_i\Bigr), \qquad
              \mathrm{se}^2 = \frac{\sigma^2}{n}, \qquad
              \mathrm{pe}^2 = \max\Bigl(\frac{\sigma^2}{n},\ \frac{s^2}{n}\Bigr)

    sigma^2 is the noise variance of one report, s^2 the sample variance of the reports. The bias bound is the
    deterministic rounding of values to the grid.

    Parameters
    ----------
    randomizer : NumericRandomizer
        Its reports are whole grid steps of width 2 `rounding`, and `decode` is affine.

    Notes
    -----
    A tally is (sum, sum of squares) of the reports as exact Python integers: it cannot overflow and does not depend
    on the order. `solve` takes tallies with leading axes: counts (.., 2) of n (..) reports.
    """

    randomizer: NumericRandomizer

    def tally(self, reports: Reports) -> Tally:
        steps = _whole_steps(reports)
        sums = [_exact_sums(steps[part]) for part in chunks(steps.size)]
        counts = np.array([sum(s for s, _ in sums), sum(q for _, q in sums)], dtype=object)
        return Tally(counts, steps.size)

    def solve(self, tally: Tally) -> Estimate:
        n = np.asarray(tally.n)
        if np.any(n < 1):
            raise DataError("there are no reports to estimate from: n must be at least 1.")
        total, squares, people = tally.counts[..., 0], tally.counts[..., 1], n.astype(object)
        mean = np.asarray(total / people, dtype=np.float64)
        pairs = np.maximum(people * (people - 1), 1)
        sample = np.asarray((squares * people - total * total) / pairs, dtype=np.float64)
        step = 2 * self.randomizer.rounding
        noise = np.full(n.shape, self.randomizer.noise_variance)
        return Estimate(
            value=self.randomizer.decode(mean),
            standard_error=np.sqrt(noise / n),
            n=tally.n,
            population_error=np.sqrt(np.maximum(noise, sample * step**2) / n),
            bias_bound=self.randomizer.rounding,
        )


def estimate_mean(randomizer: NumericRandomizer, reports: Reports) -> Estimate:
    """Mean of the values of the people behind `reports`, with its standard error.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.laplace import Laplace
    >>> laplace = Laplace(lower=0.0, upper=10.0, epsilon=5.0)
    >>> estimate = estimate_mean(laplace, laplace.randomize([2.0] * 500 + [4.0] * 500, rng=simulation(1)))
    >>> abs(float(estimate.value) - 3.0) < 0.2, round(float(estimate.standard_error), 3)
    (True, 0.089)
    """
    estimator = MeanEstimator(randomizer)
    return estimator.solve(estimator.tally(reports))


def _whole_steps(reports: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(reports)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise DataError(
            f"`reports` must be whole grid steps, one-dimensional and signed, got {array.dtype} {array.shape}."
        )
    return array.astype(np.int64, copy=False)


def _exact_sums(steps: NDArray[np.int64]) -> tuple[int, int]:
    """Sum and sum of squares, in int64 where that cannot overflow."""
    peak = max(-int(steps.min()), int(steps.max()))
    exact: NDArray[Any] = steps if peak * peak * steps.size < 1 << 63 else steps.astype(object)
    return int(exact.sum()), int((exact * exact).sum())
