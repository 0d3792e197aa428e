"""Binomial(n, 1/2) far from the middle, compiled: imported when it is computed with."""

import math

import numpy as np

from dovetail.core.compiled import njit
from dovetail.core.special import Reals

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_SERIES = np.array([1.0 / (2.0 * j * (2.0 * j - 1.0)) for j in range(1, 18)])  # 0.09^17 < 1e-17
_BEND, _LEAN = 1.0 / np.arange(1.0, 9.0), 1.0 / np.arange(1.0, 17.0, 2.0)


@njit(cache=True, nogil=True, error_model="numpy")
def weigh(trials: Reals, weights: Reals, tilt: float, rest: float, mills_error: float) -> tuple[float, float]:
    """Ends of the sum of `weighted_positive_part`, but for the error of the first term."""
    low = high = 0.0
    for i in range(trials.size):
        others = math.ceil(rest * trials[i]) - 1.0  # C - k: how many trials may show the other side
        others = min(others, math.floor(0.5 * (trials[i] - 1.0)))  # rest is at most 1/2, but for rounding
        if others < 0.0:
            continue
        k = trials[i] - others
        share = weights[i] * _symmetric_pmf(k - 1.0, others)
        if others == 0.0:
            low += share * 0.5 * rest
            high += share * 0.5 * rest
        else:
            cancelled = tilt * _mills_ratio(k, trials[i])
            low += share * max(0.0, 0.25 - cancelled * (1.0 + mills_error))
            high += share * max(0.0, 0.25 - cancelled * (1.0 - mills_error))
    return low, high


@njit(cache=True, nogil=True, error_model="numpy")
def fill(k: Reals, n: Reals, first: Reals, mills: Reals) -> None:
    """First terms and Mills ratios of `symmetric_binomial_tail`, into the last two arrays."""
    for i in range(n.size):
        first[i] = _symmetric_pmf(k[i] - 1.0, n[i] - k[i])
        mills[i] = _mills_ratio(k[i], n[i])


@njit(cache=True, nogil=True, error_model="numpy")
def _symmetric_pmf(x: float, y: float) -> float:
    r"""Pr[x heads and y tails], x >= y, by the saddle-point form of `core.numeric.special.binomial_log_pmf`.

    .. math:: x \log \frac{2x}{n} + y \log \frac{2y}{n} = n \sum_{j \ge 1} \frac{v^{2j}}{2j (2j-1)}, \quad
              v = \frac{x - y}{n}
    """
    n = x + y
    if y == 0.0:
        return math.exp(-n * math.log(2.0))
    v = (x - y) / n
    if v < 0.3:
        w, series = v * v, 0.0
        for j in range(4 if w < 1e-4 else _SERIES.size - 1, -1, -1):
            series = _SERIES[j] + w * series
        exponent = n * w * series
    else:
        exponent = x * math.log1p(v) + y * math.log1p(-v)
    stirling = _stirling(n) - _stirling(x) - _stirling(y)
    return math.exp(stirling - exponent) / math.sqrt(2.0 * math.pi * x * (y / n))


@njit(cache=True, nogil=True, error_model="numpy")
def _stirling(n: float) -> float:
    """`core.numeric.special.stirling_remainder`: the series from 16 on, below 16 walked down by log((n+1)/n)."""
    shift = 0.0
    while n < 16.0:  # d(n) - d(n + 1) = (n + 1/2) log((n + 1)/n) - 1
        shift += (n + 0.5) * math.log1p(1.0 / n) - 1.0
        n += 1.0
    x = 1.0 / n
    y = x * x
    return shift + x * (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * 691 / 360360)))))


@njit(cache=True, nogil=True, error_model="numpy")
def _mills_ratio(k: float, n: float) -> float:
    r"""Didonato and Morris's continued fraction 1.2 standard deviations out and more, else the integral.

    .. math:: m = \frac n2 \int_0^1 (1 - s)^{k-1} (1 + s)^{n-k} \, ds
                = \cfrac{n/4 \cdot \alpha_1}{\beta_1 + \cfrac{\alpha_2}{\beta_2 + \cdots}}

    All terms are positive. In the integral t = (1 - s)/2 was put into I_{1/2}(k, n - k + 1); forty Gauss-Legendre
    nodes up to where the integrand is below e^-40.
    """
    slope, curve, b = 2.0 * k - 1.0 - n, 0.5 * (n - 1.0), n - k + 1.0
    if slope * slope < 1.5 * n:
        end = min(1.0, 80.0 / max(slope + math.sqrt(slope * slope + 160.0 * curve), 1e-300))
        total = 0.0
        for i in range(_NODES.size):
            s = 0.5 * end * (1.0 + _NODES[i])
            if end < 0.1:  # log1p(-w) and atanh(s) by series, w^8 < 1e-16
                w, bend, lean = s * s, 0.0, 0.0
                for j in range(7, -1, -1):
                    bend, lean = _BEND[j] + w * bend, _LEAN[j] + w * lean
                bend, lean = -w * bend, s * lean
            else:
                bend, lean = math.log1p(-s * s), math.atanh(s)
            total += _WEIGHTS[i] * math.exp(curve * bend - slope * lean)
        return 0.25 * n * end * total
    above, below, above_before, below_before = 0.0, 1.0, 1.0, 0.0
    alpha, inner, value = 1.0, 0.0, 0.0
    for m in range(200):
        outer = 1.0 / (k + 2.0 * m + 1.0)
        beta = m * (1.0 + 0.5 * (b - m) * inner) + (k + m) * (0.5 * slope + 1.0 + 1.5 * m) * outer
        scale = 1.0 / (beta * below + alpha * below_before)
        above, above_before = (beta * above + alpha * above_before) * scale, above * scale
        below, below_before = 1.0, below * scale
        if abs(above - value) <= 1e-14 * above or m + 1.0 >= b:
            break
        value, inner = above, outer
        alpha = 0.25 * (k + m) * (n + 1.0 + m) * (m + 1.0) * (b - m - 1.0) * inner * inner
    return 0.25 * n * above
