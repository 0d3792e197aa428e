r"""Maximum load of n balls in k equal bins, less the average load: the number behind shuffled vulnerability."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.core.checks import whole
from dovetail.core.numeric.special import Reals, stirling_remainder
from dovetail.leak.max_load.dft_inversion import (
    ROUNDING,
    Waves,
    centred_poisson_log_cf,
    log1p,
    node_weights,
    phase_factors,
)
from dovetail.leak.max_load.few_bins import sum_few_bins
from dovetail.leak.max_load.truncation import Truncation, truncate_sum

HALF_ROUNDING = 4e-15
MOST_BALLS = 10**12
CELLS = 1 << 18  # complex cells held at a time
MOST_COMPILED_BINS = 20  # up to here powers are products, in a compiled loop; k products cost k ulps


@dataclass(frozen=True)
class ExpectedLoad:
    """An expected load in balls, with a bound on its absolute error.

    Parameters
    ----------
    value, error_bound : float, at least 0
        `error_bound` holds the proved truncation errors plus an allowance of 2e-14 relative for rounding, which
        rests on measurement.
    method : str
        "closed form" (k = 2) or "exact sum".
    """

    value: float
    error_bound: float
    method: str


def max_load_gap(n: int, k: int) -> ExpectedLoad:
    r"""Expected maximum load of n balls in k equal bins, minus n/k.

    .. math:: M_n - \frac nk = \sum_{m \ge \lceil n/k \rceil} \Pr[\max > m] + \lceil n/k \rceil - \frac nk

    .. math:: \Pr[\max > m] = \frac{1}{N \, \mathrm{Pois}(n; n)} \sum_{j < N}
              \Re\left[ \psi_\infty(\theta_j)^k - \psi_m(\theta_j)^k \right], \quad \theta_j = 2 \pi j / N

    .. math:: \psi_m(\theta) = \sum_{i \le m} \mathrm{Pois}(i; n/k) \, e^{I \theta (i - n/k)}

    k independent Poisson counts, given their sum, are the balls; the sum over j reads off that sum. The gap is
    built without ever subtracting n/k from M_n, so its relative accuracy is kept where it is tiny.

    Parameters
    ----------
    n : int, at least 1
        Balls; with k = 2 up to 1e12, else as long as the cost below allows (1e9 for k >= 8).
    k : int, at least 2
        Bins; above 1e6 nothing was measured.

    Raises
    ------
    UnsupportedError
        When the sum has more than 6e9 terms (about twenty seconds): for k = 3 that is n above 1e8.

    Notes
    -----
    Five truncation errors are proved and enter `error_bound`: (i) N nodes instead of an integral, (ii) nodes where
    both powers are negligible, (iii) m beyond the last, (iv) m below the first counted as 1, (v) the end of the
    Poisson window. Rounding is not proved. From 1e8 terms on, as for k = 4 and n above 1e7, (ii) may cost up to 1e-7
    of the gap, and as much as the time of fewer terms allows: `error_bound` says how much.

    Examples
    --------
    >>> round(max_load_gap(3, 3).value, 12)  # (3 * 3 + 18 * 2 + 6 * 1) / 27 - 1
    0.888888888889

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), Analyzing the Shuffle Model through the Lens of QIF, CSF, equation 11;
    Poissonization and the trapezoidal rule for the coefficient.
    """
    balls, bins = whole("n", n, least=1, most=MOST_BALLS), whole("k", k, least=2)
    if bins == 2:
        value = balls * two_bins_gap(balls)
        return ExpectedLoad(value, HALF_ROUNDING * value, "closed form")
    if balls == 1:
        return ExpectedLoad((bins - 1) / bins, 2e-16, "closed form")
    truncation = truncate_sum(balls, bins)
    base = (bins * truncation.first - balls) / bins
    if truncation.last < truncation.first:
        return ExpectedLoad(base, truncation.error + ROUNDING * base, "exact sum")
    value = base + math.fsum(_sums(truncation).tolist()) / truncation.scale
    return ExpectedLoad(value, truncation.error + ROUNDING * value, "exact sum")


def two_bins_gap(n: int) -> float:
    r"""Expected maximum load of two bins over n balls, less 1/2.

    .. math:: \frac12 \binom{2m}{m} 4^{-m} = \frac{e^{d(2m) - 2 d(m)}}{2 \sqrt{\pi m}}, \qquad m = \lfloor n/2 \rfloor

    Relative error below 2e-15: a product up to m = 99, Stirling's remainder d beyond.

    >>> two_bins_gap(2)
    0.25
    """
    m = n // 2
    if m < 100:
        return 0.5 * math.prod((2 * i - 1) / (2 * i) for i in range(1, m + 1))
    remainder = float(stirling_remainder(2 * m) - 2.0 * stirling_remainder(m))
    return 0.5 * math.exp(remainder) / math.sqrt(math.pi * m)


def _sums(cut: Truncation) -> Reals:
    """For m = first .. last: the sum over kept nodes of weight Re[psi_inf^k - psi_m^k]."""
    j, mean, count = np.arange(cut.kept), cut.n / cut.k, cut.last - cut.first + 1
    theta, weights = 2.0 * np.pi * j / cut.nodes, node_weights(j, cut.nodes)
    exponent, offset = mean * centred_poisson_log_cf(theta), cut.first + 1 - mean
    if cut.k <= MOST_COMPILED_BINS:
        return sum_few_bins(theta, weights, exponent, cut.pmf, offset, count, cut.k, np.ones(1))
    total: Reals = np.zeros(count)
    step = max(1, CELLS // cut.pmf.size)
    for begin in range(0, cut.kept, step):
        part = slice(begin, begin + step)
        turns = phase_factors(theta[part], offset, cut.pmf.size)
        turns *= cut.pmf
        missing = np.cumsum(turns[:, ::-1], axis=1)[:, ::-1][:, :count]  # t_m = sum over i > m
        total += weights[part] @ _powers(exponent[part, None], missing, cut.k)
    return total


def _powers(exponent: Waves, missing: Waves, k: int) -> Reals:
    """Re[psi^k - (psi - t_m)^k] for psi = e^exponent, without cancellation where t_m is small."""
    whole_power, psi = np.exp(k * exponent), np.exp(exponent)
    share = np.divide(missing, psi, out=np.ones_like(missing), where=np.abs(missing) < 0.5 * np.abs(psi))
    small = np.abs(share) < 0.5
    near = -(whole_power * np.expm1(k * log1p(np.where(small, -share, 0.0)))).real
    with np.errstate(divide="ignore"):
        far = (whole_power - np.exp(k * np.log(np.where(small, 1.0, psi - missing)))).real
    return np.where(small, near, far)
