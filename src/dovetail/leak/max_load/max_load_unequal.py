r"""The fullest of unequal bins: shuffling alone under a skewed prior, and others who all hold the same value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.core.special import Reals, bernstein_reach, binomial_cdf, binomial_survival
from dovetail.leak.max_load.dft_inversion import (
    ROUNDING,
    Waves,
    afford,
    alias,
    log_without,
    nodes_for,
    point,
    poisson_law,
    poisson_peak,
    rotations,
    shapes,
    weights_of,
)
from dovetail.leak.max_load.max_load import ExcessLoad

TOL = 1e-18
CELLS = 1 << 17


@dataclass(frozen=True)
class Bins:
    """`count` bins that each receive a ball with chance `share`; a ball weighs `weight`."""

    count: int
    share: float
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class _Window:
    """One kind of bin: balls that matter lie in low .. high; spill[i] bounds Pr[some bin of the kind > low + i]."""

    bins: Bins
    mean: float
    low: int
    high: int
    below: float
    beyond: float


def heaviest(n: int, kinds: tuple[Bins, ...]) -> ExcessLoad:
    r"""Expected weight of the heaviest bin, n balls.

    .. math:: E \max_w a_w z_w = \int_0^\infty \left( 1 - \Pr[a_w z_w \le x \ \forall w] \right) dx

    with the probability read off products of Poisson partial sums, one factor per kind of bin, as for equal bins.

    Parameters
    ----------
    n : int, at least 2
    kinds : Bins; count times share must sum to 1

    Returns
    -------
    ExcessLoad
        Here the value is the whole expectation, not an excess.

    Examples
    --------
    >>> round(heaviest(3, (Bins(3, 1 / 3),)).value, 12)  # (3 * 3 + 18 * 2 + 6 * 1) / 27
    1.888888888889

    Source
    ------
    Poissonization as in `expected_excess`; used for Proposition 20 with a skewed prior, and by `alike_excess`.
    """
    windows = tuple(_window(n, bins) for bins in kinds)
    start = max(w.low * w.bins.weight for w in windows)
    stop = max(w.high * w.bins.weight for w in windows)
    steps = [np.arange(w.low, w.high + 1) * w.bins.weight for w in windows]
    places = np.unique(np.concatenate([*steps, [start, stop]]))
    places = places[(places >= start) & (places <= stop)]
    nodes, scale = nodes_for(n, TOL), point(n)
    kept, dropped = _kept(nodes, windows, scale)
    width = sum(w.high - w.low for w in windows) + len(windows) * places.size
    afford(f"The fullest of unequal bins with n = {n:,} balls", 30.0 * kept * width)
    chance = _sums(n, windows, places[:-1], np.arange(kept), nodes) / (nodes * scale)
    value = start + math.fsum((np.diff(places) * chance).tolist())
    length = stop - start
    cuts = (
        length * (alias(n, nodes) + dropped / (nodes * scale))
        + sum(w.beyond * (w.bins.weight + length) for w in windows)
        + start * min(w.below for w in windows if w.low * w.bins.weight == start)
    )
    return ExcessLoad(value, cuts + ROUNDING * value, "exact sum")


def _window(n: int, bins: Bins) -> _Window:
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
    return _Window(
        bins,
        mean,
        int(counts[low]),
        int(counts[high]),
        float(np.exp(log_below[low - 1])) if low else 0.0,
        float(above[high]) + TOL / n,
    )


def _kept(nodes: int, windows: tuple[_Window, ...], scale: float) -> tuple[int, float]:
    sines = np.sin(np.pi * np.arange(nodes // 2 + 1) / nodes)
    with np.errstate(divide="ignore"):
        log_bound = sum(
            (w.bins.count * np.minimum(0.0, math.log(poisson_peak(w.mean)) - np.log(sines)) for w in windows),
            np.zeros(sines.size),
        )
    kept = int(np.count_nonzero(log_bound >= math.log(TOL * scale)))
    return kept, 2.0 * float((weights_of(np.arange(kept, nodes // 2 + 1), nodes) * np.exp(log_bound[kept:])).sum())


def _sums(n: int, windows: tuple[_Window, ...], places: Reals, j: NDArray[np.int64], nodes: int) -> Reals:
    """N Pois(n; n) Pr[heaviest > x] for x in `places`."""
    total: Reals = np.zeros(places.size)
    step = max(1, CELLS // max(places.size, *(w.high - w.low + 1 for w in windows)))
    for begin in range(0, j.size, step):
        part = j[begin : begin + step]
        theta = 2.0 * np.pi * part / nodes
        full: Waves = np.zeros((part.size, 1), dtype=np.complex128)
        rest: Waves = np.zeros((part.size, places.size), dtype=np.complex128)
        for w in windows:
            exponent = w.mean * shapes(theta)[:, None]
            full += w.bins.count * exponent
            rest += w.bins.count * log_without(exponent, _missing(theta, w, places))
        total += weights_of(part, nodes) @ (np.exp(full) - np.exp(rest)).real
    return total


def _missing(theta: Reals, w: _Window, places: Reals) -> Waves:
    """t_m: the Poisson terms of counts above x / weight, for every x."""
    law = poisson_law(w.mean, w.low + 1, max(w.low + 1, w.high))
    turns = rotations(theta, w.low + 1 - w.mean, law.size) * law
    tails = np.cumsum(turns[:, ::-1], axis=1)[:, ::-1]
    tails = np.concatenate([tails, np.zeros((theta.size, 1))], axis=1)
    grid = np.arange(w.low, w.low + law.size + 1) * w.bins.weight
    index = np.searchsorted(grid, places, side="right") - 1  # floor(x / weight) - low, exactly as the grid rounds
    return np.asarray(tails[:, np.clip(index, 0, law.size)])
