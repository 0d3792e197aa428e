"""Equal rows, found by hashing: what is in two samples, and what stands in one sample more than once.

Hashes have 64 bits, so that a million training rows take eight megabytes; two different rows among a million and ten
thousand share one with a chance below 1e-9.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]  # (n, d)
Keys = NDArray[np.int64]  # (n,)


def row_keys(points: Points) -> Keys:
    """One hash per row (n, d), equal for equal rows; -0.0 equals 0.0."""
    return np.fromiter((hash((row + 0.0).tobytes()) for row in points), dtype=np.int64, count=len(points))


def rows_in(queries: Points, sample: Points) -> NDArray[np.bool_]:
    """Which rows of `queries` (n, d) stand in `sample` too."""
    return np.isin(row_keys(queries), row_keys(sample))


def first_rows(points: Points) -> NDArray[np.int64]:
    """The rows that stand for the distinct ones, in their order."""
    return np.sort(np.unique(row_keys(points), return_index=True)[1]).astype(np.int64)


def repeated_share(keys: Keys) -> float:
    """Share of rows that have a twin in the same sample, from their `row_keys`."""
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return float((counts[inverse] > 1).mean())
