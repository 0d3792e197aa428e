r"""The Gaussian smoother: the posterior of a trace given its release, for a prior that somebody holds.

.. math:: E[X \mid Z] = m + \Sigma (\Sigma + G)^{-1} (Z - m), \quad
          \mathrm{Cov}(X \mid Z) = \Sigma - \Sigma (\Sigma + G)^{-1} \Sigma

The noise covariance G is public: every adversary here but the random walk uses it. The mean of the trace is unknown
to them: a constant of large prior variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.adversaries import UNKNOWN_MEAN


@dataclass(frozen=True, eq=False)
class Smoother:
    """Posterior mean and variance at some points, for one coordinate; linear in what is released.

    Parameters
    ----------
    gain : float array (k, n)
        Of the release.
    sighting : float array (k,)
        Of the one true location that is known; 0 without one.
    variance : float array (k,)
        Posterior variance, if the prior is right.
    """

    gain: Floats
    sighting: Floats
    variance: Floats

    def estimate(self, released: Floats, seen: Floats | float = 0.0) -> Floats:
        """Posterior means (k, ..) from releases (n, ..) and sightings (..)."""
        middle = released.mean(axis=0)
        return np.asarray(
            middle + self.gain @ (released - middle) + np.multiply.outer(self.sighting, np.asarray(seen) - middle)
        )


def smoother(prior: Floats, noise: Floats, places: list[int], *, known: int | None = None) -> Smoother:
    """The smoother of a prior (n, n) for noise (n, n) at `places`; `known` is a point whose location was seen."""
    whole = prior + UNKNOWN_MEAN * float(np.mean(np.diag(prior)))
    if known is None:
        solved = np.asarray(cho_solve(cho_factor(whole + noise, lower=True), whole[:, places]))
        variance = np.diag(whole)[places] - np.einsum("nk,nk->k", whole[:, places], solved)
        return Smoother(solved.T, np.zeros(len(places)), np.maximum(variance, 0.0))
    column = whole[:, known] / whole[known, known]
    rest = whole - np.outer(column, whole[known])
    solved = np.asarray(cho_solve(cho_factor(rest + noise, lower=True), rest[:, places]))
    variance = np.diag(rest)[places] - np.einsum("nk,nk->k", rest[:, places], solved)
    return Smoother(solved.T, column[places] - solved.T @ column, np.maximum(variance, 0.0))


RATIOS = np.geomspace(1e-4, 1e2, 25)  # variance of a step of the random walk over that of the noise


def random_walk_estimate(times: Floats, released: Floats, places: list[int]) -> Floats:
    """The Kalman smoother of a random walk in white noise, both fitted to the release: it knows no kernel and no G.

    Parameters
    ----------
    times : float array (n,)
    released : float array (n, d)

    Returns
    -------
    float array (k, d)
    """
    steps = (times - times[0]) / float(np.median(np.diff(times)))
    walk = np.minimum(steps[:, None], steps[None, :]) + 1e3 * len(times)  # started anywhere
    centred = released - released.mean(axis=0)
    best: tuple[float, Floats] | None = None
    for ratio in RATIOS:
        factor = cho_factor(ratio * walk + np.eye(len(times)), lower=True)
        solved = np.asarray(cho_solve(factor, centred))
        scale = float((centred * solved).sum()) / centred.size
        score = 0.5 * centred.size * np.log(scale) + centred.shape[1] * float(np.log(np.diag(factor[0])).sum())
        if best is None or score < best[0]:
            best = (score, ratio * walk[places] @ solved)
    assert best is not None
    return np.asarray(released.mean(axis=0) + best[1], dtype=np.float64)
