"""The bootstrap: how far the mean of the reports would move, had other people like these reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.checks import floats, probability, whole
from dovetail.core.display.display import mute
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate, Values
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.estimate.mean import estimate_mean
from dovetail.estimate.rao_blackwell import ClampedGrid, Steps, whole_steps

MOST_RESAMPLES = 10**6
_CELLS = 1 << 22  # weights held at a time, 32 MiB


@mute
@final
@dataclass(frozen=True, eq=False)
class BootstrapMean:
    """Means of the resamples, and the average they are taken for.

    Parameters
    ----------
    estimate : Estimate
        The average of the resample means, with the standard errors of the mean and the noise of resampling.
    means : float array (resamples,)
    """

    estimate: Estimate
    means: Values

    def population_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Percentile interval at `level` for the population the people are drawn from, widened by the bias bound.

        For exactly these people it is too wide: use `estimate.interval`.
        """
        tail = (1.0 - probability("level", level)) / 2.0
        low, high = np.quantile(self.means, [tail, 1.0 - tail])
        return float(low - self.estimate.bias_bound), float(high + self.estimate.bias_bound)


def bootstrap_mean(
    randomizer: NumericRandomizer, reports: Reports, *, resamples: int = 1000, rng: Entropy | None = None
) -> BootstrapMean:
    r"""Average of B resample means, each of n reports drawn with replacement (BS of the paper on RASE).

    .. math:: \hat\mu = \frac1B \sum_b \frac1n \sum_i \tilde z^b_i, \qquad
              \mathrm{se}^2 = \mathrm{se}^2(\bar z) + \frac{s^2}{n B}

    The expectation is that of the mean: the average adds noise and no accuracy. Its use is the interval, which
    assumes no law. Reports are first clamped and replaced by what they stand for, as in `estimate_mean`.

    Parameters
    ----------
    resamples : int, 2 .. 1e6
        B; about 1000 for an interval.

    Raises
    ------
    ParameterError
        For a randomizer of symbols, and for fewer than 2 resamples.
    DataError
        For reports that are no whole grid steps, and for none at all.

    Notes
    -----
    Resampling draws how often each distinct report occurs (multinomial): O(B min(n, m)) and free of the order.
    Resampling protects nobody, so NumPy draws it, seeded by one word of `rng`.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.laplace import Laplace
    >>> laplace = Laplace(lower=0.0, upper=10.0, epsilon=5.0)
    >>> reports = laplace.randomize([2.0] * 500 + [4.0] * 500, rng=simulation(1))
    >>> result = bootstrap_mean(laplace, reports, rng=simulation(2))
    >>> low, high = result.population_interval()
    >>> low < 3.0 < high, round(high - low, 1)
    (True, 0.4)
    """
    rng = entropy_or_system(rng)
    many = whole("resamples", resamples, least=2, most=MOST_RESAMPLES)
    steps = whole_steps(randomizer, reports)
    mean = estimate_mean(randomizer, steps)
    stands, counts = _what_they_stand_for(randomizer, steps)
    generator = np.random.Generator(np.random.PCG64(int(rng.words(1)[0])))
    rows = max(1, _CELLS // stands.size)
    sizes = [min(rows, many - start) for start in range(0, many, rows)]
    sums = [generator.multinomial(steps.size, counts / steps.size, size=size) @ stands for size in sizes]
    means = np.concatenate(sums) / steps.size
    extra = means.var(ddof=1) / many
    estimate = Estimate(
        value=np.asarray(means.mean()),
        standard_error=np.sqrt(mean.standard_error**2 + extra),
        n=steps.size,
        population_error=np.sqrt(mean.population_error**2 + extra),
        bias_bound=mean.bias_bound,
    )
    return BootstrapMean(estimate, means)


def _what_they_stand_for(randomizer: NumericRandomizer, steps: Steps) -> tuple[Values, Steps]:
    """The values that distinct reports stand for, as in `estimate_mean`, and how many there are of each."""
    if not randomizer.memoryless:
        sent, counts = np.unique(steps, return_counts=True)
        return randomizer.decode(sent), counts
    grid = ClampedGrid.of(randomizer)
    values, counts = np.unique(grid.clamp(steps), return_counts=True)
    stands = values + grid.overshoot * ((values == grid.steps) * 1.0 - (values == 0))
    return np.asarray(randomizer.lower + grid.step * stands), counts


def mean_of_resamples(resamples: ArrayLike) -> float:
    """Average of the means of given resamples (B, n): Example 4 of the paper on RASE.

    >>> round(mean_of_resamples([[1.1, 2.8, 1.1, 3.2, 2.8], [9.5, 2.8, 3.2, 3.2, 1.1]]), 2)
    3.08
    """
    table = floats("resamples", resamples)
    if table.ndim != 2 or table.size == 0:
        raise DataError(f"`resamples` must be finite numbers (B, n), got shape {table.shape}.")
    return float(table.mean(axis=1).mean())
