r"""An adversary who knows the values of some or all others."""

from __future__ import annotations

import math

import numpy as np

from dovetail.core.channel import KRRChannel, Matrix
from dovetail.core.special import Reals, binomial_pmf
from dovetail.leak.excess import NOTHING, Excess
from dovetail.leak.lattice import Group, histogram_law
from dovetail.leak.uneven import Bins, heaviest

ULP = 2.0**-52


def informed_excess(joint: Matrix, others: list[Group]) -> Excess:
    r"""What the shuffled reports add when the others' reports are independent draws of known laws.

    .. math:: V_g - V_g(\pi) = \sum_z \left( \max_a \sum_v H_{a v} \, T(z - e_v) \right)^+, \qquad
              H = g \, \mathrm{diag}(\pi) \, R - \text{its row of the best prior action}

    with T the law of the histogram of the others.

    Parameters
    ----------
    joint : float array (actions, kinds), g diag(pi) R
    others : groups of people with the law of one report each

    Raises
    ------
    UnsupportedError
        When the window of T is too large: about n = 1e5 at three kinds, 1e3 at four, 1e2 at five.

    Source
    ------
    Definition 2 of Jurado, Gonze, Alvim, Palamidessi (2023), CSF,
    on the (values, histograms) channel of the target.
    """
    edge = joint - joint[np.argmax(joint.sum(axis=1))]
    edge = edge[edge.max(axis=1) > 0.0]
    if edge.size == 0:
        return NOTHING
    window = histogram_law(others)
    # one cell of padding on each axis takes the target's own report
    law = np.pad(window.chances, [(1, 1)] * window.chances.ndim)
    total = math.fsum(_slab(edge, law, place) for place in range(1, law.shape[0]))
    scale = float(edge.max())
    # the transform leaves about an ulp of the largest cell in each cell
    # and phases of n reports that are good to n ulps
    people = sum(group.count for group in others)
    rounding = scale * ULP * (8.0 + math.sqrt(window.chances.size)) + (1e-13 + ULP * people) * total
    return Excess.around(total, rounding + 4.0 * scale * window.outside, "exact sum")


def _slab(edge: Matrix, law: Reals, place: int) -> float:
    """All histograms with one count of the first kind."""
    ends = tuple(slice(1, None) for _ in law.shape[1:])
    best: Reals = np.zeros([size - 1 for size in law.shape[1:]])
    shifted = [law[place - 1][ends]]
    for axis in range(1, law.ndim):
        back = tuple(slice(0, -1) if other == axis else slice(1, None) for other in range(1, law.ndim))
        shifted.append(law[place][back])
    shifted.append(law[place][ends])
    for row in edge:
        gain = sum(h * cell for h, cell in zip(row, shifted, strict=True))
        np.maximum(best, gain, out=best)
    return float(best.sum())


def binary_excess(contrast: float, others: list[Group]) -> Excess:
    r"""Two values, uniform target, any knowledge about each of the others.

    .. math:: V - \frac12 = \frac{|W_{00} - W_{10}|}{2} \max_t \Pr[T = t], \qquad T = \text{others' reports of } 0

    A sum of independent coins is unimodal with its mode beside its mean (Darroch): two sums of products.

    Parameters
    ----------
    contrast : float
        W_00 - W_10.
    others : at most three groups

    Source
    ------
    The two rows of the target's channel differ by |W_00 - W_10| times the total variation between T and T + 1,
    which is max T because a sum of independent coins is unimodal.
    """
    groups = [group for group in others if group.count]
    mean = sum(group.count * float(group.law[0]) for group in groups)
    peak = max(_chance(groups, math.floor(mean) + step) for step in (0, 1)) if groups else 1.0
    people = sum(group.count for group in groups)
    return Excess.around(
        0.5 * abs(contrast) * peak, 0.5 * peak * (2e-14 + 4.0 * ULP * math.sqrt(people)), "exact sum"
    )


def _chance(groups: list[Group], t: int) -> float:
    """Pr[T = t] for a sum of at most three binomial counts."""
    last, first = groups[-1], groups[:-1]
    low, law = 0, np.ones(1)
    for group in first:
        start, part = _binomial(group)
        law = np.convolve(law, part) if law.size > 1 else part
        low += start
    rest = t - (low + np.arange(law.size))
    return math.fsum((law * binomial_pmf(rest, last.count, float(last.law[0]), float(last.law[1]))).tolist())


def _binomial(group: Group) -> tuple[int, Reals]:
    """Window of a binomial law that misses less than 1e-18: where it starts, and its chances."""
    share, other = float(group.law[0]), float(group.law[1])
    level = math.log(2e18)
    reach = level / 3.0 + math.sqrt(level**2 / 9.0 + 2.0 * group.count * share * other * level)
    low = max(0, math.floor(group.count * share - reach))
    counts = np.arange(low, min(group.count, math.ceil(group.count * share + reach)) + 1)
    return low, binomial_pmf(counts, group.count, share, other)


def alike_excess(channel: KRRChannel, *, n: int) -> Excess:
    r"""All others hold one and the same known value; k-ary randomized response with p >= 1/k, uniform target.

    .. math:: V - \frac1k = \frac{p - s}{k} \left( \frac1n E \max_w \frac{z_w}{q_w} - 1 \right), \qquad
              z \sim \mathrm{Mult}(n, q), \quad q = (p, s, .., s)

    Source
    ------
    V = s + (p - s)/k sum_z max_w T(z - e_w), and here T(z - e_w) = Mult_n(z) z_w / (n q_w).
    """
    load = heaviest(n, (Bins(1, channel.p, 1.0 / channel.p), Bins(channel.k - 1, channel.s, 1.0 / channel.s)))
    factor = channel.contrast / channel.k
    return Excess.around(factor * max(0.0, load.value / n - 1.0), factor * load.error_bound / n, load.method)
