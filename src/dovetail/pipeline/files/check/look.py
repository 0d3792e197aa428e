"""One look at all columns: missing values, the spelling of numbers, and what each column holds."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dovetail.core.display.display import mute
from dovetail.pipeline.config.sections import Spellings
from dovetail.pipeline.files.check.column import Column, describe_column
from dovetail.pipeline.files.check.missing import missing_spellings
from dovetail.pipeline.files.check.number_style import find_number_style, number_columns
from dovetail.pipeline.files.spelling import without_missing
from dovetail.pipeline.progress import Progress


@mute
@dataclass(frozen=True, eq=False)
class Look:
    """A table as it is seen at first.

    Parameters
    ----------
    frame : all columns, with null where a value is missing in any spelling
    columns : what each holds
    gaps : spellings of missing values, by the columns that use them
    style : how numbers are spelled
    numbers : columns of texts that spell numbers, with a sample of these texts
    """

    frame: pl.DataFrame
    columns: dict[str, Column]
    gaps: dict[str, list[str]]
    style: Spellings
    numbers: dict[str, pl.DataFrame]

    @property
    def missing_spellings(self) -> list[str]:
        """Those of all columns."""
        return list(dict.fromkeys(spelling for each in self.gaps.values() for spelling in each))


def look_at(frame: pl.DataFrame, *, private: str | None, progress: Progress) -> Look:
    """The first look; of columns that spell numbers in different ways the private one is believed."""
    texts = [column for column in frame if column.dtype == pl.String]
    counts = {}
    for done, column in enumerate(texts, start=1):
        counts[column.name] = _counts(column)
        progress("count the values", done, len(texts))
    gaps = {name: missing_spellings(each) for name, each in counts.items()}
    every = list(dict.fromkeys(spelling for each in gaps.values() for spelling in each))
    absent = pl.Series(["", *every], dtype=pl.String).implode()
    left = {name: each.filter(~each["text"].str.strip_chars().is_in(absent)) for name, each in counts.items()}
    numbers = number_columns(left)
    style = find_number_style(numbers, believed=private)
    clean = frame.with_columns([without_missing(column, every) for column in frame])
    columns = {}
    for done, column in enumerate(clean, start=1):
        columns[column.name] = describe_column(column, left.get(column.name), style)
        progress("look at the columns", done, frame.width)
    return Look(clean, columns, gaps, style, numbers)


def _counts(column: pl.Series) -> pl.DataFrame:
    """The different texts, the commonest first."""
    counts = column.drop_nulls().alias("text").value_counts(sort=True)
    return counts.with_columns(pl.col("count").cast(pl.Int64))
