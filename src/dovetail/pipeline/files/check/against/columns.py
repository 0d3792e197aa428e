"""The columns that a configuration names, against what it says about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from dovetail.core.checks import nearest
from dovetail.core.display.display import mute
from dovetail.pipeline.config.sections import DataSection
from dovetail.pipeline.files.check.against.people import person_found, without_repeats
from dovetail.pipeline.files.check.column import EMAIL, PHONE, Column, describe_column
from dovetail.pipeline.files.check.dates import date_problems
from dovetail.pipeline.files.check.declared import Declared
from dovetail.pipeline.files.check.domain.bounds import bound_problems, outlier_problems
from dovetail.pipeline.files.check.missing import code_problems, missing_code
from dovetail.pipeline.files.check.number_style import find_number_style, not_numbers
from dovetail.pipeline.files.check.people import contact_problems, identity_problems
from dovetail.pipeline.files.check.problem import Problem, Status, column_called, first_rows, quoted
from dovetail.pipeline.files.check.spellings import undeclared, variants
from dovetail.pipeline.files.spelling import spelling_of, with_labels, without_missing
from dovetail.pipeline.files.table import is_plain
from dovetail.pipeline.progress import Progress


@mute
@dataclass(frozen=True, eq=False)
class Checked:
    """What was found.

    Parameters
    ----------
    counts : data frame of `label` and `count`, or None
        Of the private categories, in their order, where nothing is wrong with them.
    """

    columns: dict[str, Column]
    problems: tuple[Problem, ...]
    counts: pl.DataFrame | None


def check_columns(frame: pl.DataFrame, data: DataSection, *, numbers: Sequence[str], progress: Progress) -> Checked:
    """Every column that has a role, its values read as the configuration reads them; rows are counted before that."""
    problems: list[Problem] = []
    roles = list(dict.fromkeys(name for name in (data.person, data.time, data.private, *data.public) if name))
    clean: dict[str, pl.Series] = {}
    for name in roles:
        absent = list(_absent(frame, name))
        problems += absent
        if not absent:
            clean[name] = _read(frame[name], data)
    spare = [name for name in data.labels if name not in frame.columns]
    problems += [
        Problem("the table has no such column", f"[data.labels.{name}]", "correct the name, or leave it out",
                Status.NOTE) for name in spare
    ]  # fmt: skip
    if data.person in clean:
        problems += person_found(pl.DataFrame([*clean.values()]), data)
        clean = without_repeats(clean, data)
    asked = Declared(data.private, data.person, tuple(data.public), tuple(data.categories or ()) or None)
    columns = {}
    for done, (name, series) in enumerate(clean.items(), start=1):
        columns[name] = describe_column(series, None, data)
        progress("look at the columns", done, len(clean))
    for name in data.public:
        if name in columns:
            problems += _public(columns[name], clean[name], data, number=name in numbers)
    if data.private not in columns:
        return Checked(columns, tuple(problems), None)
    column, series = columns[data.private], clean[data.private]
    if data.numeric:
        found = list(_number(column, series, data, asked))
    else:
        found = list(_categories(column, series, data, asked))
    problems += found
    known = not data.numeric and not any(problem.status == Status.STOPS for problem in found)
    return Checked(columns, tuple(problems), _counts(column, data) if known else None)


def _absent(frame: pl.DataFrame, name: str) -> Iterator[Problem]:
    """A column that is not there, or that no run reads."""
    if name not in frame.columns:
        hint = nearest(name, frame.columns).rstrip(".")
        yield Problem(
            f"the table has no such column{hint}", column_called(name), "correct the name in [data]", Status.STOPS
        )
    elif not is_plain(frame.schema[name]):
        yield Problem(
            f"has type {frame.schema[name]}",
            column_called(name),
            "use text, numbers, dates or booleans",
            Status.STOPS,
        )


def _read(column: pl.Series, data: DataSection) -> pl.Series:
    """Missing values and labels as [data] spells them."""
    plain = column.cast(pl.String) if isinstance(column.dtype, (pl.Categorical, pl.Enum)) else column
    return with_labels(without_missing(plain, data.missing_spellings), data.labels.get(column.name, {}))


def _public(column: Column, series: pl.Series, data: DataSection, *, number: bool) -> Iterator[Problem]:
    where = column_called(column.name)
    if column.missing:
        yield Problem(
            f"{column.missing:,} of {column.n:,} values are missing", f"{where}, {first_rows(series.is_null())}",
            f'[data.labels.{column.name}] "" = "not stated", or leave these people out', Status.STOPS,
        )  # fmt: skip
    yield from identity_problems(column, "public")
    yield from contact_problems(column, EMAIL, PHONE)
    yield from date_problems(column, role=True)
    if number:
        yield from _spelled(column, data)[1]
    spellings = variants(column)
    if spellings:
        yield Problem(
            f"labels differ only in blanks, case or Unicode form, so that they are groups of their own: "
            f"{quoted(list(spellings))}", where, f"[data.labels.{column.name}] maps them to one label", Status.NOTE,
        )  # fmt: skip


def _categories(column: Column, series: pl.Series, data: DataSection, asked: Declared) -> Iterator[Problem]:
    where, name = column_called(column.name), column.name
    if column.missing and data.missing == "refuse":
        yield Problem(
            f"{column.missing:,} of {column.n:,} values are missing", f"{where}, {first_rows(series.is_null())}",
            f'set `missing` to a category that you declare, map them by [data.labels.{name}] "" = "..", or leave '
            "these people out", Status.STOPS,
        )  # fmt: skip
    elif column.missing:
        yield Problem(
            f"{column.missing:,} of {column.n:,} values are missing", where,
            f"they are counted as {data.missing!r}", Status.SETTLED,
        )  # fmt: skip
    declared = data.categories
    if declared is None:
        if column.distinct + bool(column.missing and data.missing != "refuse") < 2:
            yield Problem(
                "has the same value everywhere", where,
                "a constant needs no collection: declare the other answers as `categories`", Status.STOPS,
            )  # fmt: skip
        return
    near = variants(column, declared)
    meant = {old: new for old, new in near.items() if new in declared and old not in declared}
    if meant:
        people = int(column.values.filter(pl.col("text").is_in(list(meant)))["count"].sum())
        yield Problem(
            f"{people:,} values differ from declared categories only in blanks, case or Unicode form: "
            f"{quoted(list(meant))}", where,
            f"[data.labels.{name}] maps them to {quoted(list(dict.fromkeys(meant.values())))}", Status.STOPS,
        )  # fmt: skip
    yield from undeclared(column, meant, asked)


def _number(column: Column, series: pl.Series, data: DataSection, asked: Declared) -> Iterator[Problem]:
    where = column_called(column.name)
    if column.missing:
        yield Problem(
            f"{column.missing:,} of {column.n:,} values are missing", f"{where}, {first_rows(series.is_null())}",
            f'[data.labels.{column.name}] "" = "0" says what counts instead, or leave these people out', Status.STOPS,
        )  # fmt: skip
    column, found = _spelled(column, data)
    yield from found
    assert data.lower is not None and data.upper is not None  # a configuration has both or none
    outside = list(bound_problems(column, series, (data.lower, data.upper), declared=True))
    yield from outside
    code = missing_code(column)
    if code is not None:
        yield from code_problems(column, code, asked)
    elif not outside:
        yield from outlier_problems(column, series)


def _spelled(column: Column, data: DataSection) -> tuple[Column, list[Problem]]:
    """The column with the numbers that its texts spell, and what is no number as [data] spells them."""
    bad = column.values.filter(pl.col("number").is_null())
    if not bad.height:
        return column, []
    own = find_number_style({column.name: column.values.select("text", "count")})
    seen = describe_column(pl.Series(column.name, column.values["text"]), None, own)
    if seen.values["number"].null_count() >= bad.height:
        return column, list(not_numbers(column, where=column_called(column.name), private=True, role=True))
    other = column.values.drop("number").join(seen.values.select("text", "number"), on="text", how="left")
    problem = Problem(
        f"{int(bad['count'].sum()):,} values are no numbers as [data] spells them, {spelling_of(data)}",
        column_called(column.name), f"they are numbers with {spelling_of(own)}", Status.STOPS,
    )  # fmt: skip
    respelled = Column(column.name, column.n, column.missing, other, column.kind)
    return respelled, [
        problem, *not_numbers(respelled, where=column_called(column.name), private=True, role=True)
    ]  # fmt: skip


def _counts(column: Column, data: DataSection) -> pl.DataFrame:
    held = dict(column.values.select("text", "count").iter_rows())
    if column.missing:
        held[data.missing] = held.get(data.missing, 0) + column.missing
    names = data.categories if data.categories is not None else sorted(held)
    return pl.DataFrame({"label": names, "count": [held.get(name, 0) for name in names]})
