r"""Exact additive leakage beside other people whose values are known: the others' reports are independent draws."""

from __future__ import annotations

import math

import numpy as np

from dovetail.core.channel import KRRChannel, Matrix
from dovetail.core.numeric.special import Reals, bernstein_reach, binomial_pmf
from dovetail.leak.additive_leakage import NO_LEAKAGE, ULP, AdditiveLeakage
from dovetail.leak.exact.poisson_multinomial import IndependentReports, poisson_multinomial
from dovetail.leak.max_load.max_load_unequal import Bins, max_load_unequal

DIRECT_PRODUCTS = 10_000_000  # products of a convolution that is summed term by term


def known_others_leakage(joint: Matrix, others: list[IndependentReports]) -> AdditiveLeakage:
    r"""What the shuffled reports add when the others' reports are independent draws of known distributions.

    .. math:: V_g - V_g(\pi) = \sum_z \left( \max_a \sum_v H_{a v} \, T(z - e_v) \right)^+, \qquad
              H = g \, \mathrm{diag}(\pi) \, R - \text{its row of the best prior action}

    with T the distribution of the histogram of the others.

    Parameters
    ----------
    joint : float array (actions, kinds), g diag(pi) R
    others : groups of people with the distribution of one report each

    Raises
    ------
    UnsupportedError
        When the window of T is too large: about n = 1e5 at three kinds, 500 at four, 50 at five.

    Source
    ------
    Definition 2 of Jurado, Gonze, Alvim, Palamidessi (2023), CSF,
    on the (values, histograms) channel of the target.
    """
    advantage = joint - joint[np.argmax(joint.sum(axis=1))]
    advantage = advantage[advantage.max(axis=1) > 0.0]
    if advantage.size == 0:
        return NO_LEAKAGE
    window = poisson_multinomial(others)
    # one cell of padding on each axis takes the target's own report
    pmf = np.pad(window.chances, [(1, 1)] * window.chances.ndim)
    total = math.fsum(_slice_gain(advantage, pmf, place) for place in range(1, pmf.shape[0]))
    # an error of the distribution costs at most its sum of absolute values times this
    scale = float(np.abs(advantage).max(axis=0).sum())
    # the transform leaves about an ulp of the largest cell in each cell, and phases of n reports are good to n ulps:
    # by Parseval the distribution is off by that share of its root sum of squares, spread over all cells
    people, size = sum(group.count for group in others), window.chances.size
    spread = math.sqrt(size * float((window.chances**2).sum()))
    rounding = scale * ULP * (8.0 + math.sqrt(size) + people * spread) + 1e-13 * total
    return AdditiveLeakage.from_error(total, rounding + 4.0 * scale * window.outside, "exact sum")


def _slice_gain(advantage: Matrix, pmf: Reals, place: int) -> float:
    """All histograms with one count of the first kind."""
    ends = tuple(slice(1, None) for _ in pmf.shape[1:])
    best: Reals = np.zeros([size - 1 for size in pmf.shape[1:]])
    shifted = [pmf[place - 1][ends]]
    for axis in range(1, pmf.ndim):
        back = tuple(slice(0, -1) if other == axis else slice(1, None) for other in range(1, pmf.ndim))
        shifted.append(pmf[place][back])
    shifted.append(pmf[place][ends])
    for row in advantage:
        gain = sum(h * cell for h, cell in zip(row, shifted, strict=True))
        np.maximum(best, gain, out=best)
    return float(best.sum())


def binary_known_others_leakage(contrast: float, others: list[IndependentReports]) -> AdditiveLeakage:
    r"""Two values, uniform target, any knowledge about each of the others.

    .. math:: V - \frac12 = \frac{|W_{00} - W_{10}|}{2} \max_t \Pr[T = t], \qquad T = \text{others' reports of } 0

    A Poisson binomial sum is unimodal with its mode beside its mean (Darroch): two sums of products.

    Parameters
    ----------
    contrast : float
        W_00 - W_10.
    others : at most three groups

    Source
    ------
    The two rows of the target's channel differ by |W_00 - W_10| times the total variation between T and T + 1,
    which is max T because a Poisson binomial distribution is unimodal.
    """
    groups = [group for group in others if group.count]
    if not groups:
        return AdditiveLeakage.from_error(0.5 * abs(contrast), ULP, "exact sum")
    mode = math.floor(sum(group.count * float(group.pmf[0]) for group in groups))
    last, (low, pmf, wrong) = groups[-1], _binomial_sum(groups[:-1])
    rest = mode + 1 - low - np.arange(pmf.size + 1)
    chances = binomial_pmf(rest, last.count, float(last.pmf[0]), float(last.pmf[1]))
    peak = max(float((pmf * chances[:-1]).sum()), float((pmf * chances[1:]).sum()))
    error = wrong * math.sqrt(float((chances**2).sum()))  # Cauchy-Schwarz
    people = sum(group.count for group in groups)
    error += peak * (2e-14 + 4.0 * ULP * math.sqrt(people))
    return AdditiveLeakage.from_error(0.5 * abs(contrast) * peak, 0.5 * abs(contrast) * error, "exact sum")


def _binomial_sum(groups: list[IndependentReports]) -> tuple[int, Reals, float]:
    """Sum of at most two binomial counts: its start, its chances, root sum of squares of their errors."""
    if not groups:
        return 0, np.ones(1), 0.0
    windows = [_binomial(group) for group in groups]
    start, pmf = windows[0]
    if len(windows) == 1:
        return start, pmf, 0.0
    second, part = windows[1]
    if pmf.size * part.size <= DIRECT_PRODUCTS:
        return start + second, np.convolve(pmf, part), 0.0
    from scipy.fft import irfft, next_fast_len, rfft

    size = next_fast_len(pmf.size + part.size - 1, real=True)
    both = np.maximum(irfft(rfft(pmf, size) * rfft(part, size), size)[: pmf.size + part.size - 1], 0.0)
    wrong = 2.0 * ULP * math.log2(size) * math.sqrt(float((pmf**2).sum() + (part**2).sum()))
    return start + second, both, wrong


def _binomial(group: IndependentReports) -> tuple[int, Reals]:
    """Window of a binomial distribution that misses less than 1e-18: where it starts, and its chances."""
    share, other = float(group.pmf[0]), float(group.pmf[1])
    reach = bernstein_reach(group.count * share * other, math.log(2e18))
    low = max(0, math.floor(group.count * share - reach))
    counts = np.arange(low, min(group.count, math.ceil(group.count * share + reach)) + 1)
    return low, binomial_pmf(counts, group.count, share, other)


def identical_others_leakage(channel: KRRChannel, *, n: int) -> AdditiveLeakage:
    r"""All others hold one and the same known value; k-ary randomized response with p >= 1/k, uniform target.

    .. math:: V - \frac1k = \frac{p - s}{k} \left( \frac1n E \max_w \frac{z_w}{q_w} - 1 \right), \qquad
              z \sim \mathrm{Mult}(n, q), \quad q = (p, s, .., s)

    Source
    ------
    V = s + (p - s)/k sum_z max_w T(z - e_w), and here T(z - e_w) = Mult_n(z) z_w / (n q_w).
    """
    load = max_load_unequal(n, (Bins(1, channel.p, 1.0 / channel.p), Bins(channel.k - 1, channel.s, 1.0 / channel.s)))
    factor = channel.contrast / channel.k
    return AdditiveLeakage.from_error(
        factor * max(0.0, load.value / n - 1.0), factor * load.error_bound / n, load.method
    )
