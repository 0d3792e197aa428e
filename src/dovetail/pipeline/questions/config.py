"""The configuration of several questions: [[questions]] instead of [data] private and [randomize]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from dovetail.account.composition.questions import MOST_QUESTIONS
from dovetail.account.composition.questions_guarantee import Ask
from dovetail.core.checks import nearest
from dovetail.core.errors import ConfigError
from dovetail.pipeline.config.parse import parse_section, read_toml
from dovetail.pipeline.config.run_config import RunConfig, parse_config
from dovetail.pipeline.config.sections import (
    AnyShuffleSection,
    EstimateSection,
    FileFormat,
    PromiseSection,
    Section,
    ShuffleSection,
    Spellings,
)
from dovetail.pipeline.questions.groups import (
    other_shuffler,
    refuse_other_estimates,
    refuse_other_groups,
    wrong_public,
)

DOMAIN = ("categories", "lower", "upper", "grid", "missing")  # of a column, which [data] says of a single one
WHY = "every question is mixed evenly among all people or inside each group, with noise of its own"
MOST_WEIGHT = 1000
Found = TypeVar("Found")


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
    shuffle: AnyShuffleSection = ShuffleSection()
    estimate: EstimateSection = EstimateSection()

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
        refuse_other_groups(self.shuffle)
        refuse_other_estimates(self.estimate)
        return self


class SharedData(FileFormat, Spellings):
    """Where the table is and how it is written; what a column may hold is said by its question."""

    path: str | None = None
    person: str | None = None
    public: list[str] = Field(default_factory=list)
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
    found, faults = read_questions(raw, name=name, folder=folder)
    if found is None or faults:
        raise ConfigError("\n".join(faults))
    return found


def read_questions(
    raw: dict[str, Any], *, name: str = "configuration", folder: Path | None = None
) -> tuple[QuestionsConfig | None, list[str]]:
    """What can be read of a configuration of several questions, and one line for each fault in it.

    Nothing where [data] itself is faulty or no question can be read; otherwise the questions without a fault.
    """
    faults: list[str] = []
    others = [
        key for key in raw if key in RunConfig.model_fields and key not in (*QuestionsHead.model_fields, "data")
    ]
    if others:
        faults.append(f"{name}: [{others[0]}] does not go with [[questions]]: {WHY}.")
    own = {key: value for key, value in raw.items() if key not in ("data", "questions", *others)}
    other = other_shuffler(raw.get("shuffle"))
    if other is not None:
        faults.append(f"{name}: {other}")
        del own["shuffle"]
    head = _head(own, name, faults)
    data = _kept(faults, _shared, raw.get("data", {}), name)
    if data is not None and folder is not None and data.path is not None:
        data = data.model_copy(update={"path": str(folder / data.path)})
    asked = raw["questions"]
    if not isinstance(asked, list) or not all(isinstance(one, dict) for one in asked):
        return None, [*faults, f"{name}: `questions` must be tables, each headed [[questions]]."]
    if not 2 <= len(asked) <= MOST_QUESTIONS:
        faults.append(
            f"{name}: [[questions]] must stand 2 to {MOST_QUESTIONS} times, got {len(asked)}; a single question is "
            "[data] private and [randomize]."
        )
    columns = [one.get("column") for one in asked]
    faults += _wrong_columns(columns, data, name)
    if data is not None and ("shuffle" not in raw or "shuffle" in head.model_fields_set):
        faults += wrong_public(head.shuffle, head.estimate, data.public, columns, name)
    if data is None:
        return None, faults
    read = [
        _kept(faults, _question, one, head, data, name=f"{name}: question {place}")
        for place, one in enumerate(asked, 1)
        if isinstance(one.get("column"), str) and one["column"]
    ]
    questions = tuple({one.column: one for one in read if one is not None}.values())
    return QuestionsConfig(head, data, questions) if questions else None, faults


def _head(raw: dict[str, Any], name: str, faults: list[str]) -> QuestionsHead:
    """The keys above; where one of them is faulty, those of the others that are fine, and a line for each fault."""
    whole: QuestionsHead | None = _kept(faults, parse_section, QuestionsHead, raw, name=name)
    if whole is not None:
        return whole
    fine: dict[str, Any] = {"schema_version": 1, "mode": "rehearsal", "ask": "one"}  # refuses nothing of its own
    for key in ("ask", "promise", "shuffle", "estimate"):
        tried = {**fine, key: raw[key]} if key in raw else fine
        if _kept(faults, parse_section, QuestionsHead, tried, name=name) is not None:
            fine = tried
    return QuestionsHead.choose(fine)


def _kept(faults: list[str], read: Callable[..., Found], *args: Any, **named: Any) -> Found | None:
    """What is read, or nothing and its faults."""
    try:
        return read(*args, **named)
    except ConfigError as error:
        faults += [line for line in str(error).splitlines() if line not in faults]
        return None


def _shared(raw: Any, name: str) -> SharedData:
    """[data] without what is said by each question."""
    for key in raw if isinstance(raw, dict) else ():
        if key == "private" or key in DOMAIN:
            wanted = "column" if key == "private" else key
            raise ConfigError(
                f"{name}: [data] {key} does not go with [[questions]]: give `{wanted}` in each of them."
            )
        if key in ("time", "table"):
            raise ConfigError(f"{name}: [data] {key} does not go with [[questions]]: {WHY}.")
    return parse_section(SharedData, raw, name=name, at="data")


def _wrong_columns(columns: list[Any], data: SharedData | None, name: str) -> list[str]:
    """A line for each question without a column, for one that is asked twice, and for labels of none."""
    found = [
        f"{name}: question {place}: `column` must name the column to protect, got {column!r}."
        for place, column in enumerate(columns, 1)
        if not isinstance(column, str) or not column
    ]
    twice = [column for column, count in Counter(map(str, columns)).items() if count > 1 and column in columns]
    if twice:
        found.append(f"{name}: [[questions]] ask for column {twice[0]!r} twice; ask once, with a larger epsilon.")
    if data is not None:
        known = [*map(str, columns), *([data.person] if data.person else []), *data.public]
        found += [
            f"{name}: [data.labels] column {column!r} is not asked for{nearest(column, known)}."
            for column in data.labels
            if column not in known
        ]
    return found


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
    own_columns = (column, data.person, *data.public)
    labels = {one: spelled for one, spelled in data.labels.items() if one in own_columns}
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
