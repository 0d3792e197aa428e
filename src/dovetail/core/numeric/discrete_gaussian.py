r"""Exact discrete Gaussian noise, by whole numbers alone: the noise of Gaussian mechanisms on a grid.

Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy, Algorithm 3: discrete Laplace numbers
y of scale t = floor(sigma) + 1 are kept with probability exp(-gamma), gamma = (|y| - sigma^2 / t)^2 / (2 sigma^2).
exp(-gamma) is drawn as the event that a geometric number of rate 1 reaches floor(gamma), and for the rest f by their
Algorithm 1, in which all probabilities are ratios of whole numbers.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.core.numeric.geometric import discrete_laplace, geometric

Whole = NDArray[np.int64]

_SAFE = 3_000_000_000  # whose square is a whole number of 63 bits


def discrete_gaussian(variance: Fraction, count: int, rng: Entropy) -> Whole:
    r"""`count` independent draws of exactly Pr[z] proportional to e^(-z^2 / (2 sigma^2)) on the whole numbers.

    Parameters
    ----------
    variance : Fraction, above 0
        sigma^2 = a / b with 2 a b t^2 below 2^62: sigma up to 2^15 for a whole number.
    count : int
    rng : Entropy

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> discrete_gaussian(Fraction(9), 8, simulation(1)).tolist()
    [1, -1, 3, 3, 2, 1, -4, -3]
    """
    if not can_draw(variance):
        raise ParameterError(f"`variance` must be above 0, with sigma at most 2^15, got {variance}.")
    a, b = variance.numerator, variance.denominator
    t = isqrt(a // b) + 1
    whole = 2 * a * b * t * t
    found = np.zeros(count, dtype=np.int64)
    open_places = np.arange(count)
    while open_places.size:
        drawn = discrete_laplace(Fraction(1, t), open_places.size, rng)
        times, rest = _exponents(np.abs(drawn), t * b, a, whole)
        kept = (geometric(Fraction(1), drawn.size, rng) >= times) & _exp_minus(rest, whole, rng)
        found[open_places[kept]] = drawn[kept]
        open_places = open_places[~kept]
    return found


def can_draw(variance: Fraction) -> bool:
    """Whether noise of this variance is drawn by whole numbers of 62 bits."""
    a, b = variance.numerator, variance.denominator
    return a > 0 and 2 * a * b * (isqrt(a // b) + 1) ** 2 < 1 << 62


def _exponents(sizes: Whole, scale: int, a: int, whole: int) -> tuple[Whole, Whole]:
    """(|y| t b - a)^2 divided by 2 a b t^2: quotients and remainders, exactly."""
    wide = np.abs(sizes * scale - a) >= _SAFE
    roots = np.where(wide, 0, sizes * scale - a)
    times, rest = np.divmod(roots * roots, whole)
    for place in np.flatnonzero(wide):  # beyond 63 bits: rare, far in the tail
        times[place], rest[place] = divmod((int(sizes[place]) * scale - a) ** 2, whole)
    return times, rest


def _exp_minus(rest: Whole, whole: int, rng: Entropy) -> NDArray[np.bool_]:
    """Events of probability exp(-rest / whole), 0 <= rest < whole: an odd number of trials up to the first failure.

    Trial k succeeds with probability rest / (whole k).
    """
    odd = np.zeros(rest.size, dtype=np.bool_)
    going, k = np.arange(rest.size), 0
    while going.size:
        k += 1
        odd[going] = ~odd[going]
        success = (rng.below(whole, going.size) < rest[going]) & (rng.below(k, going.size) == 0)
        going = going[success]
    return odd
