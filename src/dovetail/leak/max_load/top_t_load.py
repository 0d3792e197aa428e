r"""How much the t fullest of k bins hold beyond their share: several guesses, and guesses against the reports."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals, bernstein_reach, binomial_cdf, binomial_survival
from dovetail.leak.max_load.dft_inversion import (
    ROUNDING,
    Waves,
    afford,
    alias,
    log_without,
    nodes_for,
    point,
    poisson_law,
    poisson_peak,
    rotations,
    shapes,
    weights_of,
)
from dovetail.leak.max_load.max_load import COMPILED, ExcessLoad, expected_excess, few_bins

Counts = NDArray[np.int64]  # (nodes,)

TOL = 1e-18
MOST_TRIES = 64
CELLS = 1 << 17


def top_excess(n: int, k: int, t: int) -> ExcessLoad:
    r"""Expected content of the t fullest of k equal bins with n balls, minus t n/k.

    .. math:: E \sum_{i \le t} z_{(i)} = \sum_{m \ge 0} E \min(t, J_m), \qquad J_m = \#\{w : z_w > m\}

    .. math:: \Pr[J_m = j] = \binom kj \frac{1}{N \, \mathrm{Pois}(n; n)} \sum_{\theta} \Re
              \left[ \psi_m(\theta)^{k - j} \, t_m(\theta)^j \right], \qquad t_m = \psi_\infty - \psi_m

    The t emptiest bins miss exactly what the k - t fullest have in excess.

    Parameters
    ----------
    n : int, at least 1
    k : int, at least 2
    t : int from 0 to k
        Beyond 64 bins at most 64.

    Raises
    ------
    UnsupportedError
        When t is above 64, or the sum too long.

    Notes
    -----
    t = 1 is `expected_excess`. The cost grows with t; cuts as there, each proved.

    Examples
    --------
    >>> round(top_excess(2, 3, 2).value, 12)  # two balls always lie in the two fullest bins
    0.666666666667

    Source
    ------
    The posterior of w is s + (p - s) z_w / n, so t tries take the t largest counts; Poissonization as for one.
    """
    n, k = whole("n", n, least=1), whole("k", k, least=2)
    t = whole("t", t, least=0, most=k)
    if t in (0, k):
        return ExcessLoad(0.0, 0.0, "closed form")
    if t == 1:
        return expected_excess(n, k)
    if n <= t:
        return ExcessLoad(n * (k - t) / k, 4e-16 * n, "closed form")
    if t > MOST_TRIES:
        raise UnsupportedError(f"The {t:,} fullest of {k:,} bins are too many; at most {MOST_TRIES} are summed.")
    return _sum(n, k, t)


def _sum(n: int, k: int, t: int) -> ExcessLoad:
    first, below = _first(n, k, t)
    counts, spill = _tail(n, k, first)
    last = first + int(np.count_nonzero(np.cumsum(spill[::-1])[::-1] >= TOL)) - 1
    count = last - first + 1
    end = min(counts.size - 1, count + int(np.count_nonzero(spill[count:] * t * count >= TOL)))
    nodes, scale = nodes_for(n, TOL), point(n)
    kept, dropped = _kept(nodes, k, t, poisson_peak(n / k), scale)
    afford(f"The load of the {t} fullest of k = {k} bins with n = {n:,} balls", 10.0 * t * kept * max(1, end))
    law = poisson_law(n / k, first + 1, first + end)
    total = _nodes_sum(n, k, t, first, law, count, np.arange(kept), nodes)
    base = t * (k * first - n) / k
    cuts = (
        t * count * (alias(n, nodes) + dropped / (nodes * scale))
        + float(spill[count:].sum())
        + TOL
        + below
        + t * count * float(spill[end])
    )
    value = base + math.fsum(total.tolist()) / (nodes * scale)
    return ExcessLoad(value, cuts + ROUNDING * (value + abs(base)), "exact sum")


def _first(n: int, k: int, t: int) -> tuple[int, float]:
    """First m to be summed, and what the m before it may miss when J_m >= t is taken for certain.

    J_m < t means that some k - t + 1 bins hold at most m; the counts are negatively associated.
    """
    choices = math.lgamma(k + 1) - math.lgamma(t) - math.lgamma(k - t + 2)
    root = math.isqrt(n // k + 1)
    low = max(0, n // k - 40 * root)  # the bound grows with m, and is e^-800 there
    m = np.arange(low, n // k + 2 + 12 * root, dtype=np.float64)
    with np.errstate(divide="ignore"):
        log_bound = choices + (k - t + 1) * np.log(binomial_cdf(m, n, 1.0 / k, (k - 1) / k))
    first = int(np.count_nonzero(log_bound < math.log(TOL / t)))
    return low + first, t * float(np.exp(log_bound[:first]).sum() + low * np.exp(log_bound[0]))


def _tail(n: int, k: int, first: int) -> tuple[Reals, Reals]:
    """m = first, .. and the union bound k Pr[Bin(n, 1/k) > m], until it is far below every tolerance."""
    level = math.log(1e25 * k)
    reach = bernstein_reach(n / k, level)
    counts = np.arange(first, max(first + 1, math.ceil(n / k + reach)) + 1, dtype=np.float64)
    return counts, k * binomial_survival(counts, n, 1.0 / k, (k - 1) / k)


def _kept(nodes: int, k: int, t: int, peak: float, scale: float) -> tuple[int, float]:
    """psi_m and t_m are both at most b = peak/sin(theta/2), so that the terms are at most t b^k + t (2b)^k."""
    sines = np.sin(np.pi * np.arange(nodes // 2 + 1) / nodes)
    with np.errstate(divide="ignore"):
        log_bound = math.log(2.0 * t) + k * np.minimum(0.0, math.log(2.0 * peak) - np.log(sines))
    kept = int(np.count_nonzero(log_bound >= math.log(TOL * scale)))
    return kept, float((weights_of(np.arange(kept, nodes // 2 + 1), nodes) * np.exp(log_bound[kept:])).sum()) / t


def _nodes_sum(n: int, k: int, t: int, first: int, law: Reals, count: int, j: Counts, nodes: int) -> Reals:
    theta, weights, offset = 2.0 * np.pi * j / nodes, weights_of(j, nodes), first + 1 - n / k
    exponent = n / k * shapes(theta)
    chosen = np.array([(t - i) * float(math.comb(k, i)) for i in range(t)])
    if k <= COMPILED:
        return np.asarray(few_bins(theta, weights, exponent, law, offset, count, k, chosen))
    total: Reals = np.zeros(count)
    step = max(1, CELLS // law.size)
    for begin in range(0, j.size, step):
        part = slice(begin, begin + step)
        turns = rotations(theta[part], offset, law.size) * law
        missing = np.cumsum(turns[:, ::-1], axis=1)[:, ::-1][:, :count]
        total += weights[part] @ _terms(exponent[part, None], missing, k, chosen)
    return total


def _terms(exponent: Waves, missing: Waves, k: int, chosen: Reals) -> Reals:
    """Re[t psi^k - sum over j < t of (t - j) C(k, j) psi_m^(k-j) t_m^j]."""
    log_rest = log_without(exponent, missing)
    result = chosen[0] * np.exp(k * exponent).real + np.zeros(missing.shape)
    power: Waves = np.ones_like(missing)
    for j, factor in enumerate(chosen):
        result -= factor * (np.exp((k - j) * log_rest) * power).real
        power = power * missing
    return np.asarray(result)
