"""The exponential tilt that makes the bound of an exposure small: any tilt is valid."""

from __future__ import annotations

import math

import numpy as np

from dovetail.account.everybody.exposure import Exposure
from dovetail.core.numeric.special import Reals

STEEPEST = 300.0  # largest exponent of a tilt
WIDTHS = (0.7, 0.1)  # how far around the last guess is looked, in log theta


def best_tilt(exposure: Exposure, n: int, epsilon: float) -> float | None:
    r"""About the theta of the smallest (n - 1) max_t log M_t(0) - 2 log theta; None where exponents are too large.

    Started from a normal law of the sum: v theta^2 + m theta - 2/n is least for the largest variance v.
    """
    x, at_mu = _ratios(exposure, epsilon)
    most = steepest_tilt(exposure, epsilon)
    drift, spread = -math.expm1(epsilon), float((exposure.own * x**2).sum(axis=1).max())
    others = n - 1.0
    guess = (-drift + math.sqrt(drift**2 + 8.0 * spread / others)) / (2.0 * spread)
    for width in WIDTHS:
        grid = np.minimum(guess * np.exp(np.linspace(-width, width, 15)), most)
        guess = _lowest(grid, _cost(grid, x, at_mu, exposure, others))
    return None if guess > 0.99 * most else guess


def steepest_tilt(exposure: Exposure, epsilon: float) -> float:
    """The tilt at which an exponent reaches `STEEPEST`."""
    return STEEPEST / float(max(np.abs(ratio).max() for ratio in _ratios(exposure, epsilon)))


def _ratios(exposure: Exposure, epsilon: float) -> tuple[Reals, Reals]:
    """dH/dR_t for each type, and dH/dmu; 0 where there is no mass."""
    h = exposure.first - math.exp(epsilon) * exposure.second
    x = np.divide(h, exposure.own, out=np.zeros_like(h), where=exposure.own > 0.0)
    return x, np.divide(h[0], exposure.mu[0], out=np.zeros_like(h[0]), where=exposure.mu[0] > 0.0)


def _cost(theta: Reals, x: Reals, at_mu: Reals, exposure: Exposure, others: float) -> Reals:
    less = (exposure.own * np.expm1(theta[:, None, None] * x)).sum(axis=2)
    m0 = (exposure.mu[0] * np.exp(theta[:, None] * at_mu)).sum(axis=1)
    return np.asarray(others * np.log1p(np.maximum(less, -0.999)).max(axis=1) - 2.0 * np.log(theta) + np.log(m0))


def _lowest(grid: Reals, cost: Reals) -> float:
    """Where the parabola through the lowest point and its neighbours is lowest, in the log of the grid."""
    i = int(cost.argmin())
    if not 0 < i < grid.size - 1:
        return float(grid[i])
    a, b, c = cost[i - 1 : i + 2]
    bend = a - 2.0 * b + c
    shift = 0.5 * (a - c) / bend if bend > 0.0 else 0.0
    return float(grid[i]) * math.exp(shift * math.log(grid[1] / grid[0]))
