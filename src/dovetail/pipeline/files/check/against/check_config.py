"""`dovetail check CONFIG.toml`: the table of a configuration, checked against what the configuration says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from dovetail.core.entropy import system_entropy
from dovetail.core.errors import ConfigError, DataError, DovetailError
from dovetail.pipeline.config.build import build_collection, build_randomizer
from dovetail.pipeline.config.parse import parse_section, read_toml
from dovetail.pipeline.config.run_config import RunConfig, load_config
from dovetail.pipeline.config.sections import DataSection
from dovetail.pipeline.evaluate.vectors.check_vectors import check_vectors
from dovetail.pipeline.files.check.against.check_questions import check_questions
from dovetail.pipeline.files.check.against.columns import Checked, check_columns
from dovetail.pipeline.files.check.against.written import read_as_said
from dovetail.pipeline.files.check.check_table import TableCheck
from dovetail.pipeline.files.check.declared import Declared
from dovetail.pipeline.files.check.domain.categories import category_problems
from dovetail.pipeline.files.check.domain.noise import Noise
from dovetail.pipeline.files.check.problem import Problem, Status, column_called, refusal
from dovetail.pipeline.files.table import read_survey
from dovetail.pipeline.progress import Progress, silent
from dovetail.pipeline.stream.stream import read_stream
from dovetail.plan.accuracy import predict_accuracy

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
