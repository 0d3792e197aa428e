"""`dovetail check CONFIG.toml` with [[questions]]: every fault of the file and of all columns, and the promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from dovetail.core.entropy import system_entropy
from dovetail.core.errors import ConfigError, DataError, DovetailError
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.pipeline.config.build import build_randomizer
from dovetail.pipeline.config.sections import DataSection
from dovetail.pipeline.files.check.against.columns import Checked, check_columns
from dovetail.pipeline.files.check.against.written import read_as_said
from dovetail.pipeline.files.check.check_table import TableCheck
from dovetail.pipeline.files.check.column import Column
from dovetail.pipeline.files.check.declared import Declared
from dovetail.pipeline.files.check.domain.categories import category_problems
from dovetail.pipeline.files.check.domain.noise import Noise
from dovetail.pipeline.files.check.problem import Problem, Status, column_called, refusal
from dovetail.pipeline.progress import Progress
from dovetail.pipeline.questions.collection import QuestionsCollection
from dovetail.pipeline.questions.config import Question, QuestionsConfig, read_questions
from dovetail.pipeline.questions.plan import predicted

_FILE = "configuration"


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
    return [*found, *category_problems(checked.counts, _noise(asked, question, checked.counts), declared)]


def _noise(asked: QuestionsConfig, question: Question, counts: pl.DataFrame) -> Noise | None:
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
