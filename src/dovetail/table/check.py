"""Every problem of a table at once, and what a configuration says that reads it: nothing is assumed in silence."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dovetail.core.checks import nearest
from dovetail.core.display import counted, mute
from dovetail.core.errors import DataError
from dovetail.core.extras import pl
from dovetail.core.progress import Progress, silent
from dovetail.table.columns import (
    EMAIL,
    IS_NAME,
    PHONE,
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
    date_problems,
    first_rows,
    look_at,
    meant,
    meant_problems,
    missing_codes,
    missing_problems,
    not_numbers,
    spelling_problems,
    style_problems,
    undeclared,
    unmatched,
    variants,
)
from dovetail.table.data_section import REPEATED_NOBODY, Spellings, labels_header, toml_text, toml_value
from dovetail.table.domain import Domain, Noise, constant_problems, delta_for, domain_of, outlier_problems
from dovetail.table.layout import read_as_found
from dovetail.table.reader import in_several_rows, is_plain
from dovetail.table.spelling import in_ranges, names_of, with_labels, without_missing

# Whether each person stands in one row: duplicate people, duplicate rows, and which column names people.


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
                "if it does, say so: who stands in several rows would answer several times",
                Status.CONFIRM, (choose("it names people", person=column.name),),
            )  # fmt: skip


KEEP_ONE = tuple(choose(f"keep the {which} row of each", duplicates=which) for which in ("first", "last"))


def person_problems(frame: pl.DataFrame, person: str, decided: str | None) -> Iterator[Problem]:
    """People who stand in several rows."""
    people = names_of(frame[person])
    repeated = people.is_duplicated() & people.is_not_null()
    if not repeated.any():
        return
    whole = frame.is_duplicated()
    many = people.filter(repeated).n_unique()
    if decided is not None:
        yield Problem(
            in_several_rows(many), _at(person, repeated), f"the {decided} row of each is kept, as `duplicates` says",
            Status.SETTLED,
        )  # fmt: skip
        return
    if bool((whole | ~repeated).all()):
        yield Problem(
            f"{in_several_rows(many)}, with the same values each time", _at(person, repeated),
            'the configuration keeps one row each, `duplicates` = "first"', Status.SETTLED,
        )  # fmt: skip
        return
    yield Problem(
        f"{in_several_rows(many)}, with different values", _at(person, repeated),
        "choose one row, or correct the table; rounds of reports are a stream: name the column of rounds as `time`; "
        "if it does not name people, delete `person`", Status.STOPS, KEEP_ONE,
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


def contact_problems(column: Column) -> Iterator[Problem]:
    """E-mail addresses and telephone numbers among other things."""
    if column.kind in (Kind.EMAIL, Kind.PHONE, Kind.DATE, Kind.NUMBER):
        return
    for pattern, what in ((EMAIL, "e-mail addresses"), (PHONE, "telephone numbers")):
        count = column.count_of(pattern)
        if count:
            yield Problem(
                f"{counted(count, 'value looks', 'values look')} like {what}", column_called(column.name),
                "delete them from the table before anything else", Status.NOTE,
            )  # fmt: skip


# How much public columns tell: who is alone with them, and whose answer they give away.


_WIDTHS = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0, 1000.0, 10_000.0)
_TELLS, _OFTEN = 0.95, 0.9  # shares of answers: those that a column tells, and of the commonest one
_FEWEST = 5  # people of a label


def public_problems(columns: Mapping[str, pl.Series], private: pl.Series | None) -> Iterator[Problem]:
    """People who are alone with their public columns, by which, and columns that nearly tell the private one."""
    if not columns:
        return
    alone = _alone(columns)
    if alone:
        n = len(next(iter(columns.values())))
        without = {name: _alone({k: v for k, v in columns.items() if k != name}) for name in columns}
        name = min(without, key=lambda one: without[one])
        fixes = _coarser(columns, name, alone)
        widths = tuple(float(fix.keys[0][1]) for fix in fixes)
        rest = f", {without[name]:,} without {name!r}" if len(columns) > 1 else ""
        yield Problem(
            f"{alone:,} of {n:,} people are alone with their public columns{rest}", column_called(name),
            "where columns stand beside the reports, whose report that is is known: make it coarser, or leave it out",
            Status.NOTE, fixes, ranges=(name, widths) if widths else None,
        )  # fmt: skip
    for name, column in columns.items():
        told = None if private is None else _told(column, private)
        if told is not None:
            yield Problem(
                f"tells the private column of {told:.0%} of the people: who knows it needs no report",
                column_called(name), "leave it out of `public`, or ask another question", Status.NOTE,
            )  # fmt: skip


def _alone(columns: Mapping[str, pl.Series]) -> int:
    return int(pl.DataFrame(list(columns.values())).is_unique().sum()) if columns else 0


def _coarser(columns: Mapping[str, pl.Series], name: str, alone: int) -> tuple[Fix, ...]:
    """Ranges of numbers that leave at most half, and at most a tenth, of those people alone."""
    column, fixes, wanted = columns[name], [], [alone / 2.0, alone / 10.0]
    numbers = column.cast(pl.String).cast(pl.Float64, strict=False)
    if numbers.null_count() > 0.5 * len(numbers):
        return ()
    for width in _WIDTHS:
        left = _alone({**columns, name: in_ranges(column, width, Spellings())})
        if wanted and left <= wanted[0]:
            wanted = [one for one in wanted if left > one]
            fixes.append(Fix(f"in ranges of {width:g}, {left:,} are alone", ((f"ranges.{toml_text(name)}", width),)))
    return tuple(fixes)


def _told(column: pl.Series, private: pl.Series) -> float | None:
    """The share of people of whom the commonest answer with their label is theirs, where that is nearly all."""
    pairs = pl.DataFrame({"label": column.cast(pl.String), "answer": private.cast(pl.String)}).drop_nulls()
    counts = pairs.group_by("label", "answer").len()
    each = counts.group_by("label").agg(pl.col("len").sum().alias("n"), pl.col("len").max().alias("most"))
    each = each.filter(pl.col("n") >= _FEWEST)
    people = int(each["n"].sum())
    commonest = max(counts.group_by("answer").agg(pl.col("len").sum())["len"].to_list(), default=0)
    if not pairs.height or people < 0.5 * pairs.height or commonest > _OFTEN * pairs.height:
        return None
    told = float(each["most"].sum()) / people
    return told if told >= _TELLS else None


NOT_STATED = "not stated"
Labels = dict[str, str]


@mute
@dataclass(frozen=True, eq=False)
class TableCheck:
    """Result of the check of a table.

    Parameters
    ----------
    problems : in order of what they do to `run`
    settings : keys of [data] that differ from their defaults
    unconfirmed : those of them that were read off private data
    noise : what the people give for the private column, where that can be said
    promises : of several questions: what `run` would promise a person, by name
    unmatched : texts of the private column that are no declared category, with their counts
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
    unmatched: dict[str, int] = field(default_factory=dict)

    @property
    def stops(self) -> bool:
        """True if somebody has to decide before `run`."""
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
    asked = replace(asked, person=asked.decisions.get("person", asked.person))
    progress("read the table", 0, 1)
    frame, written, problems = read_as_found(path, encoding, asked.decisions)
    progress("read the table", 1, 1)
    if frame.height == 0:
        raise DataError(f"{path}: the table has no rows.")
    for name in (asked.private, asked.person, *asked.public, *asked.decisions.get("labels", {})):
        if name is not None and name not in frame.columns:
            raise DataError(f"{path}: has no column {name!r}{nearest(name, frame.columns)}.")
    frame, nested = _plain(frame, asked)
    problems += nested
    chosen = asked.decisions.get("labels", {})
    frame = frame.with_columns([with_labels(without_missing(frame[name], ()), chosen[name]) for name in chosen])
    ranges = asked.decisions.get("ranges", {})
    look = look_at(frame, private=asked.private, progress=progress)
    asked = replace(asked, person=asked.person or find_person(look.columns, asked))
    if "duplicates" in asked.decisions and asked.person is None:
        raise DataError(f"{path}: {REPEATED_NOBODY}, with --person.")
    labels = {name: made for name, column in look.columns.items() if (made := _labels(column, asked))}
    problems += style_problems(look.numbers, look.style, private=asked.private)
    for column in look.columns.values():
        problems += _of_column(column, look, asked, labels.get(column.name, {}))
    progress("compare the rows", 0, 1)
    repeated = _of_people(look, asked)
    progress("compare the rows", 1, 1)
    known = asked.private in look.columns
    domain = domain_of(look, asked, labels.get(str(asked.private), {})) if known else Domain()
    how = look.style.model_copy(update={"labels": labels})
    shown = [name for name in asked.public if name in look.columns]
    public = {name: _as_released(look.frame[name], how, ranges.get(name)) for name in shown}
    private = look.frame[asked.private] if asked.private is not None and known else None
    problems += [*repeated, *domain.problems, *public_problems(public, private)]
    settings = {
        **({} if written is None else written.model_dump(exclude_defaults=True)),
        **look.style.model_dump(exclude_defaults=True),
        **({"missing_spellings": look.missing_spellings} if look.missing_spellings else {}),
        **({"duplicates": "first"} if any(one.status == Status.SETTLED for one in repeated) else {}),
        **domain.settings,
        **{key: value for key, value in asked.decisions.items() if key not in ("labels", "person", "randomize")},
    }
    read_as = {name: chosen.get(name, {}) | labels.get(name, {}) for name in look.columns if asked.has_role(name)}
    if any(read_as.values()):
        settings["labels"] = {name: mapped for name, mapped in read_as.items() if mapped}
    order = list(Status)
    return TableCheck(
        path, frame.height, look.columns, asked,
        tuple(sorted(problems, key=lambda problem: order.index(problem.status))),
        settings, domain.unconfirmed, domain.noise,
        unmatched=unmatched(look.columns[asked.private], labels.get(asked.private, {}), asked.categories)
        if asked.private in look.columns and asked.categories is not None else {},
    )  # fmt: skip


def _as_released(column: pl.Series, how: Spellings, width: float | None) -> pl.Series:
    """A public column as it would stand beside the reports."""
    column = with_labels(column, how.labels.get(column.name, {}))
    return column if width is None else in_ranges(column, float(width), how)


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
    if column.name == asked.private and asked.categories is not None:
        return meant(column, asked.categories)
    found = {} if column.name == asked.person else variants(column)
    gap = {"": NOT_STATED} if column.missing and column.name in asked.public else {}
    return gap | found


def _of_people(look: Look, asked: Declared) -> list[Problem]:
    """People or rows that stand there twice."""
    if asked.person not in look.columns:
        return [*unnamed_problems(look.columns, asked), *row_problems(look.frame, look.columns)]
    return list(person_problems(look.frame, asked.person, asked.decisions.get("duplicates")))


def _of_column(column: Column, look: Look, asked: Declared, labels: Labels) -> Iterator[Problem]:
    name, series = column.name, look.frame[column.name]
    role = asked.role_of(name)
    if name.startswith("column_") and column.kind == Kind.EMPTY and role is None:
        return  # fields that a spreadsheet leaves at the end of each row
    yield from constant_problems(column, private=role == "private")
    yield from missing_problems(column, series, look.gaps.get(name, []), asked)
    yield from identity_problems(column, role)
    yield from contact_problems(column)
    yield from date_problems(column, role=role is not None)
    if column.kind == Kind.NUMBER or (role == "private" and asked.numeric(column)):
        yield from _of_numbers(column, look, asked)
    if role == "private" and asked.categories is not None:
        yield from meant_problems(column, labels)
        yield from undeclared(column, labels, asked, gap=bool(column.missing), lines=True)
    else:
        yield from spelling_problems(column, {old: new for old, new in labels.items() if old}, asked)


def _of_numbers(column: Column, look: Look, asked: Declared) -> Iterator[Problem]:
    private = column.name == asked.private
    means = private and asked.numeric(column)
    gap = "missing" in asked.decisions
    yield from not_numbers(column, where=column_called(column.name), private=private, role=means, gap=gap)
    if means:
        return  # where its bounds are looked at
    codes = missing_codes(column)
    for code in codes:
        yield from code_problems(column, code, asked)
    if not codes:
        yield from outlier_problems(column, look.frame[column.name])


# The configuration that reads a checked table, annotated: what a person has to confirm is marked.


MARK = "CONFIRM"
_WIDE = 112  # letters in a line
_FEW = 50  # values of a column that may be grouped by
_LAYOUT = {
    "separator": "what separates fields",
    "quote": "what stands around texts",
    "encoding": "of the text; see that marked letters are right",
    "fallback_encoding": f"{MARK}: of the lines that are not UTF-8",
    "skip_rows": f"{MARK}: rows above the header that are left out",
    "header_rows": f"{MARK}: rows that name and explain the columns",
    "footer_rows": f"{MARK}: rows at the end that are no people",
    "columns": "names of the columns, in their order, instead of the header's",
    "decimal": "what stands before the fraction of a number",
    "thousands": "what stands between thousands",
    "units": "what may stand around numbers",
    "missing_spellings": "texts that stand for no value, besides blanks",
    "duplicates": "of a person who stands in two rows",
    "ranges": "public numbers count as the lower end of a range of this width",
    "clip": "numbers outside the bounds count as the nearest one",
}


def write_configuration(found: TableCheck, place: Path) -> str:
    """The text of a TOML file at `place` that `run` takes: a rehearsal at once, a release when it is confirmed."""
    sections = [_head(found), _data(found, place), _label_lines(found), _randomize(found), _rest(found)]
    return "\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _head(found: TableCheck) -> list[str]:
    return [
        f"# Written by `dovetail check` for {_bare(found.path.name)}: {found.n:,} rows. Lines marked {MARK} were",
        "# read off the table or guessed: look at each. This file may say what people wrote: keep it private.",
        "schema_version = 1",
        'mode = "rehearsal"  # "rehearsal" knows the truth, for planning; "release" is what leaves the house',
        "",
    ]


def _data(found: TableCheck, place: Path) -> list[str]:
    asked, said = found.asked, found.settings
    lines = ["[data]", f"path = {toml_text(_beside(found.path, place))}"]
    lines += [_line(key, said[key], note) for key, note in _LAYOUT.items() if key in said]
    if asked.private is None:
        lines.append(
            _line("private", "", f"{MARK}: the column to protect, one of {', '.join(map(toml_text, choices(found)))}")
        )
    else:
        lines.append(_line("private", asked.private, "the column that is protected"))
    if asked.person is not None:
        lines.append(_line("person", asked.person, "names people; nobody may stand in two rows; never released"))
    lines.append(_line("public", list(asked.public), _public_note(found)))
    if "missing" in said:
        out = said["missing"] == "drop"
        rule = "people without an answer are left out" if out else "the category of a missing answer"
        lines.append(_line("missing", said["missing"], f"{MARK}: {rule}" if "missing" in found.unconfirmed else rule))
    if "categories" in said:
        lines.append(
            _line(
                "categories",
                said["categories"],
                _declare(found, "categories", "every answer that the question offers"),
            )
        )
    for key in ("lower", "upper"):
        if key in said:
            lines.append(_line(key, said[key], _declare(found, key, f"the {key} bound of anybody's number")))
    if found.unconfirmed:
        note = f"{MARK}: delete this line when you have; a release is refused until then"
        lines.append(_line("unconfirmed", list(found.unconfirmed), note))
    return [*lines, ""]


def _declare(found: TableCheck, key: str, what: str) -> str:
    if key not in found.unconfirmed:
        return what
    source = "read off the private column" if key == "categories" else "a guess"
    return f"{MARK}: {source}; declare {what} without looking at the table"


def _public_note(found: TableCheck) -> str:
    fit = [
        name for name, column in found.columns.items()
        if not found.asked.has_role(name) and _may_group(column)
    ]  # fmt: skip
    offer = f", such as {', '.join(toml_text(name) for name in fit[:8])}" if fit else ""
    return f"opt-in: columns that are no secret{offer}; all others are dropped"


def _may_group(column: Column) -> bool:
    return column.kind in (Kind.CATEGORY, Kind.NUMBER) and 2 <= column.distinct <= _FEW


def choices(found: TableCheck) -> list[str]:
    """Columns that may be the private one."""
    fit = [name for name, column in found.columns.items() if column.kind in (Kind.CATEGORY, Kind.NUMBER)]
    return [name for name in fit if name != found.asked.person][:20]


def _label_lines(found: TableCheck) -> list[str]:
    lines = []
    every = dict(found.settings.get("labels", {}))
    if found.unmatched:
        every.setdefault(str(found.asked.private), {})
    for name, labels in every.items():
        private = "; not repeated in any report" if name == found.asked.private else ""
        lines.append(f"{labels_header(name)}  # {MARK}: spelling = label{private}")
        column = found.columns.get(name)
        counts = {} if column is None else dict(column.values.select("text", "count").iter_rows())
        lines += [_label_line(spelling, label, counts.get(spelling)) for spelling, label in labels.items()]
        if name == found.asked.private and found.unmatched:
            lines.append("# no declared category: say what each means, and take the first sign of its line away")
            lines += [f"#{_label_line(spelling, '', count)}" for spelling, count in found.unmatched.items()]
        lines.append("")
    return lines


def _label_line(spelling: str, label: str, count: int | None) -> str:
    return f"{toml_text(spelling)} = {toml_text(label)}" + ("" if count is None else f"  # {count:,}")


def _randomize(found: TableCheck) -> list[str]:
    note = "local epsilon of each report, nats: `dovetail plan` says what it buys"
    named = found.asked.decisions.get("randomize", {})
    if found.noise is None or named:
        chosen = [_line(key, value, "as was decided") for key, value in named.items()]
        return ["[randomize]", *chosen, _line("epsilon", found.asked.epsilon, note), ""]
    best = _line("randomizer", found.noise.randomizer, "the best for these people and this budget")
    note = f"nats; an estimate is off by up to {found.noise.error95:.3g} (95 %); `dovetail plan` says what else"
    return ["[randomize]", best, _line("epsilon", found.asked.epsilon, note), ""]


def _rest(found: TableCheck) -> list[str]:
    return [
        "[shuffle]",
        'shuffler = "uniform"  # docs/samples shows those that keep people near their public neighbours',
        "",
        "[promise]",
        f"delta = {delta_for(found.n):g}  # well below one over the number of people",
        "",
        "[estimate]",
        "by = []  # public columns to estimate by",
    ]


def _line(key: str, value: Any, note: str) -> str:
    """A key with its note beside it, or above it where the line would be long."""
    line = f"{key} = {toml_value(value)}"
    return f"{line}  # {note}" if len(line) + len(note) < _WIDE else f"# {note}\n{line}"


def _bare(text: str) -> str:
    """A text for a comment."""
    return toml_text(text)[1:-1]


def _beside(table: Path, place: Path) -> str:
    """The path of the table as the configuration sees it."""
    try:
        return Path(os.path.relpath(table.absolute(), place.absolute().parent)).as_posix()
    except ValueError:  # another drive of Windows
        return table.absolute().as_posix()
