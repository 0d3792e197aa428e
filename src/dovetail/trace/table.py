"""Traces in tables: CSV and Parquet with one point a row, GPX with one track segment a trace, GeoJSON with lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.checks import nearest
from dovetail.core.display import counted, mute
from dovetail.core.errors import DataError
from dovetail.table.columns import Status
from dovetail.table.layout import read_as_found
from dovetail.table.spelling import at_rows
from dovetail.trace.kernels import Floats
from dovetail.trace.trace import TangentPlane, Trace

# GPX tracks in and out: latitude, longitude and time of every point; elevation, speed and names are left behind.


_SPACE = "http://www.topografix.com/GPX/1/1"


def read_gpx(path: Path) -> pl.DataFrame:
    """Columns trace, time (text), latitude, longitude; one trace for each track segment."""
    try:
        if not path.is_file():
            raise DataError(f"{path}: no such file.")
        # the parser of Python 3.11 (expat 2.4 and later) refuses documents whose entities explode
        root = ElementTree.fromstring(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None
    except ElementTree.ParseError as error:
        raise DataError(f"{path}: is not readable as GPX: {error}.") from None
    rows = []
    for number, segment in enumerate(root.iter(f"{{{_space(root)}}}trkseg" if _space(root) else "trkseg"), start=1):
        for point in segment:
            stamp = next((child.text for child in point if child.tag.endswith("time")), None)
            rows.append((str(number), stamp, point.get("lat"), point.get("lon")))
    if any(None in row for row in rows):
        bad = next(i for i, row in enumerate(rows, start=1) if None in row)
        raise DataError(f"{path}: every point wants lat, lon and time; point {bad} lacks one.")
    return pl.DataFrame(rows, schema=["trace", "time", "latitude", "longitude"], orient="row")


def write_gpx(frame: pl.DataFrame, place: Path) -> None:
    """One track segment for each trace."""
    if "latitude" not in frame.columns:
        raise DataError(f"{place}: GPX holds latitude and longitude; write metres as CSV or Parquet.")
    ElementTree.register_namespace("", _SPACE)
    root = ElementTree.Element(f"{{{_SPACE}}}gpx", {"version": "1.1", "creator": "dovetail"})
    for part in frame.partition_by("trace", maintain_order=True):
        segment = ElementTree.SubElement(ElementTree.SubElement(root, f"{{{_SPACE}}}trk"), f"{{{_SPACE}}}trkseg")
        for row in part.iter_rows(named=True):
            at = {"lat": f"{row['latitude']:.7f}", "lon": f"{row['longitude']:.7f}"}
            point = ElementTree.SubElement(segment, f"{{{_SPACE}}}trkpt", at)
            ElementTree.SubElement(point, f"{{{_SPACE}}}time").text = str(row["time"])
    ElementTree.ElementTree(root).write(place, encoding="utf-8", xml_declaration=True)


def _space(root: ElementTree.Element) -> str:
    """The document's own namespace: GPX 1.0, 1.1 or none."""
    return root.tag[1:].partition("}")[0] if root.tag.startswith("{") else ""


# GeoJSON in and out: lines with a time for each of their points, or points with a time each (RFC 7946).


GEOJSON = (".geojson", ".json")
_TIMES = "coordTimes"  # as converters from GPX write it

Row = dict[str, Any]


def read_geojson(path: Path) -> pl.DataFrame:
    """One point a row: latitude, longitude, time, and for points all of their properties."""
    try:
        form = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None
    except ValueError:
        raise DataError(f"{path}: is no JSON document.") from None
    try:
        features = form["features"] if form["type"] == "FeatureCollection" else [form]
        rows = [row for number, feature in enumerate(features, 1) for row in _rows(feature, str(number))]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise DataError(
            f"{path}: must be GeoJSON features: points with a property such as time, or lines with one time for each "
            f"point in the property {_TIMES}."
        ) from None
    names = dict.fromkeys(name for row in rows for name in row)
    texts = {name: [None if row.get(name) is None else str(row[name]) for row in rows] for name in names}
    return pl.DataFrame(texts, schema=dict.fromkeys(names, pl.String))


def _rows(feature: Row, number: str) -> Iterator[Row]:
    shape, properties = feature["geometry"], dict(feature.get("properties") or {})
    if shape["type"] == "Point":
        yield {**properties, **_place(shape["coordinates"])}
        return
    times = properties.pop(_TIMES)
    lines = {"LineString": [shape["coordinates"]], "MultiLineString": shape["coordinates"]}[shape["type"]]
    stamps = [times] if shape["type"] == "LineString" else times
    name = properties.get("trace", number)
    for part, (line, when) in enumerate(zip(lines, stamps, strict=True), 1):
        own = {"trace": name if len(lines) == 1 else f"{name}.{part}"}
        person = {"person": properties["person"]} if "person" in properties else {}
        for place, stamp in zip(line, when, strict=True):
            yield {**own, **person, "time": stamp, **_place(place)}


def _place(coordinates: list[float]) -> Row:
    longitude, latitude = coordinates[:2]
    return {"latitude": float(latitude), "longitude": float(longitude)}


def write_geojson(frame: pl.DataFrame, place: Path) -> None:
    """One line for each trace, with a time for each point."""
    if "latitude" not in frame.columns:
        raise DataError(f"{place}: GeoJSON holds latitude and longitude; write metres as CSV or Parquet.")
    features = [
        {
            "type": "Feature",
            "properties": {"trace": part["trace"][0], _TIMES: part["time"].cast(pl.String).to_list()},
            "geometry": {"type": "LineString", "coordinates": part.select("longitude", "latitude").rows()},
        }
        for part in frame.partition_by("trace", maintain_order=True)
    ]
    place.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")


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
        """True if coordinates are degrees."""
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
    """Roles of the columns of a table; by default those with a usual name.

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
    told = [f"{what} ({at_rows(each.arg_true())})" for what, each in bad]
    if faults or (told and not drop_bad):
        remedy = "; --drop-bad leaves such points out" if told else ""
        raise DataError(f"{path}: {'; '.join([*faults, *told])}{remedy}.")
    if told:
        rows = rows.filter(~pl.Series(np.any([each.to_numpy() for _, each in bad], axis=0)))
        if rows.height == 0:
            raise DataError(f"{path}: no point can be read: {'; '.join(told)}.")
    if "person" in rows.columns:
        _check_people(path, rows)
    return TraceTable(rows, coordinates, tuple(told))


def _read(path: Path) -> tuple[pl.DataFrame, list[str]]:
    """A file as a table, and what stops its reading."""
    suffix = path.suffix.lower()
    if suffix == ".gpx":
        return read_gpx(path), []
    if suffix in GEOJSON:
        return read_geojson(path), []
    frame, _, problems = read_as_found(path, None)
    return frame, [f"{one.what}; {one.remedy}" for one in problems if one.status is Status.STOPS]


_LATEST = 1e11  # seconds, in the year 5138: larger numbers count something finer


def _bad_points(rows: pl.DataFrame, coordinates: tuple[str, ...]) -> list[tuple[str, pl.Series]]:
    """Faults of single points with their counts, and which points these are; each counts once."""
    numbers = np.column_stack([rows[name].to_numpy() for name in coordinates])
    far = np.zeros(rows.height, dtype=np.bool_)
    if coordinates == _PLACES[0]:
        far = (np.abs(numbers[:, 0]) > 90.0) | (numbers[:, 1] < -180.0) | (numbers[:, 1] > 360.0)
    checks = [
        ("names", "name", "no trace", rows["trace"].is_null().to_numpy()),
        ("has", "have", "a time that is neither seconds nor an ISO time", np.isnan(rows["stamp"].to_numpy())),
        ("has", "have", "a time in milliseconds instead of seconds", np.abs(rows["stamp"].to_numpy()) > _LATEST),
        ("has", "have", f"no numbers as {' or '.join(coordinates)}", ~np.isfinite(numbers).all(axis=1)),
        ("has", "have", "a latitude outside [-90, 90] or a longitude outside [-180, 360]", far),
        (
            "repeats",
            "repeat",
            "a time of the same trace",
            ~rows.select(pl.struct("trace", "stamp").is_first_distinct()).to_series().to_numpy(),
        ),
    ]
    known, found = np.zeros(rows.height, dtype=np.bool_), []
    for one, many, what, wrong in checks:
        fresh = wrong & ~known
        known |= wrong
        if fresh.any():
            points = counted(int(fresh.sum()), f"point {one}", f"points {many}")
            found.append((f"{points} {what}", pl.Series(fresh)))
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
    """Numbers, with a decimal comma where no value has a point; NaN for other text."""
    text = column.cast(pl.String).str.strip_chars()
    if column.dtype == pl.String and not text.str.contains(".", literal=True).any():
        text = text.str.replace(",", ".", literal=True)
    return np.asarray(text.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy().copy(), dtype=np.float64)


def _seconds(column: pl.Series) -> NDArray[np.float64]:
    """Unix seconds of numbers, ISO text or dates; NaN for other text."""
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
