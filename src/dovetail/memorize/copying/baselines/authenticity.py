"""Authenticity: the share of points that are farther from a training point than its nearest training neighbour is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.memorize.copying.search.training_index import TrainingIndex


def authenticity(index: TrainingIndex, distances: NDArray[np.float64], rows: NDArray[np.int64]) -> float:
    """Share of points at `distances` (n,) from their nearest training `rows` (n,) that count as authentic.

    Fresh points are not all authentic either, so read it beside their share: alone it has no scale.

    Source
    ------
    Alaa, van Breugel, Saveliev, van der Schaar (2022), How faithful is your synthetic data, ICML, section 4.
    """
    used, place = np.unique(rows, return_inverse=True)
    return float((distances > index.nearest_other(used)[place]).mean())
