"""Additive leakage of shuffled reports under an i.i.d. prior: any randomizer, any gain."""

from __future__ import annotations

import math

import numpy as np

from dovetail.core.channel import Matrix
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.numeric.special import Reals
from dovetail.leak.additive_leakage import NO_LEAKAGE, ULP, AdditiveLeakage
from dovetail.leak.asymptotics import chernoff_bound
from dovetail.leak.exact.histograms import MOST_SUMS, enumerate_histograms, histogram_count, is_enumerable, sum_window
from dovetail.leak.monte_carlo import monte_carlo_leakage
from dovetail.leak.qif.arithmetic import scientific

MOST_PEOPLE = 10**9  # beyond, the window of three kinds of report takes minutes
SMALLEST_LEAKAGE = 1e-270  # leakage below is only known to be below
SMALLEST_CELL = 1e-307


def iid_leakage(joint: Matrix, *, n: int, rng: Entropy | None = None) -> AdditiveLeakage:
    r"""What n shuffled reports add to the expected gain on one person.

    .. math:: V_g - V_g(\pi) = E_{z \sim \mathrm{Mult}(n, q)} \left( \max_a \langle G_a - G_{a_0}, z / n \rangle
              \right)^+, \qquad G_{a v} = J_{a v} / q_v, \quad J = g \, \mathrm{diag}(\pi) \, R, \quad q = \pi R

    Every term is at least 0, so tiny leakage keeps its relative accuracy; a0 is the best action without reports.

    Parameters
    ----------
    joint : float array (actions + 1, kinds of report)
        J, and q in its last row.
    n : int, at least 1
    rng : Entropy, optional
        Allows sampling where nothing exact is in reach.

    Raises
    ------
    UnsupportedError
        More than 4e8 histograms times actions with at least four kinds of report, and no `rng`.

    Notes
    -----
    Kinds of report that say the same are merged. One sum over a window for two kinds, two for three (1e6 people:
    about a second); otherwise all histograms are enumerated. The window widens until what lies outside is
    negligible beside the leakage, however small that is down to 1e-270.

    Source
    ------
    Definition 2 of Jurado, Gonze, Alvim, Palamidessi (2023), CSF: given z, the target sent v with
    probability z_v / n.
    """
    advantage, pmf, moved = _advantages(joint)
    if advantage.size == 0:
        return NO_LEAKAGE
    kinds = pmf.size
    if n == 1:
        value = float((pmf * np.maximum(advantage.max(axis=0), 0.0)).sum())
        return AdditiveLeakage.from_error(value, moved + 8.0 * ULP * max(1.0, float(advantage.max())), "closed form")
    if kinds <= 3 and n <= MOST_PEOPLE:
        return _sum_until_negligible(advantage, pmf, n, moved)
    if is_enumerable(n, kinds, actions=len(advantage)):
        return _with_rounding(enumerate_histograms(advantage, pmf, n) / n, moved, n, "enumerated")
    if rng is not None:
        return monte_carlo_leakage(advantage, pmf, n=n, rng=rng)
    raise UnsupportedError(
        f"Too many histograms to enumerate: n = {n:,} people with {kinds} distinct kinds of report have "
        f"{scientific(histogram_count(n, kinds))} histograms, times {len(advantage):,} actions; the limit is "
        f"{MOST_SUMS:.0e} (two or three kinds of report: n up to {MOST_PEOPLE:.0e}). Pass `rng` to sample, or a "
        "smaller n for an upper bound: vulnerability falls in n."
    )


def _advantages(joint: Matrix) -> tuple[Matrix, Reals, float]:
    """Advantage (actions, kinds) of every useful action over the best prior one, and the distribution of the kinds.

    Kinds that say the same up to rounding are merged; the last number is how much that moved any advantage.
    """
    gains, pmf = joint[:-1], joint[-1]
    seen = pmf > 0.0
    gains, pmf = gains[:, seen], pmf[seen]
    best = int(np.argmax(gains.sum(axis=1)))
    advantage = (gains - gains[best]) / pmf
    advantage = np.unique(advantage[advantage.max(axis=1) > 0.0], axis=0)
    if advantage.size == 0:
        return advantage, pmf, 0.0
    _, kind = np.unique(np.round(advantage / np.abs(advantage).max(), 14), axis=1, return_inverse=True)
    kind = kind.ravel()
    merged: Reals = np.bincount(kind, weights=pmf).astype(np.float64)
    means = np.stack([np.bincount(kind, weights=pmf * row) / merged for row in advantage])
    return means, merged, float(np.abs(advantage - means[:, kind]).max())


def _sum_until_negligible(advantage: Matrix, pmf: Reals, n: int, moved: float) -> AdditiveLeakage:
    """Cells below `least` are left out; it falls until they are negligible beside the sum."""
    cells, ceiling = float(histogram_count(n, pmf.size)) * float(advantage.max()), chernoff_bound(advantage, pmf, n)
    if ceiling < SMALLEST_LEAKAGE:
        return AdditiveLeakage(0.0, 0.0, SMALLEST_LEAKAGE + moved, "exact sum")
    least = 1e-19 * ceiling / cells
    while True:
        least = max(least, SMALLEST_CELL)
        inside, outside = sum_window(advantage, pmf, n, least) / n, cells * least
        if outside <= 1e-16 * inside or least == SMALLEST_CELL:
            return _with_rounding(inside, outside + moved, n, "exact sum")
        least = min(1e-17 * inside / cells, 1e-6 * least)


def _with_rounding(value: float, outside: float, n: int, method: str) -> AdditiveLeakage:
    # n q and z/n are rounded once: sqrt(n) z ulps at z standard deviations, and z^2 is about -2 log(value)
    depth = 1.0 - math.log(max(1e-300, min(1.0, value)))
    error = value * (2e-14 + 4.0 * ULP * math.sqrt(n * depth))
    return AdditiveLeakage(value, max(0.0, value - error - outside), value + error + outside, method)
