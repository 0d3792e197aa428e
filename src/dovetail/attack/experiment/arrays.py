"""Arrays that attacks take, checked, and the guess with the largest score."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.stages import Shuffler
from dovetail.randomize.sampling.domain import symbols

People = NDArray[np.int64]  # (m,), 0..n-1
Guesses = NDArray[np.int64]  # (m,), values 0..k-1


def check_values(values: ArrayLike, k: int, shuffler: Shuffler) -> NDArray[np.int64]:
    """Codes 0..k-1 of the people whom the shuffler was fitted for."""
    held = symbols(values, k)
    if held.size != shuffler.n:
        raise DataError(f"`values` must be {shuffler.n:,} codes, as the shuffler was fitted for, got {held.size:,}.")
    return held


def check_people(name: str, given: ArrayLike, *, n: int) -> People:
    """Indices (m,) of at least one of n people."""
    who = np.asarray(given)
    if who.ndim != 1 or not who.size or who.dtype.kind not in "iu" or who.min() < 0 or who.max() >= n:
        raise DataError(f"`{name}` must be indices (m,) of people 0..{n - 1}, got shape {who.shape} of {who.dtype}.")
    return who.astype(np.int64)


def check_columns(name: str, given: ArrayLike, *, n: int | None = None) -> NDArray[np.float64]:
    """Finite numbers (n, d), one row for each person; a list of numbers is one column."""
    table = np.asarray(given)
    if table.dtype.kind not in "iufb" or not np.isfinite(table).all():
        raise DataError(f"`{name}` must be finite numbers, because distances are taken; got {table.dtype}.")
    table = table.astype(np.float64)[:, None] if table.ndim == 1 else table.astype(np.float64)
    if table.ndim != 2 or not table.size or (n is not None and len(table) != n):
        wanted = "one row for each person" if n is None else f"{n:,} rows, one for each person"
        raise DataError(f"`{name}` must have {wanted}, got shape {np.shape(given)}.")
    return table


def argmax_random_ties(scores: NDArray[np.float64], rng: Entropy) -> Guesses:
    """The column with the largest score of each row; scores within 1e-12 tie, and ties are broken at random."""
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-12
    chosen = (rng.words(len(best)) % best.sum(axis=1).astype(np.uint64)).astype(np.int64)
    return np.asarray((best.cumsum(axis=1) > chosen[:, None]).argmax(axis=1))
