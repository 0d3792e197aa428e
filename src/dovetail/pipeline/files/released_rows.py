"""Files that were released, beside a table of the truth: whose place each report stands at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.errors import DataError
from dovetail.pipeline.files.table import as_text


def shared_columns(path: str, public: pl.DataFrame, truth: Sequence[str]) -> list[str]:
    """Public columns of a released file that the truth has too; a file without public columns was mixed evenly."""
    shared = [name for name in public.columns if name in truth]
    if public.width and not shared:
        raise DataError(
            f"{path}: shares no public column with the truth, so no report has a place; there: {public.columns}."
        )
    return shared


def rows_of_people(
    path: str, released: pl.DataFrame, people: pl.DataFrame, *, shared: Sequence[str]
) -> NDArray[np.int64]:
    """The row (n,) of the released file at which each person stands, by the columns that both tables have.

    People who are alike in these columns get the rows alike in the order of `people`: nobody can tell them apart.

    Raises
    ------
    DataError
        When the file does not hold exactly these people.
    """
    if released.height != people.height:
        raise DataError(f"{path}: must have a row for each of {people.height:,} people, got {released.height:,}.")
    if not shared:
        return np.arange(people.height)
    both = [pl.concat([as_text(table[name]) for table in (released, people)]) for name in shared]
    codes = pl.DataFrame(both).select(pl.struct(pl.all()).rank("dense")).to_series().to_numpy()
    file, table = np.split(codes.astype(np.int64), 2)
    strangers = np.bincount(file, minlength=codes.max() + 1) > np.bincount(table, minlength=codes.max() + 1)
    if strangers.any():
        row = int(np.flatnonzero(strangers[file])[0])
        shown = ", ".join(f"{name} {released[name][row]}" for name in shared[:3])
        raise DataError(f"{path}: holds somebody who is not in the truth, row {row + 1} ({shown}).")
    rows = np.empty(people.height, dtype=np.int64)
    rows[np.argsort(table, kind="stable")] = np.argsort(file, kind="stable")
    return rows
