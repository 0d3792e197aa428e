"""Sensitivity of the points of the plane on a whole grid, and the finest grid that a guarantee allows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.shuffle.fitting.components import PartitionedOrder
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.sensitivity.centres import Numbers, Points, displacement_bounds

RATE = Fraction(1, 1 << 32)  # of the noise, in grid steps; the plane is scaled to fit the guarantee
MOST_COORDINATE = 2.0**60


def scale_to_grid(points: Points, scales: Numbers, line: PartitionedOrder) -> Points:
    """Points (n, 2) times the scale of their component, rounded to whole numbers."""
    return np.asarray(np.rint(points * scales[line.component[line.places], None]))


def largest_scales(groups: Groups, line: PartitionedOrder, points: Points, centres: Points, alpha: float) -> Numbers:
    """Scales, nearly the largest, whose rounded points keep alpha."""
    reach = np.maximum.reduceat(np.abs(points[line.order]).max(axis=1), line.component_starts[:-1])
    apart = uniform_distance(points[line.order], line) > 0.0
    scales = np.divide(MOST_COORDINATE / 2, reach, out=np.zeros(reach.size), where=apart & (reach > 0.0))
    for less in range(24):  # rounding to the grid moves Delta_2 by a few steps of 2^32: the second attempt holds
        delta = planar_sensitivities(groups, line, scale_to_grid(points, scales, line), centres, scales) * float(RATE)
        above = delta * (1.0 + 1e-15) > alpha
        if not above.any():
            return scales
        shrink = np.divide(alpha, delta, out=np.ones(delta.size), where=above) * (1.0 - 2.0 ** (less - 33))
        scales = np.where(above, scales * shrink, scales)
    return np.where(above, 0.0, scales)


def uniform_distance(along: Points, line: PartitionedOrder) -> Numbers:
    """Root of the mean squared distance of two people of a component (components,): above the mean distance."""
    sizes = line.sizes[:, None]
    mean = np.add.reduceat(along, line.component_starts[:-1], axis=0) / sizes
    off = (along - mean[line.component]) ** 2
    return np.asarray(np.sqrt(2.0 * (np.add.reduceat(off, line.component_starts[:-1], axis=0) / sizes).sum(axis=1)))


def planar_sensitivities(
    groups: Groups, line: PartitionedOrder, grid: NDArray[Any], centres: Points, scales: Numbers
) -> Numbers:
    """Largest Delta_2 in each component (components,), in grid steps, rounded up."""
    part = line.component_of(groups)
    result = np.zeros(line.components)
    np.maximum.at(result, part, displacement_bounds(groups, grid.astype(np.float64), centres * scales[part, None]))
    return result
