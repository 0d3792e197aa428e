"""How many reports of people of several classes are uniform: a sum of binomial counts, in blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.account.mechanisms.mixture.binomial_window import LEFT_OUT, binomial_window
from dovetail.core.numeric.special import Reals

BLOCKS, OUTER = 20, 8  # each counted at one of its ends: where the law is large, and left of it
FEW = 256  # numbers that are blocks of their own
LONG = 512  # of both factors of a convolution: transformed
UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class UniformCount:
    """Blocks of a law of whole numbers.

    Parameters
    ----------
    starts, ends : tuple of int
        First and last number of each block, ascending.
    masses : float array (blocks,)
    missing : float
        Mass that is in no block.
    noise : float
        Bound on the summed errors of `masses`.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    masses: Reals
    missing: float
    noise: float


def uniform_count(parts: Sequence[tuple[int, float]]) -> UniformCount:
    """The sum of Bin(n, q) over these (n, q).

    Blocks are narrow where the law is large: the error of a block is mass times width, and the sum of these is least
    at widths like law^(-1/2). A fourth root loses little there and leaves no wide block at the ends; left of them h
    of few uniform reports may be large.
    """
    start, law, noise = 0, np.ones(1), 0.0
    for n, q in parts:
        part = binomial_window(n, q)
        law, error = _convolve(law, part.masses)
        start, noise = start + part.first, noise + error
    if law.size <= FEW:
        edges = np.arange(law.size)
    else:
        depth = np.cumsum(law**0.25)
        inner = np.searchsorted(depth, depth[-1] * np.arange(1, BLOCKS + 1) / (BLOCKS + 1))
        edges = np.unique(np.concatenate([np.arange(OUTER) * inner[0] // OUTER, inner]))
    ends = np.append(edges[1:], law.size) - 1
    return UniformCount(
        starts=tuple((start + edges).tolist()), ends=tuple((start + ends).tolist()),
        masses=np.add.reduceat(law, edges), missing=LEFT_OUT * len(parts), noise=noise,
    )  # fmt: skip


def _convolve(one: Reals, two: Reals) -> tuple[Reals, float]:
    """The convolution of two laws, and a bound on the sum of its errors where it is transformed."""
    if min(one.size, two.size) < LONG:
        return np.convolve(one, two), 0.0
    from scipy.fft import irfft, next_fast_len, rfft

    size = one.size + two.size - 1
    length = next_fast_len(size, real=True)
    found = np.maximum(irfft(rfft(one, length) * rfft(two, length), length)[:size], 0.0)
    error = 16.0 * UNIT * math.log2(length) * float(np.linalg.norm(one) * np.linalg.norm(two))
    return found, math.sqrt(size) * error
