"""Biased coins, exactly: a random byte decides nearly always, and 56 more bits decide every tie."""

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy

_TAIL = 56  # bits below the first byte


def coins(mass: int, count: int, rng: Entropy) -> NDArray[np.bool_]:
    """`count` independent coins, each true with probability exactly mass / 2^64.

    Parameters
    ----------
    mass : int, 0 to 2^64 - 1

    Notes
    -----
    A uniform 64-bit word is below `mass` when its first byte is below that of `mass`; only if both are equal
    (one coin in 256) the other bits are drawn.
    """
    top, rest = np.uint8(mass >> _TAIL), np.uint64(mass & ((1 << _TAIL) - 1))
    first = rng.narrow(count, np.uint8)
    result = first < top
    if rest:  # otherwise a tie is never below
        ties = np.flatnonzero(first == top)
        if ties.size:
            result[ties] = (rng.owners(ties, count).words(ties.size) >> np.uint64(64 - _TAIL)) < rest
    return np.asarray(result)
