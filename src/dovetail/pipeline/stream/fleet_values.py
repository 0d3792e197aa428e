"""What devices say in their rounds, checked: known devices, once a round, numbers in the range, forward in time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.checks import real, whole
from dovetail.core.errors import DataError, ParameterError
from dovetail.pipeline.stream.fleet import Fleet
from dovetail.shuffle.fitting.missing_people import Present
from dovetail.shuffle.fitting.roster_order import sort_to_roster

Values = NDArray[np.float64]  # (n,)
Places = NDArray[np.int64]  # (n,), on the roster
RoundValues = tuple[int, Places, Values]  # stamp, who has a value, and the values, in roster order

_LAST = (1 << 63) - 1  # a stamp is an int64 in tables


def next_stamp(t: int, last: int) -> int:
    """`t` as the stamp of a round after the round `last`."""
    t = whole("t", t, least=1, most=_LAST)
    if t <= last:
        raise DataError(f"`t` must be above {last:,}, the last round, got {t:,}: time goes forward.")
    return t


def values_on_roster(fleet: Fleet, values: Mapping[Any, float]) -> tuple[Present, Values]:
    """Who has a value, and the values in roster order."""
    unknown = [device for device in values if device not in fleet.places]
    if unknown:
        raise DataError(f"{len(unknown):,} devices are not on the roster, first {unknown[0]!r}.")
    x = np.array([_number(value) for value in values.values()], dtype=np.float64)
    _refuse_outside(fleet, "values", x, list(values))
    places = np.array([fleet.places[device] for device in values], np.int64)
    return sort_to_roster(places, x, n=len(fleet.roster))


def split_rounds(
    fleet: Fleet, frame: pl.DataFrame, *, device: str, time: str, value: str, last: int
) -> list[RoundValues]:
    """The rounds of a table with these columns, all after the round `last`; every row is checked first."""
    for name in (device, time, value):
        _refuse_empty(frame, name)
    stamps, x = _stamps(frame[time], last), _values(fleet, frame[value], frame[device])
    rows = pl.DataFrame({"t": stamps, "place": _places(fleet, frame[device]), "x": x}).sort("t", "place")
    times, places, values = (column.to_numpy() for column in rows)
    _refuse_repeated(fleet, times, places)
    bounds = [0, *(1 + np.flatnonzero(np.diff(times))).tolist(), times.size]
    return [(int(times[start]), places[start:stop], values[start:stop]) for start, stop in pairwise(bounds)]


def _refuse_empty(frame: pl.DataFrame, name: str) -> None:
    if name not in frame.columns:
        raise DataError(f"the table has no column {name!r}.")
    empty = frame[name].null_count()
    if empty:
        raise DataError(f"column {name!r} must have no empty cells, got {empty:,}.")


def _stamps(time: pl.Series, last: int) -> pl.Series:
    if not time.dtype.is_integer():
        raise DataError(f"column {time.name!r} must hold whole-number stamps 1, 2, .. of rounds, got {time.dtype}.")
    if not len(time):
        raise DataError("the table has no rows.")
    next_stamp(int(time.min()), last)  # type: ignore[arg-type]
    next_stamp(int(time.max()), last)  # type: ignore[arg-type]
    return time.cast(pl.Int64)


def _values(fleet: Fleet, value: pl.Series, device: pl.Series) -> pl.Series:
    if not value.dtype.is_numeric():
        raise DataError(f"column {value.name!r} must hold numbers, got {value.dtype}.")
    x = value.cast(pl.Float64)
    _refuse_outside(fleet, value.name, x.to_numpy(), device)
    return x


def _places(fleet: Fleet, device: pl.Series) -> pl.Series:
    roster = pl.Series(fleet.roster)
    try:
        if device.dtype == pl.Boolean:  # polars would compare with 0 and 1
            raise pl.exceptions.SchemaError
        places = device.replace_strict(roster, range(len(roster)), default=None, return_dtype=pl.Int64)
    except pl.exceptions.PolarsError:
        raise DataError(f"devices must be {roster.dtype} as on the roster, got {device.dtype}.") from None
    unknown = device.filter(places.is_null())
    if len(unknown):
        raise DataError(f"{len(unknown):,} rows name devices that are not on the roster, first {unknown[0]!r}.")
    return places


def _refuse_outside(fleet: Fleet, name: str, x: Values, devices: Any) -> None:
    """Values outside the range are refused by the names of their devices: an error tells nobody's value."""
    lower, upper = fleet.randomizer.lower, fleet.randomizer.upper
    bad = np.flatnonzero(~((x >= lower) & (x <= upper)))  # NaN too
    if bad.size:
        raise DataError(
            f"`{name}` must be numbers in [{lower!r}, {upper!r}]; {bad.size:,} of {x.size:,} are not, the first "
            f"of device {devices[int(bad[0])]!r}."
        )


def _refuse_repeated(fleet: Fleet, times: Places, places: Places) -> None:
    """Stamps and places, sorted, of which no pair may stand twice."""
    twice = (np.diff(times) == 0) & (np.diff(places) == 0)
    if twice.any():
        first = int(np.flatnonzero(twice)[0])
        raise DataError(
            f"a device must report once a round; {int(twice.sum()):,} rows repeat one, the first "
            f"{fleet.roster[places[first]]!r} in round {times[first]}."
        )


def _number(value: Any) -> float:
    """`value` as a finite float; NaN for anything else."""
    try:
        return real("value", value)
    except (ParameterError, OverflowError):
        return math.nan
