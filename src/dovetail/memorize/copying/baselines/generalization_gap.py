"""The gap of likelihoods: how much more likely a model finds what it was trained on than fresh data."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def generalization_gap(train: ArrayLike, fresh: ArrayLike) -> float:
    """Mean log likelihood of the training points minus the mean of fresh points, in nats per point.

    Sees copying, not under-fitting, and needs a likelihood, which most generators lack. Totals of samples of
    different sizes, as in the published code, compare nothing.

    >>> generalization_gap([-1.0, -2.0], [-3.0, -3.0, -3.0])
    1.5
    """
    return float(np.mean(np.asarray(train, dtype=np.float64)) - np.mean(np.asarray(fresh, dtype=np.float64)))
