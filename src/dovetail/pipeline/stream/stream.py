"""From a table with stamps to a stream: a public roster of devices, and their values round by round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import coo_array

from dovetail.core.display.display import mute
from dovetail.core.errors import DataError
from dovetail.pipeline.config.build import build_randomizer, build_shuffler, public_data
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.config.sections import DataSection
from dovetail.pipeline.evaluate.estimates import mean_estimator
from dovetail.pipeline.files.table import (
    Survey,
    bounded,
    columns_of,
    numeric,
    read_table,
    refuse_missing,
    rows_of,
    table_of,
)
from dovetail.pipeline.stream.fleet import Fleet


@mute
@dataclass(frozen=True, eq=False)
class Stream:
    """Checked rows of a fleet, with the public facts about its devices.

    Parameters
    ----------
    rows : data frame with the columns device (text), time (whole numbers, at least 1) and value
        In order of time and device; each device at most once a round.
    roster : tuple of str
        All devices, by name: their places in every round have nothing to do with the order of the table.
    public : data frame (n, public columns)
        Of the devices, in roster order.
    edges : data frame of two text columns, or None
        Public relationships of devices.
    """

    rows: pl.DataFrame
    roster: tuple[str, ...]
    public: pl.DataFrame
    edges: pl.DataFrame | None

    def fleet(self, settings: RunConfig) -> Fleet:
        """Who reports what, with how much noise, in which order, and for how long."""
        section, survey = settings.shuffle, Survey.of(self.public)
        shuffler: Any = build_shuffler(section, public_data(section, survey, n=len(self.roster), graph=self._graph()))
        randomizer: Any = build_randomizer(settings.randomize, settings.data, None)
        cap = math.inf if settings.promise.cap is None else settings.promise.cap
        estimate, spread = mean_estimator(settings.estimate), settings.promise.spread
        return Fleet(self.roster, randomizer, shuffler, cap, estimate, spread)

    def _graph(self) -> coo_array | None:
        """The relationships as a square matrix, so that devices without any count too."""
        if self.edges is None:
            return None
        n, place = len(self.roster), range(len(self.roster))
        ends = [column.replace_strict(self.roster, place, return_dtype=pl.Int64).to_numpy() for column in self.edges]
        return coo_array((np.ones(self.edges.height), tuple(ends)), shape=(n, n))


def read_stream(settings: RunConfig, *, table: Any = None) -> Stream:
    """Read and check a table with one row for each device and round.

    Raises
    ------
    DataError
        A missing or undeclared value, a stamp that is none or goes back, a device that stands in a round twice or
        changes a public column, a graph of other devices: counted, with the first places.
    """
    data = settings.data
    frame = columns_of(table_of(data, table), data, numbers=settings.numbers)
    if frame.height == 0:
        raise DataError("the table has no rows.")
    assert data.person is not None and data.time is not None  # the configuration has been checked
    refuse_missing(frame[data.person], f"person column {data.person!r}")
    for name in data.public:
        refuse_missing(frame[name], f"public column {name!r}")
    values = bounded(frame[data.private], float(data.lower or 0.0), float(data.upper or 0.0))
    device, time = frame[data.person].cast(pl.String).alias("device"), _stamps(frame[data.time])
    rows = pl.DataFrame([device, time, pl.Series("value", values)])
    _refuse_twice(rows, data)
    _refuse_backwards(rows, data)
    devices = pl.DataFrame([device, *frame.select(data.public)]).unique().sort("device")
    _refuse_changes(devices, data)
    roster = tuple(devices["device"].to_list())
    graph = getattr(settings.shuffle, "graph", None)
    edges = None if graph is None else _edges(graph, roster)
    return Stream(rows.sort("time", "device"), roster, devices.select(data.public), edges)


def _stamps(column: pl.Series) -> pl.Series:
    refuse_missing(column, f"time column {column.name!r}")
    if not (column.dtype.is_numeric() or column.dtype == pl.String):
        raise DataError(
            f"time column {column.name!r} has type {column.dtype}; number the rounds 1, 2, .. (a step of a day "
            "or a minute each)."
        )
    numbers = pl.Series(numeric(column))
    wrong = (numbers != numbers.floor()) | (numbers < 1) | (numbers > 2**53)
    if wrong.any():
        rows = wrong.arg_true()
        raise DataError(
            f"time column {column.name!r}: {len(rows):,} stamps are not whole numbers 1, 2, .. of rounds (first at "
            f"rows {rows_of(rows)}: {numbers[rows[0]]:g})."
        )
    return numbers.cast(pl.Int64).alias("time")


def _refuse_twice(rows: pl.DataFrame, data: DataSection) -> None:
    repeated = rows.select("device", "time").is_duplicated()
    if repeated.any():
        first = repeated.arg_true()
        raise DataError(
            f"{len(first):,} rows give a device of {data.person!r} more than one value in a round (first at rows "
            f"{rows_of(first)}: {rows['device'][first[0]]!r} in round {rows['time'][first[0]]}); keep one row each."
        )


def _refuse_backwards(rows: pl.DataFrame, data: DataSection) -> None:
    """A device whose clock was set back would be put into rounds that are not its own."""
    back = rows.select((pl.col("time").diff() < 0).over("device").fill_null(value=False)).to_series()
    if back.any():
        first = back.arg_true()
        raise DataError(
            f"time column {data.time!r} goes back in {len(first):,} rows of a device (first at rows "
            f"{rows_of(first)}: {rows['device'][first[0]]!r}, to {rows['time'][first[0]]}); if the stamps are right, "
            "sort the table by time."
        )


def _refuse_changes(devices: pl.DataFrame, data: DataSection) -> None:
    changing = devices["device"].is_duplicated()
    if changing.any():
        names = devices["device"].filter(changing)
        raise DataError(
            f"{names.n_unique():,} devices change a public column ({', '.join(data.public)}) from row to row, first "
            f"{names[0]!r}; public facts about a device stay the same in a stream."
        )


def _edges(path: str, roster: tuple[str, ...]) -> pl.DataFrame:
    """The first two columns of an edge list, as names on the roster."""
    table = read_table(path)
    if table.width < 2 or table.height == 0:
        raise DataError(
            f"{path}: must hold at least one edge: two columns of devices and a row for each relationship."
        )
    edges = table.select(pl.nth(0, 1).cast(pl.String))
    for column in edges:
        refuse_missing(column, f"{path}: column {column.name!r}")
        unknown = column.filter(~column.is_in(list(roster)))
        if len(unknown):
            raise DataError(
                f"{path}: {unknown.n_unique():,} devices in the graph are not in the table, first {unknown[0]!r}."
            )
    return edges
