"""Shares of the symbols among the people who reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.stages import Estimator, FrequencyRandomizer, Reports


@final
@dataclass(frozen=True)
class FrequencyEstimator(Estimator):
    r"""Unbiased shares by inverting the randomizer.

    .. math:: \hat f = \mathrm{invert}(\mathrm{tally} / n), \qquad
              \mathrm{se}^2 = V(\hat f) / n, \qquad
              \mathrm{pe}^2 = (V(\hat f) + \hat f (1 - \hat f)) / n

    V is the theoretical variance of one report for people with fixed values, taken at the estimate clipped to
    [0, 1]: it does not vanish for symbols that nobody has. Unbiased values may lie outside [0, 1]; where shares are
    needed, see `project_to_simplex`.

    Parameters
    ----------
    randomizer : FrequencyRandomizer

    Notes
    -----
    `solve` takes tallies with leading axes: counts (.., width) of n (..) reports.
    """

    randomizer: FrequencyRandomizer

    def tally(self, reports: Reports) -> Tally:
        return Tally(self.randomizer.tally(reports), len(reports))

    def solve(self, tally: Tally) -> Estimate:
        n = np.asarray(tally.n)
        if np.any(n < 1):
            raise DataError("there are no reports to estimate from: n must be at least 1.")
        value = self.randomizer.invert(tally.counts, n)
        shares = np.clip(value, 0.0, 1.0)
        variance = self.randomizer.variance(shares)
        each = n[..., None]
        return Estimate(
            value=value,
            standard_error=np.sqrt(variance / each),
            n=tally.n,
            population_error=np.sqrt((variance + shares * (1.0 - shares)) / each),
        )


def estimate_frequencies(randomizer: FrequencyRandomizer, reports: Reports) -> Estimate:
    """Shares (k,) of the symbols among the people behind `reports`, with standard errors.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> krr = KRR(k=2, epsilon=3.0)
    >>> estimate = estimate_frequencies(krr, krr.randomize([0] * 300 + [1] * 100, rng=simulation(1)))
    >>> estimate.value.round(2), estimate.standard_error.round(3)
    (array([0.74, 0.26]), array([0.012, 0.012]))
    """
    estimator = FrequencyEstimator(randomizer)
    return estimator.solve(estimator.tally(reports))
