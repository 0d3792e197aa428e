"""Cells of a grid and whole seconds: a trace is known again after rounding, cropping or with another origin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.trace.kernels import Floats
from dovetail.trace.trace import TangentPlane, Trace

Cells = NDArray[np.int64]  # (n, 1 + d), whole seconds and cells

_COARSE_DEGREES, _COARSE_METRES = 1e-3, 100.0
_FINE_METRES = 10.0
_SHIFT = 0.3779217  # no number of few decimals lies on an edge, where the last bit would decide


def coarse_cells(trace: Trace, plane: TangentPlane | None) -> Cells:
    """Each point's time to a second and its place in cells of a thousandth of a degree, whatever the plane's origin.

    Parameters
    ----------
    trace : Trace
    plane : TangentPlane or None
        The plane of its points; None where coordinates are metres already: cells of 100 m.
    """
    if plane is None:
        return _cells(trace, trace.points / _COARSE_METRES)
    return _cells(trace, np.column_stack(plane.to_degrees(trace.points)) / _COARSE_DEGREES)


def moving_runs(trace: Trace, length: int) -> list[bytes]:
    """Each run of so many points that moves at every step: its cells of 10 m and the seconds between, on any clock.

    A run that stands still has too few possible contents: whoever holds its digest could try them all.
    """
    cells = _cells(trace, trace.points / _FINE_METRES)
    steps = np.diff(cells, axis=0)
    still = (steps[:, 1:] == 0).all(axis=1)
    starts = range(len(cells) - length + 1)
    ends = ((i, i + length - 1) for i in starts)
    return [steps[i:j, 0].tobytes() + cells[i : j + 1, 1:].tobytes() for i, j in ends if not still[i:j].any()]


def _cells(trace: Trace, places: Floats) -> Cells:
    return np.asarray(np.column_stack([np.rint(trace.times), np.floor(places + _SHIFT)]), dtype=np.int64)
