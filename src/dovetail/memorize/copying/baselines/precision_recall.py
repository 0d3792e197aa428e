r"""Precision and recall of a distribution, from clusters of training and generated points together.

.. math:: \alpha(\lambda) = \sum_\pi \min(\lambda P(\pi), Q(\pi)), \quad
          \beta(\lambda) = \sum_\pi \min(P(\pi), Q(\pi) / \lambda), \quad
          \lambda = \tan\Bigl(\frac{i}{r + 1} \frac{\pi}{2}\Bigr)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.extras import require
from dovetail.memorize.copying.duplicates import first_rows

Points = NDArray[np.float64]  # (n, d)
Curve = NDArray[np.float64]  # (r,)

ANGLES = 101  # odd, so that lambda = 1 and with it (1, 1) are on the curve
MOST = 5_000
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
    some = [points[source.permutation(len(points))[:MOST]] for points in (train, generated)]
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
