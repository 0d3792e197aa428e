"""`dovetail check CONFIG.toml`: the table of a configuration, checked against what the configuration says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dovetail.core.checks import nearest
from dovetail.core.display import mute
from dovetail.core.entropy import system_entropy
from dovetail.core.errors import ConfigError, DataError, DovetailError
from dovetail.core.guarantee import CentralDP
from dovetail.core.progress import Progress, silent
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.job.build import build_collection, build_randomizer
from dovetail.job.config import RunConfig, load_config
from dovetail.job.questions import Question, QuestionsCollection, QuestionsConfig, read_questions
from dovetail.job.questions_plan import predicted
from dovetail.job.stream import read_stream
from dovetail.job.vectors import check_vectors
from dovetail.table.check import TableCheck, contact_problems, identity_problems
from dovetail.table.columns import (
    EMAIL,
    PHONE,
    Column,
    Declared,
    Problem,
    Status,
    code_problems,
    column_called,
    date_problems,
    describe_column,
    find_number_style,
    first_rows,
    missing_code,
    not_numbers,
    quoted,
    refusal,
    undeclared,
    variants,
)
from dovetail.table.data_section import DataSection, FileFormat, parse_section, read_toml
from dovetail.table.domain import Noise, bound_problems, category_problems, outlier_problems
from dovetail.table.layout import read_as_found
from dovetail.table.reader import in_several_rows, is_plain, is_text_file, missing_values, read_survey, read_table
from dovetail.table.spelling import spelling_of, with_labels, without_missing

# People who stand in several rows, where a configuration already says what becomes of them.


def person_found(frame: pl.DataFrame, data: DataSection) -> Iterator[Problem]:
    """People without a name, and people with several rows (in a stream: of one round)."""
    assert data.person is not None
    people, where = frame[data.person], column_called(data.person)
    nameless = people.is_null()
    if nameless.any():
        yield Problem(
            missing_values(int(nameless.sum()), frame.height), f"{where}, {first_rows(nameless)}",
            "give each of these people a name of their own, or leave their rows out", Status.STOPS,
        )  # fmt: skip
    stream = data.time is not None and data.time in frame.columns
    if data.time is not None and not stream:
        return  # which rows are of one round is not known
    keys = [data.person, data.time] if stream else [data.person]
    repeated = frame.select(keys).is_duplicated() & ~nameless
    if not repeated.any():
        return
    many = people.filter(repeated).n_unique()
    what = f"{in_several_rows(many)}{' of a round' if stream else ''}"
    where = f"{where}, {first_rows(repeated)}"
    if data.duplicates != "refuse":
        yield Problem(what, where, f"the {data.duplicates} row of each is kept, as `duplicates` says", Status.SETTLED)
    elif stream:
        yield Problem(what, where, "keep one row of each person and round", Status.STOPS)
    else:
        same = bool((frame.is_duplicated() | ~repeated).all())
        yield Problem(
            f"{what}, with {'the same' if same else 'different'} values",
            where, 'keep one row each, or set `duplicates` = "first" or "last" in [data]', Status.STOPS,
        )  # fmt: skip


def without_repeats(columns: dict[str, pl.Series], data: DataSection) -> dict[str, pl.Series]:
    """The rows that `run` keeps."""
    assert data.person is not None
    people = columns[data.person]
    if data.duplicates == "refuse":
        return columns
    kept = people.is_last_distinct() if data.duplicates == "last" else people.is_first_distinct()
    return {name: column.filter(kept | people.is_null()) for name, column in columns.items()}


# The columns that a configuration names, against what it says about them.


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
        found = list(_column_categories(column, series, data, asked))
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
            missing_values(column.missing, column.n), f"{where}, {first_rows(series.is_null())}",
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


def _column_categories(column: Column, series: pl.Series, data: DataSection, asked: Declared) -> Iterator[Problem]:
    where, name = column_called(column.name), column.name
    if column.missing and data.missing == "refuse":
        yield Problem(
            missing_values(column.missing, column.n), f"{where}, {first_rows(series.is_null())}",
            f'set `missing` to a category that you declare, map them by [data.labels.{name}] "" = "..", or leave '
            "these people out", Status.STOPS,
        )  # fmt: skip
    elif column.missing:
        yield Problem(
            missing_values(column.missing, column.n), where,
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
            missing_values(column.missing, column.n), f"{where}, {first_rows(series.is_null())}",
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


# Reading a file as [data] says it is written; where that fails, as it is found to be, with the keys that say so.


def read_as_said(data: DataSection) -> tuple[pl.DataFrame, list[Problem]]:
    """The table, and a problem where it is written otherwise than [data] says."""
    try:
        frame = read_table(data.path, written=data)
    except DataError as error:
        frame, found, _ = read_as_found(Path(str(data.path)), None)  # raises where there is no table
        return frame, [_otherwise(_shortly(error, data), data, found)]
    wanted = {data.private, *data.public, *(name for name in (data.person, data.time) if name)}
    if wanted <= set(frame.columns) or not is_text_file(str(data.path)):
        return frame, []
    other, found, _ = read_as_found(Path(str(data.path)), None)
    if len(wanted & set(other.columns)) <= len(wanted & set(frame.columns)):
        return frame, []
    return other, [_otherwise("its columns have other names as [data] reads it", data, found)]


def _otherwise(what: str, data: DataSection, found: FileFormat | None) -> Problem:
    keys = (
        [] if found is None else [key for key in FileFormat.model_fields if getattr(found, key) != getattr(data, key)]
    )
    said = ", ".join(f"{key} = {_toml(getattr(found, key))}" for key in keys)
    return Problem(what, "file", f"in [data]: {said}" if said else "correct the file", Status.STOPS)


def _shortly(error: DataError, data: DataSection) -> str:
    """What is wrong, without the remedy."""
    return re.split(r"; |: set ", str(error).removeprefix(f"{data.path}: "), maxsplit=1)[0].rstrip(".")


def _toml(value: object) -> str:
    return str(value) if isinstance(value, int) else str(value).join('""') if isinstance(value, str) else repr(value)


# `dovetail check CONFIG.toml` with [[questions]]: every fault of the file and of all columns, and the promises.


def check_questions(place: Path, raw: dict[str, Any], *, progress: Progress) -> TableCheck:
    """Read the table that a configuration names, and list all that is wrong with either, question by question.

    Where nothing stops, the table is read once more as `run` reads it, and what a person would be promised is said.

    Raises
    ------
    ConfigError
        Where no question, or not where the table is, can be read.
    DataError
        When there is no table to look at.
    """
    asked, faults = read_questions(raw, name=str(place), folder=place.parent)
    if asked is None:
        raise ConfigError("\n".join(faults))
    lines = [line.removeprefix(f"{place}: ").rstrip(".") for line in faults]
    problems = [Problem(line, _FILE, f"correct {place.name}", Status.STOPS) for line in lines]
    progress("read the table", 0, 1)
    whole = _whole(asked)
    frame, written = read_as_said(whole)
    progress("read the table", 1, 1)
    if frame.height == 0:
        raise DataError(f"{whole.path}: the table has no rows.")
    problems += written
    columns: dict[str, Column] = {}
    for question in asked.questions:
        checked = check_columns(frame, question.settings.data, numbers=(), progress=progress)
        columns |= checked.columns
        problems += [*checked.problems, *_categories(asked, question, checked)]
    problems = list(dict.fromkeys(problems))  # people and public columns are the same for every question
    promises: dict[str, Any] = {}
    if not any(problem.status == Status.STOPS for problem in problems):
        promises, refused = _promised(asked, progress)
        problems += refused
    order = list(Status)
    return TableCheck(
        Path(str(whole.path)), frame.height, columns, Declared(whole.private, whole.person, tuple(asked.data.public)),
        tuple(sorted(problems, key=lambda problem: order.index(problem.status))), promises=promises,
    )  # fmt: skip


def _whole(asked: QuestionsConfig) -> DataSection:
    """[data] with every column that `run` reads."""
    first, *others = asked.questions
    data = first.settings.data
    return data.model_copy(update={"public": [*data.public, *(question.column for question in others)]})


def _categories(asked: QuestionsConfig, question: Question, checked: Checked) -> list[Problem]:
    """Categories that are read off the table, too many, or rarer than the noise of those who answer."""
    data, randomize = question.settings.data, question.settings.randomize
    found = []
    if not data.numeric and data.categories is None:
        found.append(Problem(
            "no categories are declared: a rehearsal reads them off the private column", column_called(data.private),
            "declare every answer that your question offers, also those that nobody gave", Status.CONFIRM,
        ))  # fmt: skip
    if checked.counts is None or randomize is None:
        return found
    names = tuple(checked.counts["label"].to_list())
    declared = Declared(question.column, data.person, tuple(data.public), names, epsilon=randomize.epsilon)
    return [
        *found,
        *category_problems(checked.counts, _noise_of_questions(asked, question, checked.counts), declared),
    ]


def _noise_of_questions(asked: QuestionsConfig, question: Question, counts: pl.DataFrame) -> Noise | None:
    """What those who answer this question give, everybody or those who draw it."""
    share = 1.0
    if asked.head.ask == "one":
        share = question.weight / sum(one.weight for one in asked.questions)
    try:
        made = build_randomizer(question.settings.randomize, question.settings.data, tuple(counts["label"].to_list()))
    except DovetailError:
        return None  # `run` says why, and so does _promised
    assert isinstance(made, FrequencyRandomizer | NumericRandomizer)
    return Noise(made.name, predicted(made, int(counts["count"].sum()), share).error95)


def _promised(asked: QuestionsConfig, progress: Progress) -> tuple[dict[str, Any], list[Problem]]:
    """What everything that is released promises a person, of the table as `run` reads it; or why `run` refuses."""
    progress("what it promises", 0, 1)
    try:
        collection = QuestionsCollection.of(asked, system_entropy())
        central = collection.central()
    except (DovetailError, pl.exceptions.PolarsError) as error:
        return {}, [refusal(error)]
    progress("what it promises", 1, 1)
    local = collection.local
    said: dict[str, Any] = {"ask": collection.ask, "n": collection.n, "local": local.epsilon}
    if isinstance(central, CentralDP):
        said |= {
            "epsilon": central.epsilon, "delta": central.delta, "attack_lower": central.attack_lower,
            "batch": central.n, "honest": central.honest_n,
        }  # fmt: skip
        return said, []
    return said | {"epsilon": None, "reason": central.reason}, []


_FILE = "configuration"


def check_config(place: Path, *, progress: Progress = silent) -> TableCheck:
    """Read the table that a configuration names as it says, and list all that is wrong with either.

    A table without a problem that stops is one that `run` reads: it is read once more as `run` does.

    Raises
    ------
    ConfigError
        No TOML file, or one without a readable [data].
    DataError
        When there is no table to look at.
    """
    raw = read_toml(place)
    if "questions" in raw:
        return check_questions(place, raw, progress=progress)
    data, config, problems = _configured(place)
    if config is not None and config.vector is not None:
        return check_vectors(config, config.vector, progress=progress)
    progress("read the table", 0, 1)
    frame, written = read_as_said(data)
    progress("read the table", 1, 1)
    if frame.height == 0:
        raise DataError(f"{data.path}: the table has no rows.")
    checked = check_columns(frame, data, numbers=() if config is None else config.numbers, progress=progress)
    asked = _asked(data, config, checked)
    strings = config is not None and config.strings is not None
    problems += [*written, *checked.problems, *([] if strings else _assumed(data))]
    noise = None if config is None or checked.counts is None else _noise(config, checked)
    if checked.counts is not None and not strings:
        problems += category_problems(checked.counts, noise, asked)
    if config is not None and not any(problem.status == Status.STOPS for problem in problems):
        problems += _refused(config)
    order = list(Status)
    return TableCheck(
        Path(str(data.path)), frame.height, checked.columns, asked,
        tuple(sorted(problems, key=lambda problem: order.index(problem.status))),
        {}, tuple(data.unconfirmed), noise,
    )  # fmt: skip


def _configured(place: Path) -> tuple[DataSection, RunConfig | None, list[Problem]]:
    """The section about the table; faults elsewhere in the configuration are listed, and the table is read anyway."""
    try:
        config = load_config(place)
    except ConfigError as error:
        table: Any = read_toml(place).get("data")
        try:
            data = parse_section(DataSection, table, name=str(place), at="data")
        except ConfigError:
            raise error from None
        lines = [line.removeprefix(f"{place}: ").rstrip(".") for line in str(error).splitlines()]
        beside = None if data.path is None else str(place.parent / data.path)
        faults = [Problem(line, _FILE, f"correct {place.name}", Status.STOPS) for line in lines]
        return data.model_copy(update={"path": beside}), None, faults
    return config.data, config, []


def _asked(data: DataSection, config: RunConfig | None, checked: Checked) -> Declared:
    """The roles and the domain, as a person declares them for a table that has no configuration yet."""
    epsilon = Declared.epsilon if config is None or config.randomize is None else config.randomize.epsilon
    names = None if data.categories is None else tuple(data.categories)
    found = [name for name in data.public if name in checked.columns]
    return Declared(data.private, data.person, tuple(found), names, data.lower, data.upper, epsilon)


def _assumed(data: DataSection) -> list[Problem]:
    """What was read off the table, and what still would be."""
    found = [
        Problem(
            f"`{key}` was read off the table", _FILE,
            "confirm or correct it, then take it out of `unconfirmed`; a release is refused until then",
            Status.CONFIRM,
        )
        for key in data.unconfirmed
    ]  # fmt: skip
    if not data.numeric and data.categories is None:
        found.append(Problem(
            "no categories are declared: a rehearsal reads them off the private column", column_called(data.private),
            "declare every answer that your question offers, also those that nobody gave", Status.CONFIRM,
        ))  # fmt: skip
    return found


def _noise(config: RunConfig, checked: Checked) -> Noise | None:
    """What the randomizer of the configuration gives, where everybody has the same one."""
    if config.randomize is None or config.randomize.by is not None or checked.counts is None:
        return None
    try:
        made: Any = build_randomizer(config.randomize, config.data, tuple(checked.counts["label"].to_list()))
    except DovetailError:
        return None  # `run` says why, and so does _refused
    people = int(checked.counts["count"].sum())
    return Noise(made.name, predict_accuracy(made, n=people).error95)


def _refused(config: RunConfig) -> list[Problem]:
    """What `run` still refuses, if anything: the table is read as `run` reads it."""
    try:
        if config.strings is not None:
            read_survey(config.data, system_entropy())
        elif config.data.time is not None:
            read_stream(config)
        else:
            build_collection(config, system_entropy())
    except (DovetailError, pl.exceptions.PolarsError) as error:
        return [refusal(error)]
    return []
