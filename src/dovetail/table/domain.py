"""Domains of the private column, as a person declared them or as suggestions that a person has to confirm."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dovetail.core.display import counted, mute
from dovetail.core.errors import ParameterError
from dovetail.core.extras import pl
from dovetail.core.stages import RANDOMIZERS, FrequencyRandomizer, NumericRandomizer
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.table.columns import (
    ABSENT,
    CODES,
    Column,
    Declared,
    Fix,
    Kind,
    Look,
    Problem,
    Status,
    choose,
    code_problems,
    column_called,
    first_rows,
    missing_codes,
    quoted,
)
from dovetail.table.data_section import labels_header
from dovetail.table.spelling import with_labels

# Numbers against their bounds: declared ones, those that everybody knows, or a suggestion that a person confirms.


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
    finite = numbers.filter(numbers.is_finite())
    low, high = float(finite.min() or 0.0), float(finite.max() or 0.0)  # type: ignore[arg-type]
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
    column: Column, series: pl.Series, bounds: tuple[float, float], asked: Declared, *, declared: bool, clip: bool
) -> Iterator[Problem]:
    """Numbers outside bounds that are declared or known, codes for no answer among them, and outliers inside."""
    lower, upper = bounds
    number = column.values["number"]
    for infinite in (math.inf, -math.inf):
        if (number == infinite).any():
            yield from code_problems(column, infinite, asked, stops=True)
    outside = ((number < lower) | (number > upper)) & number.is_finite()
    often = column.values.filter(outside & (column.values["count"] > 1))["number"].to_list()
    stops = [code for code in CODES if code in often]
    outside &= ~number.is_in(stops)
    codes = [*stops, *(code for code in missing_codes(column) if code not in stops)]
    for code in codes:
        yield from code_problems(column, code, asked, stops=code in stops and not clip)
    if not codes and not outside.any():
        yield from outlier_problems(column, series)
    if clip:
        yield from _far(
            column, series, outside, "lie", f"outside [{lower:g}, {upper:g}]",
            "they count as the nearest bound, as `clip` says; a rehearsal counts them", Status.SETTLED,
        )  # fmt: skip
        return
    yield from _far(
        column, series, outside, "lie", f"outside the {'declared' if declared else 'usual'} [{lower:g}, {upper:g}]",
        "correct them, or widen `lower` and `upper`: nothing is clipped silently", Status.STOPS,
        (choose("count them as the nearest bound", clip=True),),
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
            "stand", f"more than {_FAR} times as far out as the middle half is wide",
            "see whether they are typing errors; wide bounds cost a mean its accuracy", Status.NOTE,
        )  # fmt: skip


def _far(
    column: Column,
    series: pl.Series,
    wrong: pl.Series,
    verb: str,
    what: str,
    remedy: str,
    status: Status,
    fixes: tuple[Fix, ...] = (),
) -> Iterator[Problem]:
    texts = column.values.filter(wrong.fill_null(value=False))
    if texts.height:
        rows = series.cast(pl.String).is_in(texts["text"].implode()).fill_null(value=False)
        count = int(texts["count"].sum())
        where = f"{column_called(column.name)}, {first_rows(rows)}"
        yield Problem(f"{counted(count, f'number {verb}s', f'numbers {verb}')} {what}", where, remedy, status, fixes)


# What so many people give at this budget: the best randomizer for the private column, and its error.


_NEAR = 1.05  # errors this close to the least are as good: then the shortest report is


@dataclass(frozen=True)
class Noise:
    """A randomizer, and what an estimate is off with probability 95 % at most."""

    randomizer: str
    error95: float


def least_noise(people: int, epsilon: float, **domain: Any) -> Noise | None:
    """The best randomizer for a domain (`k`, or `lower` and `upper`); None where none can be built."""
    found = [(predict_accuracy(made, n=people).error95, made) for made in _built(people, epsilon, domain)]
    if not found:
        return None
    least = min(error for error, _ in found)
    near = [(made.report_bits, error, made.name) for error, made in found if error <= _NEAR * least]
    _, error, name = min(near)
    return Noise(name, error)


def delta_for(people: int) -> float:
    """A power of ten well below one over the number of people."""
    return 10.0 ** -max(6, len(str(people)) + 1)


def _built(people: int, epsilon: float, domain: dict[str, Any]) -> Iterator[FrequencyRandomizer | NumericRandomizer]:
    """Every kind for this domain that needs no further settings and is no burden."""
    question = "frequency" if "k" in domain else "mean"
    for kind in RANDOMIZERS:
        if kind.question != question or any(one.required for one in kind.settings()):
            continue
        if "k" in domain and issubclass(kind, FrequencyRandomizer) and kind.burden(domain["k"], people):
            continue
        build: Any = kind
        try:
            yield build(epsilon=epsilon, **domain)
        except ParameterError:
            continue


# Whether the randomizer can tell the categories apart: constant columns, too many categories, rare ones.


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
            f"join categories in {labels_header(asked.private)}, ask more people, or spend more: `dovetail plan` "
            "says what it takes", Status.NOTE,
        )  # fmt: skip
        return
    rare = counts.filter(pl.col("count") < max(error * n, 1))
    if rare.height:
        yield Problem(
            f"{rare.height} of {k} categories are rarer than the error of an estimate ({error:.2%}, or "
            f"{error * n:,.0f} people, 95 %): {quoted(rare['label'].to_list())}", where,
            f"join them with others in {labels_header(asked.private)}, or read their estimates as nothing",
            Status.NOTE, (), tuple(rare["label"]),
        )  # fmt: skip


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
        numbers = column.numbers.filter(~column.numbers.is_in(missing_codes(column)))
        bounds = known or suggested_bounds(numbers)
        unconfirmed = ("lower", "upper")
        source = "what the column is called" if known else "the private column itself, roughly"
        problems.append(Problem(
            f"the bounds [{bounds[0]:g}, {bounds[1]:g}] follow from {source}", column_called(column.name),
            "declare the `lower` and `upper` that anybody's number may have, without looking at the table",
            Status.CONFIRM,
        ))  # fmt: skip
    clip = bool(asked.decisions.get("clip"))
    problems += bound_problems(column, look.frame[column.name], bounds, asked, declared=asked.bounded, clip=clip)
    lower, upper = bounds
    settings: dict[str, Any] = {"lower": lower, "upper": upper}
    if asked.decisions.get("missing", "drop") != "drop":  # which the randomizers of numbers cannot say
        return Domain({**settings, "missing": asked.decisions["missing"]}, unconfirmed, tuple(problems))
    return Domain(settings, unconfirmed, tuple(problems), _least_noise(column.n, asked, lower=lower, upper=upper))


def _categories(column: Column, asked: Declared, labels: dict[str, str]) -> Domain:
    counts = column.values.select(label=with_labels(column.values["text"], labels), count="count")
    counts = counts.group_by("label").agg(pl.col("count").sum()).sort("label")
    if asked.categories is not None:
        counts = counts.filter(pl.col("label").is_in(asked.categories))  # what else there is was said before
    names = list(asked.categories) if asked.categories is not None else _in_order(counts["label"].to_list())
    settings: dict[str, Any] = {}
    unconfirmed, problems = [], []
    decided = asked.decisions.get("missing")
    if column.missing and decided != "drop":
        gap = decided or ABSENT
        settings["missing"] = gap
        unconfirmed += [] if decided else ["missing"]
        names += [gap] if gap not in names else []
        counts = pl.concat([counts, pl.DataFrame({"label": [gap], "count": [column.missing]})])
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
    noise = _least_noise(int(counts["count"].sum()), asked, k=len(names)) if 2 <= len(names) <= MOST else None
    problems += category_problems(counts, noise, asked)
    return Domain(settings, tuple(unconfirmed), tuple(problems), noise)


def _least_noise(people: int, asked: Declared, **domain: Any) -> Noise | None:
    """The best local noise; where others make it, `dovetail plan` has said what it is."""
    return least_noise(people, asked.epsilon, **domain) if asked.trust == "local" and people else None


def _in_order(labels: list[str]) -> list[str]:
    """Codes by their numbers, texts by their letters."""
    try:
        return sorted(labels, key=float)
    except ValueError:
        return sorted(labels)
