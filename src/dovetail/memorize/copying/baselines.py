"""All baselines for one generated sample, as a document: numbers, or null with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log, pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, ndtr, ndtri
from scipy.stats import norm, rankdata

from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.extras import require
from dovetail.core.progress import Tick
from dovetail.memorize.copying.search import Distance, TrainingIndex, first_rows

if TYPE_CHECKING:
    from dovetail.memorize.copying.cells import CellComparison
    from dovetail.memorize.copying.controls import HoldoutShare


# Authenticity: the share of points that are farther from a training point than its nearest training neighbour is.


def authenticity(index: TrainingIndex, distances: NDArray[np.float64], rows: NDArray[np.int64]) -> float:
    """Share of points at `distances` (n,) from their nearest training `rows` (n,) that count as authentic.

    Fresh points are not all authentic either, so read it beside their share: alone it has no scale.

    Source
    ------
    Alaa, van Breugel, Saveliev, van der Schaar (2022), How faithful is your synthetic data, ICML, section 4.
    """
    used, place = np.unique(rows, return_inverse=True)
    return float((distances > index.nearest_other(used)[place]).mean())


# Number of statistically different bins: is the share of Q in each cell that of P.


def different_bins(z_scores: Sequence[float], *, level: float = 0.05) -> tuple[float, float]:
    """Share of cells that Q over- and under-represents, each cell at a two-sided level: level / 2 per side.

    Sees lost and inflated regions; blind to copying, which keeps the shares.

    >>> different_bins([2.5, 0.1, -3.0, 1.9])
    (0.25, 0.25)

    Source
    ------
    Richardson, Weiss (2018), On GANs and GMMs, NeurIPS; the paper compares z with 0.05.
    """
    limit = float(-ndtri(level / 2))
    return sum(z > limit for z in z_scores) / len(z_scores), sum(z < -limit for z in z_scores) / len(z_scores)


# Feature likelihood: how likely fresh and training points are under a mixture centred at the generated ones.


MOST = 1_000  # of each sample
STEPS = 30  # of expectation and maximization
FLOOR = 1e-6  # smallest variance of a component, in units of the mean one: copies would have none


@dataclass(frozen=True)
class FeatureLikelihood:
    """Minus 100/d times the mean log likelihood, and by how much that of training points is better.

    Parameters
    ----------
    divergence : float
        Of fresh points; lower is better. The published one has a further constant, which no comparison needs.
    gap : float
        Divergence of fresh points less that of training points. The deviations are fitted to T, so it is above 0
        for honest data too.
    """

    divergence: float
    gap: float


def feature_likelihood(
    train: Points, fresh: Points, generated: Points, *, rng: Entropy | None = None
) -> tuple[FeatureLikelihood, FeatureLikelihood]:
    r"""For the generated points, and for fresh ones in their place, which give the scale; as many of each sample.

    .. math:: p(x) = \frac{1}{m} \sum_j N(x; q_j, \sigma_j^2 I), \quad \sigma \text{ the most likely for } T

    Source
    ------
    Jiralerspong, Bose, Gemp, Qin, Bachrach, Gidel (2023), Feature likelihood divergence, NeurIPS, section 3. No
    package of it is on the package index.
    """
    source = entropy_or_system(rng)
    t, p, q = (points[source.permutation(len(points))] for points in (train, fresh, generated))
    size = min(len(t), len(p) // 2, len(q), MOST)
    t, seen, judged, q = t[:size], p[:size], p[size : 2 * size], q[:size]
    return _fitted(q, t, judged), _fitted(seen, t, judged)


def _fitted(centres: Points, train: Points, fresh: Points) -> FeatureLikelihood:
    d = train.shape[1]
    far, other = (_squares(points, centres) for points in (train, fresh))
    floor = FLOOR * float(far.mean()) / d + np.finfo(np.float64).tiny
    variance = np.full(len(centres), max(floor, float(far.min(axis=1).mean()) / d))
    for _ in range(STEPS):
        weight = _log_densities(far, variance, d)
        weight = np.exp(weight - logsumexp(weight, axis=1, keepdims=True))
        share = weight.sum(axis=0)
        fitted = (weight * far).sum(axis=0) / (d * np.maximum(share, 1e-12))
        variance = np.maximum(np.where(share > 1e-9, fitted, variance), floor)
    on_train, on_fresh = (
        -100.0 / d * float(np.mean(logsumexp(_log_densities(one, variance, d), axis=1) - log(len(centres))))
        for one in (far, other)
    )
    return FeatureLikelihood(on_fresh, on_fresh - on_train)


def _squares(points: Points, centres: Points) -> NDArray[np.float64]:
    middle = centres.mean(axis=0)
    a, b = points - middle, centres - middle
    return np.asarray(np.maximum((a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2.0 * a @ b.T, 0.0))


def _log_densities(far: NDArray[np.float64], variance: NDArray[np.float64], d: int) -> NDArray[np.float64]:
    return np.asarray(-far / (2.0 * variance) - d / 2.0 * np.log(2.0 * pi * variance))


# Kernel density: the bandwidth at which held-out points are likeliest, where a density neither copies nor blurs.


WIDTHS = 50  # on a logarithmic grid from below the least distance above 0 to the largest


def likelihood_bandwidth(train: Points, fresh: Points) -> float:
    r"""Find the bandwidth of a Gaussian kernel density of T under which fresh points are most likely.

    .. math:: \mathbb{E}_{X \sim P} \Bigl[ \sum_t Q_\sigma(t \mid X) \lVert X - t \rVert^2 \Bigr] = d \sigma^2

    holds at the maximum: fresh points are as far from T as draws of the density, whose mean is the right side. A
    density with a smaller bandwidth copies. There may be several maxima: a grid finds the largest, and a search
    between its neighbours the place, to about seven digits.

    Raises
    ------
    DataError
        When every fresh point is a training point: the likelihood grows without limit as sigma goes to 0.

    Examples
    --------
    >>> grid = np.linspace(0.0, 1.0, 101)[:, None]
    >>> round(likelihood_bandwidth(grid, grid[:-1] + 0.005), 4)
    0.0067

    Source
    ------
    Meehan, Chaudhuri, Dasgupta (2020), A non-parametric test to detect data-copying in generative models, Lemma 3.
    """
    d, far = int(train.shape[1]), cdist(fresh, train, "sqeuclidean")
    if not far.min(axis=1).any():
        raise DataError("`fresh` must hold a point that is no training point: the likeliest bandwidth is 0.")

    def unlikelihood(logarithm: float) -> float:
        return d / 2.0 * logarithm - float(logsumexp(-far / (2.0 * exp(logarithm)), axis=1).mean())

    grid = np.linspace(log(float(far[far > 0.0].min()) / (4.0 * d)), log(float(far.max()) / d), WIDTHS)
    best = int(np.argmin([unlikelihood(float(one)) for one in grid]))
    ends = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, WIDTHS - 1)])
    found = minimize_scalar(unlikelihood, bounds=ends, method="bounded", options={"xatol": 1e-10})
    return exp(float(found.x) / 2.0)


# The Frechet distance of two Gaussians fitted to two samples.
#
# .. math:: |\mu_T - \mu_Q|^2 + \mathrm{tr}\bigl(S_T + S_Q - 2 (S_T^{1/2} S_Q S_T^{1/2})^{1/2}\bigr)


def frechet_distance(train: Points, generated: Points) -> float:
    """Squared Frechet distance; 0 for equal samples. It sees means and covariances, so it is blind to copying.

    Source
    ------
    Dowson, Landau (1982), The Frechet distance between multivariate normal distributions. The paper prints the norm
    without its square and S_T - S_Q.
    """
    move = train.mean(axis=0) - generated.mean(axis=0)
    s_t, s_q = (np.atleast_2d(np.cov(points, rowvar=False)) for points in (train, generated))
    root = _root(s_t)
    return max(0.0, float(move @ move + np.trace(s_t) + np.trace(s_q) - 2 * np.trace(_root(root @ s_q @ root))))


def _root(matrix: Points) -> Points:
    """The symmetric square root; always real."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


# Three samples and a kernel: is Q farther from T than P is, over the whole space.
#
# .. math:: \widehat{MMD}^2(T, Q) - \widehat{MMD}^2(T, P), \quad
#           \widehat{MMD}^2(X, Y) = \overline{k(x, x')} + \overline{k(y, y')} - 2 \overline{k(x, y)}
#
# unbiased: means over distinct pairs within a sample; Gaussian kernel with the median distance as its width.


@dataclass(frozen=True)
class ThreeSampleMMD:
    """The difference, its standard error, and the one-sided p of "Q is nearer to T than P is"."""

    difference: float
    standard_error: float
    p_copying: float


def three_sample_mmd(
    train: Points, fresh: Points, generated: Points, *, rng: Entropy | None = None
) -> ThreeSampleMMD:
    """The relative test in equally many points of each sample, at most 1,000; global, blind to local copying.

    Where all three have one law the statistic is degenerate and the normal p-value rough.

    Source
    ------
    Bounliphone, Belilovsky, Blaschko, Antonoglou, Gretton (2016), A test of relative similarity, ICLR, section 3.
    """
    source = entropy_or_system(rng)
    size = min(len(train), len(fresh), len(generated), MOST)
    x, y, z = (points[source.permutation(len(points))[:size]] for points in (train, generated, fresh))
    width = _median_distance(np.concatenate([x, y, z])[:: max(1, 3 * size // 500)])
    inside_y, inside_z = (_inside(_kernel(one, one, width)) for one in (y, z))
    k_xy, k_xz = _kernel(x, y, width), _kernel(x, z, width)
    # one number per index: the mean over i of what the i-th points contribute
    difference = (inside_y.sum() - inside_z.sum()) / (size * (size - 1)) - 2 * (k_xy.mean() - k_xz.mean())
    each = (
        (inside_y.sum(axis=1) - inside_z.sum(axis=1)) / (size - 1)
        - (k_xy.mean(axis=0) - k_xz.mean(axis=0))
        - (k_xy.mean(axis=1) - k_xz.mean(axis=1))
    )
    error = 2 * sqrt(float(each.var(ddof=1)) / size)
    return ThreeSampleMMD(float(difference), error, float(ndtr(difference / error)) if error else 1.0)


def _kernel(x: Points, y: Points, width: float) -> Points:
    squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * x @ y.T
    return np.asarray(np.exp(-np.maximum(squares, 0.0) / (2 * width**2)))


def _inside(kernel: Points) -> Points:
    np.fill_diagonal(kernel, 0.0)
    return kernel


def _median_distance(points: Points) -> float:
    from scipy.spatial.distance import pdist

    return float(np.median(pdist(points))) or 1.0


# Precision and recall of a distribution, from clusters of training and generated points together.
#
# .. math:: \alpha(\lambda) = \sum_\pi \min(\lambda P(\pi), Q(\pi)), \quad
#           \beta(\lambda) = \sum_\pi \min(P(\pi), Q(\pi) / \lambda), \quad
#           \lambda = \tan\Bigl(\frac{i}{r + 1} \frac{\pi}{2}\Bigr)


Curve = NDArray[np.float64]  # (r,)

ANGLES = 101  # odd, so that lambda = 1 and with it (1, 1) are on the curve
MOST_CLUSTERED = 5_000
BETA = 8.0


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """The curve; `precision` and `recall` are F_(1/8) and F_8 of its best point, as its authors report them."""

    alpha: Curve
    beta: Curve

    @property
    def precision(self) -> float:
        """Largest F with recall weighed 1/8."""
        return self._f(1.0 / BETA)

    @property
    def recall(self) -> float:
        """Largest F with recall weighed 8."""
        return self._f(BETA)

    def _f(self, weight: float) -> float:
        bottom = weight**2 * self.alpha + self.beta
        top = (1 + weight**2) * self.alpha * self.beta
        return float(np.max(np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)))


def precision_recall(
    train: Points, generated: Points, *, clusters: int = 5, repeats: int = 10, rng: Entropy | None = None
) -> PrecisionRecall:
    """Mean curve over k-means clusterings of both samples, at most 5,000 points of each; blind to copying.

    Source
    ------
    Sajjadi and others (2018), Assessing generative models via precision and recall, NeurIPS.
    """
    source = entropy_or_system(rng)
    some = [points[source.permutation(len(points))[:MOST_CLUSTERED]] for points in (train, generated)]
    cluster = require("sklearn.cluster", extra="memorize").KMeans
    clusters = min(clusters, len(first_rows(np.concatenate(some))))
    curves = []
    for _ in range(repeats):
        labels = cluster(clusters, n_init=1, random_state=int(source.below(1 << 31, 1)[0])).fit_predict(
            np.concatenate(some)
        )
        shares = [np.bincount(part, minlength=clusters) / len(part) for part in np.split(labels, [len(some[0])])]
        curves.append(curve_of(*shares))
    alpha, beta = np.mean(curves, axis=0)
    return PrecisionRecall(alpha, beta)


def curve_of(p: Curve, q: Curve, *, angles: int = ANGLES) -> tuple[Curve, Curve]:
    """alpha and beta of two histograms over the same cells."""
    slope = np.tan(np.arange(1, angles + 1) / (angles + 1) * np.pi / 2)[:, None]
    return np.minimum(slope * p, q).sum(axis=1), np.minimum(p, q / slope).sum(axis=1)


# The two-sample nearest-neighbour test: do training and generated points have neighbours of their own kind.


MOST_NEIGHBOURS = 5_000  # of each sample


@dataclass(frozen=True)
class NeighbourAccuracy:
    """Leave-one-out accuracy for training and generated points; 1/2 each where Q is P, near 0 for copies of all."""

    train: float
    generated: float

    @property
    def mean(self) -> float:
        """Mean of both."""
        return (self.train + self.generated) / 2


def neighbour_accuracy(train: Points, generated: Points, *, rng: Entropy | None = None) -> NeighbourAccuracy:
    """Share of points whose nearest other point carries their own label, in equally many of both, at most 5,000.

    A point is no neighbour of itself, whichever comes first. A copied training point that is not among those drawn
    goes unseen: the test misses copying where T is much larger than Q.

    Source
    ------
    Lopez-Paz, Oquab (2017), Revisiting classifier two-sample tests, ICLR; Xu and others (2018).
    """
    source = entropy_or_system(rng)
    size = min(len(train), len(generated), MOST_NEIGHBOURS)
    both = np.concatenate([points[source.permutation(len(points))[:size]] for points in (train, generated)])
    search = require("sklearn.neighbors", extra="memorize").NearestNeighbors(n_neighbors=2)
    two = search.fit(both).kneighbors(return_distance=False)  # each point itself is left out by its index
    own = (two[:, 0] < size) == (np.arange(2 * size) < size)
    return NeighbourAccuracy(float(own[:size].mean()), float(own[size:].mean()))


Points = NDArray[np.float64]  # (n, d)

MOST_WIDE = 2_000  # columns, beyond which covariances are not taken
NO_LIKELIHOOD = "files hold no likelihoods; memorize.copying.baselines.generalization_gap takes them"


def compare_baselines(
    samples: tuple[Points, Points, Points],
    index: TrainingIndex,
    distances: tuple[NDArray[np.float64], NDArray[np.float64]],
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    cells: CellComparison,
    share: HoldoutShare,
    *,
    rng: Entropy,
    tick: Tick,
) -> dict[str, Any]:
    """Measure T, P, Q (`samples`) by each baseline, with distances to T and nearest rows (P's, Q's)."""
    train, fresh, generated = samples
    over, under = different_bins([cell.representation for cell in cells.cells]) if cells.cells else (0.0, 0.0)
    steps: dict[str, Callable[[], Any]] = {
        "frechet": lambda: _frechet(train, fresh, generated),
        "ndb": lambda: {"over": over, "under": under},
        "two_sample_nn": lambda: _accuracy(train, generated, rng),
        "precision_recall": lambda: _precision(train, generated, rng),
        "mmd": lambda: vars(three_sample_mmd(train, fresh, generated, rng=rng)),
        "authenticity": lambda: {
            name: authenticity(index, d, r)
            for name, d, r in zip(("fresh", "generated"), distances, rows, strict=True)
        },
        "fld": lambda: _likelihood(train, fresh, generated, rng),
    }
    found: dict[str, Any] = {}
    for place, (name, step) in enumerate(steps.items()):
        tick(place, len(steps))
        found[name] = step()
    tick(len(steps), len(steps))
    return {
        **found,
        "dcr_share": {"share": share.share, "standard_error": share.standard_error, "rho": share.rho, "p": share.p},
        "generalization_gap": {"value": None, "reason": NO_LIKELIHOOD},
    }


def _frechet(train: Points, fresh: Points, generated: Points) -> dict[str, Any]:
    if train.shape[1] > MOST_WIDE:
        reason = f"{train.shape[1]:,} columns: covariances are taken up to {MOST_WIDE:,}; use an embedding"
        return {"value": None, "reason": reason}
    return {"generated": frechet_distance(train, generated), "fresh": frechet_distance(train, fresh)}


def _accuracy(train: Points, generated: Points, rng: Entropy) -> dict[str, float]:
    found = neighbour_accuracy(train, generated, rng=rng)
    return {"train": found.train, "generated": found.generated, "mean": found.mean}


def _precision(train: Points, generated: Points, rng: Entropy) -> dict[str, float]:
    found = precision_recall(train, generated, rng=rng)
    return {"precision": found.precision, "recall": found.recall}


def _likelihood(train: Points, fresh: Points, generated: Points, rng: Entropy) -> dict[str, float]:
    found, scale = feature_likelihood(train, fresh, generated, rng=rng)
    return {
        "generated": found.divergence, "generated_gap": found.gap, "fresh": scale.divergence, "fresh_gap": scale.gap,
    }  # fmt: skip


# The gap of likelihoods: how much more likely a model finds what it was trained on than fresh data.


def generalization_gap(train: ArrayLike, fresh: ArrayLike) -> float:
    """Mean log likelihood of the training points minus the mean of fresh points, in nats per point.

    Sees copying, not under-fitting, and needs a likelihood, which most generators lack. Totals of samples of
    different sizes, as in the published code, compare nothing.

    >>> generalization_gap([-1.0, -2.0], [-3.0, -3.0, -3.0])
    1.5
    """
    return float(np.mean(np.asarray(train, dtype=np.float64)) - np.mean(np.asarray(fresh, dtype=np.float64)))


# The formulas of the code that the paper's authors published, for comparison with their figures.
#
# They differ from ours: neighbours are searched within the cell, the mean has a continuity correction of one sign,
# ties are not corrected for, only Q's count is asked for, Frechet's norm is not squared, and bins compare Q with T at
# 0.05 per side.


Labels = NDArray[np.int64]  # (n,)
Sample = tuple[Points, Labels]

MORE_THAN = 20  # generated points in a cell that counts


@dataclass(frozen=True)
class ReferenceResult:
    """C_T, Z_U over the whole space and per cell, and the baselines, as the published code computes them."""

    c_t: float
    z: float
    cells: dict[int, float]
    frechet: float
    bins_over: float
    bins_under: float

    def replacing(self, document: dict[str, Any]) -> dict[str, Any]:
        """The parts of a document that the published formulas change; everything else keeps ours."""
        baselines = dict(document["baselines"])
        if "frechet" in baselines:
            baselines |= {
                "frechet": {"generated": self.frechet},
                "ndb": {"over": self.bins_over, "under": self.bins_under},
            }
        return {
            "formulas": "published code",
            "z": self.z,
            "c_t": self.c_t,
            "cells": [{**cell, "z": self.cells.get(cell["cell"], cell["z"])} for cell in document["cells"]],
            "baselines": baselines,
        }


def reference_z(fresh: NDArray[np.float64], generated: NDArray[np.float64]) -> float:
    """(U - mn/2 + 1/2) / sqrt(mn(m + n + 1) / 12)."""
    n, m = len(fresh), len(generated)
    u = rankdata(np.concatenate([fresh, generated]))[n:].sum() - m * (m + 1) / 2
    return float((u - (n * m / 2 - 0.5)) / sqrt(n * m * (n + m + 1) / 12))


def reference_result(
    train: Sample,
    fresh: Sample,
    generated: Sample,
    distances: tuple[NDArray[np.float64], NDArray[np.float64]],
    *,
    distance: Distance = "euclidean",
) -> ReferenceResult:
    """The published formulas; each sample comes with its cell labels, `distances` are to all of T (fresh, generated).

    Source
    ------
    github.com/casey-meehan/data-copying: data_copying_tests.py, baselines.py
    """
    cells = {}
    for cell in np.unique(fresh[1]):
        t, p, q = (points[labels == cell] for points, labels in (train, fresh, generated))
        if len(t) == 0:
            raise UnsupportedError(f"cell {cell} has no training point, which the published code refuses too.")
        if len(q) > MORE_THAN:
            index = TrainingIndex(t, distance)
            cells[int(cell)] = reference_z(index.nearest(p)[0], index.nearest(q)[0])
    weights = {cell: float((fresh[1] == cell).mean()) for cell in cells}
    if not cells:
        raise UnsupportedError(f"no cell has more than {MORE_THAN} generated points; the published C_T is undefined.")
    over, under = _bins(train[1], generated[1])
    move = float(np.linalg.norm(train[0].mean(axis=0) - generated[0].mean(axis=0)))
    return ReferenceResult(
        sum(weights[cell] * z for cell, z in cells.items()) / sum(weights.values()),
        reference_z(*distances),
        cells,
        frechet_distance(train[0], generated[0]) - move**2 + move,
        over,
        under,
    )


def _bins(train: Labels, generated: Labels) -> tuple[float, float]:
    k = int(max(train.max(), generated.max())) + 1
    t, q = (np.bincount(labels, minlength=k) / len(labels) for labels in (train, generated))
    pooled = (len(train) * t + len(generated) * q) / (len(train) + len(generated))
    spread = np.sqrt(pooled * (1 - pooled) * (1 / len(train) + 1 / len(generated)))
    z = np.divide(q - t, spread, out=np.zeros(k), where=spread > 0)
    return float((norm.sf(z) < 0.05).sum() / k), float((norm.sf(-z) < 0.05).sum() / k)
