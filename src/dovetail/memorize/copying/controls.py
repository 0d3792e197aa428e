"""Tests beside the rank test: the nearest few, and two that a shrunk or collapsed model does not trip."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy  # scipy.stats loads when it is first used: half a second
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.memorize.copying.rank_test import clopper_pearson, rank_test
from dovetail.memorize.copying.search import evened

Distances = NDArray[np.float64]  # (n,)
Rows = NDArray[np.int64]  # (n,)


@dataclass(frozen=True)
class TailTest:
    """Generated points among the `k` nearest of all; p under exchangeability of P and Q."""

    k: int
    generated: int
    expected: float
    p: float


@dataclass(frozen=True)
class HoldoutRatio:
    """Distinct training points with a generated point twice as near as any held-out point, and the mirror image."""

    size: int
    training: int
    holdout: int
    p: float


@dataclass(frozen=True)
class PairedTail:
    """Test of how many of the `size` points that generated points single out are training points."""

    size: int
    training: int
    p: float


@dataclass(frozen=True)
class HoldoutShare:
    """Share of generated points whose nearest of T and V is in T; rho = 2 share - 1 estimates the copied share."""

    share: float
    standard_error: float
    p: float

    @property
    def rho(self) -> float:
        """Estimated share of copies."""
        return 2 * self.share - 1


@dataclass(frozen=True)
class Membership:
    """Can members of T be told from P by their distance to Q; AUC, and hits at one false alarm in a hundred."""

    auc: float
    p: float
    hits_at_one_percent: float
    interval: tuple[float, float]


def tail_test(fresh: Distances, generated: Distances, *, k: int = 10, rng: Entropy | None = None) -> TailTest:
    """p = Pr(Hypergeometric(n + m, m, k) >= x), ties at the k-th place broken at random; k fixed beforehand.

    Finds single copies that a rank test over all points drowns: at n = m = 1000 one percent with power 0.82.
    """
    n, m = len(fresh), len(generated)
    k = min(k, n + m)
    pooled = np.concatenate([fresh, generated])
    order = np.lexsort((entropy_or_system(rng).permutation(n + m), pooled))[:k]
    seen = int((order >= n).sum())
    return TailTest(k, seen, k * m / (n + m), float(scipy.stats.hypergeom.sf(seen - 1, n + m, m, k)))


def holdout_ratio(to_train: tuple[Distances, Rows], to_holdout: tuple[Distances, Rows], *, size: int) -> HoldoutRatio:
    """Count distinct points a of T and b of V with a generated point at less than half the distance of the others.

    p = Pr(Binomial(a + b, 1/2) >= a): T and V are exchangeable for a model that has not memorized, also for one that
    is shrunk or has collapsed. Both samples are the distinct ones of `size` points; counting generated points
    instead of distinct training points would reject in 42 % of collapsed models.
    """
    (d_train, row_train), (d_holdout, row_holdout) = to_train, to_holdout
    a = len(np.unique(row_train[d_train < d_holdout / 2]))
    b = len(np.unique(row_holdout[d_holdout < d_train / 2]))
    return HoldoutRatio(size, a, b, float(scipy.stats.binom.sf(a - 1, a + b, 0.5)) if a + b else 1.0)


def paired_tail(to_train: tuple[Distances, Rows], to_holdout: tuple[Distances, Rows], *, k: int = 10) -> PairedTail:
    """The k points of T and V that a generated point is nearest to, compared with the other sample's nearest point.

    Each point of T and V counts once, by its smallest ratio of distances; p = Pr(Binomial(k, 1/2) >= those of T).
    What the tail test is for, single copies, without its weakness: a collapsed model is near to both alike.
    """
    (d_train, row_train), (d_holdout, row_holdout) = to_train, to_holdout
    ratios = [
        _least_ratio(d_train, row_train, d_holdout),
        _least_ratio(d_holdout, row_holdout, d_train),
    ]
    pooled = np.concatenate(ratios)
    order = np.argsort(pooled, kind="stable")[:k]
    size, seen = len(order), int((order < len(ratios[0])).sum())
    if len(pooled) > k and pooled[order[-1]] == np.sort(pooled)[k]:  # ties at the last place count against us
        last = pooled[order[-1]]
        size = int((pooled <= last).sum())
        seen = int((ratios[0] <= last).sum())
    return PairedTail(size, seen, float(scipy.stats.binom.sf(seen - 1, size, 0.5)) if size else 1.0)


def _least_ratio(own: Distances, rows: Rows, other: Distances) -> Distances:
    """For each point that is nearer than the other sample's nearest, its smallest ratio; 0 for a copy."""
    nearer = own < other
    least = np.full(int(rows.max()) + 1, np.inf)
    np.minimum.at(least, rows[nearer], evened(own[nearer] / other[nearer]))
    return np.asarray(least[np.isfinite(least)])


def holdout_ratio_by_cell(
    to_train: tuple[Distances, Rows], to_holdout: tuple[Distances, Rows], labels: Rows, *, size: int
) -> dict[int, HoldoutRatio]:
    """The holdout ratio of the generated points (m,) of each cell: copying in one cell drowns among the others."""
    return {
        int(cell): holdout_ratio(
            (to_train[0][here], to_train[1][here]), (to_holdout[0][here], to_holdout[1][here]), size=size
        )
        for cell in np.unique(labels)
        for here in [labels == cell]
    }


def holdout_share(to_train: tuple[Distances, Rows], to_holdout: tuple[Distances, Rows], *, size: int) -> HoldoutShare:
    """The share of Q nearer to T than to V, ties by halves; the error counts generated points per pool point.

    Var s = (size / 2) S_c^2 / m^2 with c_j generated points at pool point j: generated points that share a neighbour
    are not independent, and a binomial error is up to 2.5 times too small.
    """
    (d_train, row_train), (d_holdout, row_holdout) = to_train, to_holdout
    m = len(d_train)
    near = np.where(d_train == d_holdout, 0.5, (d_train < d_holdout).astype(np.float64))
    counts = np.zeros(2 * size)
    np.add.at(counts, row_train, near)
    np.add.at(counts, size + row_holdout, 1.0 - near)
    error = sqrt(size / 2 * float(counts.var(ddof=1))) / m
    share = float(near.mean())
    z = (share - 0.5) / error if error else 0.0
    from scipy.special import ndtr

    return HoldoutShare(share, error, float(ndtr(-z)))


def membership(members: Distances, strangers: Distances, *, rng: Entropy | None = None) -> Membership:
    """Distances to Q of training points (l,) and of fresh points (n,): are members nearer.

    The threshold for hits is the distance that one in a hundred fresh points falls below; its own error is not in the
    Clopper-Pearson interval.
    """
    test = rank_test(strangers, members, rng=rng)
    allowed = int(0.01 * len(strangers))
    limit = np.sort(strangers)[allowed]
    hits = int((members < limit).sum())
    return Membership(1.0 - test.delta, test.p_copying, hits / len(members), clopper_pearson(hits, len(members)))
