"""Maximum load of n balls in k equal bins, less the average load: the number behind shuffled vulnerability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dovetail.core.checks import whole
from dovetail.core.compiled import COMPILED
from dovetail.core.special import Reals, bernstein_reach, binomial_survival, stirling_remainder
from dovetail.leak.dft_inversion import (
    ROUNDING,
    Waves,
    aliasing_error,
    centred_poisson_log_cf,
    check_cost,
    log1p,
    node_count,
    node_weights,
    phase_factors,
    poisson_at_mean,
    poisson_mode_pmf,
    poisson_pmf,
)

# The double sum of the maximum load for few bins: by numpy where it is short, else in a compiled loop.


SHORT = (
    1 << 20
)  # terms that numpy adds up in a tenth of a second; loading the compiled loop takes three times as long


def sum_few_bins(
    theta: Reals, weights: Reals, exponent: Waves, pmf: Reals, offset: float, count: int, k: int, terms: Reals
) -> Reals:
    """For every m: sum of weight Re[terms_0 psi_inf^k - sum_j terms_j psi_m^(k-j) t_m^j]; terms_0 alone: the maximum.

    Powers are products. Where there is no compiler, numpy adds up one piece of the nodes after the other.
    """
    if theta.size * pmf.size > SHORT and COMPILED:
        from dovetail.leak import kernels

        return np.asarray(kernels.sum_few_bins(theta, weights, exponent, pmf, offset, count, k, terms))
    total, size = np.zeros(count), max(1, SHORT // pmf.size)
    for piece in (slice(start, start + size) for start in range(0, theta.size, size)):
        total += _sum_arrays(theta[piece], weights[piece], exponent[piece], pmf, offset, count, k, terms)
    return total


def _sum_arrays(
    theta: Reals, weights: Reals, exponent: Waves, pmf: Reals, offset: float, count: int, k: int, terms: Reals
) -> Reals:
    turns = phase_factors(theta, offset, pmf.size) * pmf
    missing = np.cumsum(turns[:, ::-1], axis=1)[:, ::-1][:, :count]  # t_m = sum over i > m
    base = np.exp(exponent)[:, None] - missing
    mixed, other = np.full(missing.shape, terms[0], dtype=np.complex128), missing
    for term in terms[1:]:
        mixed, other = mixed * base + term * other, other * missing
    left = k - terms.size + 1
    while left:
        if left & 1:
            mixed = mixed * base
        base, left = base * base, left >> 1
    full = terms[0] * np.exp(k * exponent).real[:, None]
    return np.asarray((weights[:, None] * (full - mixed.real)).sum(axis=0))


# Which terms of the maximum load's double sum are kept, and a proved bound on what the others amount to.


class Tolerances(NamedTuple):
    """Cost that each cut of the sum may have, in balls; (i) .. (v) of the notes in `max_load_gap`."""

    nodes: float = 1e-18
    dropped: float = 1e-18
    beyond: float = 1e-18
    below: float = 1e-18
    window: float = 1e-18


TOLERANCES = Tolerances()
MANY = 1 << 27  # terms from which on fewer nodes are kept
SHORTENED = 1e-7  # of sqrt(n/k), about the gap itself: what nodes that are left out to save time may cost


@dataclass(frozen=True, eq=False)
class Truncation:
    """Terms of the double sum that are kept, and an upper bound on the others."""

    n: int
    k: int
    first: int  # m runs over first .. last
    last: int
    pmf: Reals  # Pois(i; n/k) for i = first + 1 .. first + distribution.size
    nodes: int  # N
    kept: int  # j = 0 .. kept - 1
    scale: float  # N Pois(n; n)
    error: float


def truncate_sum(n: int, k: int) -> Truncation:
    what = f"The exact maximum load of n = {n:,} balls in k = {k} bins"
    nodes, peak, scale = node_count(n, TOLERANCES.nodes), poisson_mode_pmf(n / k), poisson_at_mean(n)
    bounds = _node_bounds(nodes, k, peak)
    kept, dropped = _kept_nodes(bounds, scale)
    check_cost(what, kept * 4.0 * math.sqrt(n * (k - 1)) / k)  # the window is wider still
    start, tail = -(-n // k), _binomial_tail(n, k)
    spill = k * tail  # for m = start, start + 1, ..: at least Pr[max > m]
    never = k * np.log1p(-np.minimum(tail, 1.0))  # log of a bound on Pr[max <= m]
    first = start + int(np.count_nonzero(never < math.log(TOLERANCES.below)))
    left = np.cumsum(spill[::-1])[::-1]
    last = start + int(np.count_nonzero(left >= TOLERANCES.beyond)) - 1
    count = max(0, last - first + 1)
    end = max(first, last, start + int(np.count_nonzero(spill * max(count, 1) >= TOLERANCES.window))) + 1
    check_cost(what, kept * float(end - first))
    pmf = poisson_pmf(n / k, first + 1, end)
    if kept * pmf.size > MANY:
        allowed = SHORTENED * math.sqrt(n / k) * nodes * scale / max(1, count)
        kept, dropped = _shortened(bounds, kept, most=MANY // pmf.size, allowed=allowed)
    cuts = (
        count * (aliasing_error(n, nodes) + dropped / (nodes * scale))  # (i), (ii)
        + _tail_at(left, last + 1 - start)  # (iii)
        + float(np.exp(never[: first - start]).sum())  # (iv)
        + count * _tail_at(spill, end - start)  # (v)
    )
    return Truncation(n, k, first, last, pmf, nodes, kept, nodes * scale, cuts)


def _tail_at(tail: Reals, place: int) -> float:
    """A falling bound, also beyond where it was evaluated: there it is below every tolerance."""
    return float(tail[place]) if place < tail.size else 1e-18


def _binomial_tail(n: int, k: int) -> Reals:
    """Pr[Bin(n, 1/k) > m] for m = ceil(n/k), .. until it is far below every tolerance."""
    level = math.log(1e25 * k)
    reach = bernstein_reach(n / k, level)
    start = -(-n // k)
    counts = np.arange(start, min(n, start + math.ceil(reach)) + 1, dtype=np.float64)
    return binomial_survival(counts, n, 1.0 / k, (k - 1) / k)


def _node_bounds(nodes: int, k: int, peak: float) -> tuple[Reals, Reals]:
    """For nodes j = 0 .. N/2: log of a bound on each power there, which falls in j, and how often j counts."""
    j = np.arange(nodes // 2 + 1)
    with np.errstate(divide="ignore"):
        return k * (math.log(peak) - np.log(np.sin(np.pi * j / nodes))), node_weights(j, nodes)


def _kept_nodes(bounds: tuple[Reals, Reals], scale: float) -> tuple[int, float]:
    """(ii): nodes j = 0 .. kept - 1 are summed; the others count at most `dropped`, times 1/(N Pois(n; n))."""
    log_bound, weights = bounds
    kept = int(np.count_nonzero((log_bound >= math.log(TOLERANCES.dropped * scale)) | (log_bound >= 0.0)))
    return kept, 2.0 * float((weights[kept:] * np.exp(log_bound[kept:])).sum())


def _shortened(bounds: tuple[Reals, Reals], kept: int, *, most: int, allowed: float) -> tuple[int, float]:
    """Fewer nodes, `most` of them if what all others count is `allowed`: of few bins powers fall slowly in j."""
    log_bound, weights = bounds
    with np.errstate(over="ignore"):
        left = 2.0 * np.append(np.cumsum((weights * np.exp(log_bound))[::-1])[::-1], 0.0)  # from node j on
    kept = min(kept, max(most, int(np.count_nonzero(~(left <= allowed)))))
    return kept, float(left[kept])


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
