"""A row of 16 or 32 prefix counts, read and updated in plain numpy, where there is no compiler.

The law is in `simd_prefix_counts`, which does the same with one vector comparison and one vector subtraction.
"""

import numpy as np
from numpy.typing import NDArray

Counts16 = NDArray[np.uint16]
Counts32 = NDArray[np.uint32]
Index = int | np.int64

LANES16 = 32
LANES32 = 16


def take(counts: Counts16, first: Index, rank: Index) -> int:
    """Take the item of this rank out of the row counts[first : first + 32]: (child << 16) | items before it."""
    row = counts[first : first + LANES16]
    above = row > rank
    child = LANES16 - 1 - int(np.count_nonzero(above))
    before = int(row[child])
    row -= above
    return child << 16 | before


def lower(counts: Counts32, first: Index, rank: Index) -> int:
    """Subtract 1 from each count above `rank` in the row counts[first : first + 16]; returns how many are."""
    row = counts[first : first + LANES32]
    above = row > rank
    row -= above
    return int(np.count_nonzero(above))
