"""Uniform numbers in floating point, for mechanisms that are compared with and never released."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy


def open_uniforms(rng: Entropy, count: int) -> NDArray[np.float64]:
    """`count` numbers inside (0, 1), multiples of 2^-53 plus half a step."""
    return np.asarray(((rng.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
