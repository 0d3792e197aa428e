"""The data of the RASE studies: REFIT where DOVETAIL_DATA names it, and a synthetic fleet everywhere."""

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.entropy import simulation
from dovetail.datasets.houses import DAY, FOLDER, read_refit, synthetic_loads

SOCKET = (0.0, 3000.0)  # watts: public, what a British plug of 13 A can carry at 230 V, rounded up
PAPER = (3.9, 178.3)  # watts: Table I, training houses

FIRST, LAST = datetime(2014, 4, 1), datetime(2014, 12, 1)  # eight months in which REFIT houses 2 and 20 are whole
DAYS = 30  # of each month


@dataclass(frozen=True, eq=False)
class Fleet:
    """Watts of devices (rounds, n), the hour of each round (rounds,), and the public range."""

    name: str
    watts: NDArray[np.float64]
    hours: NDArray[np.float64]
    bounds: tuple[float, float]


def refit(every: str) -> pl.DataFrame | None:
    """Readings of REFIT, or None where DOVETAIL_DATA is not set.

    The variable names a folder with appliance_load/ in it, or a folder of CLEAN_House files, or one such file.
    """
    root = os.environ.get("DOVETAIL_DATA")
    if not root:
        return None
    inside = Path(root) / FOLDER
    return read_refit(inside if inside.is_dir() else Path(root), every=every)


def synthetic(n: int, days: int, *, minutes: float, seed: int) -> Fleet:
    """The documented generator, in the range that the paper states."""
    rounds = round(days * DAY / minutes)
    watts = synthetic_loads(n, rounds, lower=PAPER[0], upper=PAPER[1], minutes=minutes, rng=simulation(seed))
    return Fleet("synthetic", watts, np.asarray(np.arange(rounds) * minutes / 60.0 % 24.0, dtype=np.float64), PAPER)


def sensor_months(n: int, every: str) -> Fleet | None:
    """Each month of each REFIT sensor as one device over 30 days, the first n of them; None without REFIT.

    The houses at hand have fewer than 64 sensors. Months of one sensor have the same habits, so they are harder to
    tell apart than 64 sensors would be.
    """
    table = refit(every)
    if table is None:
        return None
    time = pl.col("time")
    table = table.filter(time.is_between(FIRST, LAST, closed="left") & (time.dt.day() <= DAYS))
    day = pl.datetime(FIRST.year, FIRST.month, time.dt.day(), time.dt.hour(), time.dt.minute())
    named = table.select(
        pl.format("{} {}", "device", time.dt.strftime("%Y-%m")).alias("device"), day.alias("time"), "watts"
    )
    wide, devices = pivot_rounds(named)
    clock = wide["time"].dt
    hours = (clock.hour() + clock.minute() / 60.0).to_numpy()
    return Fleet("REFIT", wide.select(devices[:n]).to_numpy(), hours, SOCKET)


def load_statistics(table: pl.DataFrame) -> pl.DataFrame:
    """For each house its sensors, range of watts, calendar months and readings, like Table I of the RASE paper."""
    return (
        table.group_by("house")
        .agg(
            sensors=pl.col("device").n_unique(),
            lowest=pl.col("watts").min(),
            highest=pl.col("watts").max(),
            months=pl.col("time").dt.truncate("1mo").n_unique(),
            readings=pl.len(),
        )
        .sort("house")
    )


def pivot_rounds(table: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The steps in which every device has a reading, as rounds 1, 2, ..: columns t, time and one for each device."""
    wide = table.pivot("device", index="time", values="watts").sort("time").drop_nulls()
    devices = sorted(name for name in wide.columns if name != "time")
    stamps = pl.Series("t", range(1, wide.height + 1), dtype=pl.Int64)
    return wide.select(stamps, "time", *devices), devices
