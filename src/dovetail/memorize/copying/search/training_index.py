"""Distances to the nearest training point: exact, in bounded memory, and zero for a copy.

A product of matrices finds the nearest point and rounds its distance; the distance itself is taken from the
difference of the two rows, so that a copy has distance 0 and copies tie. Below `TREE_DIMENSIONS` a tree is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.display.display import mute
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.extras import require

Points = NDArray[np.float64]  # (n, d)
Rows = NDArray[np.int64]  # (n,)
Distance = Literal["euclidean", "cosine"]
Tick = Callable[[int, int], None]  # done, total

TREE_DIMENSIONS = 8
DIGITS = 2.0**30  # distances closer than 1e-9 of themselves are equal
_BATCH = 2_048  # queries at a time


def _unwatched(done: int, total: int) -> None:
    del done, total


@mute
@dataclass(frozen=True, eq=False)
class TrainingIndex:
    """The training sample, ready to be asked for nearest neighbours; one index serves many generated samples.

    Parameters
    ----------
    points : float array (l, d)
        As `normalized` returns them.
    distance : "euclidean" or "cosine"
        Cosine: Euclidean distance of the rows scaled to length 1, sqrt(2 - 2 cos), which is monotone in the cosine.
    """

    points: Points
    distance: Distance = "euclidean"
    _tree: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        tree = None
        if self.points.shape[1] <= TREE_DIMENSIONS:
            from scipy.spatial import cKDTree

            tree = cKDTree(self.points)
        object.__setattr__(self, "_tree", tree)

    def nearest(self, queries: Points, *, tick: Tick = _unwatched) -> tuple[NDArray[np.float64], Rows]:
        """Distance to the nearest training point, and its row, for each query (n, d)."""
        if self._tree is not None:
            distances, rows = self._tree.query(queries)
            tick(len(queries), len(queries))
            return evened(distances), np.asarray(rows, dtype=np.int64)
        find = require("sklearn.metrics", extra="memorize").pairwise_distances_argmin
        rows = np.empty(len(queries), dtype=np.int64)
        distances = np.empty(len(queries))
        centre = self.points.mean(axis=0)  # products of far points lose digits
        moved = self.points - centre
        for start in range(0, len(queries), _BATCH):
            part = slice(start, start + _BATCH)
            rows[part] = find(queries[part] - centre, moved)
            distances[part] = self.distances_to(queries[part], rows[part])
            tick(min(start + _BATCH, len(queries)), len(queries))
        return distances, rows

    def distances_to(self, queries: Points, rows: Rows) -> NDArray[np.float64]:
        """From each query (n, d) to the training row (n,) beside it, from the difference: a copy is at 0."""
        return evened(np.linalg.norm(queries - self.points[rows], axis=1))

    def nearest_other(self, rows: Rows) -> NDArray[np.float64]:
        """Distance from each of these training rows to the nearest other training row; twins are at 0."""
        if len(self.points) < 2:
            return np.full(len(rows), np.inf)
        if self._tree is not None:
            return evened(self._tree.query(self.points[rows], k=2)[0][:, 1])
        search = require("sklearn.neighbors", extra="memorize").NearestNeighbors(n_neighbors=2, algorithm="brute")
        found = search.fit(self.points - self.points.mean(axis=0))
        two = found.kneighbors(self.points[rows] - self.points.mean(axis=0), return_distance=False)
        other = np.where(two[:, 0] == rows, two[:, 1], two[:, 0])  # a twin may come first
        return evened(np.linalg.norm(self.points[rows] - self.points[other], axis=1))


def evened(numbers: ArrayLike) -> NDArray[np.float64]:
    """Numbers to 30 binary digits: distances of rounded values that are equal but for the arithmetic tie.

    >>> 0.3 - 0.2 == 0.2 - 0.1, bool(evened(0.3 - 0.2) == evened(0.2 - 0.1))
    (False, True)
    """
    part, power = np.frexp(np.asarray(numbers, dtype=np.float64))
    return np.asarray(np.ldexp(np.round(part * DIGITS) / DIGITS, power))


def normalized(points: Points, distance: Distance, what: str) -> Points:
    """The points between which Euclidean distances are taken.

    Raises
    ------
    DataError
        For the cosine of a row of zeros, which has no direction.
    """
    if distance == "euclidean":
        return points
    if distance != "cosine":
        raise ParameterError(f"`distance` must be euclidean or cosine, got {distance!r}.")
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    empty = np.flatnonzero(lengths[:, 0] == 0.0)
    if empty.size:
        raise DataError(
            f"{what}: {empty.size:,} rows are zero (first row {empty[0] + 1}) and have no cosine; use euclidean."
        )
    return np.asarray(points / lengths, dtype=np.float64)
