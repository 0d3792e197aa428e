r"""Exact geometric random numbers: the noise of Laplace mechanisms and the digits of Mallows permutations.

A word u in [0, 2^64) stands for the interval [u, u+1)/2^64 of a uniform number. Comparing u with integer thresholds
decides the outcome unless the interval straddles a step of the distribution function, which happens with
probability about 2^-53; then further words lengthen the uniform number until exact rational arithmetic decides. The
law is therefore the ideal one, without any rounding: pure guarantees stay pure. Small rates are split into digits,
c = low + 2^bits high, because both parts of a geometric number are independent and geometric.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, Words
from dovetail_protocol.exact_thresholds import WORD, GeometricLaw, geometric_digits

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
        from dovetail.core.numeric.kernels import look_up

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
    from dovetail.core.numeric.kernels import GUIDE_BITS

    reach = ceil(45 / law.rate) if law.rate > 0 else WORD  # beyond it a cell holds less than one word
    complete = law.size is not None and law.size <= reach
    count = law.size - 1 if complete and law.size is not None else reach
    thresholds = np.array([min(t, WORD - 1) for t in law.thresholds(count)], dtype=np.uint64)
    starts = np.arange(1 << GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - GUIDE_BITS)
    guide = np.searchsorted(thresholds, starts, side="right").astype(np.int32)
    return _Stage(law, shift, thresholds, guide, complete)
