"""Permutations of 0..n-1 as arrays, and how groups of labels mix under them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.entropy import Permutation
from dovetail.core.errors import DataError, UnsupportedError

Labels = NDArray[np.int64]  # (n,), 0..g-1
Mixing = NDArray[np.float64]  # (g, g), rows sum to 1

_MOST_CELLS = 10_000_000


def check_permutation(permutation: ArrayLike, n: int, name: str = "permutation") -> Permutation:
    """`permutation` as an array, each of 0..n-1 once; DataError otherwise."""
    given = np.asarray(permutation)
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise DataError(f"`{name}` must be {n:,} whole numbers, got shape {given.shape} of {given.dtype}.")
    if given.min() < 0 or given.max() >= n or not (np.bincount(given, minlength=n) == 1).all():
        raise DataError(f"`{name}` must hold each of 0..{n - 1} once, got {given[:8].tolist()}{' ..' * (n > 8)}.")
    return given.astype(np.int64)


def inverse(permutation: Permutation) -> Permutation:
    """The permutation that undoes this one.

    >>> inverse(np.array([2, 0, 1]))
    array([1, 2, 0])
    """
    result = np.empty_like(permutation)
    result[permutation] = np.arange(permutation.size)
    return result


def check_labels(labels: ArrayLike, n: int) -> Labels:
    """`labels` as an array (n,) of codes 0..g-1 for a table of g x g cells."""
    given = np.asarray(labels)
    if given.shape != (n,) or given.dtype.kind not in "iu" or given.min() < 0:
        raise DataError(f"`labels` must be {n:,} codes 0..g-1, got shape {given.shape} of {given.dtype}.")
    size = int(given.max()) + 1
    if size * size > _MOST_CELLS:
        raise UnsupportedError(
            f"A mixing table of {size:,} x {size:,} labels exceeds {_MOST_CELLS:,} cells; join labels."
        )
    return given.astype(np.int64)


def normalize_rows(flow: NDArray[np.float64]) -> Mixing:
    """Rows of expected flows (g, g) as shares; a label that nobody has keeps to itself."""
    total = flow.sum(axis=1, keepdims=True)
    return np.where(total > 0, flow / np.where(total > 0, total, 1.0), np.eye(len(flow)))


def number_rows(table: NDArray[np.int64]) -> Labels:
    """Numbers 0..g-1 of the rows (n, d): equal rows have the same.

    >>> number_rows(np.array([[5, 1], [5, 0], [5, 1]]))
    array([1, 0, 1])
    """
    return np.unique(table, axis=0, return_inverse=True)[1].reshape(len(table))
