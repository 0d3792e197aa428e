"""Coins whose probability of heads is a power of a fraction, exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.text.selection.integer_budget import Levels

_DOUBT = 2.0**-38  # far above the relative error of a power in floating point, 2^-43
_GUARD = 64  # bits of a power beyond those that are compared


def flip(levels: Levels, base: int, rng: Entropy) -> NDArray[np.bool_]:
    r"""One coin (m,) for each level, independent.

    .. math:: \Pr[\text{heads of } i] = (b/(b+1))^{n_i}

    64 bits decide in fixed point; where they cannot, once in 2^37 flips, whole numbers of as many bits as it takes.
    """
    drawn = rng.words(levels.size)
    chance = np.exp(-levels * np.log1p(1.0 / base))
    low, high = (np.floor(np.ldexp(chance * (1.0 + side * _DOUBT), 64)) for side in (-1.0, 1.0))
    places = drawn.astype(np.float64)  # off by at most 2^-53 of itself, which the doubt holds as well
    heads = (places < low) | (levels == 0)
    for unsure in np.flatnonzero((places >= low) & (places <= high) & (levels > 0)):
        heads[unsure] = _exact_heads(int(drawn[unsure]), int(levels[unsure]), base, rng)
    return np.asarray(heads, dtype=np.bool_)


def _exact_heads(drawn: int, level: int, base: int, rng: Entropy) -> bool:
    """Whether a uniform number with these first 64 bits lies below (b/(b+1))^n: more bits until it is certain."""
    bits = 64
    while True:
        low, high = power_bounds(base, level, bits + _GUARD)
        if (drawn + 1) << _GUARD <= low:
            return True
        if drawn << _GUARD >= high:
            return False
        drawn, bits = drawn << 64 | int(rng.words(1)[0]), bits + 64


def power_bounds(base: int, level: int, bits: int) -> tuple[int, int]:
    r"""Whole numbers with :math:`low \le 2^{bits} (b/(b+1))^n \le high`, by squaring with directed rounding.

    >>> power_bounds(1, 3, 6)  # 64/8
    (8, 8)
    """
    low = high = 1 << bits
    for bit in f"{level:b}":
        low, high = low * low >> bits, -(-high * high >> bits)
        if bit == "1":
            low, high = low * base // (base + 1), -(-high * base // (base + 1))
    return low, high
