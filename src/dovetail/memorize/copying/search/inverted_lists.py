"""An inverted file: training points in lists around centres, of which the nearest few are searched for each query.

Whatever it misses is farther than the truth, so a distance from here is never too small. A copy of a training point
lies in the list of its own nearest centre, which is searched first, unless several centres are equally near.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.core.display.display import mute
from dovetail.core.extras import require

Points = NDArray[np.float64]  # (n, d)
Rows = NDArray[np.int64]  # (n,)

ROWS_PER_CENTRE = 20  # training rows that a centre is fitted to
_BATCH = 8_192  # queries at a time


@mute
@dataclass(frozen=True, eq=False)
class InvertedLists:
    """Training points sorted by list.

    Parameters
    ----------
    middle : float array (d,)
        Taken away from all points: products of far points lose digits.
    centres : float array (lists, d)
    starts : int array (lists + 1,)
        Where each list begins in `points`.
    points, rows : arrays (l, d), (l,)
        The training points list by list, and their rows.
    """

    middle: NDArray[np.float64]
    centres: Points
    starts: Rows
    points: Points
    rows: Rows

    @classmethod
    def build(cls, points: Points, *, seed: int) -> InvertedLists:
        """About sqrt(l) lists, around centres of k-means on a part of the points (l, d)."""
        lists = max(1, round(len(points) ** 0.5))
        middle = points.mean(axis=0)
        some = np.random.default_rng(seed).permutation(len(points))[: ROWS_PER_CENTRE * lists]
        cluster = require("sklearn.cluster", extra="memorize").MiniBatchKMeans(
            lists, n_init=1, max_iter=20, batch_size=4096, random_state=seed, reassignment_ratio=0.0
        )
        centres = np.unique(np.asarray(cluster.fit(points[some] - middle).cluster_centers_, np.float64), axis=0)
        labels = np.concatenate(
            [
                _to_centres(points[start : start + _BATCH] - middle, centres).argmin(axis=1)
                for start in range(0, len(points), _BATCH)
            ]
        )
        lists = len(centres)
        rows = np.argsort(labels, kind="stable").astype(np.int64)
        starts = np.searchsorted(labels[rows], np.arange(lists + 1)).astype(np.int64)
        return cls(middle, centres, starts, points[rows] - middle, rows)

    def nearest(
        self, queries: Points, *, probes: int, tick: Callable[[int, int], None] = lambda done, total: None
    ) -> Rows:
        """The row of the nearest training point in the `probes` nearest lists, for each query (n, d)."""
        rows = np.empty(len(queries), dtype=np.int64)
        for start in range(0, len(queries), _BATCH):
            part = slice(start, start + _BATCH)
            rows[part] = self.rows[self._places(queries[part] - self.middle, min(probes, len(self.centres)))]
            tick(min(start + _BATCH, len(queries)), len(queries))
        return rows

    def _places(self, queries: Points, probes: int) -> Rows:
        """Where in `points` the nearest of the lists that are searched stands; one product for each list."""
        far = _to_centres(queries, self.centres)
        near = np.argpartition(far, probes - 1, axis=1)[:, :probes]
        order = np.argsort(near, axis=None, kind="stable")
        query, lists = order // probes, near.ravel()[order]
        ends = np.searchsorted(lists, np.arange(len(self.centres) + 1))
        best, place = np.full(len(queries), np.inf), np.zeros(len(queries), dtype=np.int64)
        for one in np.flatnonzero((np.diff(ends) > 0) & (np.diff(self.starts) > 0)):
            asked, rows = query[ends[one] : ends[one + 1]], slice(self.starts[one], self.starts[one + 1])
            squares = np.einsum("ij,ij->i", self.points[rows], self.points[rows])
            apart = squares - 2.0 * queries[asked] @ self.points[rows].T  # but for the query's own square
            winner = apart.argmin(axis=1)
            value = apart[np.arange(len(asked)), winner]
            better = value < best[asked]
            best[asked[better]] = value[better]
            place[asked[better]] = winner[better] + self.starts[one]
        return place


def _to_centres(points: Points, centres: Points) -> NDArray[np.float64]:
    """Squared distances to the centres but for the point's own square, (n, lists)."""
    return np.asarray(np.einsum("ij,ij->i", centres, centres) - 2.0 * points @ centres.T)
