"""Traces in tables: CSV and Parquet with one point a row, GPX with one track segment a trace."""

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
from dovetail.pipeline.files.table import numeric, read_table
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
    """

    rows: pl.DataFrame
    coordinates: tuple[str, ...]

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


def read_traces(path: Path) -> TraceTable:
    """Traces from .csv, .parquet or .gpx.

    A table has one point a row: `time` (Unix seconds or ISO text), `latitude` and `longitude` in degrees, or `x` and
    `y` in metres, or one `value`; `trace` names the trace (one for all where it is missing), `person` whose it is.
    """
    table = read_gpx(path) if path.suffix.lower() == ".gpx" else read_table(str(path))
    if table.height == 0:
        raise DataError(f"{path}: holds no points.")
    coordinates = next((names for names in _PLACES if set(names) <= set(table.columns)), None)
    if coordinates is None or "time" not in table.columns:
        missing = "time" if coordinates is not None else "latitude and longitude (or x and y, or value)"
        hint = nearest(missing.split()[0], table.columns)
        raise DataError(f"{path}: traces have one point a row; column {missing} is missing{hint}.")
    rows = table.select(
        (pl.col("trace").cast(pl.String) if "trace" in table.columns else pl.lit("1").alias("trace")),
        *([pl.col("person").cast(pl.String)] if "person" in table.columns else []),
        pl.col("time"),
        pl.Series("stamp", _seconds(path, table["time"])),
        *[pl.Series(name, _numbers(path, table[name])) for name in coordinates],
    )
    if rows["trace"].null_count():
        raise DataError(f"{path}: {rows['trace'].null_count():,} points name no trace.")
    if "person" in rows.columns:
        _check_people(path, rows)
    return TraceTable(rows, coordinates)


def _check_people(path: Path, rows: pl.DataFrame) -> None:
    """Refuse a trace whose rows do not agree on whose it is: releases are counted for one person."""
    counts = rows.group_by("trace", maintain_order=True).agg(pl.col("person").n_unique())
    mixed = counts.filter(pl.col("person") > 1)["trace"].to_list()
    if mixed:
        raise DataError(f"{path}: trace {mixed[0]!r} must name one person in all of its rows; split it by person.")


def write_traces(frame: pl.DataFrame, place: Path, suffix: str) -> None:
    """Write the format of `suffix`: .csv, .parquet or .gpx."""
    suffix = suffix.lower()
    if suffix == ".gpx":
        write_gpx(frame, place)
    elif suffix in (".parquet", ".pq"):
        frame.write_parquet(place)
    else:
        frame.write_csv(place)


def _numbers(path: Path, column: pl.Series) -> NDArray[np.float64]:
    try:
        return numeric(column)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _seconds(path: Path, column: pl.Series) -> NDArray[np.float64]:
    """Unix seconds of numbers, ISO text or dates."""
    if column.dtype.is_temporal():
        return np.asarray(column.dt.timestamp("us").to_numpy() / 1e6, dtype=np.float64)
    if column.dtype.is_numeric():
        return _numbers(path, column)
    text = column.cast(pl.String).str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() == text.null_count():
        return _numbers(path, column)
    stamps = np.array([_unix(each) for each in text])
    bad = np.flatnonzero(np.isnan(stamps))
    if bad.size:
        raise DataError(f"{path}: {bad.size:,} times are neither seconds nor ISO times (first at row {bad[0] + 1}).")
    return stamps


def _unix(text: str | None) -> float:
    """Unix seconds of an ISO time, UTC unless it says otherwise; NaN where it is none."""
    try:
        stamp = datetime.fromisoformat(text or "")
    except ValueError:
        return float("nan")
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
