"""Soft classes of people by what is publicly known about them: each person's shares in them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from dovetail.core.attack import Knowledge
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError

Traits = NDArray[np.float64]  # (n, d), rows sum to 1

MOST_CLASSES = 128
LANDMARKS = 48
MOST_CELLS = 50_000_000  # of people and their shares: 400 MB
_SCALES = (0.5, 1.0, 2.0, 4.0)


def candidate_traits(known: Knowledge, rng: Entropy) -> list[Traits]:
    """Equal public data as classes, where they are few, and kernels of several widths around landmarks.

    Raises
    ------
    DataError
        When what is known makes neither: many classes, of columns that are not numbers.
    """
    found: list[Traits] = []
    reasons: list[str] = []
    try:
        codes = np.unique(known.classes(), return_inverse=True)[1]
        most = min(MOST_CLASSES, MOST_CELLS // len(codes))
        if codes.max() < most:
            found.append(np.eye(int(codes.max()) + 1)[codes])
        else:
            reasons.append(f"{int(codes.max()) + 1:,} classes of people exceed {most}")
    except DataError as error:
        reasons.append(str(error))
    try:
        found.extend(_around_landmarks(known.points(), rng))
    except DataError as error:
        reasons.append(str(error))
    if not found:
        raise DataError("; ".join(reasons))
    return found


def _around_landmarks(points: NDArray[np.float64], rng: Entropy) -> Iterator[Traits]:
    """Shares that fall off with the distance from people who were drawn, as a normal density does."""
    places = np.unique(points, axis=0)
    marks = places[rng.permutation(len(places))[: min(LANDMARKS, MOST_CELLS // len(points))]]
    if len(marks) < 2:
        return
    between = cdist(marks, marks)
    apart = float(np.median(np.where(between > 0.0, between, np.inf).min(axis=1)))
    squares = cdist(points, marks, "sqeuclidean")
    squares -= squares.min(axis=1, keepdims=True)
    for scale in _SCALES:
        weights = np.exp(-squares / (2.0 * (scale * apart) ** 2))
        yield weights / weights.sum(axis=1, keepdims=True)
