r"""An adversary who knows the values of some or all others."""

from __future__ import annotations

import math

import numpy as np

from dovetail.core.channel import KRRChannel, Matrix
from dovetail.core.special import Reals, bernstein_reach, binomial_pmf
from dovetail.leak.additive_leakage import NOTHING, ULP, Excess
from dovetail.leak.exact.histogram_law import Group, histogram_law
from dovetail.leak.max_load.max_load_unequal import Bins, heaviest

SHORT = 10_000_000  # products of a convolution that is summed term by term


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
        When the window of T is too large: about n = 1e5 at three kinds, 500 at four, 50 at five.

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
    # an error of the law costs at most its sum of absolute values times this
    scale = float(np.abs(edge).max(axis=0).sum())
    # the transform leaves about an ulp of the largest cell in each cell, and phases of n reports are good to n ulps:
    # by Parseval the law is off by that share of its root sum of squares, spread over all cells
    people, size = sum(group.count for group in others), window.chances.size
    spread = math.sqrt(size * float((window.chances**2).sum()))
    rounding = scale * ULP * (8.0 + math.sqrt(size) + people * spread) + 1e-13 * total
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
    if not groups:
        return Excess.around(0.5 * abs(contrast), ULP, "exact sum")
    mode = math.floor(sum(group.count * float(group.law[0]) for group in groups))
    last, (low, law, wrong) = groups[-1], _coins(groups[:-1])
    rest = mode + 1 - low - np.arange(law.size + 1)
    chances = binomial_pmf(rest, last.count, float(last.law[0]), float(last.law[1]))
    peak = max(float((law * chances[:-1]).sum()), float((law * chances[1:]).sum()))
    error = wrong * math.sqrt(float((chances**2).sum()))  # Cauchy-Schwarz
    people = sum(group.count for group in groups)
    error += peak * (2e-14 + 4.0 * ULP * math.sqrt(people))
    return Excess.around(0.5 * abs(contrast) * peak, 0.5 * abs(contrast) * error, "exact sum")


def _coins(groups: list[Group]) -> tuple[int, Reals, float]:
    """Law of the sum of at most two binomial counts: its start, its chances, root sum of squares of their errors."""
    from scipy.fft import irfft, next_fast_len, rfft

    if not groups:
        return 0, np.ones(1), 0.0
    windows = [_binomial(group) for group in groups]
    start, law = windows[0]
    if len(windows) == 1:
        return start, law, 0.0
    second, part = windows[1]
    if law.size * part.size <= SHORT:
        return start + second, np.convolve(law, part), 0.0
    size = next_fast_len(law.size + part.size - 1, real=True)
    both = np.maximum(irfft(rfft(law, size) * rfft(part, size), size)[: law.size + part.size - 1], 0.0)
    wrong = 2.0 * ULP * math.log2(size) * math.sqrt(float((law**2).sum() + (part**2).sum()))
    return start + second, both, wrong


def _binomial(group: Group) -> tuple[int, Reals]:
    """Window of a binomial law that misses less than 1e-18: where it starts, and its chances."""
    share, other = float(group.law[0]), float(group.law[1])
    reach = bernstein_reach(group.count * share * other, math.log(2e18))
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
