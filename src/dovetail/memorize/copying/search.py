"""Nearest training rows of generated points: exact, or from a million rows on approximate with measured recall.

Fresh points are always searched exactly. A neighbour that is missed makes a generated point look farther than it is,
so approximate search can hide copying and cannot feign it: every p-value for copying stays an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy  # scipy.stats loads when it is first used: half a second
from numpy.typing import ArrayLike, NDArray

from dovetail.core.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.extras import require
from dovetail.core.progress import Tick, no_tick
from dovetail.memorize.copying.rank_test import clopper_pearson

# An inverted file: training points in lists around centres, of which the nearest few are searched for each query.
#
# Whatever it misses is farther than the truth, so a distance from here is never too small. A copy of a training point
# lies in the list of its own nearest centre, which is searched first, unless several centres are equally near.


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

    def nearest(self, queries: Points, *, probes: int, tick: Tick = no_tick) -> Rows:
        """The row of the nearest training point in the `probes` nearest lists, for each query (n, d)."""
        rows = np.empty(len(queries), dtype=np.int64)
        for start in range(0, len(queries), _BATCH):
            part = slice(start, start + _BATCH)
            rows[part] = self.rows[self._places(queries[part] - self.middle, min(probes, len(self.centres)))]
            tick(min(start + _BATCH, len(queries)), len(queries))
        return rows

    def _places(self, queries: Points, probes: int) -> Rows:
        """Rows of `points` that are nearest among the lists that are searched; one product for each list."""
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


# Distances to the nearest training point: exact, in bounded memory, and zero for a copy.
#
# A product of matrices finds the nearest point and rounds its distance; the distance itself is taken from the
# difference of the two rows, so that a copy has distance 0 and copies tie. Below `TREE_DIMENSIONS` a tree is faster.


Distance = Literal["euclidean", "cosine"]

TREE_DIMENSIONS = 8
DIGITS = 2.0**30  # distances closer than 1e-9 of themselves are equal
_TRAINING_INDEX_BATCH = 2_048  # queries at a time


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

    def nearest(self, queries: Points, *, tick: Tick = no_tick) -> tuple[NDArray[np.float64], Rows]:
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
        for start in range(0, len(queries), _TRAINING_INDEX_BATCH):
            part = slice(start, start + _TRAINING_INDEX_BATCH)
            rows[part] = find(queries[part] - centre, moved)
            distances[part] = self.distances_to(queries[part], rows[part])
            tick(min(start + _TRAINING_INDEX_BATCH, len(queries)), len(queries))
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


# Equal rows, found by hashing: what is in two samples, and what stands in one sample more than once.
#
# Hashes have 64 bits, so that a million training rows take eight megabytes; two different rows among a million and
# ten thousand share one with a chance below 1e-9.


Keys = NDArray[np.int64]  # (n,)


LITERAL = 0.01  # chance of coincidence, up to which equal rows are called copies


@dataclass(frozen=True)
class Duplicates:
    """Rows of Q and of P that stand in T, with Fisher's p for "more of Q", and twins inside each sample.

    `by_coincidence` is the chance that so many coincidences all fall to Q, where T and P show none; `distinct` is how
    many training rows stand in Q.
    """

    generated: int
    fresh: int
    p: float
    twins_train: float
    twins_generated: float
    twins_fresh: float
    by_coincidence: float
    distinct: int

    @property
    def literal(self) -> bool:
        """True if Q holds several training rows although nothing else repeats: more than coincidence explains."""
        alone = self.distinct > 1 and self.fresh == 0 and self.twins_train == 0.0
        return alone and self.by_coincidence <= LITERAL


def row_keys(points: Points) -> Keys:
    """One hash per row (n, d), equal for equal rows; -0.0 equals 0.0."""
    return np.fromiter((hash((row + 0.0).tobytes()) for row in points), dtype=np.int64, count=len(points))


def rows_in(queries: Points, sample: Points) -> NDArray[np.bool_]:
    """Mark the rows of `queries` (n, d) that stand in `sample` too."""
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


def concentrated(count: int, keys: Keys, train: Keys) -> float:
    """Chance that so many of Q's coincidences fall to T if rows of Q meet T as often as each other; 0 without any.

    `count` rows of T stand in Q (m,); pairs of equal rows in Q that T lacks speak for a model that draws in its data,
    or chooses among few rows: it meets T by chance more often than fresh data do.
    """
    twins = equal_pairs(keys[~np.isin(keys, train)])
    inside, between = len(keys) * (len(keys) - 1) / 2, len(keys) * len(train)
    return float(scipy.stats.binom.sf(count - 1, count + twins, between / (between + inside))) if twins else 0.0


def equal_pairs(keys: Keys) -> int:
    """Pairs of equal rows, from their `row_keys`."""
    counts = np.unique(keys, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def unrepeated_columns(points: Points) -> int:
    """Columns of at most 2,000 rows in which at least 99 % of the values are distinct."""
    some = np.sort(points[:2_000], axis=0)
    return int(((np.diff(some, axis=0) > 0).mean(axis=0) >= 0.99).sum())


def repeated_share(keys: Keys) -> float:
    """Share of rows that have a twin in the same sample, from their `row_keys`."""
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return float((counts[inverse] > 1).mean())


def duplicates_of(train: Keys, fresh: Keys, generated: Keys, *, distinct: bool = False) -> Duplicates:
    """Count from the `row_keys` of all rows; `distinct` counts equal generated rows once."""
    once = np.unique(generated) if distinct else generated
    copies, usual = (np.isin(keys, train) for keys in (once, fresh))
    table = [[copies.sum(), (~copies).sum()], [usual.sum(), (~usual).sum()]]
    found = len(np.intersect1d(generated, train))
    return Duplicates(
        int(copies.sum()),
        int(usual.sum()),
        float(scipy.stats.fisher_exact(table, alternative="greater").pvalue),
        repeated_share(train),
        repeated_share(generated),
        repeated_share(fresh),
        max(all_coincide_in(found, len(train), len(fresh), len(once)), concentrated(found, generated, train)),
        found,
    )


Points = NDArray[np.float64]  # (n, d)
Rows = NDArray[np.int64]  # (n,)

LARGE = 1_000_000  # training rows from which "auto" is approximate
ENOUGH = 0.99  # recall that "auto" asks for, on fresh points
SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8)  # of the lists that may be searched
CHECKED = 1_000  # queries whose neighbours are searched exactly too, to measure recall
_SAME = 1e-9  # relative; an equally near neighbour is no miss
DIRECTION = (
    "missed neighbours make generated points look farther than they are: copying may be understated, never overstated"
)


@dataclass(frozen=True)
class Recall:
    """Measured recall: `found` of `queries` random generated points got as near a neighbour as by exact search."""

    queries: int
    found: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, Clopper-Pearson."""
        return clopper_pearson(self.found, self.queries)

    @property
    def missed(self) -> float:
        """At most this share of generated points misses its neighbour, with confidence 97.5 %."""
        return 1.0 - self.interval[0]


@dataclass(frozen=True)
class SearchNote:
    """Note on a search; `recall` is None where it was exact."""

    why: str
    recall: Recall | None = None
    searched: float = 1.0  # share of the lists

    @property
    def missed(self) -> float:
        """At most this share of generated points misses its neighbour."""
        return 0.0 if self.recall is None else self.recall.missed

    @property
    def sentence(self) -> str:
        """Say what a reader of the verdict has to know; empty for exact search of a small sample."""
        if self.recall is None:
            return self.why
        low, high = self.recall.interval
        return (
            f"Generated points were searched approximately ({self.searched:.1%} of the lists): "
            f"{self.recall.found:,} of {self.recall.queries:,} got their true nearest training row, recall "
            f"{self.recall.found / self.recall.queries:.3f} (95 % interval {low:.4f} to {high:.4f}); {DIRECTION}."
        )

    def document(self) -> dict[str, Any]:
        """JSON-ready; fresh points, held-out controls and exact copies are exact in both."""
        if self.recall is None:
            return {"method": "exact", "reason": self.why or "fewer rows than approximate search is for"}
        return {
            "method": "approximate",
            "exact": ["fresh", "holdout controls", "membership", "exact copies"],
            "lists_searched": self.searched,
            "recall": {
                "value": self.recall.found / self.recall.queries,
                "interval": list(self.recall.interval),
                "queries": self.recall.queries,
                "found": self.recall.found,
            },
            "direction": DIRECTION,
        }


@dataclass(frozen=True, eq=False)
class GeneratedSearch:
    """The index of T as generated samples ask it.

    Parameters
    ----------
    index : TrainingIndex
    lists : InvertedLists or None
        None for exact search.
    probes : int
        Lists searched for each query.
    why : str
        Of exact search where somebody could expect another.
    """

    index: TrainingIndex
    lists: InvertedLists | None = None
    probes: int = 0
    why: str = ""

    def nearest(self, queries: Points, rng: Entropy, *, tick: Tick) -> tuple[NDArray[np.float64], Rows, SearchNote]:
        """Distances (m,), training rows (m,), and how well they were found."""
        if self.lists is None:
            return (*self.index.nearest(queries, tick=tick), SearchNote(self.why))
        rows = self.lists.nearest(queries, probes=self.probes, tick=tick)
        rows = self._copied(queries, rows)
        distances = self.index.distances_to(queries, rows)
        some = rng.permutation(len(queries))[:CHECKED]
        exact, nearer = self.index.nearest(queries[some])
        found = int(_as_near(distances[some], exact).sum())
        better = exact < distances[some]  # what was found on the way is not thrown away
        distances[some[better]], rows[some[better]] = exact[better], nearer[better]
        return distances, rows, SearchNote("", Recall(len(some), found), self.probes / len(self.lists.centres))

    def _copied(self, queries: Points, rows: Rows) -> Rows:
        """The rows that were found, or the equal row where there is one: centres tie among rounded values."""
        keys, asked = row_keys(self.index.points), row_keys(queries)
        order = np.argsort(keys, kind="stable")
        place = order[np.minimum(np.searchsorted(keys, asked, sorter=order), len(keys) - 1)]
        return np.where(keys[place] == asked, place, rows)


def choose_search(
    index: TrainingIndex, fresh: tuple[Points, NDArray[np.float64]], *, search: str, seed: int, tick: Tick
) -> GeneratedSearch:
    """Exact search, or as few lists as find the neighbours of 99 % of the fresh points (n, d), distances (n,).

    Parameters
    ----------
    search : "auto", "exact" or "approximate"
        "auto" is approximate from a million training rows on, where an eighth of the lists or less is enough.
    """
    if search not in ("auto", "exact", "approximate"):
        raise ParameterError(f"`search` must be auto, exact or approximate, got {search!r}.")
    if search == "exact" or (search == "auto" and len(index.points) < LARGE):
        return GeneratedSearch(index)
    if index.points.shape[1] <= TREE_DIMENSIONS:
        return GeneratedSearch(
            index, why=f"Searched exactly, by a tree: up to {TREE_DIMENSIONS} numbers nothing is faster."
        )
    tick(0, 1)
    lists = InvertedLists.build(index.points, seed=seed)
    points, distances = (part[:CHECKED] for part in fresh)
    probes, recall = 1, 0.0
    for share in SHARES:
        probes = max(1, round(share * len(lists.centres)))
        found = index.distances_to(points, lists.nearest(points, probes=probes))
        recall = float(_as_near(found, distances).mean())
        if recall >= ENOUGH:
            break
    tick(1, 1)
    if recall < ENOUGH and search == "auto":
        why = (
            f"Searched exactly: an eighth of the lists finds the neighbours of {recall:.1%} of the fresh points only."
        )
        return GeneratedSearch(index, why=why)
    return GeneratedSearch(index, lists, probes)


def _as_near(found: NDArray[np.float64], exact: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(found <= exact * (1.0 + _SAME))
