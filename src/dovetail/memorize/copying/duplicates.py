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


def all_coincide_in(count: int, l: int, n: int, m: int) -> float:  # noqa: E741
    """Chance that `count` coincidences of rows are all between Q (m) and T (l), none in T or between P (n) and T.

    Pairs of rows are taken to coincide equally often wherever they are.

    >>> round(all_coincide_in(2, l=2000, n=1000, m=1000), 3)
    0.111
    """
    among_others, of_generated = l * (l - 1) / 2 + l * n, l * m
    return float((of_generated / (among_others + of_generated)) ** count)


def unrepeated_columns(points: Points) -> int:
    """Columns of at most 2,000 rows in which at least 99 % of the values are distinct."""
    some = np.sort(points[:2_000], axis=0)
    return int(((np.diff(some, axis=0) > 0).mean(axis=0) >= 0.99).sum())


def repeated_share(keys: Keys) -> float:
    """Share of rows that have a twin in the same sample, from their `row_keys`."""
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return float((counts[inverse] > 1).mean())
