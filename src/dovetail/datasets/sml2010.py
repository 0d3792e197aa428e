"""SML2010: the climate of a house, every quarter of an hour."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dovetail.core.errors import DataError
from dovetail.datasets.download import DataSource, locate, require_columns

SOURCE = DataSource(
    "sml2010",
    "SML2010 (Romeu-Guallart, Zamora-Martinez 2014, CC BY 4.0) is published by the UCI Machine Learning Repository, "
    "doi:10.24432/C5RS3S; take NEW-DATA-1.T15.txt and NEW-DATA-2.T15.txt",
)

FILES = ("NEW-DATA-1.T15.txt", "NEW-DATA-2.T15.txt")


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
        return _read(locate(SOURCE, path=path), 1 + (Path(path).name == FILES[1]))
    return pl.concat([_read(locate(SOURCE, name, path=path), 1 + FILES.index(name)) for name in FILES])


def _read(file: Path, stretch: int) -> pl.DataFrame:
    """One stretch; the first line is a comment that names and numbers the columns."""
    head, *lines = file.read_text(encoding="ascii", errors="replace").splitlines() or [""]
    names = [word.partition(":")[2].lower() for word in head.lstrip("# ").split()]
    require_columns(file, names, ("date", "time", "temperature_comedor_sensor"), source=SOURCE)
    rows = [line.split() for line in lines if line.strip()]
    bad = next((number for number, row in enumerate(rows, 2) if len(row) != len(names)), None)
    if bad is not None:
        raise DataError(f"{file}: must have {len(names)} columns in every line (see line {bad}). {SOURCE.where}.")
    raw = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    try:
        return raw.select(
            pl.format("{} {}", "date", "time").str.to_datetime("%d/%m/%Y %H:%M").alias("time"),
            pl.lit(stretch, dtype=pl.Int64).alias("stretch"),
            pl.exclude("date", "time").cast(pl.Float64),
        )
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{file}: cannot be read as SML2010; {str(error).splitlines()[0]}") from None
