"""Numbers against their bounds: declared ones, those that everybody knows, or a suggestion that a person confirms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import polars as pl

from dovetail.pipeline.files.check.column import Column, Kind
from dovetail.pipeline.files.check.problem import Problem, Status, column_called, first_rows

# what a column is called -> bounds that hold for everybody, whoever is in the table
_KNOWN = (
    (r"\b(age|alter|âge|edad|leeftijd)\b", (0.0, 120.0)),
    (r"\b(percent|percentage|prozent|pourcentage|anteil|share)\b|%", (0.0, 100.0)),
    (r"\b(hours? per week|hours_per_week|wochenstunden)\b", (0.0, 168.0)),
    (r"\b(hours? per day|hours_per_day|sleep|schlaf)\b", (0.0, 24.0)),
    (r"\b(month|monat|mois)\b", (1.0, 12.0)),
)
_FAR = 10  # interquartile ranges from the quartiles


def public_bounds(name: str, units: Sequence[str]) -> tuple[float, float] | None:
    """Bounds that follow from what a column is called."""
    spoken = re.sub(r"[_\s]+", " ", name.casefold())
    for pattern, bounds in _KNOWN:
        if re.search(pattern, spoken):
            return bounds
    return (0.0, 100.0) if list(units) == ["%"] else None


def suggested_bounds(numbers: pl.Series) -> tuple[float, float]:
    """Round bounds about all numbers, coarse, and read off the table all the same."""
    low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
    lower = 0.0 if low >= 0 else -_round_up(-low)
    upper = 0.0 if high <= 0 < -low else _round_up(max(high, 0.0))
    return (lower, upper) if lower < upper else (lower, lower + 1.0)


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, .."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-12))


def bound_problems(
    column: Column, series: pl.Series, bounds: tuple[float, float], *, declared: bool
) -> Iterator[Problem]:
    """Numbers outside bounds that are declared or known."""
    lower, upper = bounds
    outside = (column.values["number"] < lower) | (column.values["number"] > upper)
    yield from _far(
        column, series, outside, f"lie outside the {'declared' if declared else 'usual'} [{lower:g}, {upper:g}]",
        "correct them, map them in [data.labels], or widen `lower` and `upper`: nothing is clipped silently",
        Status.STOPS,
    )  # fmt: skip


def outlier_problems(column: Column, series: pl.Series) -> Iterator[Problem]:
    """Numbers so far from the middle half that they may be typing errors."""
    known = column.values.drop_nulls("number").sort("number")
    if column.kind != Kind.NUMBER or column.present < 20:
        return
    below = known["count"].cum_sum() / known["count"].sum()
    first, third = (float(known["number"][int((below < share).sum())]) for share in (0.25, 0.75))
    number, reach = column.values["number"], _FAR * (third - first)
    if reach > 0:
        yield from _far(
            column, series, (number < first - reach) | (number > third + reach),
            f"stand more than {_FAR} times as far out as the middle half is wide",
            "see whether they are typing errors; wide bounds cost a mean its accuracy", Status.NOTE,
        )  # fmt: skip


def _far(
    column: Column, series: pl.Series, wrong: pl.Series, what: str, remedy: str, status: Status
) -> Iterator[Problem]:
    texts = column.values.filter(wrong.fill_null(value=False))
    if texts.height:
        rows = series.cast(pl.String).is_in(texts["text"].implode()).fill_null(value=False)
        count = int(texts["count"].sum())
        where = f"{column_called(column.name)}, {first_rows(rows)}"
        yield Problem(f"{count:,} numbers {what}", where, remedy, status)
