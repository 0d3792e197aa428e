r"""An interval for Delta, the chance that a generated point is farther from the training sample than a fresh one."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import rankdata

Distances = NDArray[np.float64]  # (n,)


def delta_interval(fresh: Distances, generated: Distances, *, level: float = 0.95) -> tuple[float, float]:
    r"""The interval of DeLong; Newcombe's where DeLong's has no width or a sample has one point.

    DeLong: Delta plus or minus z sqrt(S_B / m + S_A / n), the variances of the placements of each sample in the
    other. At Delta = 0 or 1, the case of plain copies, these are 0; Newcombe's interval inverts a score test with the
    variance of Hanley and McNeil at the hypothesised value.

    Source
    ------
    DeLong, DeLong, Clarke-Pearson (1988), Biometrics 44; Newcombe (2006), Statistics in Medicine 25, method 5.
    """
    n, m = len(fresh), len(generated)
    ranks = rankdata(np.concatenate([fresh, generated]))
    of_generated = (ranks[n:] - rankdata(generated)) / n
    of_fresh = 1.0 - (ranks[:n] - rankdata(fresh)) / m
    delta = float(of_generated.mean())
    z = float(-ndtri((1.0 - level) / 2))
    if min(n, m) > 1:
        error = sqrt(of_generated.var(ddof=1) / m + of_fresh.var(ddof=1) / n)
        if error > 0.0 and 0.0 < delta < 1.0:
            return max(0.0, delta - z * error), min(1.0, delta + z * error)
    return newcombe_interval(delta, n, m, z=z)


def newcombe_interval(delta: float, n: int, m: int, *, z: float) -> tuple[float, float]:
    """The values of Delta that a score test does not reject; N = (n + m) / 2 as in Newcombe's method 5."""
    size = (n + m) / 2 - 1

    def excess(value: float) -> float:
        variance = value * (1 - value) * (1 + size * (1 - value) / (2 - value) + size * value / (1 + value)) / (n * m)
        return abs(delta - value) - z * sqrt(max(variance, 0.0))

    tiny = 1e-12
    low = 0.0 if delta <= tiny else _root(excess, tiny, delta)
    high = 1.0 if delta >= 1 - tiny else _root(excess, delta, 1 - tiny)
    return low, high


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    low, high = max(low, 1e-12), min(high, 1 - 1e-12)
    if excess(low) * excess(high) > 0:
        return low if abs(excess(low)) < abs(excess(high)) else high
    return float(brentq(excess, low, high, xtol=1e-12))
