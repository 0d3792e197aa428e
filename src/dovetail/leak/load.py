r"""How far the fullest of k bins exceeds the average: the one number behind shuffled vulnerability."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals, binomial_survival, stirling_remainder

Waves = NDArray[np.complex128]  # (nodes, counts)

TOL = 1e-18  # what each cut may cost, in balls
ROUNDING = 2e-14  # relative; ten times the worst seen against exact fractions and certified brackets
HALF_ROUNDING = 4e-15
MOST_TERMS = 600_000_000  # about ten seconds
MOST_BALLS = 10**12
CELLS = 1 << 18  # complex cells held at a time


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
        When the sum has more than 6e8 terms (about ten seconds): for k = 3 that is n above 2.5e7; n = 1e9 is in
        reach from k = 8 on.

    Notes
    -----
    The cuts (i)-(v) of the sum are proved and enter `error_bound`; rounding is not proved.

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
    plan = _plan(balls, bins)
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
class _Plan:
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


def _plan(n: int, k: int) -> _Plan:
    point = math.exp(-float(stirling_remainder(n))) / math.sqrt(2.0 * math.pi * n)  # Pois(n; n)
    nodes, peak = _nodes(n), _peak(n / k)
    kept, dropped = _kept(nodes, k, peak, point)
    _afford(n, k, kept * 4.0 * math.sqrt(n * (k - 1)) / k)  # the window is wider still
    start, tail = -(-n // k), _above(n, k)
    spill = k * tail  # for m = start, start + 1, ..: at least Pr[max > m]
    never = k * np.log1p(-np.minimum(tail, 1.0))  # log of a bound on Pr[max <= m]
    first = start + int(np.count_nonzero(never < math.log(TOL)))
    left = np.cumsum(spill[::-1])[::-1]
    last = start + int(np.count_nonzero(left >= TOL)) - 1
    count = max(0, last - first + 1)
    end = max(first, last, start + int(np.count_nonzero(spill * max(count, 1) >= TOL))) + 1
    _afford(n, k, kept * float(end - first))
    ratios = (n / k) / np.arange(n // k + 1, end + 1, dtype=np.float64)
    law = np.asarray(peak * np.cumprod(ratios)[first - n // k :], dtype=np.float64)
    cuts = (
        count * (_alias(n, nodes) + dropped / (nodes * point))  # (i), (ii)
        + _at(left, last + 1 - start)  # (iii)
        + float(np.exp(never[: first - start]).sum())  # (iv)
        + count * _at(spill, end - start)  # (v)
    )
    return _Plan(n, k, first, last, law, nodes, kept, nodes * point, cuts)


def _at(tail: Reals, place: int) -> float:
    """A falling bound, also beyond where it was evaluated: there it is below every tolerance."""
    return float(tail[place]) if place < tail.size else TOL


def _afford(n: int, k: int, terms: float) -> None:
    if terms > MOST_TERMS:
        raise UnsupportedError(
            f"The exact maximum load of n = {n:,} balls in k = {k} bins is a sum of at least {terms:.1e} terms; "
            f"the limit is {MOST_TERMS:.0e}, about ten seconds. A smaller n gives an upper bound: vulnerability "
            "falls in n."
        )


def _above(n: int, k: int) -> Reals:
    """Pr[Bin(n, 1/k) > m] for m = ceil(n/k), .. until it is far below every tolerance."""
    level = math.log(1e7 * k / TOL)
    reach = level / 3.0 + math.sqrt(level**2 / 9.0 + 2.0 * (n / k) * level)  # Bernstein
    start = -(-n // k)
    counts = np.arange(start, min(n, start + math.ceil(reach)) + 1, dtype=np.float64)
    return binomial_survival(counts, n, 1.0 / k, (k - 1) / k)


def _alias(n: int, nodes: int) -> float:
    """(i): sums that differ from n by multiples of N look alike."""
    u = nodes / n
    r = math.exp(-n * ((1.0 + u) * math.log1p(u) - u))
    q = 0.0 if nodes > n else math.exp(-nodes * (nodes - 1) / (2.0 * n))
    return math.inf if r >= 1.0 or q >= 1.0 else r / (1.0 - r) + q / (1.0 - q)


def _nodes(n: int) -> int:
    nodes = 8
    while _alias(n, nodes) > TOL:
        nodes = math.ceil(1.05 * nodes)
    return nodes


def _kept(nodes: int, k: int, peak: float, point: float) -> tuple[int, float]:
    """(ii): nodes j = 0 .. kept - 1 are summed; the others count at most `dropped`, times 1/(N Pois(n; n))."""
    sines = np.sin(np.pi * np.arange(nodes // 2 + 1) / nodes)
    with np.errstate(divide="ignore"):
        log_bound = k * (math.log(peak) - np.log(sines))  # falls in j
    kept = int(np.count_nonzero((log_bound >= math.log(TOL * point)) | (log_bound >= 0.0)))
    weights = _weights(np.arange(kept, nodes // 2 + 1), nodes)
    return kept, 2.0 * float((weights * np.exp(log_bound[kept:])).sum())


def _weights(j: NDArray[np.int64], nodes: int) -> Reals:
    return np.where((j == 0) | (2 * j == nodes), 1.0, 2.0)


def _peak(mean: float) -> float:
    """The largest Pois(i; mean), at i = floor(mean)."""
    mode = math.floor(mean)
    if mode == 0:
        return math.exp(-mean)
    shift = mode * math.log1p((mean - mode) / mode) - (mean - mode)
    return math.exp(shift - float(stirling_remainder(mode))) / math.sqrt(2.0 * math.pi * mode)


def _sums(plan: _Plan) -> Reals:
    """For m = first .. last: the sum over kept nodes of weight Re[psi_inf^k - psi_m^k]."""
    count = plan.last - plan.first + 1
    total: Reals = np.zeros(count)
    step = max(1, CELLS // plan.law.size)
    offset = plan.first + 1 - plan.n / plan.k
    for begin in range(0, plan.kept, step):
        j = np.arange(begin, min(plan.kept, begin + step))
        theta = 2.0 * np.pi * j / plan.nodes
        shape = np.asarray(-2.0 * np.sin(0.5 * theta) ** 2 + 1j * _sine_minus(theta), dtype=np.complex128)
        exponent = plan.n / plan.k * shape
        turns = _rotations(theta, offset, plan.law.size)
        turns *= plan.law
        missing = np.cumsum(turns[:, ::-1], axis=1)[:, ::-1][:, :count]  # t_m = sum over i > m
        psi: Waves = np.exp(exponent)
        differences = _powers(psi[:, None], exponent[:, None], missing, plan.k)
        total = np.asarray(total + _weights(j, plan.nodes) @ differences)
    return total


def _rotations(theta: Reals, offset: float, size: int) -> Waves:
    """e^{I theta (offset + i)} for i = 0 .. size - 1, from two short tables; (theta, size)."""
    width = max(1, math.isqrt(size))
    rows = -(-size // width)
    coarse = np.exp(1j * theta[:, None] * (offset + width * np.arange(rows)))
    fine = np.exp(1j * theta[:, None] * np.arange(width))
    return np.ascontiguousarray((coarse[:, :, None] * fine[:, None, :]).reshape(theta.size, -1)[:, :size])


def _powers(psi: Waves, exponent: Waves, missing: Waves, k: int) -> Reals:
    """Re[psi^k - (psi - t_m)^k], without cancellation where t_m is small."""
    whole_power = np.exp(k * exponent)
    if k <= 32:
        return np.asarray((whole_power - (psi - missing) ** k).real)
    share = missing / psi
    small = np.abs(share) < 0.5
    near = -(whole_power * np.expm1(k * _log1p(np.where(small, -share, 0.0)))).real
    with np.errstate(divide="ignore"):
        far = (whole_power - np.exp(k * np.log(np.where(small, 1.0, psi - missing)))).real
    return np.where(small, near, far)


def _log1p(z: Waves) -> Waves:
    """log(1 + z) to full relative accuracy for |z| < 1/2; numpy's own loses the real part of small z."""
    x, y = z.real, z.imag
    return np.asarray(0.5 * np.log1p(2.0 * x + (x * x + y * y)) + 1j * np.arctan2(y, 1.0 + x))


def _sine_minus(theta: Reals) -> Reals:
    """sin(theta) - theta; a series below 0.01."""
    square = theta * theta
    series = -theta * square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0)))
    return np.where(theta < 0.01, series, np.sin(theta) - theta)
