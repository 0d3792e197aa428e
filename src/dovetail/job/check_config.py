"""`dovetail check CONFIG.toml`: the table of a configuration, checked against what the configuration says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dovetail.core.checks import nearest
from dovetail.core.display import counted, mute
from dovetail.core.entropy import system_entropy
from dovetail.core.errors import ConfigError, DataError, DovetailError
from dovetail.core.guarantee import CentralDP
from dovetail.core.progress import Progress, silent
from dovetail.core.question import WEAK
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.job.build import build_collection, build_question, randomizer_of_data
from dovetail.job.config import RunConfig, load_config
from dovetail.job.questions import DOMAIN, Question, QuestionsCollection, QuestionsConfig, read_questions
from dovetail.job.questions_plan import predicted
from dovetail.job.stream import read_stream
from dovetail.randomize.sampling.vector_randomizer import relative_lengths
from dovetail.report.number_format import percent
from dovetail.table.check import (
    KEEP_ONE,
    NOT_STATED,
    TableCheck,
    contact_problems,
    identity_problems,
    public_problems,
)
from dovetail.table.columns import (
    ABSENT,
    DROP,
    NO_NUMBER,
    Column,
    Declared,
    Fix,
    Problem,
    Status,
    as_answers,
    choose,
    column_called,
    date_problems,
    describe_column,
    find_number_style,
    first_rows,
    meant,
    not_numbers,
    quoted,
    refusal,
    undeclared,
    variants,
)
from dovetail.table.data_section import RULES, DataSection, FileFormat, labels_header, parse_section, read_toml
from dovetail.table.domain import Noise, bound_problems, category_problems
from dovetail.table.layout import read_as_found
from dovetail.table.reader import (
    Further,
    are_numbers,
    in_several_rows,
    is_plain,
    is_text_file,
    missing_values,
    read_survey,
    read_table,
)
from dovetail.table.spelling import absent, in_ranges, names_of, rows_kept, spelling_of, with_labels, without_missing

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
    names, beside = names_of(people), [] if data.time is None else [frame[data.time]]
    repeated = pl.DataFrame([names, *beside]).is_duplicated() & ~nameless
    if not repeated.any():
        return
    many = names.filter(repeated).n_unique()
    what = f"{in_several_rows(many)}{' of a round' if stream else ''}"
    where = f"{where}, {first_rows(repeated)}"
    if data.duplicates != "refuse":
        yield Problem(what, where, f"the {data.duplicates} row of each is kept, as `duplicates` says", Status.SETTLED)
    elif stream:
        yield Problem(what, where, "keep one row of each person and round", Status.STOPS)
    else:
        same = bool((frame.is_duplicated() | ~repeated).all())
        yield Problem(
            f"{what}, with {'the same' if same else 'different'} values", where, "keep one row each", Status.STOPS,
            KEEP_ONE,
        )  # fmt: skip


def without_repeats(columns: dict[str, pl.Series], data: DataSection) -> dict[str, pl.Series]:
    """The rows that `run` keeps."""
    assert data.person is not None
    people = columns[data.person]
    if data.duplicates == "refuse":
        return columns
    kept = rows_kept(people, data.duplicates)
    return {name: column.filter(kept | people.is_null()) for name, column in columns.items()}


# The columns that a configuration names, against what it says about them.


@mute
@dataclass(frozen=True, eq=False)
class Checked:
    """Findings of a check.

    Parameters
    ----------
    counts : data frame of `label` and `count`, or None
        Of the private categories, in their order, where nothing is wrong with them.
    """

    columns: dict[str, Column]
    problems: tuple[Problem, ...]
    counts: pl.DataFrame | None


def check_columns(
    frame: pl.DataFrame, data: DataSection, *, numbers: Sequence[str], progress: Progress,
    further: Further | None = None, trust: str = "local", rounds: str | None = None,
) -> Checked:  # fmt: skip
    """Every column that has a role, its values read as the configuration reads them; rows are counted before that.

    `further` are private columns of numbers beside the first one, with their ranges: each is looked at as that is.
    `rounds` names the column of rounds in which nobody's values change: the first row of each person is looked at.
    """
    problems: list[Problem] = []
    dated = data if rounds is None else data.model_copy(update={"time": rounds})
    roles = list(dict.fromkeys(name for name in (data.person, dated.time, data.private, *data.public) if name))
    clean: dict[str, pl.Series] = {}
    for name in roles:
        gone = list(_not_there(frame, name))
        problems += gone
        if not gone:
            clean[name] = _read(frame[name], data)
    if data.missing == "drop" and data.private in clean:
        answered = ~absent(clean[data.private])
        problems += _left_out(clean[data.private], int((~answered).sum()))
        clean = {name: column.filter(answered) for name, column in clean.items()}
    spare = [name for name in data.labels if name not in frame.columns]
    problems += [
        Problem("the table has no such column", f"[data.labels.{name}]", "correct the name, or leave it out",
                Status.NOTE) for name in spare
    ]  # fmt: skip
    if data.person in clean:
        problems += person_found(pl.DataFrame([*clean.values()]), dated)
        clean = without_repeats(clean, data if rounds is None else data.model_copy(update={"duplicates": "first"}))
    asked = Declared(data.private, data.person, tuple(data.public), tuple(data.categories or ()) or None, trust=trust)
    columns = {}
    for done, (name, series) in enumerate(clean.items(), start=1):
        columns[name] = describe_column(series, None, data)
        progress("look at the columns", done, len(clean))
    for name in data.public:
        if name in columns:
            problems += _public(columns[name], clean[name], data, number=name in numbers)
    public = {name: _ranged(clean[name], data) for name in data.public if name in columns}
    problems += public_problems(public, clean.get(data.private))
    for name, domain in (further or {}).items():
        own: dict[str, Any] = {"private": name, "public": [], "grid": None}
        own |= {"lower": None, "upper": None, "categories": list(domain)}
        if are_numbers(domain):
            own |= {"lower": domain[0], "upper": domain[1], "categories": None}
        more = check_columns(frame, data.model_copy(update=own), numbers=(), progress=progress, rounds=rounds)
        columns |= more.columns
        problems += [problem for problem in more.problems if problem not in problems]
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


def _ranged(column: pl.Series, data: DataSection) -> pl.Series:
    return in_ranges(column, data.ranges[column.name], data) if column.name in data.ranges else column


def _left_out(column: pl.Series, count: int) -> list[Problem]:
    """People without an answer, where a rule leaves them out."""
    if not count:
        return []
    return [Problem(
        missing_values(count, len(column)), column_called(column.name),
        "these people are left out, as `missing` says; the report counts them", Status.SETTLED,
    )]  # fmt: skip


def _further(config: RunConfig | None) -> Further:
    """The private columns beside the first one that a question asks for."""
    if config is None or config.question.ask is None:
        return {}
    return build_question(config, config.data.categories).further


def _not_there(frame: pl.DataFrame, name: str) -> Iterator[Problem]:
    """A column that is not there, or that no run reads."""
    if name not in frame.columns:
        hint = nearest(name, frame.columns).rstrip(".")
        yield Problem(
            f"the table has no such column{hint}",
            column_called(name),
            "correct the name in the configuration",
            Status.STOPS,
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
            missing_values(column.missing, column.n), f"{where}, {first_rows(absent(series))}",
            "give them a label, or leave these people out", Status.STOPS,
            (Fix('call them "not stated"', (), column.name, (("", NOT_STATED),)),),
        )  # fmt: skip
    yield from identity_problems(column, "public")
    yield from contact_problems(column)
    yield from date_problems(column, role=True)
    if number:
        yield from _spelled(column, data)[1]
    spellings = variants(column)
    if spellings:
        yield Problem(
            f"labels differ only in blanks, case or Unicode form, so that they are groups of their own: "
            f"{quoted(list(spellings))}", where, "map them to one label each", Status.NOTE,
            _as_one(column.name, spellings), tuple(spellings),
        )  # fmt: skip


def _column_categories(column: Column, series: pl.Series, data: DataSection, asked: Declared) -> Iterator[Problem]:
    where, name = column_called(column.name), column.name
    if column.missing and data.missing == "refuse":
        named = {} if data.categories is None else {"categories": tuple(dict.fromkeys((*data.categories, ABSENT)))}
        own = choose("count them as a category of their own", missing=ABSENT, **named)
        yield Problem(
            missing_values(column.missing, column.n), f"{where}, {first_rows(absent(series))}",
            "count them as a category, or leave these people out", Status.STOPS, (own, DROP),
        )  # fmt: skip
    elif column.missing:
        yield _counted(column, data)
    declared = data.categories
    if declared is None:
        if column.distinct + bool(column.missing and data.missing not in RULES) < 2:
            yield Problem(
                "has the same value everywhere", where,
                "a constant needs no collection: declare the other answers as `categories`", Status.STOPS,
            )  # fmt: skip
        return
    found = meant(column, declared)
    if found:
        people = int(column.values.filter(pl.col("text").is_in(list(found)))["count"].sum())
        labels = list(dict.fromkeys(found.values()))
        yield Problem(
            f"{counted(people, 'value is', 'values are')} spelled otherwise than {quoted(labels)}: "
            f"{quoted(list(found))}", where,
            f"map them in {labels_header(name)}", Status.STOPS, _as_one(name, found), tuple(found),
        )  # fmt: skip
    yield from undeclared(column, found, asked, gap=data.missing != "refuse")


def _counted(column: Column, data: DataSection) -> Problem:
    return Problem(
        missing_values(column.missing, column.n), column_called(column.name),
        f"they are counted as {data.missing!r}", Status.SETTLED,
    )  # fmt: skip


def _as_one(column: str, labels: Mapping[str, str]) -> tuple[Fix, ...]:
    """Reading all these spellings as their labels."""
    return (Fix("read them so", (), column, tuple(labels.items())),)


def _number(column: Column, series: pl.Series, data: DataSection, asked: Declared) -> Iterator[Problem]:
    where = column_called(column.name)
    if column.missing and data.missing == "refuse":
        yield Problem(
            missing_values(column.missing, column.n), f"{where}, {first_rows(absent(series))}", NO_NUMBER,
            Status.STOPS, (DROP, as_answers(local=asked.trust == "local")),
        )  # fmt: skip
    elif column.missing:
        yield _counted(column, data)
    column, found = _spelled(column, data)
    yield from found
    assert data.lower is not None and data.upper is not None  # a configuration has both or none
    yield from bound_problems(column, series, (data.lower, data.upper), asked, declared=True, clip=data.clip)


def _spelled(column: Column, data: DataSection) -> tuple[Column, list[Problem]]:
    """The column with the numbers that its texts spell, and what is no number as [data] spells them."""
    bad = column.values.filter(pl.col("number").is_null())
    if not bad.height:
        return column, []
    own = find_number_style({column.name: column.values.select("text", "count")})
    seen = describe_column(pl.Series(column.name, column.values["text"]), None, own)
    if seen.values["number"].null_count() >= bad.height:
        private, gap = column.name == data.private, data.missing != "refuse"
        where = column_called(column.name)
        return column, list(not_numbers(column, where=where, private=private, role=True, gap=gap))
    other = column.values.drop("number").join(seen.values.select("text", "number"), on="text", how="left")
    problem = Problem(
        f"{counted(int(bad['count'].sum()), 'value is no number', 'values are no numbers')} as [data] spells them, "
        f"{spelling_of(data)}",
        column_called(column.name), f"they are numbers with {spelling_of(own)}", Status.STOPS,
        (choose("read numbers so", **own.model_dump(include={"decimal", "thousands", "units"})),),
    )  # fmt: skip
    respelled = Column(column.name, column.n, column.missing, other, column.kind)
    return respelled, [
        problem, *not_numbers(respelled, where=column_called(column.name), private=True, role=True)
    ]  # fmt: skip


def _counts(column: Column, data: DataSection) -> pl.DataFrame:
    held = dict(column.values.select("text", "count").iter_rows())
    if column.missing and data.missing not in RULES:
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
    if not keys:
        return Problem(what, "file", "correct the file", Status.STOPS)
    fix = choose("read it as it is written", **{key: getattr(found, key) for key in keys})
    return Problem(what, "file", "say how it is written", Status.STOPS, (fix,))


def _shortly(error: DataError, data: DataSection) -> str:
    """The problem in words, without its remedy."""
    return re.split(r"; |: set ", str(error).removeprefix(f"{data.path}: "), maxsplit=1)[0].rstrip(".")


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
        settings = question.settings
        checked = check_columns(
            frame, settings.data, numbers=(), progress=progress, further=_further(settings), rounds=_rounds(settings)
        )
        columns |= checked.columns
        problems += [*checked.problems, *_categories(asked, question, checked)]
    problems = [_of_data(problem) for problem in problems]
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


def _of_data(problem: Problem) -> Problem:
    """The same without decisions about one column, which [data] does not take beside [[questions]]."""
    kept = tuple(fix for fix in problem.fixes if not {*dict(fix.keys)} & {*DOMAIN})
    return replace(problem, fixes=kept)


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
    """The predicted noise of this question, over everybody or those who draw it."""
    share = 1.0
    if asked.head.ask == "one":
        share = question.weight / sum(one.weight for one in asked.questions)
    try:
        made = randomizer_of_data(
            question.settings.randomize, question.settings.data, tuple(counts["label"].to_list())
        )
    except DovetailError:
        return None  # `run` says why, and so does _promised
    assert isinstance(made, FrequencyRandomizer | NumericRandomizer)
    return Noise(made.name, predicted(made, int(counts["count"].sum()), share).error95)


def _promised(asked: QuestionsConfig, progress: Progress) -> tuple[dict[str, Any], list[Problem]]:
    """The guarantee of all that is released, for the table as `run` reads it; or why `run` refuses."""
    progress("what it promises", 0, 1)
    try:
        collection = QuestionsCollection.of(asked, system_entropy())
        if asked.mode == "release":
            collection.refuse_drowned()
        central = collection.central
    except (DovetailError, pl.exceptions.PolarsError) as error:
        return {}, [refusal(error)]
    progress("what it promises", 1, 1)
    local = collection.local
    said: dict[str, Any] = {"ask": collection.ask, "n": collection.n, "local": local.epsilon}
    if isinstance(central, CentralDP):
        said |= {
            "epsilon": central.epsilon, "delta": central.delta, "attack_lower": central.attack_lower,
            "batch": central.n, "honest": central.n if central.trust == "shuffler" else central.honest_n,
        }  # fmt: skip
        return said, []
    return said | {"epsilon": None, "reason": central.reason}, []


_FILE = "configuration"
MANY = 0.5  # of all vectors: if more are shortened, the length is rather a wish than a bound


def check_arrays(config: RunConfig, *, progress: Progress) -> TableCheck:
    """Check a column of arrays as `run` reads it: what is refused, and what shortening would do."""
    data, problems, n = config.data, list[Problem](), 0
    where = column_called(data.private)
    progress("read the table", 0, 1)
    try:
        made = build_collection(config, system_entropy())
        n, clip = made.n, made.question.domain["radius"]
        longer = int(np.count_nonzero(relative_lengths(made.survey.values, clip) > 1.0))
        told = f"{longer:,} of {n:,} vectors ({percent(longer / n)}) are longer than {clip:g} and get shortened"
        remedy = "a larger `clip` shortens fewer and costs as much more noise; choose it without looking at a release"
        problems.append(Problem(told, where, remedy, Status.CONFIRM if longer > MANY * n else Status.NOTE))
        error = made.question.error(made.noise, made.people)
        if error > clip:
            what = f"the noise, {error:.3g} in Euclidean length, is larger than every vector"
            problems.append(Problem(what, where, "allow a larger epsilon, or ask more people", Status.NOTE))
    except (DovetailError, pl.exceptions.PolarsError) as error:
        problems.append(refusal(error))
    progress("read the table", 1, 1)
    declared = _asked(data, config, None)
    return TableCheck(Path(str(data.path)), n, {}, declared, tuple(problems), {}, (), None)


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
    if config is not None and config.question_kind.of_arrays:
        return check_arrays(config, progress=progress)
    progress("read the table", 0, 1)
    frame, written = read_as_said(data)
    progress("read the table", 1, 1)
    if frame.height == 0:
        raise DataError(f"{data.path}: the table has no rows.")
    numbers = () if config is None else config.numbers
    trust = "local" if config is None else config.promise.trust
    checked = check_columns(
        frame, data, numbers=numbers, progress=progress, further=_further(config), trust=trust, rounds=_rounds(config)
    )
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


def _rounds(config: RunConfig | None) -> str | None:
    """The column of rounds in which nobody's values change."""
    return None if config is None or config.memoize is None else config.memoize.time


def _asked(data: DataSection, config: RunConfig | None, checked: Checked | None) -> Declared:
    """The roles and the domain, as a person declares them for a table that has no configuration yet."""
    epsilon = Declared.epsilon if config is None or config.randomize is None else config.randomize.epsilon
    names = None if data.categories is None else tuple(data.categories)
    found = [name for name in data.public if checked is None or name in checked.columns]
    return Declared(data.private, data.person, tuple(found), names, data.lower, data.upper, epsilon)


def _assumed(data: DataSection) -> list[Problem]:
    """Problems of facts that were read off the table, and of those that still would be."""
    found = [
        Problem(
            f"`{key}` was read off the table", _FILE,
            "confirm or correct it, then take it out of `unconfirmed`; a release is refused until then",
            Status.CONFIRM,
            (choose("it is right", unconfirmed=[one for one in data.unconfirmed if one != key]),),
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
    """The predicted noise of the configuration's randomizer, where everybody has the same one."""
    if config.randomize is None or config.randomize.by is not None or checked.counts is None:
        return None
    try:
        made: Any = randomizer_of_data(config.randomize, config.data, tuple(checked.counts["label"].to_list()))
    except DovetailError:
        return None  # `run` says why, and so does _refused
    people = int(checked.counts["count"].sum())
    return Noise(made.name, predict_accuracy(made, n=people).error95)


def _refused(config: RunConfig) -> list[Problem]:
    """List what `run` still refuses, if anything: the table is read as `run` reads it."""
    try:
        if config.strings is not None:
            read_survey(config.data, system_entropy())
        elif config.data.time is not None:
            read_stream(config)
        else:
            made = build_collection(config, system_entropy())
            if config.mode == "release":
                made.refuse_drowned()
            told = made.question.too_few(made.noise, made.people, WEAK)
            if told is not None:
                remedy = "ask more people, or spend more: `dovetail plan` says what it takes"
                return [Problem(told, _FILE, remedy, Status.NOTE)]
    except (DovetailError, pl.exceptions.PolarsError) as error:
        return [refusal(error)]
    return []
