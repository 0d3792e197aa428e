"""Distances other than straight lines: on the globe, and whatever scipy knows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.shuffle.groups.neighbours import Points, Reach
from dovetail.shuffle.groups.ranges import Ranges, refuse_beyond_memory

EARTH_RADIUS = 6_371_008.8  # metres, mean radius (IUGG)

NORMS = {"euclidean": 2.0, "cityblock": 1.0, "chebyshev": math.inf}

_MOST_COMPARED = 30_000  # people; each is compared with each
_CELLS = 20_000_000  # distances held at once


def on_sphere(points: Points) -> Points:
    """Latitude and longitude in degrees (n, 2) as points of the unit sphere (n, 3)."""
    if points.shape[1] != 2:
        raise DataError(
            f"`points` must be latitude, longitude (n, 2) with the haversine metric, got {points.shape[1]} columns."
        )
    latitude = points[:, 0]
    bad = np.flatnonzero(np.abs(latitude) > 90)
    if bad.size:
        raise DataError(
            f"`points` must be latitude in [-90, 90], longitude, in degrees, got {bad.size:,} that are not; first at "
            f"index {bad[0]}: {points[bad[0]].tolist()}."
        )
    east = np.radians(np.mod(points[:, 1], 360.0))  # -180 and 180 are the same place
    away = np.where(np.abs(latitude) == 90, 0.0, np.cos(np.radians(latitude)))  # at a pole longitude says nothing
    return np.column_stack((away * np.cos(east), away * np.sin(east), np.sin(np.radians(latitude))))


def chord(metres: Reach) -> Reach:
    r"""Straight distance through the unit sphere of two places so many metres apart, :math:`2 \sin(d / 2R)`."""
    half = np.asarray(metres) / (2 * EARTH_RADIUS)
    through = np.where(half >= math.pi / 2, math.inf, 2 * np.sin(np.minimum(half, math.pi / 2)))
    return float(through) if np.ndim(metres) == 0 else through


def within(points: Points, reach: Reach, metric: str) -> Ranges:
    """For each person everybody at most `reach` away in a metric of `scipy.spatial.distance.cdist`.

    Every pair is compared, so it is for at most 30,000 people. Metrics that are scaled by the data (`seuclidean`,
    `mahalanobis`) use all points at once.
    """
    n = len(points)
    if n > _MOST_COMPARED:
        raise UnsupportedError(
            f"`metric` {metric!r} compares each person with each: at most {_MOST_COMPARED:,} people, got {n:,}; "
            f"haversine, {', '.join(NORMS)} have no such limit."
        )
    scale = _scale(points, metric)
    limit = np.broadcast_to(np.asarray(reach, dtype=np.float64), (n,))
    rows, people, entries = [], [], 0
    step = max(1, _CELLS // n)
    for begin in range(0, n, step):
        part = slice(begin, begin + step)
        apart = _compared(points[part], points, metric, scale)
        if np.isnan(apart).any():
            raise DataError(f"`points` must have a distance from each to each, got none for some with {metric!r}.")
        row, person = np.nonzero(apart <= limit[part, None])
        entries += row.size
        refuse_beyond_memory(entries)
        rows.append(row + begin)
        people.append(person)
    return Ranges.compress(np.concatenate(rows), np.concatenate(people), shape=(n, n))


def _scale(points: Points, metric: str) -> dict[str, Any]:
    if metric == "seuclidean" and len(points) > 1:
        return {"V": points.var(axis=0, ddof=1)}
    if metric == "mahalanobis" and len(points) > 1:
        return {"VI": np.linalg.pinv(np.atleast_2d(np.cov(points.T)))}
    return {}


def _compared(some: Points, points: Points, metric: str, scale: dict[str, Any]) -> Points:
    try:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(cdist(some, points, metric, **scale))
    except (ValueError, TypeError) as error:
        raise ParameterError(
            f"`metric` must be 'haversine' or a metric of scipy.spatial.distance, got {metric!r} ({error})."
        ) from error
