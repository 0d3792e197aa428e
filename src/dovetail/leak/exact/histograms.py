"""Sums over histograms of n reports: all of them, or the window that matters for two and three kinds."""

from __future__ import annotations

from math import comb

import numpy as np
from numba import njit

from dovetail.core.channel import Matrix
from dovetail.core.special import Reals, binomial_log_pmf, binomial_pmf

MOST_SUMS = 400_000_000  # histograms times actions


def histograms(n: int, kinds: int) -> int:
    """Number of histograms of n reports of so many kinds.

    >>> histograms(100, 3)
    5151
    """
    return comb(n + kinds - 1, kinds - 1)


def listable(n: int, kinds: int, *, actions: int) -> bool:
    """Whether so many histograms and actions are few enough to go through one by one."""
    return histograms(n, kinds) * actions <= MOST_SUMS


def enumerate_gain(edge: Matrix, law: Reals, n: int) -> float:
    r"""Over every histogram.

    .. math:: \sum_z \mathrm{Mult}(z; n, q) \left( \max_a \langle H_a, z \rangle \right)^+

    Parameters
    ----------
    edge : float array (actions, kinds), H
    law : float array (kinds,), q

    Examples
    --------
    >>> round(enumerate_gain(np.array([[-1.0, 1.0]]), np.array([0.5, 0.5]), 2), 12)
    0.5
    """
    tables = np.zeros((law.size - 1, n + 1, n + 1))
    count = np.arange(n + 1.0)
    for kind in range(law.size - 1):
        rest = float(law[kind + 1 :].sum())
        share, other = float(law[kind]) / (float(law[kind]) + rest), rest / (float(law[kind]) + rest)
        tables[kind] = binomial_pmf(count[None, :], count[:, None], share, other)
    return float(_enumerate(np.ascontiguousarray(edge), tables, n))


@njit(cache=True, nogil=True)
def _enumerate(edge: Matrix, tables: Reals, n: int) -> float:
    """Depth first; tables[i, N, z]: chance that z of N reports that are of kinds i.. are of kind i."""
    actions, kinds = edge.shape
    last = kinds - 2
    count, left, weight = np.zeros(last + 1, np.int64), np.zeros(last + 1, np.int64), np.ones(last + 1)
    gain = np.zeros((last + 1, actions))
    left[0], count[0], level, total = n, -1, 0, 0.0
    while level >= 0:
        if level == last:
            row, balls = 0.0, left[level]
            for z in range(balls + 1):
                best = 0.0
                for a in range(actions):
                    value = gain[level, a] + edge[a, last] * z + edge[a, last + 1] * (balls - z)
                    best = max(best, value)
                row += tables[last, balls, z] * best
            total += weight[level] * row
            level -= 1
            continue
        count[level] += 1
        z = count[level]
        if z > left[level]:
            level -= 1
            continue
        weight[level + 1] = weight[level] * tables[level, left[level], z]
        left[level + 1] = left[level] - z
        for a in range(actions):
            gain[level + 1, a] = gain[level, a] + edge[a, level] * z
        level += 1
        count[level] = -1
    return total


def window_gain(edge: Matrix, law: Reals, n: int, least: float) -> float:
    """The sum of `enumerate_gain` over histograms of probability at least `least`; two or three kinds.

    Each row is walked outward from where it starts to count, so that most probabilities are products of short
    ratios, and a gain that sits in the far tail costs no more than one in the middle.
    """
    if law.size == 2:
        edge, law = np.insert(edge, 0, 0.0, axis=1), np.insert(law, 0, 0.0)
        first, heavy = np.zeros(1), np.ones(1)
    else:
        first, heavy = _rows(n, float(law[0]), float(law[1] + law[2]), least)
    share, other = float(law[1] / (law[1] + law[2])), float(law[2] / (law[1] + law[2]))
    rest = n - first
    # <H, z> = base + slope z_1, since z_2 = n - z_0 - z_1
    base = edge[:, 0] * first[:, None] + edge[:, 2] * rest[:, None]
    slope = np.ascontiguousarray(edge[:, 1] - edge[:, 2])
    total = 0.0
    for upward, start in ((True, _start(base, slope, rest, share, 1)), (False, _start(base, slope, rest, share, -1))):
        weight = heavy * binomial_pmf(start, rest, share, other)
        total += float(_walk(base, slope, rest, start, weight, share / other, least, upward).sum())
    return total


def _start(base: Matrix, slope: Reals, rest: Reals, share: float, direction: int) -> Reals:
    """The first place of each row at or above its mode (or below it) that can gain; outside the row if none can."""
    mode = np.minimum(np.floor((rest + 1.0) * share), rest)
    helps = slope * direction > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(helps, direction * -base / slope, np.inf).min(axis=1)
    early = (base + slope * mode[:, None]).max(axis=1) > 0.0
    if direction > 0:
        return np.where(early, mode, np.minimum(np.maximum(mode, np.floor(turn)), rest + 1.0))
    return np.where(early, mode - 1.0, np.maximum(np.minimum(mode - 1.0, -np.floor(turn)), -1.0))


def _rows(n: int, share: float, other: float, least: float) -> tuple[Reals, Reals]:
    """Counts of the first kind whose probability is at least `least`, with their probabilities."""
    mode, limit = min(n, int((n + 1) * share)), float(np.log(least))

    def end(direction: int, room: int) -> int:
        low, high = 0, room  # the probability falls away from the mode
        while low < high:
            middle = (low + high + 1) // 2
            inside = binomial_log_pmf(mode + direction * middle, n, share, other) >= limit
            low, high = (middle, high) if inside else (low, middle - 1)
        return mode + direction * low

    counts = np.arange(end(-1, mode), end(1, n - mode) + 1, dtype=np.float64)
    return counts, binomial_pmf(counts, n, share, other)


@njit(cache=True, nogil=True)
def _walk(
    base: Matrix, slope: Reals, rest: Reals, start: Reals, weight: Reals, odds: float, least: float, upward: bool
) -> Reals:
    """For each row the sum of weight (max_a base_a + slope_a z)^+ from its start on, while weight >= least."""
    sums = np.zeros(rest.size)
    for row in range(rest.size):
        balls, z, chance, total = rest[row], start[row], weight[row], 0.0
        while chance >= least and 0.0 <= z <= balls:
            best = 0.0
            for a in range(slope.size):
                best = max(best, base[row, a] + slope[a] * z)
            total += chance * best
            if upward:
                chance *= (balls - z) / (z + 1.0) * odds
                z += 1.0
            else:
                chance *= z / ((balls - z + 1.0) * odds)
                z -= 1.0
        sums[row] = total
    return sums
