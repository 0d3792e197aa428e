"""What the private column may hold, as a person declared it or as a suggestion that a person has to confirm."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from dovetail.core.display.display import mute
from dovetail.pipeline.files.check.column import Column, Kind
from dovetail.pipeline.files.check.declared import Declared
from dovetail.pipeline.files.check.domain.bounds import bound_problems, public_bounds, suggested_bounds
from dovetail.pipeline.files.check.domain.categories import MOST, category_problems
from dovetail.pipeline.files.check.domain.noise import Noise, least_noise
from dovetail.pipeline.files.check.look import Look
from dovetail.pipeline.files.check.missing import ABSENT, missing_code
from dovetail.pipeline.files.check.problem import Problem, Status, column_called
from dovetail.pipeline.files.spelling import with_labels


@mute
@dataclass(frozen=True)
class Domain:
    """Keys of [data] about the values of the private column; `unconfirmed` ones were read off it."""

    settings: dict[str, Any] = field(default_factory=dict)
    unconfirmed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    noise: Noise | None = None


def domain_of(look: Look, asked: Declared, labels: dict[str, str]) -> Domain:
    """Categories or bounds; nothing for a column that no randomizer takes."""
    assert asked.private is not None
    column = look.columns[asked.private]
    if column.kind in (Kind.EMPTY, Kind.IDENTIFIER, Kind.EMAIL, Kind.PHONE, Kind.TEXT):
        return Domain()
    return _bounds(column, look, asked) if asked.numeric(column) else _categories(column, asked, labels)


def _bounds(column: Column, look: Look, asked: Declared) -> Domain:
    known = public_bounds(column.name, look.style.units)
    unconfirmed: tuple[str, ...] = ()
    problems: list[Problem] = []
    if asked.lower is not None and asked.upper is not None:
        bounds = (asked.lower, asked.upper)
    else:
        code = missing_code(column)
        bounds = known or suggested_bounds(
            column.numbers if code is None else column.numbers.filter(column.numbers != code)
        )
        unconfirmed = ("lower", "upper")
        source = "what the column is called" if known else "the private column itself, roughly"
        problems.append(Problem(
            f"the bounds [{bounds[0]:g}, {bounds[1]:g}] follow from {source}", column_called(column.name),
            "declare the `lower` and `upper` that anybody's number may have, without looking at the table",
            Status.CONFIRM,
        ))  # fmt: skip
    problems += bound_problems(column, look.frame[column.name], bounds, declared=asked.bounded)
    lower, upper = bounds
    noise = least_noise(column.n, asked.epsilon, lower=lower, upper=upper)
    return Domain({"lower": lower, "upper": upper}, unconfirmed, tuple(problems), noise)


def _categories(column: Column, asked: Declared, labels: dict[str, str]) -> Domain:
    counts = column.values.select(label=with_labels(column.values["text"], labels), count="count")
    counts = counts.group_by("label").agg(pl.col("count").sum()).sort("label")
    names = list(asked.categories) if asked.categories is not None else _in_order(counts["label"].to_list())
    settings: dict[str, Any] = {}
    unconfirmed, problems = [], []
    if column.missing:
        settings["missing"] = ABSENT
        unconfirmed.append("missing")
        names += [ABSENT] if ABSENT not in names else []
        counts = pl.concat([counts, pl.DataFrame({"label": [ABSENT], "count": [column.missing]})])
    if len(names) < 2:
        problems += [] if column.distinct < 2 else [Problem(
            "all values mean one label", column_called(column.name),
            "a constant needs no collection: choose another column, or declare the other answers as `categories`",
            Status.STOPS,
        )]  # fmt: skip
    elif len(names) <= MOST:
        settings["categories"] = names
        if asked.categories is None:
            unconfirmed.append("categories")
            problems.append(Problem(
                f"the {len(names)} categories were read off the private column", column_called(column.name),
                "declare every answer that your question offers, also those that nobody gave", Status.CONFIRM,
            ))  # fmt: skip
    noise = least_noise(column.n, asked.epsilon, k=len(names)) if 2 <= len(names) <= MOST else None
    problems += category_problems(counts, noise, asked)
    return Domain(settings, tuple(unconfirmed), tuple(problems), noise)


def _in_order(labels: list[str]) -> list[str]:
    """Codes by their numbers, texts by their letters."""
    try:
        return sorted(labels, key=float)
    except ValueError:
        return sorted(labels)
