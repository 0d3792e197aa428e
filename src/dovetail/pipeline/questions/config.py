"""The configuration of several questions: [[questions]] instead of [data] private and [randomize]."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dovetail.account.composition.questions import MOST_QUESTIONS
from dovetail.account.composition.questions_guarantee import Ask
from dovetail.core.checks import nearest
from dovetail.core.errors import ConfigError
from dovetail.pipeline.config.parse import parse_section, read_toml
from dovetail.pipeline.config.run_config import RunConfig, parse_config
from dovetail.pipeline.config.sections import FileFormat, PromiseSection, Section, Spellings

DOMAIN = ("categories", "lower", "upper", "grid", "missing")  # of a column, which [data] says of a single one
WHY = "every question is mixed evenly among all people, with noise of its own"
MOST_WEIGHT = 1000


class QuestionsHead(Section):
    """All but the table and the questions. `ask` says how people answer:

    "all": every question, each answer in a report of its own, each question shuffled by itself; budgets add.
    "joint": every question, all answers in one report, which stay together; budgets add.
    "one": one question each, drawn by chance on the device, `weight` against the others; the largest budget counts.
    """

    schema_version: Literal[1]
    title: str | None = None
    mode: Literal["rehearsal", "release"]
    seed: Annotated[int, Field(ge=0)] | None = None
    ask: Ask = "all"
    promise: PromiseSection = PromiseSection()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.mode == "release" and self.seed is not None:
            raise ValueError("a release draws from the operating system and refuses `seed`; remove it")
        if self.promise.trust != "local":
            raise ValueError(
                f'[promise] trust = "{self.promise.trust}" does not go with [[questions]]: ask one column by itself'
            )
        if self.promise.cap is not None:
            raise ValueError("[promise] cap is for streams and does not go with [[questions]]; remove it")
        return self


class SharedData(FileFormat, Spellings):
    """Where the table is and how it is written; what a column may hold is said by its question."""

    path: str | None = None
    person: str | None = None
    duplicates: Literal["refuse", "first", "last"] = "refuse"


@dataclass(frozen=True)
class Question:
    """A column that is asked for: its own configuration, as if it were the only one.

    Parameters
    ----------
    column : str
    settings : RunConfig
    weight : int, at least 1
        How often it is drawn where each person answers one question.
    """

    column: str
    settings: RunConfig
    weight: int = 1


@dataclass(frozen=True)
class QuestionsConfig:
    """One run about several columns, from the table to the report."""

    head: QuestionsHead
    data: SharedData
    questions: tuple[Question, ...]

    @property
    def mode(self) -> str:
        """Rehearsal or release."""
        return self.head.mode

    @property
    def seed(self) -> int | None:
        """Of a rehearsal that is to be repeated."""
        return self.head.seed


def questions_of(config: str | Path | dict[str, Any] | object) -> QuestionsConfig | None:
    """The configuration, if it asks several questions; None for every other one.

    Raises
    ------
    ConfigError
        One line for each fault, with the question it is about.
    """
    if isinstance(config, QuestionsConfig):
        return config
    if isinstance(config, str | Path):
        place = Path(config)
        raw = read_toml(place)
        return parse_questions(raw, name=str(place), folder=place.parent) if "questions" in raw else None
    return parse_questions(config) if isinstance(config, dict) and "questions" in config else None


def parse_questions(
    raw: dict[str, Any], *, name: str = "configuration", folder: Path | None = None
) -> QuestionsConfig:
    """Check a configuration of several questions; paths in it are relative to `folder`."""
    others = [
        key for key in raw if key in RunConfig.model_fields and key not in (*QuestionsHead.model_fields, "data")
    ]
    if others:
        raise ConfigError(f"{name}: [{others[0]}] does not go with [[questions]]: {WHY}.")
    own = {key: value for key, value in raw.items() if key not in ("data", "questions")}
    head = parse_section(QuestionsHead, own, name=name)
    data = _shared(raw.get("data", {}), name)
    if folder is not None and data.path is not None:
        data = data.model_copy(update={"path": str(folder / data.path)})
    asked = raw["questions"]
    if not isinstance(asked, list) or not all(isinstance(one, dict) for one in asked):
        raise ConfigError(f"{name}: `questions` must be tables, each headed [[questions]].")
    if not 2 <= len(asked) <= MOST_QUESTIONS:
        raise ConfigError(
            f"{name}: [[questions]] must stand 2 to {MOST_QUESTIONS} times, got {len(asked)}; a single question is "
            "[data] private and [randomize]."
        )
    columns = [one.get("column") for one in asked]
    _check_columns(columns, data, name)
    questions = tuple(
        _question(one, head, data, name=f"{name}: question {place}") for place, one in enumerate(asked, 1)
    )
    return QuestionsConfig(head, data, questions)


def _shared(raw: Any, name: str) -> SharedData:
    """[data] without what is said by each question."""
    for key in raw if isinstance(raw, dict) else ():
        if key == "private" or key in DOMAIN:
            wanted = "column" if key == "private" else key
            raise ConfigError(
                f"{name}: [data] {key} does not go with [[questions]]: give `{wanted}` in each of them."
            )
        if key in ("public", "time", "table"):
            raise ConfigError(f"{name}: [data] {key} does not go with [[questions]]: {WHY}.")
    return parse_section(SharedData, raw, name=name, at="data")


def _check_columns(columns: list[Any], data: SharedData, name: str) -> None:
    """ConfigError for a question without a column, for one that is asked twice, and for labels of none."""
    for place, column in enumerate(columns, 1):
        if not isinstance(column, str) or not column:
            raise ConfigError(f"{name}: question {place}: `column` must name the column to protect, got {column!r}.")
    twice = [column for column, count in Counter(columns).items() if count > 1]
    if twice:
        raise ConfigError(
            f"{name}: [[questions]] ask for column {twice[0]!r} twice; ask once, with a larger epsilon."
        )
    known = [*columns, *([data.person] if data.person else [])]
    for column in data.labels:
        if column not in known:
            raise ConfigError(f"{name}: [data.labels] column {column!r} is not asked for{nearest(column, known)}.")


def _question(raw: dict[str, Any], head: QuestionsHead, data: SharedData, *, name: str) -> Question:
    """One of [[questions]], checked as the configuration of a run about it alone."""
    column, weight = raw["column"], raw.get("weight", 1)
    name = f"{name} ({column!r})"
    if "weight" in raw and head.ask != "one":
        raise ConfigError(f'{name}: `weight` goes with `ask` = "one", where people draw their question.')
    if type(weight) is not int or not 1 <= weight <= MOST_WEIGHT:
        raise ConfigError(f"{name}: `weight` must be a whole number, 1 to {MOST_WEIGHT:,}, got {weight!r}.")
    for key in ("by", "epsilons"):
        if key in raw:
            raise ConfigError(f"{name}: `{key}` does not go with [[questions]]: everybody has the same epsilons.")
    shared = data.model_dump(exclude_unset=True, exclude={"labels"})
    labels = {one: spelled for one, spelled in data.labels.items() if one in (column, data.person)}
    domain = {key: raw[key] for key in DOMAIN if key in raw}
    own = {key: value for key, value in raw.items() if key not in ("column", "weight", *DOMAIN)}
    whole = {
        "schema_version": 1,
        "mode": head.mode,
        "data": {**shared, **({"labels": labels} if labels else {}), "private": column, **domain},
        "randomize": own,
        "promise": head.promise.model_dump(exclude_none=True),
    }
    try:
        return Question(column, parse_config(whole, name=name), weight)
    except ConfigError as error:
        raise ConfigError(_in_a_question(str(error))) from None


def _in_a_question(text: str) -> str:
    """A fault in the words of [[questions]], whose keys stand in no further section."""
    for old, new in (
        ("`data.private`", "`column`"), ("`data.", "`"), ("`randomize.", "`"), (" in [data]", ""), ("[data] ", ""),
        ("[randomize] ", ""), ("among `private`, `public`, `person` and `time`", "in these questions"),
    ):  # fmt: skip
        text = text.replace(old, new)
    return text
