r"""The Frechet distance of two Gaussians fitted to two samples.

.. math:: |\mu_T - \mu_Q|^2 + \mathrm{tr}\bigl(S_T + S_Q - 2 (S_T^{1/2} S_Q S_T^{1/2})^{1/2}\bigr)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]  # (n, d)


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
