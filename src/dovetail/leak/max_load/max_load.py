r"""How far the fullest of k bins exceeds the average: the one number behind shuffled vulnerability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from dovetail.core.checks import whole
from dovetail.core.special import Reals, bernstein_reach, binomial_survival, stirling_remainder
from dovetail.leak.max_load.dft_inversion import (
    ROUNDING,
    Waves,
    afford,
    alias,
    log1p,
    nodes_for,
    point,
    poisson_law,
    poisson_peak,
    rotations,
    shapes,
    weights_of,
)

HALF_ROUNDING = 4e-15
MOST_BALLS = 10**12
CELLS = 1 << 18  # complex cells held at a time
COMPILED = 20  # bins: up to here powers are products, in a compiled loop; k products cost k ulps


class Cuts(NamedTuple):
    """What each cut of the sum may cost, in balls; (i) .. (v) of the notes in `expected_excess`."""

    nodes: float = 1e-18
    dropped: float = 1e-18
    beyond: float = 1e-18
    below: float = 1e-18
    window: float = 1e-18


CUTS = Cuts()


@dataclass(frozen=True)
class ExcessLoad:
    """E[fullest bin] - n/k, in balls, with a bound on its absolute error.

    Parameters
    ----------
    value, error_bound : float, at least 0
        `error_bound` holds the proved cuts plus an allowance of 2e-14 relative for rounding, which rests on
        measurement.
    method : str
        "closed form" (k = 2) or "exact sum".
    """

    value: float
    error_bound: float
    method: str


def expected_excess(n: int, k: int) -> ExcessLoad:
    r"""Expected maximum load of n balls in k equal bins, minus n/k.

    .. math:: M_n - \frac nk = \sum_{m \ge \lceil n/k \rceil} \Pr[\max > m] + \lceil n/k \rceil - \frac nk

    .. math:: \Pr[\max > m] = \frac{1}{N \, \mathrm{Pois}(n; n)} \sum_{j < N}
              \Re\left[ \psi_\infty(\theta_j)^k - \psi_m(\theta_j)^k \right], \quad \theta_j = 2 \pi j / N

    .. math:: \psi_m(\theta) = \sum_{i \le m} \mathrm{Pois}(i; n/k) \, e^{I \theta (i - n/k)}

    k independent Poisson counts, given their sum, are the balls; the sum over j reads off that sum. The excess is
    built without ever subtracting n/k from M_n, so its relative accuracy is kept where it is tiny.

    Parameters
    ----------
    n : int, at least 1
        Balls; with k = 2 up to 1e12, else as long as the cost below allows (1e9 for k >= 8).
    k : int, at least 2
        Bins; above 1e6 nothing was measured.

    Raises
    ------
    UnsupportedError
        When the sum has more than 6e9 terms (about twenty seconds): for k = 3 that is n above 1e8.

    Notes
    -----
    Five cuts are proved and enter `error_bound`: (i) N nodes instead of an integral, (ii) nodes where both powers
    are negligible, (iii) m beyond the last, (iv) m below the first counted as 1, (v) the end of the Poisson window.
    Rounding is not proved.

    Examples
    --------
    >>> round(expected_excess(3, 3).value, 12)  # (3 * 3 + 18 * 2 + 6 * 1) / 27 - 1
    0.888888888889

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), Analyzing the Shuffle Model through the Lens of QIF, CSF, equation 11;
    Poissonization and the trapezoidal rule for the coefficient.
    """
    balls, bins = whole("n", n, least=1, most=MOST_BALLS), whole("k", k, least=2)
    if bins == 2:
        value = balls * half_excess(balls)
        return ExcessLoad(value, HALF_ROUNDING * value, "closed form")
    if balls == 1:
        return ExcessLoad((bins - 1) / bins, 2e-16, "closed form")
    plan = plan_load(balls, bins)
    base = (bins * plan.first - balls) / bins
    if plan.last < plan.first:
        return ExcessLoad(base, plan.cuts + ROUNDING * base, "exact sum")
    value = base + math.fsum(_sums(plan).tolist()) / plan.scale
    return ExcessLoad(value, plan.cuts + ROUNDING * value, "exact sum")


def half_excess(n: int) -> float:
    r"""E[fullest of two bins]/n - 1/2 for n balls.

    .. math:: \frac12 \binom{2m}{m} 4^{-m} = \frac{e^{d(2m) - 2 d(m)}}{2 \sqrt{\pi m}}, \qquad m = \lfloor n/2 \rfloor

    Relative error below 2e-15: a product up to m = 99, Stirling's remainder d beyond.

    >>> half_excess(2)
    0.25
    """
    m = n // 2
    if m < 100:
        return 0.5 * math.prod((2 * i - 1) / (2 * i) for i in range(1, m + 1))
    remainder = float(stirling_remainder(2 * m) - 2.0 * stirling_remainder(m))
    return 0.5 * math.exp(remainder) / math.sqrt(math.pi * m)


@dataclass(frozen=True, eq=False)
class LoadPlan:
    """Which terms of the double sum are kept, and what the others can amount to."""

    n: int
    k: int
    first: int  # m runs over first .. last
    last: int
    law: Reals  # Pois(i; n/k) for i = first + 1 .. first + law.size
    nodes: int  # N
    kept: int  # j = 0 .. kept - 1
    scale: float  # N Pois(n; n)
    cuts: float


def plan_load(n: int, k: int) -> LoadPlan:
    what = f"The exact maximum load of n = {n:,} balls in k = {k} bins"
    nodes, peak, scale = nodes_for(n, CUTS.nodes), poisson_peak(n / k), point(n)
    kept, dropped = _kept(nodes, k, peak, scale)
    afford(what, kept * 4.0 * math.sqrt(n * (k - 1)) / k)  # the window is wider still
    start, tail = -(-n // k), _above(n, k)
    spill = k * tail  # for m = start, start + 1, ..: at least Pr[max > m]
    never = k * np.log1p(-np.minimum(tail, 1.0))  # log of a bound on Pr[max <= m]
    first = start + int(np.count_nonzero(never < math.log(CUTS.below)))
    left = np.cumsum(spill[::-1])[::-1]
    last = start + int(np.count_nonzero(left >= CUTS.beyond)) - 1
    count = max(0, last - first + 1)
    end = max(first, last, start + int(np.count_nonzero(spill * max(count, 1) >= CUTS.window))) + 1
    afford(what, kept * float(end - first))
    law = poisson_law(n / k, first + 1, end)
    cuts = (
        count * (alias(n, nodes) + dropped / (nodes * scale))  # (i), (ii)
        + _at(left, last + 1 - start)  # (iii)
        + float(np.exp(never[: first - start]).sum())  # (iv)
        + count * _at(spill, end - start)  # (v)
    )
    return LoadPlan(n, k, first, last, law, nodes, kept, nodes * scale, cuts)


def _at(tail: Reals, place: int) -> float:
    """A falling bound, also beyond where it was evaluated: there it is below every tolerance."""
    return float(tail[place]) if place < tail.size else 1e-18


def _above(n: int, k: int) -> Reals:
    """Pr[Bin(n, 1/k) > m] for m = ceil(n/k), .. until it is far below every tolerance."""
    level = math.log(1e25 * k)
    reach = bernstein_reach(n / k, level)
    start = -(-n // k)
    counts = np.arange(start, min(n, start + math.ceil(reach)) + 1, dtype=np.float64)
    return binomial_survival(counts, n, 1.0 / k, (k - 1) / k)


def _kept(nodes: int, k: int, peak: float, scale: float) -> tuple[int, float]:
    """(ii): nodes j = 0 .. kept - 1 are summed; the others count at most `dropped`, times 1/(N Pois(n; n))."""
    sines = np.sin(np.pi * np.arange(nodes // 2 + 1) / nodes)
    with np.errstate(divide="ignore"):
        log_bound = k * (math.log(peak) - np.log(sines))  # falls in j
    kept = int(np.count_nonzero((log_bound >= math.log(CUTS.dropped * scale)) | (log_bound >= 0.0)))
    weights = weights_of(np.arange(kept, nodes // 2 + 1), nodes)
    return kept, 2.0 * float((weights * np.exp(log_bound[kept:])).sum())


def _sums(plan: LoadPlan) -> Reals:
    """For m = first .. last: the sum over kept nodes of weight Re[psi_inf^k - psi_m^k]."""
    j = np.arange(plan.kept)
    theta, weights = 2.0 * np.pi * j / plan.nodes, weights_of(j, plan.nodes)
    exponent, offset = plan.n / plan.k * shapes(theta), plan.first + 1 - plan.n / plan.k
    count = plan.last - plan.first + 1
    if plan.k <= COMPILED:
        return np.asarray(few_bins(theta, weights, exponent, plan.law, offset, count, plan.k, np.ones(1)))
    total: Reals = np.zeros(count)
    step = max(1, CELLS // plan.law.size)
    for begin in range(0, plan.kept, step):
        part = slice(begin, begin + step)
        turns = rotations(theta[part], offset, plan.law.size)
        turns *= plan.law
        missing = np.cumsum(turns[:, ::-1], axis=1)[:, ::-1][:, :count]  # t_m = sum over i > m
        total += weights[part] @ _powers(exponent[part, None], missing, plan.k)
    return total


@njit(cache=True, nogil=True)
def few_bins(
    theta: Reals, weights: Reals, exponent: Waves, law: Reals, offset: float, count: int, k: int, terms: Reals
) -> Reals:
    """For every m: sum of weight Re[terms_0 psi_inf^k - sum_j terms_j psi_m^(k-j) t_m^j]; terms_0 alone: the maximum.

    One pass per node from the far end of the window; a rotation is a product of two from short tables.
    """
    total = np.zeros(count)
    width = int(np.sqrt(law.size)) + 1
    fine, coarse = np.empty(width, np.complex128), np.empty(law.size // width + 1, np.complex128)
    for j in range(theta.size):
        for i in range(width):
            fine[i] = np.exp(1j * theta[j] * i)
        for i in range(coarse.size):
            coarse[i] = np.exp(1j * theta[j] * (offset + width * i))
        psi, full, missing = np.exp(exponent[j]), terms[0] * np.exp(k * exponent[j]).real, 0j
        for high in range(coarse.size - 1, -1, -1):
            for low in range(min(width, law.size - high * width) - 1, -1, -1):
                place = high * width + low
                missing += law[place] * (coarse[high] * fine[low])
                if place < count:
                    base = psi - missing
                    mixed, other = terms[0] + 0j, missing
                    for i in range(1, terms.size):
                        mixed = mixed * base + terms[i] * other
                        other *= missing
                    power, left = mixed, k - terms.size + 1
                    while left:
                        if left & 1:
                            power *= base
                        base *= base
                        left >>= 1
                    total[place] += weights[j] * (full - power.real)
    return total


def _powers(exponent: Waves, missing: Waves, k: int) -> Reals:
    """Re[psi^k - (psi - t_m)^k] for psi = e^exponent, without cancellation where t_m is small."""
    whole_power, psi = np.exp(k * exponent), np.exp(exponent)
    share = np.divide(missing, psi, out=np.ones_like(missing), where=np.abs(missing) < 0.5 * np.abs(psi))
    small = np.abs(share) < 0.5
    near = -(whole_power * np.expm1(k * log1p(np.where(small, -share, 0.0)))).real
    with np.errstate(divide="ignore"):
        far = (whole_power - np.exp(k * np.log(np.where(small, 1.0, psi - missing)))).real
    return np.where(small, near, far)
