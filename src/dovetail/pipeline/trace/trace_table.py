"""Traces in tables: CSV and Parquet with one point a row, GPX with one track segment a trace, GeoJSON with lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.checks import nearest
from dovetail.core.display.display import mute
from dovetail.core.errors import DataError
from dovetail.pipeline.files.check.problem import Status
from dovetail.pipeline.files.check.text_file.read import read_as_found
from dovetail.pipeline.files.table import rows_of
from dovetail.pipeline.trace.geojson import GEOJSON, read_geojson, write_geojson
from dovetail.pipeline.trace.gpx import read_gpx, write_gpx
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.plane import TangentPlane
from dovetail.trace.trace import Trace

_PLACES = (("latitude", "longitude"), ("x", "y"), ("value",))


@mute
@dataclass(frozen=True, eq=False)
class TraceTable:
    """Points of traces, as a file holds them.

    Parameters
    ----------
    rows : data frame
        Columns trace, person (where the file has it), time (as in the file), stamp (seconds) and the coordinates.
    coordinates : tuple of str
        latitude and longitude (degrees), x and y (metres), or value.
    left_out : tuple of str
        Which points were left out, and how many.
    """

    rows: pl.DataFrame
    coordinates: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def geographic(self) -> bool:
        """Whether coordinates are degrees."""
        return self.coordinates == _PLACES[0]

    def names(self) -> list[str]:
        """Names of the traces, in the order of the file."""
        return self.rows["trace"].unique(maintain_order=True).to_list()

    def part(self, name: str) -> pl.DataFrame:
        """The rows of one trace."""
        return self.rows.filter(pl.col("trace") == name)

    def person(self, name: str) -> str | None:
        """Whose trace it is, where the file says so."""
        person = self.part(name)["person"][0] if "person" in self.rows.columns else None
        return None if person is None else str(person)

    def centre(self) -> tuple[float, float]:
        """A rounded middle of the points, a tenth of a degree: an origin for public traces."""
        middle = [round(float(np.median(self.rows[name].to_numpy())), 1) for name in self.coordinates]
        return middle[0], middle[1]

    def traces(self, plane: TangentPlane | None) -> list[Trace]:
        """Every trace, in metres."""
        if self.geographic and plane is None:
            raise DataError("latitude and longitude want a prior with an origin; this one was fitted on metres.")
        if not self.geographic and plane is not None:
            raise DataError("the prior has an origin in degrees, but the table's coordinates are metres.")
        return [self._trace(name, plane) for name in self.names()]

    def _trace(self, name: str, plane: TangentPlane | None) -> Trace:
        part = self.part(name)
        numbers = [part[column].to_numpy() for column in self.coordinates]
        try:
            points = np.column_stack(numbers) if plane is None else plane.to_metres(*numbers)
        except DataError as error:
            raise DataError(f"trace {name!r}: {error}") from None
        return Trace.of(name, part["stamp"].to_numpy(), points)

    def with_points(self, released: Sequence[Floats], plane: TangentPlane | None) -> pl.DataFrame:
        """The table with other coordinates, and nothing but names, times and coordinates in it."""
        keep = ["trace", "time"]
        parts = []
        for name, points in zip(self.names(), released, strict=True):
            columns = plane.to_degrees(points) if plane is not None else tuple(points.T)
            digits = 7 if plane is not None else 6
            made = [pl.Series(c, np.round(v, digits)) for c, v in zip(self.coordinates, columns, strict=True)]
            parts.append(self.part(name).select(keep).with_columns(made))
        return pl.concat(parts)


def nameless(
    times: Sequence[Floats], points: Sequence[Floats], coordinates: Sequence[str], plane: TangentPlane | None
) -> pl.DataFrame:
    """A table of traces that are numbered from 1 in their order: seconds and coordinates, and nothing else."""
    parts = []
    for number, (stamps, places) in enumerate(zip(times, points, strict=True), start=1):
        columns = plane.to_degrees(places) if plane is not None else tuple(places.T)
        digits = 7 if plane is not None else 6
        made = {name: np.round(values, digits) for name, values in zip(coordinates, columns, strict=True)}
        parts.append(pl.DataFrame({"trace": [str(number)] * len(stamps), "time": stamps, **made}))
    return pl.concat(parts)


@dataclass(frozen=True)
class TraceColumns:
    """Which columns of a table are what; by default those with a usual name.

    Parameters
    ----------
    trace, person, time, latitude, longitude : str, optional
    """

    trace: str | None = None
    person: str | None = None
    time: str | None = None
    latitude: str | None = None
    longitude: str | None = None

    def rename(self, path: Path, table: pl.DataFrame) -> pl.DataFrame:
        """The table with its columns under the names that this module uses."""
        lower = {name.strip().lower(): name for name in reversed(table.columns)}
        found: dict[str, str] = {}
        for role, usual in _USUAL.items():
            said = getattr(self, role)
            if said is not None and said not in table.columns:
                raise DataError(f"{path}: has no column {said!r}, as --{role} says{nearest(said, table.columns)}.")
            named = said or next((lower[name] for name in (role, *usual) if name in lower), None)
            if named is not None and named not in found:
                found[named] = role
        taken = set(found.values())
        return table.select(
            *[pl.col(name).alias(role) for name, role in found.items()],
            *[pl.col(name) for name in table.columns if name not in found and name not in taken],
        )


_USUAL = {
    "time": ("timestamp", "datetime", "date_time", "time_stamp", "utc", "t"),
    "latitude": ("lat",),
    "longitude": ("lon", "lng", "long"),
    "trace": ("track_id", "trace_id", "trip_id", "trajectory_id", "track", "trip", "trajectory"),
    "person": ("person_id", "user", "user_id", "device_id"),
}


def read_traces(path: Path, columns: TraceColumns | None = None, *, drop_bad: bool = False) -> TraceTable:
    """Traces from .csv however it is written, .parquet, .gpx or .geojson.

    A table has one point a row: `time` (Unix seconds or ISO text), `latitude` and `longitude` in degrees, or `x` and
    `y` in metres, or one `value`; `trace` names the trace (one for all where it is missing), `person` whose it is.

    Parameters
    ----------
    path : Path
    columns : TraceColumns, optional
    drop_bad : bool
        Leave out points that cannot be read and all but the first of a trace at one time, and say how many.

    Raises
    ------
    DataError
        With all faults in one line.
    """
    table, faults = _read(path)
    if table.height == 0:
        raise DataError(f"{path}: holds no points.")
    table = (columns or TraceColumns()).rename(path, table)
    coordinates = next((names for names in _PLACES if set(names) <= set(table.columns)), None)
    if coordinates is None or "time" not in table.columns:
        missing = "time" if coordinates is not None else "latitude and longitude (or x and y, or value)"
        hint = nearest(missing.split()[0], table.columns)
        raise DataError(
            f"{path}: traces have one point a row; column {missing} is missing{hint}; name columns by --trace, "
            "--time, --latitude and --longitude."
        )
    rows = table.select(
        (pl.col("trace").cast(pl.String) if "trace" in table.columns else pl.lit("1").alias("trace")),
        *([pl.col("person").cast(pl.String)] if "person" in table.columns else []),
        pl.col("time"),
        pl.Series("stamp", _seconds(table["time"])),
        *[pl.Series(name, _numbers(table[name])) for name in coordinates],
    )
    bad = _bad_points(rows, coordinates)
    counted = [f"{int(each.sum()):,} points {what} (first at rows {rows_of(each.arg_true())})" for what, each in bad]
    if faults or (counted and not drop_bad):
        remedy = "; --drop-bad leaves such points out" if counted else ""
        raise DataError(f"{path}: {'; '.join([*faults, *counted])}{remedy}.")
    if counted:
        rows = rows.filter(~pl.Series(np.any([each.to_numpy() for _, each in bad], axis=0)))
        if rows.height == 0:
            raise DataError(f"{path}: no point can be read: {'; '.join(counted)}.")
    if "person" in rows.columns:
        _check_people(path, rows)
    return TraceTable(rows, coordinates, tuple(counted))


def _read(path: Path) -> tuple[pl.DataFrame, list[str]]:
    """A file as a table, and what stops its reading."""
    suffix = path.suffix.lower()
    if suffix == ".gpx":
        return read_gpx(path), []
    if suffix in GEOJSON:
        return read_geojson(path), []
    frame, _, problems = read_as_found(path, None)
    return frame, [f"{one.what}; {one.remedy}" for one in problems if one.status is Status.STOPS]


def _bad_points(rows: pl.DataFrame, coordinates: tuple[str, ...]) -> list[tuple[str, pl.Series]]:
    """What is wrong with single points, and which; each point counts once."""
    numbers = np.column_stack([rows[name].to_numpy() for name in coordinates])
    far = np.zeros(rows.height, dtype=np.bool_)
    if coordinates == _PLACES[0]:
        far = (np.abs(numbers[:, 0]) > 90.0) | (numbers[:, 1] < -180.0) | (numbers[:, 1] > 360.0)
    checks = [
        ("name no trace", rows["trace"].is_null().to_numpy()),
        ("have a time that is neither seconds nor an ISO time", np.isnan(rows["stamp"].to_numpy())),
        (f"have no numbers as {' or '.join(coordinates)}", ~np.isfinite(numbers).all(axis=1)),
        ("have a latitude outside [-90, 90] or a longitude outside [-180, 360]", far),
        (
            "repeat a time of their trace",
            ~rows.select(pl.struct("trace", "stamp").is_first_distinct()).to_series().to_numpy(),
        ),
    ]
    known, found = np.zeros(rows.height, dtype=np.bool_), []
    for what, wrong in checks:
        fresh = wrong & ~known
        known |= wrong
        if fresh.any():
            found.append((what, pl.Series(fresh)))
    return found


def _check_people(path: Path, rows: pl.DataFrame) -> None:
    """Refuse a trace whose rows do not agree on whose it is: releases are counted for one person."""
    counts = rows.group_by("trace", maintain_order=True).agg(pl.col("person").n_unique())
    mixed = counts.filter(pl.col("person") > 1)["trace"].to_list()
    if mixed:
        raise DataError(f"{path}: trace {mixed[0]!r} must name one person in all of its rows; split it by person.")


def write_traces(frame: pl.DataFrame, place: Path, suffix: str) -> None:
    """Write the format of `suffix`: .csv, .parquet, .gpx or .geojson."""
    suffix = suffix.lower()
    if suffix in GEOJSON:
        write_geojson(frame, place)
        return
    if suffix == ".gpx":
        write_gpx(frame, place)
    elif suffix in (".parquet", ".pq"):
        frame.write_parquet(place)
    else:
        frame.write_csv(place)


def _numbers(column: pl.Series) -> NDArray[np.float64]:
    """Numbers, with a decimal comma where no value has a point; NaN for what is none."""
    text = column.cast(pl.String).str.strip_chars()
    if column.dtype == pl.String and not text.str.contains(".", literal=True).any():
        text = text.str.replace(",", ".", literal=True)
    return np.asarray(text.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy().copy(), dtype=np.float64)


def _seconds(column: pl.Series) -> NDArray[np.float64]:
    """Unix seconds of numbers, ISO text or dates; NaN for what is none."""
    if column.dtype.is_temporal():
        return np.asarray(column.dt.timestamp("us").to_numpy() / 1e6, dtype=np.float64)
    stamps = _numbers(column)
    for row in np.flatnonzero(~np.isfinite(stamps)):
        stamps[row] = _unix(None if column[int(row)] is None else str(column[int(row)]).strip())
    return stamps


def _unix(text: str | None) -> float:
    """Unix seconds of an ISO time, UTC unless it says otherwise; NaN where it is none."""
    try:
        stamp = datetime.fromisoformat(text or "")
    except ValueError:
        return float("nan")
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
