"""Exact nearest neighbours in a public set, with ties that no order of the files decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.core.errors import DataError

Distance = Literal["euclidean", "cosine"]
Rows = NDArray[np.float64]  # (n, d)
Codes = NDArray[np.int64]  # (n,), classes as 0, 1, ..

SAME = 1e-9  # distances this close, as a share of the embeddings' length, are equal: rounding cannot tell them apart
_BLOCK = 4_000_000  # distances held at a time


class Votes(NamedTuple):
    """What the K nearest public rows of some queries say for each class; all float arrays (n, classes).

    `copies` are the votes at distance 0, `nearness` the sum of 1 / distance over the other votes.
    """

    counts: Rows
    copies: Rows
    nearness: Rows


def votes(
    queries: Rows, public: Rows, codes: Codes, *, classes: int, neighbours: int, distance: Distance = "euclidean"
) -> Iterator[Votes]:
    r"""Votes of the K nearest public rows for each query, in blocks of queries, in order.

    All public rows at the distance of the K-th nearest enter with equal weight, which adds up to what is left of K:

    .. math:: w_x = 1 \text{ if } d_x < d_K, \quad (K - |\{d < d_K\}|) / |\{d = d_K\}| \text{ if } d_x = d_K

    so the votes depend on no order of the public rows. Candidates come from a matrix product with a margin above its
    rounding; their distances are then computed directly, because products break ties and exact copies.

    Parameters
    ----------
    queries, public : float arrays (n, d) and (N, d)
    codes : int array (N,)
        The class of each public row.
    neighbours : int, 1 to N
        K.
    distance : "euclidean" or "cosine"
        Cosine: rows are scaled to length 1 first.

    Notes
    -----
    O(n N d) time; O(N) memory beyond the arguments.
    """
    queries, public = _comparable(queries, public, distance)
    length = np.linalg.norm(public, axis=1).max()
    squares = (public**2).sum(axis=1)
    step = max(1, _BLOCK // len(public))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        scale = np.linalg.norm(block, axis=1) + length
        row, column = _candidates(block, public, squares, scale, neighbours)
        far = _direct(block, public, row, column)
        yield _count(row, codes[column], far, scale, len(block), classes, neighbours)


def _comparable(queries: Rows, public: Rows, distance: Distance) -> tuple[Rows, Rows]:
    """Rows whose Euclidean distances are asked for; moved to the middle of the public set, which costs no digits."""
    if distance == "cosine":
        lengths = [np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries, public)]
        if any((each == 0.0).any() for each in lengths):
            raise DataError("`distance` must be euclidean where an embedding is zero, got cosine.")
        queries, public = queries / lengths[0], public / lengths[1]
    middle = public.mean(axis=0)
    return queries - middle, public - middle


def _candidates(
    block: Rows, public: Rows, squares: Rows, scale: Rows, neighbours: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs that may be among the K nearest or tie with the K-th: squared distances up to a margin above the K-th."""
    approximate = (block**2).sum(axis=1)[:, None] + squares - 2.0 * block @ public.T
    kth = approximate.min(axis=1) if neighbours == 1 else np.partition(approximate, neighbours - 1)[:, neighbours - 1]
    rounding = 8.0 * (block.shape[1] + 8) * np.finfo(np.float64).eps * scale**2
    reach = np.sqrt(np.maximum(kth, 0.0) + rounding) + 2.0 * SAME * scale
    row, column = np.nonzero(approximate <= (reach**2 + rounding)[:, None])
    return row, column


def _direct(block: Rows, public: Rows, row: NDArray[np.intp], column: NDArray[np.intp]) -> Rows:
    """The distance of each pair, from differences."""
    step = max(1, _BLOCK // block.shape[1])
    parts = [
        np.linalg.norm(block[row[at : at + step]] - public[column[at : at + step]], axis=1)
        for at in range(0, len(row), step)
    ]
    return np.concatenate(parts)


def _count(
    row: NDArray[np.intp], code: Codes, far: Rows, scale: Rows, n: int, classes: int, neighbours: int
) -> Votes:
    order = np.lexsort((far, row))  # `row` is sorted already, so places stay within their row
    starts = np.searchsorted(row, np.arange(n))
    kth = far[order][starts + neighbours - 1][row]
    same = SAME * scale[row]
    inside, tied = far < kth - same, np.abs(far - kth) <= same
    left = neighbours - np.bincount(row, inside, minlength=n)
    weight = inside + tied * (left / np.bincount(row, tied, minlength=n))[row]
    copy = far <= same
    nearness = weight * ~copy / np.where(copy, 1.0, far)

    def total(weights: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.bincount(row * classes + code, weights, minlength=n * classes).reshape(n, classes))

    return Votes(total(weight), total(weight * copy), total(nearness))
