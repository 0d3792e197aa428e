"""The two-sample nearest-neighbour test: do training and generated points have neighbours of their own kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.extras import require

Points = NDArray[np.float64]  # (n, d)

MOST = 5_000  # of each sample


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
    size = min(len(train), len(generated), MOST)
    both = np.concatenate([points[source.permutation(len(points))[:size]] for points in (train, generated)])
    search = require("sklearn.neighbors", extra="memorize").NearestNeighbors(n_neighbors=2)
    two = search.fit(both).kneighbors(return_distance=False)  # each point itself is left out by its index
    own = (two[:, 0] < size) == (np.arange(2 * size) < size)
    return NeighbourAccuracy(float(own[:size].mean()), float(own[size:].mean()))
