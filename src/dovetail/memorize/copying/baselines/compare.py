"""All baselines for one generated sample, as a document: numbers, or null with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.memorize.copying.baselines.authenticity import authenticity
from dovetail.memorize.copying.baselines.bins import different_bins
from dovetail.memorize.copying.baselines.feature_likelihood import feature_likelihood
from dovetail.memorize.copying.baselines.frechet import frechet_distance
from dovetail.memorize.copying.baselines.kernel_mmd import three_sample_mmd
from dovetail.memorize.copying.baselines.precision_recall import precision_recall
from dovetail.memorize.copying.baselines.two_sample import neighbour_accuracy

if TYPE_CHECKING:
    from dovetail.memorize.copying.cells import CellComparison
    from dovetail.memorize.copying.controls import HoldoutShare
    from dovetail.memorize.copying.search.training_index import TrainingIndex

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
    tick: Callable[[int, int], None],
) -> dict[str, Any]:
    """What each measures for T, P, Q (`samples`) with their distances to T and nearest rows (P's, Q's)."""
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
