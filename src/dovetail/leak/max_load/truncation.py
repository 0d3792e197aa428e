"""Which terms of the maximum load's double sum are kept, and a proved bound on what the others amount to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dovetail.core.numeric.special import Reals, bernstein_reach, binomial_survival
from dovetail.leak.max_load.dft_inversion import (
    aliasing_error,
    check_cost,
    node_count,
    node_weights,
    poisson_at_mean,
    poisson_mode_pmf,
    poisson_pmf,
)


class Tolerances(NamedTuple):
    """What each cut of the sum may cost, in balls; (i) .. (v) of the notes in `max_load_gap`."""

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
    """Which terms of the double sum are kept, and what the others can amount to."""

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
