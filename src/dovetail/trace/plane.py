"""A local tangent plane: latitude and longitude to metres east and north of a public origin, and back.

Points go to the tangent plane of the WGS 84 ellipsoid, so neither poles nor the antimeridian are special.
Distances in the plane are at most those on the ground, so a radius of the guarantee is not smaller than
stated; they shrink by (d/R)^2/2 at a distance d from the origin, 0.1 % at 300 km.

Source
------
National Imagery and Mapping Agency (2000), World Geodetic System 1984, TR8350.2, the ellipsoid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import DataError, ParameterError
from dovetail.trace.kernels.kernel import Floats

_AXIS, _FLATTENING = 6_378_137.0, 1.0 / 298.257223563
_ECCENTRICITY2 = _FLATTENING * (2.0 - _FLATTENING)
FARTHEST = 300_000.0  # metres from the origin


@dataclass(frozen=True)
class TangentPlane:
    """The plane that touches the ellipsoid at an origin.

    Parameters
    ----------
    latitude, longitude : float, degrees
        Public: never taken from a trace that is to be protected.

    Examples
    --------
    >>> TangentPlane(0.0, 180.0).to_metres([0.0], [-179.999]).round(1).tolist()
    [[111.3, 0.0]]
    """

    latitude: float
    longitude: float

    def __post_init__(self) -> None:
        if not -90.0 <= self.latitude <= 90.0:
            raise ParameterError(f"`latitude` of the origin must lie in [-90, 90], got {self.latitude!r}.")
        if not -180.0 <= self.longitude <= 360.0:
            raise ParameterError(f"`longitude` of the origin must lie in [-180, 360], got {self.longitude!r}.")

    def to_metres(self, latitude: ArrayLike, longitude: ArrayLike) -> Floats:
        """East and north (n, 2) of points in degrees."""
        lat, lon = np.asarray(latitude, dtype=np.float64), np.asarray(longitude, dtype=np.float64)
        bad = ~(np.isfinite(lat) & np.isfinite(lon) & (np.abs(lat) <= 90.0) & (lon >= -180.0) & (lon <= 360.0))
        if bad.any():
            raise DataError(
                f"latitude must lie in [-90, 90] and longitude in [-180, 360]; {int(bad.sum()):,} points do not "
                f"(first at point {int(np.flatnonzero(bad)[0]) + 1})."
            )
        offset = _cartesian(lat, lon) - _cartesian(np.array([self.latitude]), np.array([self.longitude]))
        local = offset @ self._axes().T
        if np.hypot(local[:, 0], local[:, 1]).max(initial=0.0) > FARTHEST or (local[:, 2] < -FARTHEST).any():
            raise DataError(
                f"points lie more than {FARTHEST / 1000:g} km from the origin {self.latitude:g}, {self.longitude:g}; "
                "name a nearer public origin."
            )
        return np.ascontiguousarray(local[:, :2])

    def to_degrees(self, metres: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Latitude and longitude of points (n, 2) of the plane, by Newton's method on the ellipsoid."""
        wanted = np.asarray(metres, dtype=np.float64)
        axes = self._axes()
        start = _cartesian(np.array([self.latitude]), np.array([self.longitude]))
        up = np.zeros(len(wanted))
        squares = np.array([1.0, 1.0, 1.0 / (1.0 - _ECCENTRICITY2)]) / _AXIS**2
        for _ in range(20):
            point = start + wanted @ axes[:2] + up[:, None] * axes[2]
            excess = (squares * point * point).sum(axis=1) - 1.0
            up -= excess / (2.0 * (squares * point * axes[2]).sum(axis=1))
        point = start + wanted @ axes[:2] + up[:, None] * axes[2]
        flat = np.hypot(point[:, 0], point[:, 1])
        latitude = np.degrees(np.arctan2(point[:, 2], (1.0 - _ECCENTRICITY2) * flat))
        return latitude, np.degrees(np.arctan2(point[:, 1], point[:, 0]))

    def _axes(self) -> Floats:
        """East, north and up as rows."""
        lat, lon = np.radians(self.latitude), np.radians(self.longitude)
        sin, cos, sin_l, cos_l = np.sin(lat), np.cos(lat), np.sin(lon), np.cos(lon)
        return np.array([[-sin_l, cos_l, 0.0], [-sin * cos_l, -sin * sin_l, cos], [cos * cos_l, cos * sin_l, sin]])


def _cartesian(latitude: Floats, longitude: Floats) -> Floats:
    """Earth-centred coordinates (n, 3) of points on the ellipsoid."""
    lat, lon = np.radians(latitude), np.radians(longitude)
    curve = _AXIS / np.sqrt(1.0 - _ECCENTRICITY2 * np.sin(lat) ** 2)
    flat = curve * np.cos(lat)
    return np.column_stack([flat * np.cos(lon), flat * np.sin(lon), curve * (1.0 - _ECCENTRICITY2) * np.sin(lat)])
