r"""What a test that found nothing would have found: the smallest shares of exact copies seen with a power of 0.8."""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom, hypergeom

POWER = 0.8


def detectable_by_ranks(n: int, m: int, *, level: float = 0.05) -> float:
    r"""Share rho of exact copies that the rank test finds: E Z = -rho sqrt(3mn / (m + n)).

    At level 0.05 this is 2.49 sqrt((m + n) / (3mn)). Above 1 nothing can be found, and 1 is returned.

    >>> round(detectable_by_ranks(1650, 1650), 3)
    0.05
    """
    need = float(ndtri(POWER) - ndtri(level))
    return min(1.0, need * sqrt((m + n) / (3.0 * m * n)))


def detectable_by_tail(n: int, m: int, k: int, *, level: float = 0.05) -> float:
    """Share of exact copies that the tail test of k points finds; to a hundredth of itself, or 1.

    >>> 0.009 < detectable_by_tail(1000, 1000, 10) < 0.011
    True
    """
    counts = np.arange(k + 1)
    fires = hypergeom.sf(counts - 1, n + m, m, k) <= level
    if not fires.any():
        return 1.0
    least = int(counts[fires][0])
    low, high = 0.0, 1.0
    while high - low > 0.005 * high:
        share = (low + high) / 2
        low, high = (low, share) if _tail_power(share, n, m, k, least) >= POWER else (share, high)
    return high


def _tail_power(share: float, n: int, m: int, k: int, least: int) -> float:
    """Copies come first; the places they leave among the k are shared out evenly."""
    copies = np.arange(k + 1)
    chance = binom.pmf(copies, m, share)
    chance[k] = binom.sf(k - 1, m, share)
    return float(sum(c * hypergeom.sf(least - j - 1, n + m - j, m - j, k - j) for j, c in zip(copies, chance)))  # noqa: B905
