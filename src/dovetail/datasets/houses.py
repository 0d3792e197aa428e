"""Readings in houses: appliances of REFIT, the climate of SML2010, and appliances that are made up."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.checks import positive, real, refuse, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.datasets.download import DataSource, data_folder, locate, parsed_as, require_columns

# REFIT: the power of household appliances in the United Kingdom, from the publisher's files or monthly extracts.

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
        raw = pl.concat([_read_refit(file, every) for file in files if _house(file) == house], how="diagonal")
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


def _read_refit(path: Path, every: str) -> pl.DataFrame:
    """Watts of each appliance of one file, beside the step that holds the reading."""
    with parsed_as("REFIT", path):
        raw = pl.read_csv(path, infer_schema_length=10_000)
        if "Issues" in raw.columns:
            raw = raw.filter(pl.col("Issues") != 1)
        names = [name for name in raw.columns if name not in _PLAIN]
        if "Time" not in raw.columns or not names:
            raise DataError(f"{path}: must have a column Time and one for each appliance. {WHERE}.")
        step = pl.col("Time").str.to_datetime().dt.truncate(every).alias("time")
        return raw.select(step, pl.col(names).cast(pl.Float64))


# SML2010: the climate of a house, every quarter of an hour.


SML2010 = DataSource(
    "sml2010",
    "SML2010 (Romeu-Guallart, Zamora-Martinez 2014, CC BY 4.0) is published by the UCI Machine Learning Repository, "
    "doi:10.24432/C5RS3S; take NEW-DATA-1.T15.txt and NEW-DATA-2.T15.txt",
)

SML2010_FILES = ("NEW-DATA-1.T15.txt", "NEW-DATA-2.T15.txt")


def sml2010(path: str | Path | None = None) -> pl.DataFrame:
    """4,137 readings of 22 sensors in two stretches of spring 2012.

    Private: `temperature_comedor_sensor` and `temperature_habitacion_sensor` (dining room and room, degrees Celsius),
    and whatever else tells what the inhabitants do.
    Public: `time` (local) and `stretch` (1 or 2). The other columns are the publisher's, in small letters.

    Parameters
    ----------
    path : str or Path, optional
        Folder of both files, or one of them; $DOVETAIL_DATA/sml2010 if absent.

    Raises
    ------
    DataError
        When there is no such file, or it is not in this form; says where the data come from.

    Examples
    --------
    >>> sml2010()["stretch"].value_counts().sort("stretch").rows()  # doctest: +SKIP
    [(1, 2764), (2, 1373)]

    Source
    ------
    Zamora-Martinez, Romeu, Botella-Rocamora, Pardo (2014), On-line learning of indoor temperature forecasting models
    towards energy efficiency, Energy and Buildings 83.
    """
    if path is not None and not Path(path).is_dir():
        return _read_sml2010(locate(SML2010, path=path), 1 + (Path(path).name == SML2010_FILES[1]))
    return pl.concat(
        [_read_sml2010(locate(SML2010, name, path=path), 1 + SML2010_FILES.index(name)) for name in SML2010_FILES]
    )


def _read_sml2010(file: Path, stretch: int) -> pl.DataFrame:
    """One stretch; the first line is a comment that names and numbers the columns."""
    head, *lines = file.read_text(encoding="ascii", errors="replace").splitlines() or [""]
    names = [word.partition(":")[2].lower() for word in head.lstrip("# ").split()]
    require_columns(file, names, ("date", "time", "temperature_comedor_sensor"), source=SML2010)
    rows = [line.split() for line in lines if line.strip()]
    bad = next((number for number, row in enumerate(rows, 2) if len(row) != len(names)), None)
    if bad is not None:
        raise DataError(f"{file}: must have {len(names)} columns in every line (see line {bad}). {SML2010.where}.")
    raw = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    with parsed_as("SML2010", file):
        return raw.select(
            pl.format("{} {}", "date", "time").str.to_datetime("%d/%m/%Y %H:%M").alias("time"),
            pl.lit(stretch, dtype=pl.Int64).alias("stretch"),
            pl.exclude("date", "time").cast(pl.Float64),
        )


# Synthetic appliance loads: devices with habits, for studies without REFIT at hand.


Loads = NDArray[np.float64]  # (rounds, devices), watts

DAY = 1440.0


def synthetic_loads(
    devices: int,
    rounds: int,
    *,
    lower: float = 3.9,
    upper: float = 178.3,
    minutes: float = 10.0,
    start: float = 0.0,
    fleet: int = 0,
    rng: Entropy | None = None,
) -> Loads:
    r"""Watts (rounds, devices) of appliances, each with a signature of its own.

    .. math:: x_i(t) = s_i (1 + j) + b_i(t)\, p_i (1 + j'), \qquad
              \Pr[i \text{ starts}] = r_i \bigl(1 + \cos(2\pi (t - h_i))\bigr), \qquad
              \Pr[i \text{ stops}] = 1 / d_i

    * standby s_i: 0 to 5 % of the range above `lower`;
    * running power p_i: 10 to 80 % of the range, the same whenever it runs;
    * duty cycle: runs of d_i = 1 to 12 rounds on average (geometric); starting rates r_i of 1 to 20 % a round;
    * daily pattern: starts are likeliest at the hour h_i and never happen twelve hours later;
    * jitter j, j' of at most 5 %, uniform and independent, so that no value leaves [lower, upper].

    Parameters
    ----------
    devices, rounds : int, at least 1
    lower, upper : float, watts
        Public range; the default is that of the training houses in the RASE paper's Table I.
    minutes : float, above 0
        Length of a round.
    start : float, minutes
        Time of day of the first round.
    fleet : int, at least 0
        Which signatures: equal fleets have equal devices, so that an attacker's history and the attacked days can be
        drawn one after the other from one `rng`.

    Notes
    -----
    Before the first round everything is off: of what runs at the same hour on later days, a tenth runs in the first
    round, four fifths in the sixth and all from about the twentieth on. Leave these out where that matters.

    Raises
    ------
    ParameterError
        For numbers outside these ranges.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> loads = synthetic_loads(64, 144, rng=simulation(1))
    >>> loads.shape, bool(loads.min() >= 3.9), bool(loads.max() <= 178.3)
    ((144, 64), True, True)

    Source
    ------
    Ours; the shape of the data follows Murray, Stankovic, Stankovic (2017), Scientific Data 4.
    """
    rng = entropy_or_system(rng)
    devices, rounds = whole("devices", devices, least=1), whole("rounds", rounds, least=1)
    lower, upper, minutes = real("lower", lower), real("upper", upper), positive("minutes", minutes)
    if not upper > lower:
        raise refuse("upper", f"above `lower` = {lower!r}", upper)
    span, draw = upper - lower, np.random.default_rng(whole("fleet", fleet, least=0))
    standby, power = span * draw.uniform(0.0, 0.05, devices), span * draw.uniform(0.1, 0.8, devices)
    length, rate, peak = draw.uniform(1, 12, devices), draw.uniform(0.01, 0.2, devices), draw.uniform(0, DAY, devices)
    time = real("start", start) + minutes * np.arange(rounds)[:, None]
    starts = rate * (1.0 + np.cos(2 * np.pi * (time - peak) / DAY))
    luck = np.random.default_rng(rng.words(4))
    coins = luck.random((rounds, devices))
    running = np.empty((rounds, devices), dtype=np.bool_)
    now = coins[0] < starts[0]
    for t in range(rounds):
        now = running[t] = np.where(now, coins[t] >= 1.0 / length, coins[t] < starts[t])
    jitter = luck.uniform(0.95, 1.05, (2, rounds, devices))
    return np.asarray(lower + standby * jitter[0] + running * power * jitter[1])
