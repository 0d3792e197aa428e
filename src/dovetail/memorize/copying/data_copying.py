"""The test for data-copying: prepared once for a training and a fresh sample, then run on any generated sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import share, whole
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import ParameterError
from dovetail.core.progress import Progress, silent
from dovetail.memorize.copying.baselines import ReferenceResult, compare_baselines, reference_result
from dovetail.memorize.copying.cells import (
    Partition,
    compare_cells,
    count_cells,
    fit_partition,
    merge_folds,
    partition_of,
)
from dovetail.memorize.copying.controls import (
    holdout_ratio,
    holdout_ratio_by_cell,
    holdout_share,
    membership,
    paired_tail,
    tail_test,
)
from dovetail.memorize.copying.rank_test import copied_fraction, delta_interval, rank_test
from dovetail.memorize.copying.result import CopyingResult, NearestCopy, apart, checked, varied
from dovetail.memorize.copying.search import (
    Distance,
    GeneratedSearch,
    Keys,
    TrainingIndex,
    choose_search,
    duplicates_of,
    first_rows,
    normalized,
    row_keys,
)

Points = NDArray[np.float64]  # (n, d)
Embedding = Callable[[Any], ArrayLike]

FEW_ROWS = 40  # training rows per cell, below which cells are cross-fitted
MOST_MEMBERS = 10_000
THRESHOLD_ROWS = 2_000
THRESHOLD_QUANTILE = 0.01
SHOWN = 12


@mute
@dataclass(frozen=True)
class _Fold:
    """A partition fitted on one part of T, and the index of the part whose neighbours count."""

    partition: Partition
    index: TrainingIndex
    fresh: NDArray[np.float64]
    labels: NDArray[np.int64]


@mute
@dataclass(frozen=True, eq=False)
class CopyingTest:
    """A training sample T and a fresh sample P, ready for generated samples; T is indexed once.

    The samples are rows of numbers (n, d) or, with an embedding, whatever it takes.

    Examples
    --------
    >>> draw = np.random.default_rng(3).standard_normal
    >>> train, fresh = draw((150, 3)), draw((150, 3))
    >>> CopyingTest.prepare(train, fresh).test(draw((150, 3))).verdict
    'nothing found'
    >>> CopyingTest.prepare(train, fresh).test(np.concatenate([train[:60], draw((90, 3))])).verdict
    'copying'
    """

    train: Points
    fresh: Points
    keys: Keys
    index: TrainingIndex
    search: GeneratedSearch
    distances: NDArray[np.float64]
    fresh_rows: NDArray[np.int64]
    folds: tuple[_Fold, ...]
    pools: tuple[TrainingIndex, TrainingIndex]
    held: int  # rows drawn for each pool, of which the distinct ones are in it
    threshold: float
    distance: Distance
    constant: int
    level: float
    tail: int
    seed: int
    embed: Embedding | None
    deduplicate: bool

    @classmethod
    def prepare(
        cls,
        train: Any,
        fresh: Any,
        *,
        holdout: Any = None,
        distance: Distance = "euclidean",
        embed: Embedding | None = None,
        widths: Sequence[int] | None = None,
        cells: int | Partition | None = None,
        cross_fit: bool | None = None,
        overlap: str = "refuse",
        search: str = "auto",
        deduplicate: bool = False,
        level: float = 0.05,
        tail: int = 10,
        seed: int = 0,
        progress: Progress = silent,
    ) -> CopyingTest:
        """Check the samples, index T, and fix everything that must not depend on Q.

        Parameters
        ----------
        train, fresh : arrays (l, d), (n, d), or what `embed` takes
            `fresh` was not used in training or tuning.
        holdout : array, optional
            Fresh points of their own for the holdout controls; default: P against equally many of T.
        distance : "euclidean" or "cosine"
        embed : function, optional
            From a sample to rows of numbers; distances are as good as it is.
        widths : sequence of int, optional
            How many numbers stand for each column of a table; default: one.
        cells : int or function, optional
            Number of k-means cells of T, or a function from points to labels; default: 200 points of P in each.
        cross_fit : bool, optional
            Fit cells on one half of T and search neighbours in the other, both ways; default: where T is small.
        overlap : "refuse", "drop" or "keep"
            What to do with fresh rows that stand in T.
        search : "auto", "exact" or "approximate"
            Of the training rows nearest to generated ones; everything else is exact. "auto" is approximate from a
            million training rows on, where it finds 99 % of the neighbours of fresh points.
        deduplicate : bool
            Compare distinct rows of P and Q only.
        level : float in (0, 1)
            Of each of the two families of tests in the verdict.
        tail : int
            k of the tail test.
        seed : int
            Of k-means, random halves and ties.

        Raises
        ------
        DataError, ParameterError, UnsupportedError
            One line: what, where, what to do.
        """
        if overlap not in ("refuse", "drop", "keep"):
            raise ParameterError(f"`overlap` must be refuse, drop or keep, got {overlap!r}.")
        level, tail, seed = share("level", level), whole("tail", tail, least=1), whole("seed", seed, least=0)
        if not 0.0 < level < 1.0:
            raise ParameterError(f"`level` must be above 0 and below 1, got {level:g}.")
        raw = checked(_embedded(train, embed), "train")
        other = apart(raw, checked(_embedded(fresh, embed), "fresh", width=raw.shape[1]), overlap=overlap)
        if deduplicate:
            other = checked(other[first_rows(other)], "fresh, distinct rows")
        kept = other
        if holdout is not None:
            kept = checked(_embedded(holdout, embed), "holdout", width=raw.shape[1])
            kept = apart(raw, kept, overlap=overlap, what="holdout")
        whole("tail", tail, least=1, most=len(other))
        constant = varied(raw, widths)
        rng = simulation(seed)
        t, p, v = (
            normalized(points, distance, what)
            for points, what in ((raw, "train"), (other, "fresh"), (kept, "holdout"))
        )
        index = TrainingIndex(t, distance)
        distances, rows = index.nearest(p, tick=lambda done, total: progress("fresh", done, total))
        ask = choose_search(
            index, (p, distances), search=search, seed=seed, tick=lambda done, total: progress("lists", done, total)
        )
        progress("cells", 0, 1)
        folds = _folds(t, p, index, distances, cells=cells, cross_fit=cross_fit, seed=seed, rng=rng)
        progress("cells", 1, 1)
        some = rng.permutation(len(t))[:THRESHOLD_ROWS]
        threshold = float(np.quantile(index.nearest_other(some), THRESHOLD_QUANTILE))
        return cls(
            raw, other, row_keys(raw), index, ask, distances, rows, folds, _pools(t, v, rng), min(len(t), len(v)),
            threshold, distance, constant, level, tail, seed, embed, deduplicate,
        )  # fmt: skip

    def test(self, generated: Any, *, baselines: bool = True, progress: Progress = silent) -> CopyingResult:
        """Compare one generated sample (m, d) with the fresh one; `baselines` costs as much again."""
        raw = checked(_embedded(generated, self.embed), "generated", width=self.train.shape[1])
        keys = row_keys(raw)
        places = first_rows(raw) if self.deduplicate else np.arange(len(raw))
        if self.deduplicate:
            raw = checked(raw[places], "generated, distinct rows")
        rng = simulation(self.seed + 1)
        q = normalized(raw, self.distance, "generated")
        distances, rows, searched = self.search.nearest(
            q, rng, tick=lambda done, total: progress("generated", done, total)
        )
        cells = merge_folds(
            [
                compare_cells((fold.fresh, fold.labels), (found, fold.partition(q)), level=self.level, rng=rng)
                for fold in self.folds
                for found in [distances if fold.index is self.index else fold.index.nearest(q)[0]]
            ],
            level=self.level,
        )
        pools = [pool.nearest(q) for pool in self.pools]
        size = self.held
        backwards = TrainingIndex(q, self.distance)
        members = self.index.points[rng.permutation(len(self.train))[:MOST_MEMBERS]]
        strangers = normalized(self.fresh, self.distance, "fresh")[:MOST_MEMBERS]
        progress("controls", 0, 1)
        belongs = membership(backwards.nearest(members)[0], backwards.nearest(strangers)[0], rng=rng)
        progress("controls", 1, 1)
        fraction, near, usual = copied_fraction(self.distances, distances, self.threshold)
        holdout = holdout_share(pools[0], pools[1], size=size)
        return CopyingResult(
            l=len(self.train),
            n=len(self.fresh),
            m=len(raw),
            overall=rank_test(self.distances, distances, rng=rng),
            interval=delta_interval(self.distances, distances, level=1.0 - self.level),
            cells=cells,
            tail=tail_test(self.distances, distances, k=self.tail, rng=rng),
            ratio=holdout_ratio(pools[0], pools[1], size=size),
            local_ratio=holdout_ratio_by_cell(pools[0], pools[1], self.folds[0].partition(q), size=size),
            paired=paired_tail(pools[0], pools[1], k=self.tail),
            share=holdout,
            membership=belongs,
            duplicates=duplicates_of(self.keys, row_keys(self.fresh), keys, distinct=self.deduplicate),
            copied_fraction=fraction,
            threshold=(self.threshold, near, usual),
            nearest=self._nearest(distances, rows, places),
            baselines=compare_baselines(
                (self.train, self.fresh, raw),
                self.index,
                (self.distances, distances),
                (self.fresh_rows, rows),
                cells,
                holdout,
                rng=rng,
                tick=lambda done, total: progress("baselines", done, total),
            )
            if baselines
            else {},
            level=self.level,
            distance=self.distance,
            constant_columns=self.constant,
            fresh_at_zero=float((self.distances == 0.0).mean()),
            search=searched,
            width=raw.shape[1],
        )

    def cells_of(self, points: Points) -> NDArray[np.int64]:
        """The cell of each point (n, d); of the first of two partitions where cells are cross-fitted."""
        return self.folds[0].partition(normalized(points, self.distance, "points"))

    def reference(self, generated: Any) -> ReferenceResult:
        """The published code's formulas on the same samples and cells."""
        raw = checked(_embedded(generated, self.embed), "generated", width=self.train.shape[1])
        q, p = (normalized(points, self.distance, "sample") for points in (raw, self.fresh))
        partition, t = self.folds[0].partition, self.index.points
        return reference_result(
            (t, partition(t)), (p, partition(p)), (q, partition(q)), (self.distances, self.index.nearest(q)[0]),
            distance=self.distance,
        )  # fmt: skip

    def _nearest(
        self, distances: NDArray[np.float64], rows: NDArray[np.int64], places: NDArray[np.int64]
    ) -> tuple[NearestCopy, ...]:
        """The nearest pairs, one for each training row; `places` (m,) are the rows of the sample as it was given."""
        order = np.argsort(distances, kind="stable")
        first = order[np.sort(np.unique(rows[order], return_index=True)[1])][:SHOWN]
        return tuple(
            NearestCopy(
                int(places[i]), int(rows[i]), float(distances[i]), float((self.distances <= distances[i]).mean())
            )
            for i in first
        )


def _embedded(sample: Any, embed: Embedding | None) -> Any:
    return sample if embed is None or sample is None else embed(sample)


def _folds(
    t: Points,
    p: Points,
    index: TrainingIndex,
    distances: NDArray[np.float64],
    *,
    cells: int | Partition | None,
    cross_fit: bool | None,
    seed: int,
    rng: Entropy,
) -> tuple[_Fold, ...]:
    if callable(cells):
        partition = partition_of(cells)
        return (_Fold(partition, index, distances, partition(p)),)
    k = count_cells(len(t), len(p), len(p)) if cells is None else whole("cells", cells, least=1, most=len(t))
    if cross_fit is None:
        cross_fit = k > 1 and len(t) < FEW_ROWS * k
    if not cross_fit:
        partition = fit_partition(t, k, seed=seed)
        return (_Fold(partition, index, distances, partition(p)),)
    halves = np.array_split(rng.permutation(len(t)), 2)
    folds = []
    for fitted, searched in (halves, halves[::-1]):
        partition = fit_partition(t[fitted], min(k, len(fitted)), seed=seed)
        other = TrainingIndex(t[searched], index.distance)
        folds.append(_Fold(partition, other, other.nearest(p)[0], partition(p)))
    return tuple(folds)


def _pools(t: Points, v: Points, rng: Entropy) -> tuple[TrainingIndex, TrainingIndex]:
    """The distinct rows of equally many rows of T and of held-out points.

    Drawn first: of a larger sample the distinct rows are rarer ones, and the two would not be exchangeable.
    """
    size = min(len(t), len(v))
    one, two = (points[rng.permutation(len(points))[:size]] for points in (t, v))
    return TrainingIndex(one[first_rows(one)]), TrainingIndex(two[first_rows(two)])
