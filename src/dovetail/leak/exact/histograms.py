"""Sums over histograms of n reports: all of them, or the window that matters for two and three kinds."""

from __future__ import annotations

from math import comb

import numpy as np

from dovetail.core.channel import Matrix
from dovetail.core.numeric.special import Reals, binomial_log_pmf, binomial_pmf

MOST_SUMS = 400_000_000  # histograms times actions


def histogram_count(n: int, kinds: int) -> int:
    """Number of histograms of n reports of so many kinds.

    >>> histogram_count(100, 3)
    5151
    """
    return comb(n + kinds - 1, kinds - 1)


def is_enumerable(n: int, kinds: int, *, actions: int) -> bool:
    """Whether so many histograms and actions are few enough to go through one by one."""
    return histogram_count(n, kinds) * actions <= MOST_SUMS


def enumerate_histograms(advantage: Matrix, pmf: Reals, n: int) -> float:
    r"""Over every histogram.

    .. math:: \sum_z \mathrm{Mult}(z; n, q) \left( \max_a \langle H_a, z \rangle \right)^+

    Parameters
    ----------
    advantage : float array (actions, kinds), H
    pmf : float array (kinds,), q

    Examples
    --------
    >>> round(enumerate_histograms(np.array([[-1.0, 1.0]]), np.array([0.5, 0.5]), 2), 12)
    0.5
    """
    from dovetail.leak.exact.kernels import depth_first_sum

    tables = np.zeros((pmf.size - 1, n + 1, n + 1))
    count = np.arange(n + 1.0)
    for kind in range(pmf.size - 1):
        rest = float(pmf[kind + 1 :].sum())
        share, other = float(pmf[kind]) / (float(pmf[kind]) + rest), rest / (float(pmf[kind]) + rest)
        tables[kind] = binomial_pmf(count[None, :], count[:, None], share, other)
    return float(depth_first_sum(np.ascontiguousarray(advantage), tables, n))


def sum_window(advantage: Matrix, pmf: Reals, n: int, least: float) -> float:
    """The sum of `enumerate_histograms` over histograms of probability at least `least`; two or three kinds.

    Each row is walked outward from where it starts to count, so that most probabilities are products of short
    ratios, and a gain that sits in the far tail costs no more than one in the middle.
    """
    from dovetail.leak.exact.kernels import row_sums

    if pmf.size == 2:
        advantage, pmf = np.insert(advantage, 0, 0.0, axis=1), np.insert(pmf, 0, 0.0)
        first, heavy = np.zeros(1), np.ones(1)
    else:
        first, heavy = _rows(n, float(pmf[0]), float(pmf[1] + pmf[2]), least)
    share, other = float(pmf[1] / (pmf[1] + pmf[2])), float(pmf[2] / (pmf[1] + pmf[2]))
    rest = n - first
    # <H, z> = base + slope z_1, since z_2 = n - z_0 - z_1
    base = advantage[:, 0] * first[:, None] + advantage[:, 2] * rest[:, None]
    slope = np.ascontiguousarray(advantage[:, 1] - advantage[:, 2])
    total = 0.0
    for upward, start in ((True, _start(base, slope, rest, share, 1)), (False, _start(base, slope, rest, share, -1))):
        weight = heavy * binomial_pmf(start, rest, share, other)
        total += float(row_sums(base, slope, rest, start, weight, share / other, least, upward).sum())
    return total


def _start(base: Matrix, slope: Reals, rest: Reals, share: float, direction: int) -> Reals:
    """The first place of each row at or above its mode (or below it) that can gain; outside the row if none can."""
    mode = np.minimum(np.floor((rest + 1.0) * share), rest)
    helps = slope * direction > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(helps, direction * -base / slope, np.inf).min(axis=1)
    gains_at_mode = (base + slope * mode[:, None]).max(axis=1) > 0.0
    if direction > 0:
        return np.where(gains_at_mode, mode, np.minimum(np.maximum(mode, np.floor(turn)), rest + 1.0))
    return np.where(gains_at_mode, mode - 1.0, np.maximum(np.minimum(mode - 1.0, -np.floor(turn)), -1.0))


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
