"""Sections of a report about memorization, one file each; a file, or an entry point `dovetail.sections`, adds one."""

from __future__ import annotations

import polars as pl

MOST, LEAST = 20_000, 80  # people
NO_PUBLIC = "no public columns leave with the reports, so coincidences explain every released row"
NO_VALUES = "the reports of this randomizer are no values, so no released row can equal a private one"


def texts(table: pl.DataFrame, ignored: list[str]) -> list[str]:
    """Columns that are compared as categories although some of their texts may be numbers, such as 60 and 60+."""
    return [
        name
        for name in table.columns
        if name not in ignored
        and table[name].dtype == pl.String
        and table[name].str.strip_chars().cast(pl.Float64, strict=False).null_count()
    ]
