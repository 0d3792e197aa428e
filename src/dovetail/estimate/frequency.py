"""Shares of the symbols among the people who reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate, Estimator, Spread, Tally, Values
from dovetail.core.stages import FrequencyRandomizer, Reports
from dovetail.estimate.pairing import need_symbols
from dovetail.estimate.simplex import project_shares


@final
@dataclass(frozen=True)
class FrequencyEstimator(Estimator):
    r"""Unbiased shares by inverting the randomizer.

    .. math:: \hat f = \mathrm{invert}(\mathrm{tally} / n), \qquad
              \mathrm{se}^2 = V(\hat f) / n, \qquad
              \mathrm{pe}^2 = (V(\hat f) + \hat f (1 - \hat f)) / n

    V is the theoretical variance of one report for people with fixed values, taken at the nearest shares that sum to
    1: it does not vanish for symbols that nobody has. Intervals are score intervals, because V depends on the truth.
    Unbiased values may lie outside [0, 1]; where shares are needed, see `project_to_simplex`.

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
        shares = project_shares(value)
        variance = self.randomizer.variance(shares)
        each = n[..., None]
        return Estimate(
            value=value,
            standard_error=np.sqrt(variance / each),
            n=tally.n,
            population_error=np.sqrt((variance + shares * (1.0 - shares)) / each),
            spread=self._spread(shares, variance, each, tally.counts.shape[-1]),
        )

    def _spread(self, shares: Values, variance: Values, n: Any, width: int) -> Spread:
        """V is linear in a symbol's own share, with one slope for all symbols; so is the estimate in one count."""
        k = self.randomizer.k
        unit, other = np.eye(1, width)[0], np.eye(1, width, 1)[0]
        slope = float((self.randomizer.variance(np.eye(1, k)[0]) - self.randomizer.variance(np.zeros(k)))[0])
        step = float((self.randomizer.invert(unit, 1) - self.randomizer.invert(other, 1))[0])
        return Spread((variance - slope * shares) / n, slope / n, 0.0, abs(step) / (2.0 * n))


def estimate_frequencies(randomizer: FrequencyRandomizer, reports: Reports) -> Estimate:
    """Shares (k,) of the symbols among the people behind `reports`, with standard errors.

    Raises
    ------
    ParameterError
        For a randomizer of numbers, and for what is none.
    DataError
        For reports that this randomizer never makes, and for none at all.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> krr = KRR(k=2, epsilon=3.0)
    >>> estimate = estimate_frequencies(krr, krr.randomize([0] * 300 + [1] * 100, rng=simulation(1)))
    >>> estimate.value.round(2), estimate.standard_error.round(3)
    (array([0.74, 0.26]), array([0.012, 0.012]))
    """
    need_symbols(randomizer, instead="estimate_mean")
    estimator = FrequencyEstimator(randomizer)
    return estimator.solve(estimator.tally(reports))
