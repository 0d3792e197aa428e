"""The formulas of the code that the paper's authors published, for comparison with their figures.

They differ from ours: neighbours are searched within the cell, the mean has a continuity correction of one sign,
ties are not corrected for, only Q's count is asked for, Frechet's norm is not squared, and bins compare Q with T at
0.05 per side.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from dovetail.core.errors import UnsupportedError
from dovetail.memorize.copying.baselines.frechet import frechet_distance
from dovetail.memorize.copying.search.training_index import Distance, TrainingIndex

Points = NDArray[np.float64]  # (n, d)
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
