"""Equal rows, found by hashing: what is in two samples, and what stands in one sample more than once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]  # (n, d)


def row_keys(points: Points) -> NDArray[np.void]:
    """One key per row, equal exactly for equal rows; -0.0 equals 0.0."""
    whole = np.ascontiguousarray(points + 0.0)
    return whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).ravel()


def rows_in(queries: Points, sample: Points) -> NDArray[np.bool_]:
    """Which rows of `queries` (n, d) stand in `sample` too."""
    known = {key.tobytes() for key in row_keys(sample)}
    return np.fromiter((key.tobytes() in known for key in row_keys(queries)), dtype=np.bool_, count=len(queries))


def first_rows(points: Points) -> NDArray[np.int64]:
    """The rows that stand for the distinct ones, in their order."""
    return np.sort(np.unique(row_keys(points), return_index=True)[1]).astype(np.int64)


def repeated_share(points: Points) -> float:
    """Share of rows that have a twin in the same sample."""
    _, inverse, counts = np.unique(row_keys(points), return_inverse=True, return_counts=True)
    return float((counts[inverse] > 1).mean())
