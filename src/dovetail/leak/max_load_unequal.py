"""Maximum load of unequal bins: shuffling alone under a skewed prior, and others who all hold the same value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals, bernstein_reach, binomial_cdf, binomial_survival
from dovetail.leak.dft_inversion import (
    ROUNDING,
    Waves,
    aliasing_error,
    centred_poisson_log_cf,
    check_cost,
    log_subtract,
    node_count,
    node_weights,
    phase_factors,
    poisson_at_mean,
    poisson_mode_pmf,
    poisson_pmf,
)
from dovetail.leak.max_load import MOST_COMPILED_BINS, ExpectedLoad, max_load_gap, sum_few_bins

TOL = 1e-18
CELLS = 1 << 17


@dataclass(frozen=True)
class Bins:
    """`count` bins that each receive a ball with chance `share`; a ball weighs `weight`."""

    count: int
    share: float
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class _TruncatedBins:
    """One kind of bin: balls that matter lie in low .. high; spill[i] bounds Pr[some bin of the kind > low + i]."""

    bins: Bins
    mean: float
    low: int
    high: int
    below: float
    beyond: float


def max_load_unequal(n: int, kinds: tuple[Bins, ...]) -> ExpectedLoad:
    r"""Expected maximum weighted load of unequal bins, n balls.

    .. math:: E \max_w a_w z_w = \int_0^\infty \left( 1 - \Pr[a_w z_w \le x \ \forall w] \right) dx

    with the probability read off products of Poisson partial sums, one factor per kind of bin, as for equal bins.

    Parameters
    ----------
    n : int, at least 2
    kinds : Bins; count times share must sum to 1

    Returns
    -------
    ExcessLoad
        Here the value is the maximum load itself, not its gap to the average.

    Examples
    --------
    >>> round(max_load_unequal(3, (Bins(3, 1 / 3),)).value, 12)  # (3 * 3 + 18 * 2 + 6 * 1) / 27
    1.888888888889

    Source
    ------
    Poissonization as in `max_load_gap`; used for Proposition 20 with a skewed prior, and by
    `identical_others_leakage`.
    """
    windows = tuple(_truncate(n, bins) for bins in kinds)
    start = max(w.low * w.bins.weight for w in windows)
    stop = max(w.high * w.bins.weight for w in windows)
    steps = [np.arange(w.low, w.high + 1) * w.bins.weight for w in windows]
    levels = np.unique(np.concatenate([*steps, [start, stop]]))
    levels = levels[(levels >= start) & (levels <= stop)]
    nodes, scale = node_count(n, TOL), poisson_at_mean(n)
    kept, dropped = _kept_nodes(nodes, windows, scale)
    width = sum(w.high - w.low for w in windows) + len(windows) * levels.size
    check_cost(f"The maximum load of unequal bins with n = {n:,} balls", 30.0 * kept * width)
    chance = _sums(windows, levels[:-1], np.arange(kept), nodes) / (nodes * scale)
    value = start + math.fsum((np.diff(levels) * chance).tolist())
    length = stop - start
    cuts = (
        length * (aliasing_error(n, nodes) + dropped / (nodes * scale))
        + sum(w.beyond * (w.bins.weight + length) for w in windows)
        + start * min(w.below for w in windows if w.low * w.bins.weight == start)
    )
    return ExpectedLoad(value, cuts + ROUNDING * value, "exact sum")


def _truncate(n: int, bins: Bins) -> _TruncatedBins:
    mean, level = n * bins.share, math.log(1e25 * bins.count * n)
    reach = bernstein_reach(mean, level)
    counts = np.arange(max(0, math.floor(mean - reach)), min(n, math.ceil(mean + reach)) + 1, dtype=np.float64)
    above = np.cumsum((bins.count * binomial_survival(counts, n, bins.share))[::-1])[::-1]
    with np.errstate(divide="ignore"):
        log_below = bins.count * np.log(binomial_cdf(counts, n, bins.share))
    low = int(np.count_nonzero(log_below < math.log(TOL)))
    high = min(counts.size - 1, int(np.count_nonzero(above >= TOL / n)))
    low = min(low, high)
    # a count below `low` falls short with the chance at low - 1
    return _TruncatedBins(
        bins,
        mean,
        int(counts[low]),
        int(counts[high]),
        float(np.exp(log_below[low - 1])) if low else 0.0,
        float(above[high]) + TOL / n,
    )


def _kept_nodes(nodes: int, windows: tuple[_TruncatedBins, ...], scale: float) -> tuple[int, float]:
    sines = np.sin(np.pi * np.arange(nodes // 2 + 1) / nodes)
    with np.errstate(divide="ignore"):
        log_bound = sum(
            (w.bins.count * np.minimum(0.0, math.log(poisson_mode_pmf(w.mean)) - np.log(sines)) for w in windows),
            np.zeros(sines.size),
        )
    kept = int(np.count_nonzero(log_bound >= math.log(TOL * scale)))
    return kept, 2.0 * float((node_weights(np.arange(kept, nodes // 2 + 1), nodes) * np.exp(log_bound[kept:])).sum())


def _sums(windows: tuple[_TruncatedBins, ...], levels: Reals, j: NDArray[np.int64], nodes: int) -> Reals:
    """N Pois(n; n) Pr[max weighted load > x] for x in `levels`."""
    total: Reals = np.zeros(levels.size)
    step = max(1, CELLS // max(levels.size, *(w.high - w.low + 1 for w in windows)))
    for begin in range(0, j.size, step):
        part = j[begin : begin + step]
        theta = 2.0 * np.pi * part / nodes
        full: Waves = np.zeros((part.size, 1), dtype=np.complex128)
        rest: Waves = np.zeros((part.size, levels.size), dtype=np.complex128)
        for w in windows:
            exponent = w.mean * centred_poisson_log_cf(theta)[:, None]
            full += w.bins.count * exponent
            rest += w.bins.count * log_subtract(exponent, _poisson_tails(theta, w, levels))
        total += node_weights(part, nodes) @ (np.exp(full) - np.exp(rest)).real
    return total


def _poisson_tails(theta: Reals, w: _TruncatedBins, levels: Reals) -> Waves:
    """t_m: the Poisson terms of counts above x / weight, for every x."""
    pmf = poisson_pmf(w.mean, w.low + 1, max(w.low + 1, w.high))
    turns = phase_factors(theta, w.low + 1 - w.mean, pmf.size) * pmf
    tails = np.cumsum(turns[:, ::-1], axis=1)[:, ::-1]
    tails = np.concatenate([tails, np.zeros((theta.size, 1))], axis=1)
    grid = np.arange(w.low, w.low + pmf.size + 1) * w.bins.weight
    index = np.searchsorted(grid, levels, side="right") - 1  # floor(x / weight) - low, exactly as the grid rounds
    return np.asarray(tails[:, np.clip(index, 0, pmf.size)])


# Load of the t fullest of k bins beyond their share: several tries, and channels with p below 1/k.


Counts = NDArray[np.int64]  # (nodes,)

MOST_BINS = 64


def top_t_load_gap(n: int, k: int, t: int) -> ExpectedLoad:
    r"""Expected content of the t fullest of k equal bins with n balls, minus t n/k.

    .. math:: E \sum_{i \le t} z_{(i)} = \sum_{m \ge 0} E \min(t, J_m), \qquad J_m = \#\{w : z_w > m\}

    .. math:: \Pr[J_m = j] = \binom kj \frac{1}{N \, \mathrm{Pois}(n; n)} \sum_{\theta} \Re
              \left[ \psi_m(\theta)^{k - j} \, t_m(\theta)^j \right], \qquad t_m = \psi_\infty - \psi_m

    The t emptiest bins miss exactly what the k - t fullest have in excess.

    Parameters
    ----------
    n : int, at least 1
    k : int, at least 2
    t : int from 0 to k
        Beyond 64 bins at most 64.

    Raises
    ------
    UnsupportedError
        When t is above 64, or the sum too long.

    Notes
    -----
    t = 1 is `max_load_gap`. The cost grows with t; cuts as there, each proved.

    Examples
    --------
    >>> round(top_t_load_gap(2, 3, 2).value, 12)  # two balls always lie in the two fullest bins
    0.666666666667

    Source
    ------
    The posterior of w is s + (p - s) z_w / n, so t tries take the t largest counts; Poissonization as for one.
    """
    n, k = whole("n", n, least=1), whole("k", k, least=2)
    t = whole("t", t, least=0, most=k)
    if t in (0, k):
        return ExpectedLoad(0.0, 0.0, "closed form")
    if t == 1:
        return max_load_gap(n, k)
    if n <= t:
        return ExpectedLoad(n * (k - t) / k, 4e-16 * n, "closed form")
    if t > MOST_BINS:
        raise UnsupportedError(f"Top-t load too large to sum: t = {t:,} of {k:,} bins, the limit is {MOST_BINS}.")
    return _sum(n, k, t)


def _sum(n: int, k: int, t: int) -> ExpectedLoad:
    first, below = _first_level(n, k, t)
    counts, spill = _union_bound(n, k, first)
    last = first + int(np.count_nonzero(np.cumsum(spill[::-1])[::-1] >= TOL)) - 1
    count = last - first + 1
    end = min(counts.size - 1, count + int(np.count_nonzero(spill[count:] * t * count >= TOL)))
    nodes, scale = node_count(n, TOL), poisson_at_mean(n)
    kept, dropped = _kept_top_nodes(nodes, k, t, poisson_mode_pmf(n / k), scale)
    check_cost(f"The load of the {t} fullest of k = {k} bins with n = {n:,} balls", 10.0 * t * kept * max(1, end))
    pmf = poisson_pmf(n / k, first + 1, first + end)
    total = _nodes_sum(n, k, t, first, pmf, count, np.arange(kept), nodes)
    base = t * (k * first - n) / k
    cuts = (
        t * count * (aliasing_error(n, nodes) + dropped / (nodes * scale))
        + float(spill[count:].sum())
        + TOL
        + below
        + t * count * float(spill[end])
    )
    value = base + math.fsum(total.tolist()) / (nodes * scale)
    return ExpectedLoad(value, cuts + ROUNDING * (value + abs(base)), "exact sum")


def _first_level(n: int, k: int, t: int) -> tuple[int, float]:
    """First m to be summed, and what the m before it may miss when J_m >= t is taken for certain.

    J_m < t means that some k - t + 1 bins hold at most m; the counts are negatively associated.
    """
    choices = math.lgamma(k + 1) - math.lgamma(t) - math.lgamma(k - t + 2)
    root = math.isqrt(n // k + 1)
    low = max(0, n // k - 40 * root)  # the bound grows with m, and is e^-800 there
    m = np.arange(low, n // k + 2 + 12 * root, dtype=np.float64)
    with np.errstate(divide="ignore"):
        log_bound = choices + (k - t + 1) * np.log(binomial_cdf(m, n, 1.0 / k, (k - 1) / k))
    first = int(np.count_nonzero(log_bound < math.log(TOL / t)))
    return low + first, t * float(np.exp(log_bound[:first]).sum() + low * np.exp(log_bound[0]))


def _union_bound(n: int, k: int, first: int) -> tuple[Reals, Reals]:
    """m = first, .. and the union bound k Pr[Bin(n, 1/k) > m], until it is far below every tolerance."""
    level = math.log(1e25 * k)
    reach = bernstein_reach(n / k, level)
    counts = np.arange(first, max(first + 1, math.ceil(n / k + reach)) + 1, dtype=np.float64)
    return counts, k * binomial_survival(counts, n, 1.0 / k, (k - 1) / k)


def _kept_top_nodes(nodes: int, k: int, t: int, peak: float, scale: float) -> tuple[int, float]:
    """psi_m and t_m are both at most b = peak/sin(theta/2), so that the terms are at most t b^k + t (2b)^k."""
    sines = np.sin(np.pi * np.arange(nodes // 2 + 1) / nodes)
    with np.errstate(divide="ignore"):
        log_bound = math.log(2.0 * t) + k * np.minimum(0.0, math.log(2.0 * peak) - np.log(sines))
    kept = int(np.count_nonzero(log_bound >= math.log(TOL * scale)))
    return kept, float((node_weights(np.arange(kept, nodes // 2 + 1), nodes) * np.exp(log_bound[kept:])).sum()) / t


def _nodes_sum(n: int, k: int, t: int, first: int, pmf: Reals, count: int, j: Counts, nodes: int) -> Reals:
    theta, weights, offset = 2.0 * np.pi * j / nodes, node_weights(j, nodes), first + 1 - n / k
    exponent = n / k * centred_poisson_log_cf(theta)
    chosen = np.array([(t - i) * float(math.comb(k, i)) for i in range(t)])
    if k <= MOST_COMPILED_BINS:
        return sum_few_bins(theta, weights, exponent, pmf, offset, count, k, chosen)
    total: Reals = np.zeros(count)
    step = max(1, CELLS // pmf.size)
    for begin in range(0, j.size, step):
        part = slice(begin, begin + step)
        turns = phase_factors(theta[part], offset, pmf.size) * pmf
        missing = np.cumsum(turns[:, ::-1], axis=1)[:, ::-1][:, :count]
        total += weights[part] @ _terms(exponent[part, None], missing, k, chosen)
    return total


def _terms(exponent: Waves, missing: Waves, k: int, chosen: Reals) -> Reals:
    """Re[t psi^k - sum over j < t of (t - j) C(k, j) psi_m^(k-j) t_m^j]."""
    log_rest = log_subtract(exponent, missing)
    result = chosen[0] * np.exp(k * exponent).real + np.zeros(missing.shape)
    power: Waves = np.ones_like(missing)
    for j, factor in enumerate(chosen):
        result -= factor * (np.exp((k - j) * log_rest) * power).real
        power = power * missing
    return np.asarray(result)
