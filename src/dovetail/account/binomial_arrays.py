"""Binomial(n, 1/2) far from the middle, on whole arrays: for arrays too short to load the compiled loops for.

The formulas are those of `binomial_tail_kernels`, in the same order.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.special import Reals, stirling_remainder

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_SERIES = [1.0 / (2.0 * j * (2.0 * j - 1.0)) for j in range(1, 18)]  # 0.09^17 < 1e-17


def weigh(trials: Reals, weights: Reals, tilt: float, rest: float, mills_error: float) -> tuple[float, float]:
    """Ends of the sum of `weighted_positive_part`, but for the error of the first term."""
    others = np.ceil(rest * trials) - 1.0  # C - k: how many trials may show the other side
    others = np.minimum(others, np.floor(0.5 * (trials - 1.0)))  # rest is at most 1/2, but for rounding
    possible = others >= 0.0
    trials, weights, others = trials[possible], weights[possible], others[possible]
    k = trials - others
    shares, some = weights * symmetric_pmf(k - 1.0, others), others > 0.0
    alone = 0.5 * rest * float(shares[~some].sum())
    shares, cancelled = shares[some], tilt * mills_ratio(k[some], trials[some])
    low = shares * np.maximum(0.0, 0.25 - cancelled * (1.0 + mills_error))
    high = shares * np.maximum(0.0, 0.25 - cancelled * (1.0 - mills_error))
    return float(low.sum()) + alone, float(high.sum()) + alone


def fill(k: Reals, n: Reals, first: Reals, mills: Reals) -> None:
    """First terms and Mills ratios of `symmetric_binomial_tail`, into the last two arrays."""
    first[:] = symmetric_pmf(k - 1.0, n - k)
    mills[:] = mills_ratio(k, n)


def symmetric_pmf(x: Reals, y: Reals) -> Reals:
    r"""Pr[x heads and y tails], x >= y, by the saddle-point form of `core.numeric.special.binomial_log_pmf`.

    .. math:: x \log \frac{2x}{n} + y \log \frac{2y}{n} = n \sum_{j \ge 1} \frac{v^{2j}}{2j (2j-1)}, \quad
              v = \frac{x - y}{n}
    """
    both = y > 0.0
    pmf: Reals = np.exp(-(x + y) * np.log(2.0))
    x, y = x[both], y[both]
    n = x + y
    v = (x - y) / n
    w, series = np.where(v < 0.3, v * v, 0.0), np.zeros(n.shape)
    for coefficient in reversed(_SERIES):
        series = coefficient + w * series
    exponent = np.where(v < 0.3, n * w * series, x * np.log1p(v) + y * np.log1p(-v))
    stirling = stirling_remainder(n) - stirling_remainder(x) - stirling_remainder(y)
    pmf[both] = np.exp(stirling - exponent) / np.sqrt(2.0 * np.pi * x * (y / n))
    return pmf


def mills_ratio(k: Reals, n: Reals) -> Reals:
    r"""Didonato and Morris's continued fraction 1.2 standard deviations out and more, else the integral.

    .. math:: m = \frac n2 \int_0^1 (1 - s)^{k-1} (1 + s)^{n-k} \, ds
                = \cfrac{n/4 \cdot \alpha_1}{\beta_1 + \cfrac{\alpha_2}{\beta_2 + \cdots}}
    """
    near = (2.0 * k - 1.0 - n) ** 2 < 1.5 * n
    mills = np.empty(n.shape)
    mills[near] = _integral(k[near], n[near])
    mills[~near] = 0.25 * n[~near] * _continued_fraction(k[~near], n[~near])
    return mills


def _integral(k: Reals, n: Reals) -> Reals:
    slope, curve = 2.0 * k - 1.0 - n, 0.5 * (n - 1.0)
    end = np.minimum(1.0, 80.0 / np.maximum(slope + np.sqrt(slope * slope + 160.0 * curve), 1e-300))
    s = 0.5 * end[:, None] * (1.0 + _NODES)
    exponent = curve[:, None] * np.log1p(-s * s) - slope[:, None] * np.arctanh(s)
    return np.asarray(0.25 * n * end * (np.exp(exponent) * _WEIGHTS).sum(axis=1))


def _continued_fraction(k: Reals, n: Reals) -> Reals:
    """Each element stops by itself: what has converged is left out of the next steps."""
    found = np.empty(n.shape)
    places, slope, b = np.arange(n.size), 2.0 * k - 1.0 - n, n - k + 1.0
    above, below, above_before, below_before = (np.full(n.shape, start) for start in (0.0, 1.0, 1.0, 0.0))
    alpha, inner, value = np.ones(n.shape), np.zeros(n.shape), np.zeros(n.shape)
    for m in range(200):
        outer = 1.0 / (k + 2.0 * m + 1.0)
        beta = m * (1.0 + 0.5 * (b - m) * inner) + (k + m) * (0.5 * slope + 1.0 + 1.5 * m) * outer
        scale = 1.0 / (beta * below + alpha * below_before)
        above, above_before = (beta * above + alpha * above_before) * scale, above * scale
        below, below_before = np.ones(n.shape), below * scale
        found[places] = above
        going = (np.abs(above - value) > 1e-14 * above) & (m + 1.0 < b)
        if not going.any():
            break
        value, inner = above, outer
        alpha = 0.25 * (k + m) * (n + 1.0 + m) * (m + 1.0) * (b - m - 1.0) * inner * inner
        if not going.all():
            kept = (places, k, n, slope, b, above, below, above_before, below_before, alpha, inner, value)
            places, k, n, slope, b, above, below, above_before, below_before, alpha, inner, value = (
                array[going] for array in kept
            )
    return found
