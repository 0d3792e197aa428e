"""Whether the randomizer can tell the categories apart: constant columns, too many categories, rare ones."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from dovetail.pipeline.files.check.column import Column, Kind
from dovetail.pipeline.files.check.declared import Declared
from dovetail.pipeline.files.check.domain.noise import Noise
from dovetail.pipeline.files.check.problem import Problem, Status, column_called, quoted

MOST = 1000  # categories that a configuration lists


def constant_problems(column: Column, *, private: bool) -> Iterator[Problem]:
    """Columns with one value, or none."""
    where = column_called(column.name)
    if column.kind == Kind.EMPTY:
        yield Problem("is empty", where, "leave it out", Status.STOPS if private else Status.NOTE)
    elif column.distinct == 1 and not column.missing:
        remedy = "a constant needs no collection: choose another column, or declare the other answers as `categories`"
        yield Problem(
            "has the same value everywhere", where, remedy if private else "leave it out",
            Status.STOPS if private else Status.NOTE,
        )  # fmt: skip


def category_problems(counts: pl.DataFrame, noise: Noise | None, asked: Declared) -> Iterator[Problem]:
    """Too many categories for these people and this budget, and categories that drown in the noise.

    `counts` has a row for each `label` with its `count`, after spellings have been joined.
    """
    assert asked.private is not None
    where, k, n = column_called(asked.private), counts.height, int(counts["count"].sum())
    if k > MOST:
        yield Problem(
            f"has {k:,} different values; a configuration lists {MOST:,} at most", where,
            "group them into few categories, or declare bounds if they are numbers", Status.STOPS,
        )  # fmt: skip
        return
    if noise is None:
        return
    error = noise.error95
    if error >= 1 / k:
        yield Problem(
            f"has {k} categories, of {1 / k:.2%} on average, and an estimate is off by up to {error:.2%} (95 %) with "
            f"{n:,} people at epsilon {asked.epsilon:g}", where,
            "join categories in [data.labels], ask more people, or spend more: `dovetail plan` says what it takes",
            Status.NOTE,
        )  # fmt: skip
        return
    rare = counts.filter(pl.col("count") < max(error * n, 1))
    if rare.height:
        yield Problem(
            f"{rare.height} of {k} categories are rarer than the error of an estimate ({error:.2%}, or "
            f"{error * n:,.0f} people, 95 %): {quoted(rare['label'].to_list())}", where,
            "join them with others in [data.labels], or read their estimates as nothing", Status.NOTE,
        )  # fmt: skip
