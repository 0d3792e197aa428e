"""Every problem of a table at once, and the configuration that reads it: nothing that it assumes is left unsaid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from dovetail.core.checks import nearest
from dovetail.core.errors import DataError
from dovetail.pipeline.config.sections import FileFormat
from dovetail.pipeline.files.check.bounds import bound_problems, outlier_problems, public_bounds, suggested_bounds
from dovetail.pipeline.files.check.categories import (
    MOST,
    category_problems,
    constant_problems,
    plan_for,
)
from dovetail.pipeline.files.check.column import EMAIL, PHONE, Column, Kind, describe_column
from dovetail.pipeline.files.check.dates import date_problems
from dovetail.pipeline.files.check.declared import Declared
from dovetail.pipeline.files.check.missing import (
    ABSENT,
    code_problems,
    missing_code,
    missing_problems,
    missing_spellings,
)
from dovetail.pipeline.files.check.number_style import (
    find_number_style,
    not_numbers,
    number_columns,
    style_problems,
)
from dovetail.pipeline.files.check.people import (
    contact_problems,
    find_person,
    identity_problems,
    person_problems,
    row_problems,
)
from dovetail.pipeline.files.check.problem import Problem, Status, column_called
from dovetail.pipeline.files.check.read import read_as_found
from dovetail.pipeline.files.check.spellings import spelling_problems, undeclared, variants
from dovetail.pipeline.files.spelling import with_labels, without_missing
from dovetail.pipeline.progress import Progress, silent
from dovetail.plan.planner import CollectionPlan

NOT_STATED = "not stated"


@dataclass(frozen=True, eq=False)
class TableCheck:
    """What was found in a table.

    Parameters
    ----------
    problems : in order of what they do to `run`
    settings : keys of [data] that differ from their defaults
    unconfirmed : those of them that were read off private data
    plan : what the people give for the private column, where that can be said
    """

    path: Path
    n: int
    columns: dict[str, Column]
    asked: Declared
    problems: tuple[Problem, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    unconfirmed: tuple[str, ...] = ()
    plan: CollectionPlan | None = None

    @property
    def stops(self) -> bool:
        """Whether `run` refuses until somebody decides."""
        return any(problem.status == Status.STOPS for problem in self.problems)


def check_table(
    path: Path, asked: Declared | None = None, *, encoding: str | None = None, progress: Progress = silent
) -> TableCheck:
    """Read a table however it is written and list what is wrong with it.

    Parameters
    ----------
    asked : Declared
        Roles, categories and bounds that a person declared.
    encoding : str, optional
        Of a text file, where it is known.

    Raises
    ------
    DataError
        When there is no table to look at, or no such column.
    """
    asked = asked or Declared()
    progress("read the table", 0, 1)
    frame, written, found = read_as_found(path, encoding)
    progress("read the table", 1, 1)
    if frame.height == 0:
        raise DataError(f"{path}: the table has no rows.")
    for name in (asked.private, asked.person, *asked.public):
        if name is not None and name not in frame.columns:
            raise DataError(f"{path}: has no column {name!r}{nearest(name, frame.columns)}.")
    return _Look(path, frame, asked, written, progress).checked(found)


class _Look:
    """One look at one table; what is found early shapes what is looked for later."""

    def __init__(
        self, path: Path, frame: pl.DataFrame, asked: Declared, written: FileFormat | None, progress: Progress
    ) -> None:
        self.path, self.asked, self.written, self.progress = path, asked, written, progress
        counts = {name: _counts(frame[name]) for name in frame.columns if frame.schema[name] == pl.String}
        self.spelled = {name: missing_spellings(each) for name, each in counts.items()}
        self.gaps = list(dict.fromkeys(spelling for each in self.spelled.values() for spelling in each))
        self.frame = frame.with_columns([without_missing(column, self.gaps) for column in frame])
        gone = pl.Series(["", *self.gaps], dtype=pl.String)
        left = {
            name: each.filter(~each["text"].str.strip_chars().is_in(gone.implode())) for name, each in counts.items()
        }
        self.numeric = number_columns(left.items())
        self.style = find_number_style(self.numeric)
        self.columns: dict[str, Column] = {}
        for done, column in enumerate(self.frame, start=1):
            self.columns[column.name] = describe_column(column, self.style)
            progress("look at the columns", done, frame.width)
        self.labels: dict[str, dict[str, str]] = {}
        self.settings: dict[str, Any] = {}
        self.unconfirmed: list[str] = []
        self.plan: CollectionPlan | None = None

    def checked(self, found: list[Problem]) -> TableCheck:
        """The result."""
        person = self.asked.person or find_person(self.columns, self.asked.private)
        self.asked = Declared(**{**vars(self.asked), "person": person})
        problems = [*found, *style_problems(self.numeric, self.style, private=self.asked.private)]
        for column in self.columns.values():
            problems += self._of_column(column)
        self.progress("compare the rows", 0, 1)
        if person is not None:
            people = list(person_problems(self.frame, person))
            if people and people[0].status == Status.SETTLED:
                self.settings["duplicates"] = "first"
            problems += people
        else:
            problems += row_problems(self.frame, self.columns)
        self.progress("compare the rows", 1, 1)
        if self.asked.private is not None:
            problems += self._of_private(self.columns[self.asked.private])
        order = list(Status)
        return TableCheck(
            self.path, self.frame.height, self.columns, self.asked,
            tuple(sorted(problems, key=lambda problem: order.index(problem.status))),
            self._settings(), tuple(self.unconfirmed), self.plan,
        )  # fmt: skip

    def _settings(self) -> dict[str, Any]:
        changed = {} if self.written is None else self.written.model_dump(exclude_defaults=True)
        style = self.style.model_dump(exclude_defaults=True)
        gaps = {"missing_spellings": self.gaps} if self.gaps else {}
        labels = {"labels": self.labels} if self.labels else {}
        return {**changed, **style, **gaps, **self.settings, **labels}

    def _of_column(self, column: Column) -> Iterator[Problem]:
        asked, name = self.asked, column.name
        role = {asked.private: "private", asked.person: "person"}.get(
            name, "public" if name in asked.public else None
        )
        series = self.frame[name]
        if name.startswith("column_") and column.kind == Kind.EMPTY and role is None:
            return  # fields that a spreadsheet leaves at the end of each row
        yield from constant_problems(column, private=role == "private")
        yield from missing_problems(column, series, self.spelled.get(name, []), asked)
        if column.missing and role == "public":
            self.labels.setdefault(name, {})[""] = NOT_STATED
        yield from identity_problems(column, role)
        yield from contact_problems(column, EMAIL, PHONE)
        yield from date_problems(column, role=role is not None)
        if name in self.numeric or column.kind == Kind.NUMBER:
            counts = column.values.select("text", "count")
            means = role == "private" and asked.numeric(column)
            yield from not_numbers(
                counts, self.style, where=column_called(name), private=role == "private", role=means
            )
            code = missing_code(column)
            yield from code_problems(column, code, asked) if code is not None else outlier_problems(column, series)
        wanted = (asked.categories or ()) if role == "private" else ()
        found = variants(column, wanted)
        yield from spelling_problems(column, found, asked)
        if found and role is not None:
            self.labels.setdefault(name, {}).update(found)
        if role == "private":
            yield from undeclared(column, found, asked)

    def _of_private(self, column: Column) -> Iterator[Problem]:
        if column.kind in (Kind.EMPTY, Kind.IDENTIFIER, Kind.EMAIL, Kind.PHONE, Kind.TEXT):
            return
        if self.asked.numeric(column):
            yield from self._bounds(column)
        else:
            yield from self._categories(column)

    def _bounds(self, column: Column) -> Iterator[Problem]:
        asked = self.asked
        known = public_bounds(column.name, self.style.units)
        if asked.lower is not None and asked.upper is not None:
            bounds = (asked.lower, asked.upper)
        else:
            numbers, code = column.numbers, missing_code(column)
            bounds = known or suggested_bounds(numbers if code is None else numbers.filter(numbers != code))
            self.unconfirmed += ["lower", "upper"]
            source = "what the column is called" if known else "the private column itself, roughly"
            yield Problem(
                f"the bounds [{bounds[0]:g}, {bounds[1]:g}] follow from {source}", column_called(column.name),
                "declare the `lower` and `upper` that anybody's number may have, without looking at the table",
                Status.CONFIRM,
            )  # fmt: skip
        self.settings |= {"lower": bounds[0], "upper": bounds[1]}
        yield from bound_problems(column, self.frame[column.name], bounds, declared=asked.bounded)
        self.plan = plan_for(self.frame.height, asked.epsilon, question="mean", lower=bounds[0], upper=bounds[1])

    def _categories(self, column: Column) -> Iterator[Problem]:
        asked, labels = self.asked, self.labels.get(column.name, {})
        counts = column.values.select(label=with_labels(column.values["text"], labels), count="count")
        counts = counts.group_by("label").agg(pl.col("count").sum()).sort("label")
        names = list(asked.categories) if asked.categories is not None else _in_order(counts["label"].to_list())
        if column.missing:
            self.settings["missing"] = ABSENT
            self.unconfirmed.append("missing")
            names += [ABSENT] if ABSENT not in names else []
            counts = pl.concat([counts, pl.DataFrame({"label": [ABSENT], "count": [column.missing]})])
        if len(names) <= MOST:
            self.settings["categories"] = names
        if asked.categories is None and len(names) <= MOST:
            self.unconfirmed.append("categories")
            yield Problem(
                f"the {len(names)} categories were read off the private column", column_called(column.name),
                "declare every answer that your question offers, also those that nobody gave", Status.CONFIRM,
            )  # fmt: skip
        if 2 <= len(names) <= MOST:
            self.plan = plan_for(self.frame.height, asked.epsilon, question="frequency", k=len(names))
        yield from category_problems(counts, self.plan, asked)


def _counts(column: pl.Series) -> pl.DataFrame:
    counts = column.drop_nulls().alias("text").value_counts(sort=True)
    return counts.with_columns(pl.col("count").cast(pl.Int64))


def _in_order(labels: list[str]) -> list[str]:
    """Codes by their numbers, texts by their letters."""
    try:
        return sorted(labels, key=float)
    except ValueError:
        return sorted(labels)
