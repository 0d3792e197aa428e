"""A binomial law cut into blocks, with what was cut off charged to whoever uses it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.core.numeric.special import Reals, binomial_cdf, binomial_pmf, binomial_survival

FEWEST_BLOCKS = 32
SMALLEST_TAIL = 1e-300
DENSE = 64  # adding up so many single counts is cheaper than one value of the incomplete beta function


@dataclass(frozen=True, eq=False)
class TruncatedBinomial:
    """Blocks of Bin(trials, q): block j holds the counts edges[j] .. edges[j + 1] - 1 and has mass masses[j].

    Parameters
    ----------
    edges : float array (blocks + 1,), whole numbers
    masses : float array (blocks,)
    cut_left, cut_right : float
        Upper bounds on the probability of counts below and above the window; 0 when nothing is cut.
    error : float
        Measured bound on the relative error that the masses bring into a sum over a monotone function.
    """

    edges: Reals
    masses: Reals
    cut_left: float
    cut_right: float
    error: float

    @property
    def resolution(self) -> float:
        """Width of the widest block over the middle of the window; 0 for single counts."""
        widest = float(np.diff(self.edges).max())
        return widest / max(0.5 * float(self.edges[0] + self.edges[-1]), 1.0) if widest > 1.0 else 0.0


def truncated_binomial(
    trials: int, q: float, complement: float, *, tail: float, resolution: float
) -> TruncatedBinomial:
    r"""Cut Bin(trials, q) to all but `tail` on each side, and the rest into blocks.

    .. math:: t = L/3 + \sqrt{L^2/9 + 2 v L}, \quad v = \mathrm{trials}\, q (1 - q), \quad
              L = \log(1/\mathrm{tail}), \quad \Pr[|X - \mathrm{mean}| \ge t] \le 2\, \mathrm{tail}

    Blocks are single counts while the window is short, else about `resolution` times the mean wide. Masses are sums
    of single counts while blocks are narrow, else differences of the lower tail left of the mean and of the upper
    tail right of it: the function summed is monotone, so Abel summation turns their relative error into at most four
    times that of the sum.

    Source
    ------
    Bernstein's inequality, e.g. Boucheron, Lugosi, Massart (2013), Concentration Inequalities, equation (2.10).
    """
    tail = max(tail, SMALLEST_TAIL)
    mean, log_tail = trials * q, -math.log(tail)
    reach = log_tail / 3.0 + math.sqrt(log_tail**2 / 9.0 + 2.0 * mean * complement * log_tail) + 1.0
    low, high = max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))
    size = high - low + 1
    blocks = min(size, max(FEWEST_BLOCKS, math.ceil(size / (max(mean, 1.0) * resolution))))
    edges = low + (size * np.arange(blocks + 1)) // blocks
    if size <= DENSE * blocks:
        masses = np.add.reduceat(_counts(low, high, trials, q, complement), edges[:-1] - low)
    else:
        masses = _differences(edges, trials, q, complement)
    return TruncatedBinomial(
        edges.astype(np.float64),
        masses,
        tail if low > 0 else 0.0,
        tail if high < trials else 0.0,
        max(1e-9, 4.0 * (1e-13 + 2e-15 * math.sqrt(trials))),
    )


def _counts(low: int, high: int, trials: int, q: float, complement: float) -> Reals:
    """Pr[X = low .. high], walked from the most likely count by ratios: a few ulp a step."""
    middle = min(max(math.floor(trials * q), low), high)
    start = float(binomial_pmf(middle, trials, q, complement))
    up, down = np.arange(middle + 1.0, high + 1.0), np.arange(middle - 0.0, low, -1.0)
    above = np.cumprod((trials + 1.0 - up) / up * (q / complement))
    below = np.cumprod(down / (trials + 1.0 - down) * (complement / q))
    return start * np.concatenate([below[::-1], [1.0], above])


def _differences(edges: NDArray[np.int64], trials: int, q: float, complement: float) -> Reals:
    """Block masses; the block that holds the mean takes what both sides leave."""
    middle = int(np.searchsorted(edges, trials * q, side="right"))  # edges[middle - 1] <= mean < edges[middle]
    middle = min(max(middle, 1), edges.size - 1)
    below = binomial_cdf(edges[:middle] - 1, trials, q, complement)  # before each edge
    above = binomial_survival(edges[middle:] - 1, trials, q, complement)  # from each edge on
    held = 1.0 - below[-1] - above[0]
    return np.concatenate([np.diff(below), [held], -np.diff(above)])
