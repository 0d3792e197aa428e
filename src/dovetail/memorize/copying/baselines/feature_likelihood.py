"""Feature likelihood: how likely fresh and training points are under a mixture centred at the generated ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dovetail.core.entropy import Entropy, entropy_or_system

Points = NDArray[np.float64]  # (n, d)

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
