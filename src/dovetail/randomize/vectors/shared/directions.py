"""Directions that a number of 64 bits stands for: normal coordinates from a public hash, the same for everybody."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Directions = NDArray[np.float32]  # (n, d)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def directions_of(words: Words, d: int) -> Directions:
    """Normal coordinates (n, d), to about seven digits, of words (n,): SplitMix64 of word and place, then Box-Muller.

    Nothing about privacy rests on them: people draw words, and say which word they drew.

    >>> directions_of(np.array([2, 4], dtype=np.uint64), 3).shape
    (2, 3)
    """
    half = (d + 1) // 2
    with np.errstate(over="ignore"):
        places = np.arange(1, half + 1, dtype=np.uint64) * _GOLDEN
        bits = _mixed(_mixed(words)[:, None] + places)
    low = (bits & np.uint64(0xFFFFFFFF)).astype(np.float32)
    high = (bits >> np.uint64(32)).astype(np.float32)
    angle = high * np.float32(2.0 * np.pi / 2**32)
    radius = np.sqrt(np.float32(-2.0) * np.log((low + np.float32(0.5)) * np.float32(2.0**-32)))
    made = np.empty((len(words), 2 * half), dtype=np.float32)
    np.multiply(radius, np.cos(angle), out=made[:, :half])
    np.multiply(radius, np.sin(angle), out=made[:, half:])
    return made[:, :d]


def _mixed(words: Words) -> Words:
    """Steele, Lea, Flood (2014), Fast Splittable Pseudorandom Number Generators, OOPSLA: the mixer of SplitMix64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
