"""What a released trace is still good for: distances, dwell time, trip length, heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.trace.kernels.kernel import Floats

SLOW = 1.0  # metres a second: slower is dwelling
CELLS = (100.0, 1000.0)  # metres


@dataclass(frozen=True)
class TraceUtility:
    """Errors of released traces.

    Parameters
    ----------
    error : float, metres
        Mean distance of a point.
    dwell : float, seconds
        Mean absolute error of the time spent slower than 1 m/s.
    length : float
        Mean error of the trip length, as a share of it; released trips are longer.
    heat : dict of float to float
        Half the absolute difference of the heat maps of all points, for each cell size in metres; 0 to 1.
    """

    error: float
    dwell: float
    length: float
    heat: dict[float, float]


def utility(times: Sequence[Floats], true: Sequence[Floats], released: Sequence[Floats]) -> TraceUtility:
    """Utility of released points (n, d) beside the true ones, for several traces.

    Raises
    ------
    ParameterError
        Nowhere; the arrays are those of checked traces and of their releases.

    Examples
    --------
    >>> times, true = np.array([0.0, 60.0]), np.array([[0.0, 0.0], [60.0, 0.0]])
    >>> utility([times], [true], [true + [3.0, 4.0]]).error
    5.0
    """
    pairs = list(zip(times, true, released, strict=True))
    distances = np.concatenate([np.linalg.norm(z - x, axis=1) for _, x, z in pairs])
    dwell = [abs(_dwell(t, z) - _dwell(t, x)) for t, x, z in pairs]
    length = [_length(z) / max(_length(x), 1e-9) - 1.0 for _, x, z in pairs]
    whole, shown = np.concatenate(list(true)), np.concatenate(list(released))
    heat = {cell: heat_distance(whole, shown, cell) for cell in CELLS}
    return TraceUtility(float(distances.mean()), float(np.mean(dwell)), float(np.mean(length)), heat)


def heat_distance(first: Floats, second: Floats, cell: float) -> float:
    """Half the absolute difference of two heat maps with square cells of this side.

    >>> heat_distance(np.array([[0.0, 0.0], [10.0, 0.0]]), np.array([[0.0, 0.0], [90.0, 0.0]]), 50.0)
    0.5
    """
    both = np.floor(np.concatenate([first, second]) / cell).astype(np.int64)
    _, where = np.unique(both, axis=0, return_inverse=True)
    where = where.ravel()
    size = int(where.max()) + 1
    shares = [np.bincount(part, minlength=size) / len(part) for part in (where[: len(first)], where[len(first) :])]
    return float(0.5 * np.abs(shares[0] - shares[1]).sum())


def _length(points: Floats) -> float:
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def _dwell(times: Floats, points: Floats) -> float:
    gaps = np.diff(times)
    return float(gaps[np.linalg.norm(np.diff(points, axis=0), axis=1) < SLOW * gaps].sum())
