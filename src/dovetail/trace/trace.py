"""One trace: when, and where in metres of a plane."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.display import mute
from dovetail.core.errors import DataError, ParameterError
from dovetail.trace.kernels import Floats, sorted_times


@mute
@dataclass(frozen=True, eq=False)
class Trace:
    """Locations at increasing times.

    Parameters
    ----------
    name : str
    times : float array (n,), seconds
    points : float array (n, d), metres; d is 1 or 2

    Raises
    ------
    DataError
        From `of`, for times that do not increase, and points that are no numbers or not one for each time.

    Examples
    --------
    >>> walk = Trace.of("a walk", [0.0, 60.0, 120.0], [[0.0, 0.0], [80.0, 0.0], [160.0, 5.0]])
    >>> walk.n
    3
    """

    name: str
    times: Floats
    points: Floats

    @classmethod
    def of(cls, name: str, times: ArrayLike, points: ArrayLike) -> Trace:
        """A checked trace; what is wrong with it is named with its name."""
        try:
            stamps = sorted_times(times)
        except DataError as error:
            raise DataError(f"trace {name!r}: {error}") from None
        places = np.asarray(points, dtype=np.float64)
        places = places[:, None] if places.ndim == 1 else places
        if len(places) != len(stamps):
            raise DataError(f"trace {name!r}: has {len(stamps)} time stamps and {len(places)} points.")
        bad = np.flatnonzero(~np.isfinite(places).all(axis=1))
        if bad.size:
            raise DataError(f"trace {name!r}: {bad.size:,} points are no numbers (first at point {bad[0] + 1}).")
        return cls(name, stamps, places)

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.times)


# A local tangent plane: latitude and longitude to metres east and north of a public origin, and back.
#
# Points go to the tangent plane of the WGS 84 ellipsoid, so neither poles nor the antimeridian are special.
# Distances in the plane are at most those on the ground, so a radius of the guarantee is not smaller than
# stated; they shrink by (d/R)^2/2 at a distance d from the origin, 0.1 % at 300 km.
#
# Source
# ------
# National Imagery and Mapping Agency (2000), World Geodetic System 1984, TR8350.2, the ellipsoid.


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


# Which times are secret: a function of times alone, never of where somebody was.
#
# Windows of time, or every time. "Every stop" would be read from the trace, and the noise would then tell where
# the stops are; whoever wants that protects every time.


@dataclass(frozen=True)
class SecretTimes:
    """Secret windows.

    Parameters
    ----------
    windows : tuple of (start, end), seconds
        Both ends belong to the window. None at all: every time is a secret by itself.
    from_start : bool
        Whether the seconds count from the first point of a trace, or are Unix time.
    together : bool
        Whether all times of a window are one secret (what they tell together: also the direction of movement),
        or each is one by itself.
    secret_of : tuple of int, optional
        With `together`, the number of the secret that each window belongs to: windows of one number are one compound
        secret, however far apart. By default each window is its own.

    Raises
    ------
    ParameterError
        For windows that end before they start, and several secrets at once that are not windows.

    Examples
    --------
    >>> home_and_work = SecretTimes(windows=((0.0, 60.0), (600.0, 600.0)), together=True, secret_of=(0, 0))
    >>> home_and_work.places(np.array([0.0, 60.0, 300.0, 600.0]))
    [(0, 1, 3)]
    """

    windows: tuple[tuple[float, float], ...] = ()
    from_start: bool = True
    together: bool = False
    secret_of: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.secret_of and not (self.together and len(self.secret_of) == len(self.windows)):
            raise ParameterError(
                "`secret_of` must number each window, and goes with `together`: single times belong to no compound."
            )
        for start, end in self.windows:
            if not (isfinite(start) and isfinite(end)):
                raise ParameterError(f"a secret window must have finite ends, got {start:g}..{end:g}.")
            if not start <= end:
                raise ParameterError(f"a secret window must not end before it starts, got {start:g}..{end:g}.")
        if self.together and not self.windows:
            raise ParameterError(
                "`together` goes with windows: a whole trace as one secret leaves nothing to release."
            )

    @classmethod
    def parse(cls, texts: list[str], *, together: bool) -> SecretTimes:
        """From START..END, in seconds from the start of a trace or as ISO times (UTC unless they say otherwise).

        Windows with commas between them are one compound secret, together only.

        >>> SecretTimes.parse(["600..660"], together=False).windows
        ((600.0, 660.0),)
        >>> SecretTimes.parse(["0..60,600..660", "900..960"], together=True).secret_of
        (0, 0, 1)
        """
        parts = [text.split(",") for text in texts]
        pairs = [_window(text) for part in parts for text in part]
        if len({from_start for _, _, from_start in pairs}) > 1:
            raise ParameterError("secret windows must all be seconds from the start, or all be times; got both.")
        joined = max(map(len, parts), default=1) > 1
        if joined and not together:
            raise ParameterError("secret windows with commas between them are one secret: add --together.")
        secret_of = tuple(number for number, part in enumerate(parts) for _ in part) if joined else ()
        windows = tuple((a, b) for a, b, _ in pairs)
        return cls(windows, all(from_start for _, _, from_start in pairs), together, secret_of)

    @property
    def every_time(self) -> bool:
        """True if every time is secret."""
        return not self.windows

    def places(self, times: Floats) -> list[tuple[int, ...]]:
        """The secrets of a trace with these time stamps, as positions."""
        if self.every_time:
            return [(place,) for place in range(len(times))]
        stamps = times - times[0] if self.from_start else times
        found: dict[int, list[int]] = {}
        for number, (start, end) in zip(self.secret_of or range(len(self.windows)), self.windows, strict=True):
            inside = np.flatnonzero((stamps >= start) & (stamps <= end)).tolist()
            if not inside:
                raise ParameterError(
                    f"the secret window {start:g}..{end:g} holds no time stamp of the trace, whose times run from "
                    f"{stamps[0]:g} to {stamps[-1]:g}; choose a window that does."
                )
            found.setdefault(number, []).extend(inside)
        if not self.together:
            return [(place,) for place in dict.fromkeys(place for inside in found.values() for place in inside)]
        return list(dict.fromkeys(tuple(sorted(set(inside))) for inside in found.values()))


def _window(text: str) -> tuple[float, float, bool]:
    start, dots, end = text.partition("..")
    if not dots:
        raise ParameterError(
            f"a secret window must be START..END, such as 600..660 or 2013-07-01T00:10..2013-07-01T00:11, got "
            f"{text!r}."
        )
    try:
        pair, from_start = (float(start), float(end)), True
    except ValueError:
        try:
            pair, from_start = (_unix(start), _unix(end)), False
        except ValueError:
            raise ParameterError(f"a secret window must be two numbers or two ISO times, got {text!r}.") from None
    return *pair, from_start


def _unix(text: str) -> float:
    stamp = datetime.fromisoformat(text.strip())
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


# Cells of a grid and whole seconds: a trace is known again after rounding, cropping or with another origin.


Cells = NDArray[np.int64]  # (n, 1 + d), whole seconds and cells

_COARSE_DEGREES, _COARSE_METRES = 1e-3, 100.0
_FINE_METRES = 10.0
_SHIFT = 0.3779217  # no number of few decimals lies on an edge, where the last bit would decide


def coarse_cells(trace: Trace, plane: TangentPlane | None) -> Cells:
    """Each point's time to a second and its place in cells of a thousandth of a degree, whatever the plane's origin.

    Fractions of a second are rounded and cut off, as loggers do either: such a point has two rows.

    Parameters
    ----------
    trace : Trace
    plane : TangentPlane or None
        The plane of its points; None where coordinates are metres already: cells of 100 m.
    """
    places = trace.points / _COARSE_METRES
    if plane is not None:
        places = np.column_stack(plane.to_degrees(trace.points)) / _COARSE_DEGREES
    rounded = _cells(trace, places)
    cut = np.column_stack([np.floor(trace.times).astype(np.int64), rounded[:, 1:]])
    return np.unique(np.concatenate([rounded, cut]), axis=0)


def moving_runs(trace: Trace, length: int) -> list[bytes]:
    """Each run of so many points that moves at every step: its cells of 10 m and the seconds between, on any clock.

    A run that stands still has too few possible contents: anybody who holds its digest could try them all.
    """
    cells = _cells(trace, trace.points / _FINE_METRES)
    steps = np.diff(cells, axis=0)
    still = (steps[:, 1:] == 0).all(axis=1)
    starts = range(len(cells) - length + 1)
    ends = ((i, i + length - 1) for i in starts)
    return [steps[i:j, 0].tobytes() + cells[i : j + 1, 1:].tobytes() for i, j in ends if not still[i:j].any()]


def _cells(trace: Trace, places: Floats) -> Cells:
    return np.asarray(np.column_stack([np.rint(trace.times), np.floor(places + _SHIFT)]), dtype=np.int64)
