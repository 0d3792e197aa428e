"""The test in parts of the space: cells of the training sample, each with its own comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.extras import require
from dovetail.memorize.copying.rank_test import (
    RankTest,
    benjamini_hochberg,
    delta_interval,
    detectable_by_ranks,
    holm,
    rank_test,
)
from dovetail.memorize.copying.search import first_rows

Points = NDArray[np.float64]  # (n, d)
Labels = NDArray[np.int64]  # (n,)
Partition = Callable[[Points], Labels]

LEAST_IN_CELL = 20
MOST_CELLS = 50
ROWS_PER_CELL = 200  # of the smaller of P and Q
TRAINING_ROWS = 20  # per cell
MOST_FITTED = 10_000


@dataclass(frozen=True)
class Cell:
    """The comparison in one cell, and how well the cell is represented.

    `p` is one-sided for copying, `p_holm` and `p_bh` adjusted over all cells that were tested; `representation` is
    the z of Q's share against P's with its Holm p, two-sided. `detectable`: share of copies that would be seen.
    """

    cell: int
    n: int
    m: int
    test: RankTest
    interval: tuple[float, float]
    p_holm: float
    p_bh: float
    representation: float
    p_representation: float
    detectable: float


@dataclass(frozen=True)
class CellComparison:
    """All cells with at least 20 points of P and of Q, the average statistics, and what they cover."""

    cells: tuple[Cell, ...]
    left_out: int
    c_t: float | None
    c_t_standardized: float | None
    covered_fresh: float
    covered_generated: float
    cross_fitted: bool = False


def partition_of(own: Callable[[Points], ArrayLike]) -> Partition:
    """A caller's own partition, its labels checked each time: one whole number for each point."""

    def labels(points: Points) -> Labels:
        found = np.asarray(own(points))
        if found.shape != (len(points),) or found.dtype.kind not in "biu":
            got = f"{' x '.join(map(str, found.shape)) or 'one'} of {found.dtype}"
            raise DataError(f"`cells` must give one whole number for each of the {len(points):,} points, got {got}.")
        return found.astype(np.int64)

    return labels


def count_cells(l: int, n: int, m: int) -> int:  # noqa: E741
    """Cells for which there are rows: 200 of P and Q and 20 of T for each on average, at most 50."""
    return int(max(1, min(MOST_CELLS, min(n, m) // ROWS_PER_CELL, l // TRAINING_ROWS)))


def fit_partition(train: Points, k: int, *, seed: int) -> Partition:
    """Cells of k-means on the training sample alone, 10 starts; P and Q have no part in it."""
    if k == 1:
        return lambda points: np.zeros(len(points), dtype=np.int64)
    some, starts = train, 10
    if len(train) > MOST_FITTED:  # cells of a part of T serve as well
        some, starts = train[np.random.default_rng(seed).permutation(len(train))[:MOST_FITTED]], 3
    k = min(k, len(first_rows(some)))
    cluster = require("sklearn.cluster", extra="memorize").KMeans(k, n_init=starts, random_state=seed)
    # ten thousand points are faster on one thread, and threads that wait for each other keep a busy machine busier
    with require("threadpoolctl", extra="memorize").threadpool_limits(1):
        fitted = cluster.fit(some)
    return lambda points: np.asarray(fitted.predict(points), dtype=np.int64)


def compare_cells(
    fresh: tuple[NDArray[np.float64], Labels],
    generated: tuple[NDArray[np.float64], Labels],
    *,
    level: float = 0.05,
    rng: Entropy | None = None,
) -> CellComparison:
    r"""Compare distances within each cell; each sample comes as distances (n,) and labels (n,).

    .. math:: C_T = \frac{\sum w Z}{\sum w}, \quad C_T^{std} = \frac{\sum w Z}{\sqrt{\sum w^2}}, \quad w = P(\pi)

    C_T is the paper's statistic and no z-score: under the null its deviation is sqrt(sum w^2) / sum w. The
    standardized form has deviation 1.

    Notes
    -----
    The paper leaves the convergence of the average open. For cells that are fixed before P and Q are drawn, with
    shares p and q, and m / n -> r, almost surely

    .. math:: \frac{C_T}{\sqrt n} \to \frac{\sum_\pi p_\pi (\Delta_\pi - \tfrac12)
              \sqrt{12\, r\, p_\pi q_\pi / (p_\pi + r q_\pi)}}{\sum_\pi p_\pi}

    by `deviation_bound` in each cell and the law of large numbers for the counts. So C_T finds what moves this
    average and no more: cells of both signs cancel, and the worst cell is tested besides. Where P = Q in every cell
    the standardized form tends to a standard normal number: given the counts its terms are independent.
    """
    (a, in_a), (b, in_b) = fresh, generated
    names = np.unique(np.concatenate([in_a, in_b]))
    counts = {int(c): (int((in_a == c).sum()), int((in_b == c).sum())) for c in names}
    kept = [c for c, sizes in counts.items() if min(sizes) >= LEAST_IN_CELL]
    # in each cell: distances by ranks, and how many points fall there; then corrected for the number of cells
    tests = [rank_test(a[in_a == c], b[in_b == c], rng=rng) for c in kept]
    z_share = [_representation(*counts[c], len(a), len(b)) for c in counts]
    p_share = dict(zip(counts, holm([2 * float(ndtr(-abs(z))) for z in z_share]), strict=True))
    adjusted, discovery = (f([test.p_copying for test in tests]) for f in (holm, benjamini_hochberg))
    cells = tuple(
        Cell(
            c,
            test.n,
            test.m,
            test,
            delta_interval(a[in_a == c], b[in_b == c], level=1.0 - level),
            p,
            q,
            z_share[list(counts).index(c)],
            p_share[c],
            detectable_by_ranks(test.n, test.m, level=level / len(kept)),
        )
        for c, test, p, q in zip(kept, tests, adjusted, discovery, strict=True)
    )
    weights = np.array([test.n / len(a) for test in tests])
    total = float(weights @ [test.z for test in tests]) if tests else 0.0
    return CellComparison(
        cells,
        len(counts) - len(kept),
        total / float(weights.sum()) if tests else None,
        total / sqrt(float(weights @ weights)) if tests else None,
        sum(test.n for test in tests) / len(a),
        sum(test.m for test in tests) / len(b),
    )


def merge_folds(folds: Sequence[CellComparison], *, level: float = 0.05) -> CellComparison:
    """One comparison of cross-fitted ones: p-values adjusted over the cells of all, averages of the averages.

    Statistics of two folds share P and Q, so a mean of standardized ones has a deviation of at most 1.
    """
    if len(folds) == 1:
        return folds[0]
    cells = [cell for fold in folds for cell in fold.cells]
    adjusted, discovery = (f([cell.test.p_copying for cell in cells]) for f in (holm, benjamini_hochberg))
    shares = [detectable_by_ranks(cell.n, cell.m, level=level / len(cells)) for cell in cells]
    known = [fold for fold in folds if fold.c_t is not None]
    return CellComparison(
        tuple(
            replace(cell, cell=number, p_holm=p, p_bh=q, detectable=share)
            for number, (cell, p, q, share) in enumerate(zip(cells, adjusted, discovery, shares, strict=True))
        ),
        sum(fold.left_out for fold in folds),
        sum(fold.c_t or 0.0 for fold in known) / len(known) if known else None,
        sum(fold.c_t_standardized or 0.0 for fold in known) / len(known) if known else None,
        sum(fold.covered_fresh for fold in folds) / len(folds),
        sum(fold.covered_generated for fold in folds) / len(folds),
        cross_fitted=True,
    )


def _representation(n_cell: int, m_cell: int, n: int, m: int) -> float:
    """z of the difference of two shares; P, not T, is what Q is compared with."""
    pooled = (n_cell + m_cell) / (n + m)
    spread = sqrt(pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m))
    return (m_cell / m - n_cell / n) / spread if spread > 0.0 else 0.0
