"""Exact discrete noise by whole numbers alone: geometric numbers and the discrete Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, isqrt

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, Words
from dovetail.core.errors import ParameterError
from dovetail_protocol.exact_thresholds import WORD, GeometricLaw, geometric_digits

# Exact geometric random numbers: the noise of Laplace mechanisms and the digits of Mallows permutations.
#
# A word u in [0, 2^64) stands for the interval [u, u+1)/2^64 of a uniform number. Comparing u with integer thresholds
# decides the outcome unless the interval straddles a step of the distribution function, which happens with
# probability about 2^-53; then further words lengthen the uniform number until exact rational arithmetic decides. The
# law is therefore the ideal one, without any rounding: pure guarantees stay pure. Small rates are split into digits,
# c = low + 2^bits high, because both parts of a geometric number are independent and geometric.


Counts = NDArray[np.int64]  # (count,)


@dataclass(frozen=True, eq=False)
class _Stage:
    """One digit: its law, thresholds, and for each leading bits of a word the first cell it can mean."""

    law: GeometricLaw
    shift: int
    thresholds: Words
    guide: NDArray[np.int32]
    complete: bool  # whether the cell after the last threshold is a single value

    def add(self, total: Counts, rng: Entropy) -> None:
        """Add this digit, drawn freshly for each element, to `total`."""
        from dovetail.core.kernels import look_up

        words = rng.words(total.size)
        unsure = np.zeros(total.size, dtype=np.bool_)
        if look_up(words, self.thresholds, self.guide, self.complete, self.shift, total, unsure):
            for place in np.flatnonzero(unsure):
                own = rng.owners(np.array([place]), total.size)
                cell = self.law.settle(int(words[place]), partial(_word, own))
                total[place] += cell << self.shift


def geometric(rate: Fraction, count: int, rng: Entropy, *, bits: int | None = None) -> Counts:
    r"""`count` independent draws of exactly Pr[c = k] proportional to e^(-rate k) on [0, 2^bits).

    Parameters
    ----------
    rate : Fraction, at least 0; above 0 when `bits` is None
    count : int
    rng : Entropy
    bits : int, 0 to 62, or None for all whole numbers

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> geometric(Fraction(1, 2), 8, simulation(1))
    array([0, 0, 1, 2, 1, 0, 0, 1])
    """
    total = np.zeros(count, dtype=np.int64)
    for stage in _stages(rate, bits):
        stage.add(total, rng)
    return total


def discrete_laplace(rate: Fraction, count: int, rng: Entropy) -> Counts:
    r"""Difference of two geometric numbers: exactly Pr[d] = tanh(rate / 2) e^(-rate |d|)."""
    return geometric(rate, count, rng) - geometric(rate, count, rng)


def _word(rng: Entropy) -> int:
    return int(rng.words(1)[0])


@lru_cache(maxsize=512)
def _stages(rate: Fraction, bits: int | None) -> tuple[_Stage, ...]:
    return tuple(_stage(law, shift) for law, shift in geometric_digits(rate, bits))


@lru_cache(maxsize=512)
def _stage(law: GeometricLaw, shift: int) -> _Stage:
    from dovetail.core.kernels import GUIDE_BITS

    reach = ceil(45 / law.rate) if law.rate > 0 else WORD  # beyond it a cell holds less than one word
    complete = law.size is not None and law.size <= reach
    count = law.size - 1 if complete and law.size is not None else reach
    thresholds = np.array([min(t, WORD - 1) for t in law.thresholds(count)], dtype=np.uint64)
    starts = np.arange(1 << GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - GUIDE_BITS)
    guide = np.searchsorted(thresholds, starts, side="right").astype(np.int32)
    return _Stage(law, shift, thresholds, guide, complete)


# Exact discrete Gaussian noise, by whole numbers alone: the noise of Gaussian mechanisms on a grid.
#
# Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy, Algorithm 3: discrete Laplace
# numbers y of scale t = floor(sigma) + 1 are kept with probability exp(-gamma), gamma = (|y| - sigma^2 / t)^2 / (2
# sigma^2). exp(-gamma) is drawn as the event that a geometric number of rate 1 reaches floor(gamma), and for the rest
# f by their Algorithm 1, in which all probabilities are ratios of whole numbers.


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
    """True if noise of this variance is drawn by whole numbers of 62 bits."""
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
