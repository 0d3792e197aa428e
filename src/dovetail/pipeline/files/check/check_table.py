"""Every problem of a table at once, and what a configuration says that reads it: nothing is assumed in silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from dovetail.core.checks import nearest
from dovetail.core.display.display import mute
from dovetail.core.errors import DataError
from dovetail.pipeline.files.check.column import EMAIL, PHONE, Column, Kind
from dovetail.pipeline.files.check.dates import date_problems
from dovetail.pipeline.files.check.declared import Declared
from dovetail.pipeline.files.check.domain.bounds import outlier_problems
from dovetail.pipeline.files.check.domain.categories import constant_problems
from dovetail.pipeline.files.check.domain.domain import Domain, domain_of
from dovetail.pipeline.files.check.domain.noise import Noise
from dovetail.pipeline.files.check.look import Look, look_at
from dovetail.pipeline.files.check.missing import code_problems, missing_code, missing_problems
from dovetail.pipeline.files.check.number_style import not_numbers, style_problems
from dovetail.pipeline.files.check.people import (
    contact_problems,
    find_person,
    identity_problems,
    person_problems,
    row_problems,
    unnamed_problems,
)
from dovetail.pipeline.files.check.problem import Problem, Status, column_called
from dovetail.pipeline.files.check.spellings import spelling_problems, undeclared, variants
from dovetail.pipeline.files.check.text_file.read import read_as_found
from dovetail.pipeline.files.table import is_plain
from dovetail.pipeline.progress import Progress, silent

NOT_STATED = "not stated"
Labels = dict[str, str]


@mute
@dataclass(frozen=True, eq=False)
class TableCheck:
    """What was found in a table.

    Parameters
    ----------
    problems : in order of what they do to `run`
    settings : keys of [data] that differ from their defaults
    unconfirmed : those of them that were read off private data
    noise : what the people give for the private column, where that can be said
    promises : of several questions: what `run` would promise a person, by name
    """

    path: Path
    n: int
    columns: dict[str, Column]
    asked: Declared
    problems: tuple[Problem, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    unconfirmed: tuple[str, ...] = ()
    noise: Noise | None = None
    promises: dict[str, Any] = field(default_factory=dict)

    @property
    def stops(self) -> bool:
        """Whether somebody has to decide before `run`."""
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
    frame, written, problems = read_as_found(path, encoding)
    progress("read the table", 1, 1)
    if frame.height == 0:
        raise DataError(f"{path}: the table has no rows.")
    for name in (asked.private, asked.person, *asked.public):
        if name is not None and name not in frame.columns:
            raise DataError(f"{path}: has no column {name!r}{nearest(name, frame.columns)}.")
    frame, nested = _plain(frame, asked)
    problems += nested
    look = look_at(frame, private=asked.private, progress=progress)
    asked = replace(asked, person=asked.person or find_person(look.columns, asked))
    labels = {name: made for name, column in look.columns.items() if (made := _labels(column, asked))}
    problems += style_problems(look.numbers, look.style, private=asked.private)
    for column in look.columns.values():
        problems += _of_column(column, look, asked, labels.get(column.name, {}))
    progress("compare the rows", 0, 1)
    repeated = _of_people(look, asked)
    progress("compare the rows", 1, 1)
    known = asked.private in look.columns
    domain = domain_of(look, asked, labels.get(str(asked.private), {})) if known else Domain()
    problems += [*repeated, *domain.problems]
    settings = {
        **({} if written is None else written.model_dump(exclude_defaults=True)),
        **look.style.model_dump(exclude_defaults=True),
        **({"missing_spellings": look.missing_spellings} if look.missing_spellings else {}),
        **({"duplicates": "first"} if any(one.status == Status.SETTLED for one in repeated) else {}),
        **domain.settings,
        **({"labels": read_as} if (read_as := {k: v for k, v in labels.items() if asked.has_role(k)}) else {}),
    }
    order = list(Status)
    return TableCheck(
        path, frame.height, look.columns, asked,
        tuple(sorted(problems, key=lambda problem: order.index(problem.status))),
        settings, domain.unconfirmed, domain.noise,
    )  # fmt: skip


def _plain(frame: pl.DataFrame, asked: Declared) -> tuple[pl.DataFrame, list[Problem]]:
    """The columns that can be read, and a problem for each of the others."""
    nested = [name for name, kind in frame.schema.items() if not is_plain(kind)]
    found = [
        Problem(
            f"has type {frame.schema[name]}", column_called(name), "use text, numbers, dates or booleans",
            Status.STOPS if asked.has_role(name) else Status.NOTE,
        )
        for name in nested
    ]  # fmt: skip
    return frame.drop(nested), found


def _labels(column: Column, asked: Declared) -> Labels:
    """Spellings of this column that mean another label."""
    wanted = (asked.categories or ()) if column.name == asked.private else ()
    found = {} if column.name == asked.person else variants(column, wanted)
    gap = {"": NOT_STATED} if column.missing and column.name in asked.public else {}
    return gap | found


def _of_people(look: Look, asked: Declared) -> list[Problem]:
    """People or rows that stand there twice."""
    if asked.person not in look.columns:
        return [*unnamed_problems(look.columns, asked), *row_problems(look.frame, look.columns)]
    return list(person_problems(look.frame, asked.person))


def _of_column(column: Column, look: Look, asked: Declared, labels: Labels) -> Iterator[Problem]:
    name, series = column.name, look.frame[column.name]
    role = asked.role_of(name)
    if name.startswith("column_") and column.kind == Kind.EMPTY and role is None:
        return  # fields that a spreadsheet leaves at the end of each row
    yield from constant_problems(column, private=role == "private")
    yield from missing_problems(column, series, look.gaps.get(name, []), asked)
    yield from identity_problems(column, role)
    yield from contact_problems(column, EMAIL, PHONE)
    yield from date_problems(column, role=role is not None)
    if column.kind == Kind.NUMBER:
        yield from _of_numbers(column, look, asked)
    yield from spelling_problems(column, {old: new for old, new in labels.items() if old}, asked)
    if role == "private":
        yield from undeclared(column, labels, asked)


def _of_numbers(column: Column, look: Look, asked: Declared) -> Iterator[Problem]:
    private = column.name == asked.private
    means = private and asked.numeric(column)
    yield from not_numbers(column, where=column_called(column.name), private=private, role=means)
    code = missing_code(column)
    if code is not None:
        yield from code_problems(column, code, asked)
    else:
        yield from outlier_problems(column, look.frame[column.name])
