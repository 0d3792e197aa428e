"""Whether each person stands in one row: duplicate people, duplicate rows, and which column names people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import polars as pl

from dovetail.pipeline.files.check.column import IS_NAME, Column, Kind
from dovetail.pipeline.files.check.declared import Declared
from dovetail.pipeline.files.check.problem import Problem, Status, column_called, first_rows
from dovetail.pipeline.files.table import in_several_rows

_EXPECTED = 0.01  # equal pairs of rows by chance; fewer make equal rows suspicious


def find_person(columns: Mapping[str, Column], asked: Declared) -> str | None:
    """The column that names people: called like one, and (nearly) everybody's value is another."""
    for column in columns.values():
        unique = column.present == column.n and column.distinct >= 0.8 * column.n
        if unique and column.n > 1 and _is_called_like_a_person(column, asked):
            return column.name
    return None


def _is_called_like_a_person(column: Column, asked: Declared) -> bool:
    return bool(pl.Series([column.name]).str.contains(IS_NAME).item()) and not asked.has_role(column.name)


def unnamed_problems(columns: Mapping[str, Column], asked: Declared) -> Iterator[Problem]:
    """Columns that may name people who stand in several rows, where nobody said which column names people."""
    for column in columns.values():
        if column.kind == Kind.IDENTIFIER and _is_called_like_a_person(column, asked):
            yield Problem(
                f"{column.distinct:,} different values in {column.n:,} rows: assumed not to name people",
                column_called(column.name),
                "if it does, name it as `person`: who stands in several rows would answer several times",
                Status.CONFIRM,
            )  # fmt: skip


def person_problems(frame: pl.DataFrame, person: str) -> Iterator[Problem]:
    """People who stand in several rows."""
    people = frame[person]
    repeated = people.is_duplicated() & people.is_not_null()
    if not repeated.any():
        return
    whole = frame.is_duplicated()
    many = people.filter(repeated).n_unique()
    if bool((whole | ~repeated).all()):
        yield Problem(
            f"{in_several_rows(many)}, with the same values each time", _at(person, repeated),
            'the configuration keeps one row each, `duplicates` = "first"', Status.SETTLED,
        )  # fmt: skip
        return
    yield Problem(
        f"{in_several_rows(many)}, with different values", _at(person, repeated),
        'choose with `duplicates` = "first" or "last" in [data], or correct the table; rounds of reports are a '
        "stream: name the column of rounds as `time`; if it does not name people, delete `person`",
        Status.STOPS,
    )  # fmt: skip


def _at(person: str, repeated: pl.Series) -> str:
    return f"{column_called(person)}, {first_rows(repeated)}"


def row_problems(frame: pl.DataFrame, columns: Mapping[str, Column]) -> Iterator[Problem]:
    """Rows that are equal in every column although chance makes hardly any such pair."""
    if frame.width < 2 or frame.height < 2:
        return
    repeated = frame.is_duplicated()
    if not repeated.any():
        return
    pairs = math.log(frame.height) + math.log(frame.height - 1) - math.log(2)
    alike = sum(math.log(_collision(column)) for column in columns.values() if column.present)
    if pairs + alike < math.log(_EXPECTED):
        yield Problem(
            f"{int(repeated.sum()):,} rows are equal to another one in every column, which chance hardly explains",
            first_rows(repeated),
            "delete rows that were entered twice; nobody may answer twice",
            Status.NOTE,
        )  # fmt: skip


def _collision(column: Column) -> float:
    """The probability that two people have the same value."""
    shares = column.values["count"] / column.n
    return float((shares * shares).sum()) + (column.missing / column.n) ** 2


def identity_problems(column: Column, role: str | None) -> Iterator[Problem]:
    """Columns that tell who somebody is, or hold what people wrote freely."""
    if role == "person" or column.kind not in (Kind.IDENTIFIER, Kind.EMAIL, Kind.PHONE, Kind.TEXT):
        return
    what = f"looks like {column.kind}, with {column.distinct:,} different values"
    remedy = "never make it public: it tells who somebody is"
    if role == "private":
        remedy = (
            "a randomizer needs few categories, or numbers with bounds: choose another column, or group the values"
        )
    yield Problem(what, column_called(column.name), remedy, Status.STOPS if role else Status.NOTE)


def contact_problems(column: Column, email: str, phone: str) -> Iterator[Problem]:
    """E-mail addresses and telephone numbers among other things."""
    if column.kind in (Kind.EMAIL, Kind.PHONE, Kind.DATE, Kind.NUMBER):
        return
    for pattern, what in ((email, "e-mail addresses"), (phone, "telephone numbers")):
        count = column.count_of(pattern)
        if count:
            yield Problem(
                f"{count:,} values look like {what}", column_called(column.name),
                "delete them from the table before anything else", Status.NOTE,
            )  # fmt: skip
