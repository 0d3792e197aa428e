"""Embeddings as whole numbers of 1/4096: their inner products are exact on every machine."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import ParameterError

UNIT = 4096
Rows = NDArray[np.int16]  # (n, d), whole numbers; every row has norm at most 4096


def integer_row(vector: ArrayLike, *, unit_norm: bool) -> NDArray[np.int16]:
    """One embedding (d,) in units of 1/4096, cut towards zero; the zero row where it is not finite or too long.

    Depends on this vector alone: no row can tell of another.
    """
    row = np.asarray(vector, dtype=np.float64)
    if not np.isfinite(row).all():
        return np.zeros(row.size, dtype=np.int16)
    length = math.hypot(*row) if unit_norm else 1.0  # `hypot` is the same for every place in memory
    if not 0.0 < length < math.inf:
        return np.zeros(row.size, dtype=np.int16)
    whole = np.trunc(np.clip(row / length, -2.0, 2.0) * UNIT)
    too_long = math.fsum(whole * whole) > UNIT * UNIT
    return np.zeros(row.size, dtype=np.int16) if too_long else whole.astype(np.int16)


def stack(rows: Iterable[NDArray[np.int16]], dimension: int) -> Rows:
    """Rows (n, d) of single ones; none at all are an array (0, d)."""
    found = [np.zeros((0, dimension), dtype=np.int16), *(row[None, :] for row in rows)]
    return np.concatenate(found)


def check_rows(name: str, rows: object, *, dimension: int | None = None) -> Rows:
    """Rows as they must be, or a ParameterError."""
    wanted = f"int16 rows of norm at most {UNIT}"
    if not isinstance(rows, np.ndarray) or rows.dtype != np.int16 or rows.ndim != 2:
        raise ParameterError(f"`{name}` must be {wanted}, got {type(rows).__name__}.")
    if dimension is not None and rows.shape[1] != dimension:
        raise ParameterError(f"`{name}` must have {dimension} columns, got {rows.shape[1]}.")
    if rows.size and int((rows.astype(np.int64) ** 2).sum(axis=1).max()) > UNIT * UNIT:
        raise ParameterError(f"`{name}` must be {wanted}, got a longer one.")
    return rows


def inner_products(left: Rows, right: Rows | NDArray[np.float64]) -> NDArray[np.int64]:
    """All inner products (n, m), exact: every partial sum is at most 2^24 by Cauchy-Schwarz, which doubles hold.

    Rows that are used often may come as doubles already.
    """
    return np.asarray(left.astype(np.float64) @ right.astype(np.float64, copy=False).T).astype(np.int64)
