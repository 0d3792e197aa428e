"""A binomial law where it is not negligible."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.core.numeric.special import Reals

LEFT_OUT = 1e-20  # of every binomial law, by Bernstein's bound


@dataclass(frozen=True, eq=False)
class Window:
    """A binomial law where it is not negligible: masses from `first` on, `LEFT_OUT` or less left out."""

    first: int
    masses: Reals


def binomial_window(n: int, q: float) -> Window:
    """Bin(n, q) by ratios of neighbours outward from its mode; for q above 0, below 1."""
    reach = math.sqrt(2.0 * 47.0 * n * q * (1.0 - q)) + 32.0
    first, last = max(0, math.floor(n * q - reach)), min(n, math.ceil(n * q + reach))
    mode = min(last, math.floor((n + 1) * q))
    up, down = np.arange(mode + 1.0, last + 1.0), np.arange(mode, first, -1.0)
    right = np.cumprod((n + 1.0 - up) / up * (q / (1.0 - q)))
    left = np.cumprod(down / (n + 1.0 - down) * ((1.0 - q) / q))
    masses = np.concatenate([left[::-1], [1.0], right])
    return Window(first, masses / masses.sum())
