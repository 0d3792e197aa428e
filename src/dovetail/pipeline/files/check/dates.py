"""Dates: written in one way, and no narrower than they need to be."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from dovetail.pipeline.files.check.column import DATES, Column, Kind
from dovetail.pipeline.files.check.problem import Problem, Status, column_called


def date_problems(column: Column, *, role: bool) -> Iterator[Problem]:
    """Dates that are written in several ways, or tell nearly who somebody is."""
    if column.kind != Kind.DATE:
        return
    ways = {way: count for way, pattern in DATES.items() if (count := column.count_of(pattern))}
    where = column_called(column.name)
    if len(ways) > 1:
        yield Problem(
            "dates are written in several ways: " + ", ".join(f"{count:,} as {way}" for way, count in ways.items()),
            where, "write all of them as YYYY-MM-DD before you group by them", Status.STOPS if role else Status.NOTE,
        )  # fmt: skip
    slashes = column.values.filter(pl.col("text").str.contains(r"^\s*\d{1,2}/\d{1,2}/"))
    if slashes.height:
        parts = slashes["text"].str.extract_groups(r"(\d{1,2})/(\d{1,2})/").struct.unnest()
        first, second = (parts[name].cast(pl.Int64) > 12 for name in parts.columns)
        if bool(first.any()) == bool(second.any()):
            both = "some put the month first and others the day" if first.any() else "month or day first?"
            yield Problem(
                f"dates with slashes can be read in two ways: {both}", where, "write them as YYYY-MM-DD",
                Status.NOTE,
            )  # fmt: skip
    if column.distinct > 50:
        yield Problem(
            f"{column.distinct:,} different dates: a date of birth or of a visit nearly tells who somebody is", where,
            "use the year or the month where it is to be public", Status.NOTE,
        )  # fmt: skip
