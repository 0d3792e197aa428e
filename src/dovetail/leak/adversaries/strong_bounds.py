"""Bounds for the strong adversary where no exact sum is in reach: privacy blanket above, merged outputs below."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from dovetail.core.channel import KRRChannel, Matrix
from dovetail.core.errors import UnsupportedError
from dovetail.core.numeric.special import binomial_cdf
from dovetail.leak.adversaries.known_others import known_others_leakage
from dovetail.leak.exact.poisson_multinomial import IndependentReports, cell_count
from dovetail.leak.max_load.max_load import max_load_gap

STEPS, MANY = 24, 100_000  # beyond MANY people one step is as tight to within three percent
CHEAP = 1_000_000  # cells


def blanket_upper_bound(channel: KRRChannel, *, n: int) -> float:
    r"""Upper bound on what shuffled reports add, whatever is known about the others; uniform target.

    .. math:: V - \frac1k \le (p - s) \, E_{b \sim \mathrm{Bin}(n - 1, k s)} \left( V_S(b + 1, k) - \frac1k \right)

    k-ary randomized response answers uniformly with probability k s and truthfully otherwise; even an adversary who
    is told which others answered truthfully, and what, is left with b uniform reports around the target's.

    Parameters
    ----------
    channel : KRRChannel, p at least 1/k
    n : int

    Raises
    ------
    UnsupportedError
        For p below 1/k: then k s > 1 and there is no such mixture.

    Notes
    -----
    V_S falls in b, so that each of at most 24 steps (one above 1e5 people) is counted at its left end: still an
    upper bound.

    Examples
    --------
    >>> round(blanket_upper_bound(KRRChannel.of(2, 0.75), n=1), 9)  # alone: p - 1/2
    0.25

    Source
    ------
    Further information never lowers vulnerability; the mixture is the privacy blanket of Balle, Bell, Gascon,
    Nissim (2019), CRYPTO.
    """
    if channel.keep < channel.lie:
        raise UnsupportedError("The bound for every knowledge needs p >= 1/k: below, k s > 1 is no probability.")
    covered = channel.k * channel.s
    spread = math.sqrt(n * covered * (1.0 - covered))
    low = max(0, math.floor((n - 1) * covered - 9.0 * spread))
    high = min(n - 1, math.ceil((n - 1) * covered + 9.0 * spread))
    steps = STEPS if n <= MANY else 1
    starts = np.unique(np.concatenate([[0], np.linspace(low, high, steps, endpoint=False).astype(np.int64)]))
    if high < 4 * STEPS:
        starts = np.arange(high + 1)
    cdf = np.concatenate([binomial_cdf(starts[1:] - 1, n - 1, covered, 1.0 - covered), [1.0]])
    mass = np.diff(np.concatenate([[0.0], cdf]))
    total = 0.0
    for start, chance in zip(starts, mass, strict=True):
        if chance > 0.0:
            load = max_load_gap(int(start) + 1, channel.k)
            total += chance * (load.value + load.error_bound) / (int(start) + 1)
    return float(channel.contrast * total * (1.0 + 1e-12))


def merged_outputs_lower_bound(joint: Matrix, others: list[IndependentReports], *, known: tuple[int, ...]) -> float:
    """Lower end: kinds of report are merged into two or three classes, which never raises vulnerability.

    The classes single out values that are known of different numbers of others; the best choice counts.
    """
    ranked = sorted({count: value for value, count in enumerate(known)}.values(), key=lambda value: known[value])
    singles = sorted({*ranked[:3], *ranked[-3:]})
    pairs = [set(pair) for pair in combinations(singles, 2)]
    best = 0.0
    for alone in [{value} for value in singles] + pairs:
        merge = _merge(joint.shape[1], sorted(alone))
        groups = [IndependentReports(group.count, group.pmf @ merge) for group in others]
        if len(alone) == 1 or cell_count(groups) <= CHEAP:
            best = max(best, known_others_leakage(joint @ merge, groups).lower)
    return best


def _merge(kinds: int, alone: list[int]) -> Matrix:
    """(kinds, classes): each value of `alone` is a class, the others are the last one."""
    merge = np.zeros((kinds, len(alone) + 1))
    merge[:, -1] = 1.0
    for place, value in enumerate(alone):
        merge[value] = 0.0
        merge[value, place] = 1.0
    return merge
