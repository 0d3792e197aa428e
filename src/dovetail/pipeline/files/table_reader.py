"""Reading tables where no [data] says how they are written, but options of a verb do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from dovetail.core.errors import DataError, ParameterError
from dovetail.pipeline.config.sections import FileFormat, Spellings
from dovetail.pipeline.files.csv_text import WrittenOtherwise
from dovetail.pipeline.files.spelling import read_numbers
from dovetail.pipeline.files.table import is_text_file, read_table

Read = Callable[[str], pl.DataFrame]

_AS_PROGRAMS_WRITE = FileFormat()


@dataclass(frozen=True)
class TableReader:
    """How the text files among some tables are written; Parquet files say so themselves.

    With a decimal comma, columns whose values all are numbers so spelled are read as numbers.
    """

    written: FileFormat = _AS_PROGRAMS_WRITE
    decimal: Literal[".", ","] = "."

    def __call__(self, path: str, *, header: bool = True) -> pl.DataFrame:
        """Read one table, as `read_table` does."""
        if not is_text_file(path):
            return read_table(path)
        try:
            frame = read_table(path, header=header, written=self.written)
        except WrittenOtherwise as error:
            raise DataError(error.options) from None
        if self.decimal == ".":
            return frame
        how = Spellings(decimal=self.decimal)
        return frame.with_columns([_with_points(column, how) for column in frame])

    def check(self, paths: Sequence[str]) -> None:
        """ParameterError where nothing is left that the options are for."""
        if self != READ_TABLE and not any(map(is_text_file, paths)):
            raise ParameterError(
                f"{paths[0]}: --separator, --text-encoding and --decimal are for text files; Parquet says itself how "
                "it is written."
            )


READ_TABLE = TableReader()  # UTF-8, commas, points


def _with_points(column: pl.Series, how: Spellings) -> pl.Series:
    """Numbers with a decimal comma as programs spell them; other columns as they are."""
    spelled = read_numbers(column, how).is_not_null() | column.is_null() | (column.str.strip_chars() == "")
    return column.str.replace(",", ".") if bool(spelled.all()) else column
