r"""Maximum load of unequal bins: shuffling alone under a skewed prior, and others who all hold the same value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.core.numeric.special import Reals, bernstein_reach, binomial_cdf, binomial_survival
from dovetail.leak.max_load.dft_inversion import (
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
from dovetail.leak.max_load.max_load import ExpectedLoad

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
    chance = _sums(n, windows, levels[:-1], np.arange(kept), nodes) / (nodes * scale)
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


def _sums(n: int, windows: tuple[_TruncatedBins, ...], levels: Reals, j: NDArray[np.int64], nodes: int) -> Reals:
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
