"""Random priors, secrets and noise for the laws of traces."""

from dataclasses import replace

import numpy as np
from numpy.random import Generator, default_rng

from dovetail.trace.kernels import RBF, Floats, Kernel, Matern32, Matern52, Periodic
from dovetail.trace.loss import Conditional

KERNELS: list[Kernel] = [
    RBF(length=2.0),
    Matern32(length=4.0),
    Matern52(length=3.0),
    Periodic(length=1.1, period=7.3),
]
STEPS = np.arange(10.0)


def covariance(n: int, rng: Generator) -> Floats:
    """A random well-conditioned covariance."""
    root = rng.standard_normal((n, n))
    return np.asarray(root @ root.T / n + 0.05 * np.eye(n))


def flat_mean(seen: Conditional) -> Conditional:
    """The regression on a secret when nothing is known of the mean: by generalized least squares on the secret."""
    weights = np.linalg.solve(seen.variance, np.ones(len(seen.secret)))
    left = 1.0 - seen.weights.sum(axis=1)
    return replace(
        seen,
        weights=seen.weights + np.outer(left, weights / weights.sum()),
        residual=seen.residual + np.outer(left, left) / weights.sum(),
    )


def generator(name: str) -> Generator:
    """Draws that belong to a test's name."""
    return default_rng(list(name.encode()))
