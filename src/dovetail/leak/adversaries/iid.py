"""Everybody's value is an independent draw from one prior; any randomizer, any gain."""

from __future__ import annotations

import math

import numpy as np

from dovetail.core.channel import Matrix
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals
from dovetail.leak.additive_leakage import NOTHING, ULP, Excess
from dovetail.leak.asymptotics import chernoff
from dovetail.leak.exact.histograms import MOST_SUMS, enumerate_gain, histograms, listable, window_gain
from dovetail.leak.monte_carlo import sampled_gain
from dovetail.leak.qif.arithmetic import in_powers

MOST_WINDOW = 10**9  # people: beyond, the window of three kinds of report takes minutes
SMALLEST = 1e-270  # an excess below is only known to be below
TINY = 1e-307


def iid_excess(joint: Matrix, *, n: int, rng: Entropy | None = None) -> Excess:
    r"""What n shuffled reports add to the expected gain on one person.

    .. math:: V_g - V_g(\pi) = E_{z \sim \mathrm{Mult}(n, q)} \left( \max_a \langle G_a - G_{a_0}, z / n \rangle
              \right)^+, \qquad G_{a v} = J_{a v} / q_v, \quad J = g \, \mathrm{diag}(\pi) \, R, \quad q = \pi R

    Every term is at least 0, so a tiny excess keeps its relative accuracy; a0 is the best action without reports.

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
    negligible beside the excess, however small that is down to 1e-270.

    Source
    ------
    Definition 2 of Jurado, Gonze, Alvim, Palamidessi (2023), CSF: given z, the target sent v with
    probability z_v / n.
    """
    edge, law, moved = _edges(joint)
    if edge.size == 0:
        return NOTHING
    kinds = law.size
    if n == 1:
        value = float((law * np.maximum(edge.max(axis=0), 0.0)).sum())
        return Excess.around(value, moved + 8.0 * ULP * max(1.0, float(edge.max())), "closed form")
    if kinds <= 3 and n <= MOST_WINDOW:
        return _widened(edge, law, n, moved)
    if listable(n, kinds, actions=len(edge)):
        return _with_rounding(enumerate_gain(edge, law, n) / n, moved, n, "enumerated")
    if rng is not None:
        return sampled_gain(edge, law, n=n, rng=rng)
    raise UnsupportedError(
        f"n = {n:,} people with {kinds} distinct kinds of report have {in_powers(histograms(n, kinds))} histograms, "
        f"to be compared for {len(edge):,} actions; at most {MOST_SUMS:.0e} comparisons are made, and two or three "
        f"kinds are summed up to n = {MOST_WINDOW:.0e}. Pass `rng` to sample, or a smaller n for an upper bound: "
        "vulnerability falls in n."
    )


def _edges(joint: Matrix) -> tuple[Matrix, Reals, float]:
    """Advantage (actions, kinds) of every useful action over the best prior one, and the law of the kinds.

    Kinds that say the same up to rounding are merged; the last number is how much that moved any advantage.
    """
    gains, law = joint[:-1], joint[-1]
    seen = law > 0.0
    gains, law = gains[:, seen], law[seen]
    best = int(np.argmax(gains.sum(axis=1)))
    edge = (gains - gains[best]) / law
    edge = np.unique(edge[edge.max(axis=1) > 0.0], axis=0)
    if edge.size == 0:
        return edge, law, 0.0
    _, kind = np.unique(np.round(edge / np.abs(edge).max(), 14), axis=1, return_inverse=True)
    kind = kind.ravel()
    merged: Reals = np.bincount(kind, weights=law).astype(np.float64)
    means = np.stack([np.bincount(kind, weights=law * row) / merged for row in edge])
    return means, merged, float(np.abs(edge - means[:, kind]).max())


def _widened(edge: Matrix, law: Reals, n: int, moved: float) -> Excess:
    """Cells below `least` are left out; it falls until they are negligible beside the sum."""
    cells, ceiling = float(histograms(n, law.size)) * float(edge.max()), chernoff(edge, law, n)
    if ceiling < SMALLEST:
        return Excess(0.0, 0.0, SMALLEST + moved, "exact sum")
    least = 1e-19 * ceiling / cells
    while True:
        least = max(least, TINY)
        inside, outside = window_gain(edge, law, n, least) / n, cells * least
        if outside <= 1e-16 * inside or least == TINY:
            return _with_rounding(inside, outside + moved, n, "exact sum")
        least = min(1e-17 * inside / cells, 1e-6 * least)


def _with_rounding(value: float, outside: float, n: int, method: str) -> Excess:
    # n q and z/n are rounded once: sqrt(n) z ulps at z standard deviations, and z^2 is about -2 log(value)
    depth = 1.0 - math.log(max(1e-300, min(1.0, value)))
    error = value * (2e-14 + 4.0 * ULP * math.sqrt(n * depth))
    return Excess(value, max(0.0, value - error - outside), value + error + outside, method)
