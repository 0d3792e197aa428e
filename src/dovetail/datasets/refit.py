"""REFIT: the power of household appliances in the United Kingdom, from the publisher's files or monthly extracts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from dovetail.core.errors import DataError
from dovetail.datasets.download import data_folder

FOLDER = "appliance_load"
WHERE = (
    "REFIT (Murray, Stankovic, Stankovic 2017, CC BY 4.0) is published by the University of Strathclyde, "
    "doi:10.15129/9ab14b0e-19ac-4279-938f-27f643078cec; take CLEAN_House*.csv"
)

_NAME = re.compile(r"House_?(\d+)")
_PLAIN = {"Time", "Unix", "Aggregate", "Issues"}


def read_refit(*paths: str | Path, every: str = "1m") -> pl.DataFrame:
    """Readings of single appliances, as means over steps of `every`, in long form.

    Parameters
    ----------
    paths : str or Path
        The publisher's CLEAN_House<number>.csv, extracts REFIT_House<number>_<month>.csv[.gz] with named columns, or
        folders of either.
    every : str
        Width of a step as polars writes it: "1m", "10m", "1h", "1d".

    Returns
    -------
    data frame, sorted by time
        `time` (public): start of the step, local time as published.
        `house` (public): number of the house.
        `device` (public name of the sender; what re-identification guesses): "house20 Kettle".
        `watts` (private): mean active power, W.

    Raises
    ------
    DataError
        When there is no such file, or a file is not in this form; says where the data come from.

    Notes
    -----
    The house's total (`Aggregate`) is not a device and is left out; rows that the publisher marks (`Issues` = 1) too.
    The publisher fills gaps with the last reading: long flat runs are not measurements.

    Examples
    --------
    >>> from dovetail.core.errors import DataError
    >>> try:
    ...     read_refit("CLEAN_House20.csv", every="1h")
    ... except DataError as error:
    ...     print(str(error)[:32])
    CLEAN_House20.csv: no such file.

    Source
    ------
    Murray, Stankovic, Stankovic (2017), An electrical load measurements dataset of United Kingdom households from a
    two-year longitudinal study, Scientific Data 4.
    """
    files = [file for path in paths for file in _files(Path(path))]
    if not files:
        raise DataError(f"`paths` must name at least one file or folder. {WHERE}.")
    parts = []
    for house in sorted({_house(file) for file in files}):
        raw = pl.concat([_read(file, every) for file in files if _house(file) == house], how="diagonal")
        names = [name for name in raw.columns if name != "time"]
        means = raw.group_by("time").agg(pl.col(names).mean()).sort("time")
        table = means.unpivot(index="time", on=names, variable_name="device", value_name="watts").drop_nulls()
        parts.append(
            table.select(
                "time",
                pl.lit(house, dtype=pl.Int64).alias("house"),
                pl.format("house{} {}", pl.lit(house), "device").alias("device"),
                "watts",
            )
        )
    return pl.concat(parts).sort("time", maintain_order=True)


def appliance_load(*, houses: Iterable[int] | None = None, every: str = "10m") -> pl.DataFrame:
    """`read_refit` of the folder appliance_load in $DOVETAIL_DATA, or of some houses of it.

    Raises
    ------
    DataError
        When there is no such folder or house, or a file is not in this form; says where the data come from.

    Examples
    --------
    >>> appliance_load(houses=[20], every="1h").columns  # doctest: +SKIP
    ['time', 'house', 'device', 'watts']
    """
    place = data_folder(FOLDER, WHERE)
    files = _files(place)
    if houses is not None:
        wanted = set(houses)
        files = [file for file in files if _house(file) in wanted]
        missing = wanted - {_house(file) for file in files}
        if missing:
            raise DataError(f"{place} has no file of house {min(missing)}. {WHERE}.")
    return read_refit(*files, every=every)


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


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if _NAME.search(file.name) and ".csv" in file.suffixes)
        if not found:
            raise DataError(f"{path}: holds no CLEAN_House*.csv or REFIT_House*.csv.gz. {WHERE}.")
        return found
    if not path.exists():
        raise DataError(f"{path}: no such file. {WHERE}.")
    return [path]


def _house(path: Path) -> int:
    match = _NAME.search(path.name)
    if match is None:
        raise DataError(f"{path}: the name must hold House<number>, as the publisher's does.")
    return int(match.group(1))


def _read(path: Path, every: str) -> pl.DataFrame:
    """Watts of each appliance of one file, beside the step that holds the reading."""
    try:
        raw = pl.read_csv(path, infer_schema_length=10_000)
        if "Issues" in raw.columns:
            raw = raw.filter(pl.col("Issues") != 1)
        names = [name for name in raw.columns if name not in _PLAIN]
        if "Time" not in raw.columns or not names:
            raise DataError(f"{path}: must have a column Time and one for each appliance. {WHERE}.")
        step = pl.col("Time").str.to_datetime().dt.truncate(every).alias("time")
        return raw.select(step, pl.col(names).cast(pl.Float64))
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path}: cannot be read as REFIT; {str(error).splitlines()[0]}") from None
