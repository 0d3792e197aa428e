"""Inversion of a generating function by a discrete Fourier transform (trapezoidal rule), with its aliasing error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals, stirling_remainder

Waves = NDArray[np.complex128]  # (nodes, counts)

ROUNDING = 2e-14  # relative; four times the worst seen against exact fractions and certified brackets
MOST_TERMS = 6_000_000_000  # about twenty seconds


def check_cost(what: str, terms: float) -> None:
    """Refuse a sum that takes too long."""
    if terms > MOST_TERMS:
        raise UnsupportedError(
            f"{what} is a sum of at least {terms:.1e} terms; the limit is {MOST_TERMS:.0e}, about twenty seconds. A "
            "smaller n gives an upper bound: vulnerability falls in n."
        )


def poisson_at_mean(n: int) -> float:
    """Pois(n; n)."""
    return math.exp(-float(stirling_remainder(n))) / math.sqrt(2.0 * math.pi * n)


def aliasing_error(n: int, nodes: int) -> float:
    """(i) of `max_load_gap`: sums that differ from n by multiples of N are aliased."""
    u = nodes / n
    r = math.exp(-n * ((1.0 + u) * math.log1p(u) - u))
    q = 0.0 if nodes > n else math.exp(-nodes * (nodes - 1) / (2.0 * n))
    return math.inf if r >= 1.0 or q >= 1.0 else r / (1.0 - r) + q / (1.0 - q)


def node_count(n: int, tol: float) -> int:
    """N, about 9.5 sqrt(n): the aliasing error stays below the tolerance."""
    nodes = 8
    while aliasing_error(n, nodes) > tol:
        nodes = math.ceil(1.05 * nodes)
    return nodes


def node_weights(j: NDArray[np.int64], nodes: int) -> Reals:
    """Conjugate nodes j and N - j count together."""
    return np.where((j == 0) | (2 * j == nodes), 1.0, 2.0)


def poisson_mode_pmf(mean: float) -> float:
    """The largest Pois(i; mean), at i = floor(mean)."""
    mode = math.floor(mean)
    if mode == 0:
        return math.exp(-mean)
    shift = mode * math.log1p((mean - mode) / mode) - (mean - mode)
    return math.exp(shift - float(stirling_remainder(mode))) / math.sqrt(2.0 * math.pi * mode)


def poisson_pmf(mean: float, start: int, stop: int) -> Reals:
    """Pois(i; mean) for i = start .. stop, by ratios from the mode."""
    mode = math.floor(mean)
    up = np.cumprod(mean / np.arange(mode + 1, max(stop, mode) + 1, dtype=np.float64))
    down = np.cumprod(np.arange(mode, min(start, mode), -1, dtype=np.float64) / mean)[::-1]
    whole_law = poisson_mode_pmf(mean) * np.concatenate([down, [1.0], up])
    offset = start - (mode - down.size)
    return np.asarray(whole_law[offset : offset + stop - start + 1])


def centred_poisson_log_cf(theta: Reals) -> Waves:
    """Log characteristic function of a centred Poisson variable of mean 1, e^{I theta} - 1 - I theta, uncancelled."""
    return np.asarray(-2.0 * np.sin(0.5 * theta) ** 2 + 1j * _sine_minus(theta), dtype=np.complex128)


def phase_factors(theta: Reals, offset: float, size: int) -> Waves:
    """e^{I theta (offset + i)} for i = 0 .. size - 1, from two short tables; (theta, size)."""
    width = max(1, math.isqrt(size))
    rows = -(-size // width)
    coarse = np.exp(1j * theta[:, None] * (offset + width * np.arange(rows)))
    fine = np.exp(1j * theta[:, None] * np.arange(width))
    return np.ascontiguousarray((coarse[:, :, None] * fine[:, None, :]).reshape(theta.size, -1)[:, :size])


def log1p(z: Waves) -> Waves:
    """log(1 + z) to full relative accuracy for |z| < 1/2; numpy's own loses the real part of small z."""
    x, y = z.real, z.imag
    return np.asarray(0.5 * np.log1p(2.0 * x + (x * x + y * y)) + 1j * np.arctan2(y, 1.0 + x))


def log_subtract(exponent: Waves, missing: Waves) -> Waves:
    """log(e^exponent - missing), to full relative accuracy where `missing` is small."""
    psi = np.exp(exponent)
    near = (np.abs(missing) < 0.5 * np.abs(psi)) & (np.abs(psi) > 1e-290)
    share = np.divide(missing, psi, out=np.zeros_like(missing), where=near)
    rest = np.where(near, 1.0, psi - missing)
    return np.asarray(np.where(near, exponent + log1p(-share), np.log(np.where(rest == 0.0, 1e-300, rest))))


def _sine_minus(theta: Reals) -> Reals:
    """sin(theta) - theta; a series below 0.01."""
    square = theta * theta
    series = -theta * square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0)))
    return np.where(theta < 0.01, series, np.sin(theta) - theta)
