"""A run about several columns: one collection, one guarantee for a person, and a section for each question."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field, model_validator

from dovetail.account.compose import Ask, local_guarantee, questions_guarantee
from dovetail.account.questions import MOST_QUESTIONS
from dovetail.core.checks import nearest
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import ConfigError, UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.progress import Progress
from dovetail.core.stages import SHUFFLERS, NumericRandomizer, Reports, Shuffler
from dovetail.estimate.frequency import estimate_frequencies
from dovetail.estimate.mean import estimate_mean
from dovetail.job.build import build_collection, fit_of, terms
from dovetail.job.collection import Collection
from dovetail.job.config import (
    AnyShuffleSection,
    EstimateSection,
    PromiseSection,
    RunConfig,
    ShuffleSection,
    parse_config,
)
from dovetail.job.evaluate import (
    LEVEL,
    bayes_leakage,
    collection_document,
    order_evaluation,
    published_document,
    randomizer_document,
    shares_of,
    smallest_batch,
    span_of,
)
from dovetail.job.rehearse import ReleasedTable, refuse_still, report_of
from dovetail.ledger.releases import ReleaseLedger, ReleaseRequest, everybody
from dovetail.report.document import (
    NO_DIGEST,
    NO_TRUTH,
    BayesLeakage,
    Estimates,
    Evaluation,
    GuessAtHand,
    IntervalEstimates,
    Missing,
    PrivacyReport,
    to_jsonable,
)
from dovetail.report.number_format import upward
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups
from dovetail.table.data_section import FileFormat, Section, Spellings, parse_section, read_toml
from dovetail.table.reader import as_text, canonical, table_of
from dovetail.table.released import PREFIX, describe_reports, from_columns, to_columns

# Several questions inside groups of a public column: which shuffles of several questions have a proof.


KNOWN = (Uniform.name, WithinGroups.name)
USE = f'use "{Uniform.name}", or "{WithinGroups.name}" with groups = {{ labels = COLUMN }}'


def other_shuffler(shuffle: object) -> str | None:
    """A line for a shuffle for which nothing is proven of several answers of a person together."""
    name = shuffle.get("shuffler", Uniform.name) if isinstance(shuffle, dict) else Uniform.name
    if name in KNOWN or name not in SHUFFLERS:
        return None
    return (
        f'[shuffle] shuffler "{name}" does not go with [[questions]]: what its order tells about several answers of '
        f"a person together is not proven; {USE}."
    )


def refuse_other_groups(asked: ShuffleSection) -> None:
    """ValueError for groups that may overlap, and for those that nobody is shuffled in."""
    if asked.compare:
        raise ValueError("[shuffle] compare does not go with [[questions]]; remove it")
    apart = asked.groups is not None and (asked.groups.labels is None or asked.groups.radius is not None)
    if apart or (asked.groups is None) != (asked.shuffler == Uniform.name):
        raise ValueError(f"[shuffle] groups of [[questions]] are those of one public column: {USE}")


def refuse_other_estimates(asked: EstimateSection) -> None:
    """ValueError for what is asked of one question only."""
    for key in sorted(asked.model_fields_set - {"by", "min_group_size"}):
        raise ValueError(f"[estimate] {key} does not go with [[questions]]; remove it")


def wrong_public(
    shuffle: ShuffleSection, estimate: EstimateSection, public: list[str], columns: list[Any], name: str
) -> list[str]:
    """A line for each public column that nothing is done with, or that is missing."""
    if shuffle.groups is None:
        unused = [("[data] public", bool(public)), ("[estimate] by", bool(estimate.by))]
        return [
            f"{name}: {place} does not go with [[questions]] that everybody is shuffled for: a uniform shuffle "
            f'releases no public column; use [shuffle] shuffler = "{WithinGroups.name}".'
            for place, given in unused
            if given
        ]
    label = str(shuffle.groups.labels)
    kept = [re.compile(rf"{re.escape(str(asked))}\.{PREFIX}(_\d+)?") for asked in columns]
    reports = [one for one in public if any(pattern.fullmatch(one) for pattern in kept)]
    found = [f"{name}: public column {one!r} has a name that the reports need; rename it." for one in reports]
    if label not in public:
        found.append(
            f"{name}: [shuffle] groups: column {label!r} is not listed in [data] public{nearest(label, public)}."
        )
    found += [
        f"{name}: [estimate] by: column {one!r} is not that of the groups, {label!r}: reports are mixed inside those."
        for one in estimate.by
        if one != label
    ]
    return found


def honest_in(batch: int, n: int, honest: int | None) -> int | None:
    """The honest people of a group, if all the others sit in it."""
    return None if honest is None or honest == n else max(1, batch - (n - honest))


# The configuration of several questions: [[questions]] instead of [data] private and [randomize].


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


# A collection of several questions: who answers what, and the table of reports that leaves the shuffler.


ALONE = "somebody is shuffled with nobody else: for that person the local guarantee is all there is"
Drawn = NDArray[np.int64]  # (n,) the question of each person


@mute
@dataclass(frozen=True, eq=False)
class QuestionsCollection:
    """The same people, one `Collection` for each question, their rows in one random order.

    Parameters
    ----------
    asked : QuestionsConfig
    parts : tuple of Collection
        Row i is the same person in all of them.
    """

    asked: QuestionsConfig
    parts: tuple[Collection, ...]

    @classmethod
    def of(cls, asked: QuestionsConfig, rng: Entropy, *, table: Any = None) -> QuestionsCollection:
        """Read the table once, check every column, and put the people into a random order."""
        frame = table_of(asked.questions[0].settings.data, table)
        parts = []
        for place, question in enumerate(asked.questions, 1):
            settings = question.settings
            try:  # one order for all columns: a fixed one first, and below one from `rng`
                parts.append(build_collection(settings, simulation(0), table=frame))
            except ConfigError as error:
                raise ConfigError(
                    f"question {place} ({question.column!r}): {error}".replace("[randomize] ", "")
                ) from None
        order = rng.permutation(parts[0].n)
        return cls(asked, tuple(_reordered(part, order, rng.provenance) for part in parts))

    @property
    def n(self) -> int:
        """Number of people."""
        return self.parts[0].n

    @cached_property
    def shuffler(self) -> Shuffler:
        """Of everybody, or inside the groups of a public column."""
        shuffle = self.asked.head.shuffle
        return Uniform(self.n) if shuffle.groups is None else fit_of(shuffle, self.n)(self.public)

    @property
    def public(self) -> pl.DataFrame:
        """What is no secret, row by row of the people in their random order."""
        return self.parts[0].survey.public

    @property
    def released_columns(self) -> list[str]:
        """The public columns that stand beside the reports."""
        return self.public.columns if self.shuffler.keeps_places else []

    @property
    def ask(self) -> Ask:
        """How people answer."""
        return self.asked.head.ask

    @property
    def weights(self) -> tuple[int, ...]:
        """How often each question is drawn, against the others."""
        return tuple(question.weight for question in self.asked.questions)

    @property
    def columns(self) -> tuple[str, ...]:
        """The private columns, in the order of the questions."""
        return tuple(question.column for question in self.asked.questions)

    @property
    def local(self) -> LocalDP:
        """What a person's reports promise together, whoever looks."""
        return local_guarantee([part.randomizer for part in self.parts], ask=self.ask)

    def central(self) -> CentralDP | Missing:
        """What everything that is released promises a person, in the smallest group where people are grouped.

        Given what the other groups sent, which her answers do not change, a person's reports are those of a uniform
        shuffle of her group. Whoever is not honest may sit in it.
        """
        promise, batch = self.asked.head.promise, smallest_batch(self.shuffler)
        if isinstance(batch, Missing):
            return batch
        if batch == 1:
            return Missing(ALONE)
        return questions_guarantee(
            [part.randomizer for part in self.parts], ask=self.ask, n=batch, delta=promise.delta,
            honest=honest_in(batch, self.n, promise.honest), weights=self.weights if self.ask == "one" else (),
        )  # fmt: skip

    def release(self, rng: Entropy) -> pl.DataFrame:
        """What leaves the shuffler: n rows, in which no row belongs to a person.

        For "all" every column has an order of its own, so rows mean nothing; otherwise a row is one report. Where
        people are shuffled inside groups, the public columns stand beside the rows, which stay in their group.
        """
        return pl.DataFrame([*self.public.select(self.released_columns), *self._shuffled(rng)])

    def _shuffled(self, rng: Entropy) -> pl.DataFrame:
        mixed = self.shuffler
        if self.ask == "all":
            shuffled = [mixed.shuffle(part.randomized(rng), rng) for part in self.parts]
            return pl.concat([self._columns(q, one) for q, one in enumerate(shuffled)], how="horizontal")
        if self.ask == "joint":
            answers = [self._columns(q, part.randomized(rng)) for q, part in enumerate(self.parts)]
            table = pl.concat(answers, how="horizontal")
        else:
            table = self._one_each(draw_questions(self.n, self.weights, rng), rng)
        return table[mixed.permutation(rng)]

    def reports(self, table: pl.DataFrame) -> Iterator[Reports]:
        """The reports about each question, of a table that was released."""
        for q, part in enumerate(self.parts):
            own = table.select(self.report_columns(q, table)).filter(self.answered(q, table))
            own = own.rename({name: name[len(self._prefix(q)) :] for name in own.columns})
            yield from_columns(part.randomizer, own, part.categories)

    def answered(self, q: int, table: pl.DataFrame) -> pl.Series:
        """Which rows of a released table hold an answer to question q."""
        return table.select(pl.all_horizontal(pl.col(self.report_columns(q, table)).is_not_null())).to_series()

    def report_columns(self, q: int, table: pl.DataFrame) -> list[str]:
        """The columns of a released table that hold answers to question q."""
        pattern = re.compile(re.escape(self._prefix(q)) + rf"{PREFIX}(_\d+)?")
        return [name for name in table.columns if pattern.fullmatch(name)]

    def request(self) -> ReleaseRequest:
        """What the release ledger is asked."""
        first, head = self.parts[0].survey, self.asked.head
        asked = json.dumps({"ask": head.ask, "weights": self.weights}).encode()
        people = [] if not first.people.width else as_text(first.people.to_series()).to_list()
        groups = everybody(people)
        if head.shuffle.groups is not None:
            shared = pl.DataFrame([*first.people, *first.public.select(head.shuffle.groups.columns)])
            groups = head.shuffle.groups.model_dump_json().encode() + canonical(shared)
            asked += groups + b"\nbeside\n" + canonical(pl.DataFrame([*first.people, *first.public]))
        each = b"".join(b"\nquestion\n" + terms(question.settings) for question in self.asked.questions)
        return ReleaseRequest(
            table=b"questions\n" + canonical(self.identity()),
            terms=b"questions\n" + asked + each,
            groups=groups,
            people=people,
            epsilon=self.local.epsilon,
            alpha=self.shuffler.guarantee.alpha,
            n=self.n,
            shuffler=self.shuffler.name,
        )

    def identity(self) -> pl.DataFrame:
        """What tells this table from another one: of all its questions."""
        identity = self.parts[0].survey.identity
        for column, part in zip(self.columns, self.parts, strict=True):  # rows stand in one order in all of them
            identity = identity.with_columns(part.survey.identity[column])
        return identity

    def _one_each(self, drawn: Drawn, rng: Entropy) -> pl.DataFrame:
        """Each person's answer to the question that she drew, and nulls beside it."""
        frames = []
        for q, part in enumerate(self.parts):
            own = np.flatnonzero(drawn == q)
            reports = part.randomizer.randomize(part.survey.values[own], rng)
            answers = self._columns(q, reports).with_columns(pl.Series("", own))
            frames.append(pl.DataFrame({"": np.arange(self.n)}).join(answers, on="", how="left").sort("").drop(""))
        return pl.concat(frames, how="horizontal")

    def _columns(self, q: int, reports: Reports) -> pl.DataFrame:
        part = self.parts[q]
        found = to_columns(part.randomizer, reports, part.categories)
        return found.rename({name: self._prefix(q) + name for name in found.columns})

    def _prefix(self, q: int) -> str:
        return f"{self.columns[q]}."


def draw_questions(n: int, weights: tuple[int, ...], rng: Entropy) -> Drawn:
    """The question of each of n people, with exact chances weight / sum, whatever they answer."""
    ends = np.cumsum(weights)
    return np.searchsorted(ends, rng.below(int(ends[-1]), n), side="right").astype(np.int64)


def _reordered(part: Collection, order: NDArray[np.int64], provenance: str) -> Collection:
    survey = part.survey
    tables = {"public": survey.public, "people": survey.people, "identity": survey.identity}
    moved: Any = {name: table[order] if table.width else table for name, table in tables.items()}
    return replace(part, provenance=provenance, survey=replace(survey, values=survey.values[order], **moved))


# What each question brings and tells: its estimate for everybody, and how well its answers can be guessed.


FEWEST = 2  # answers, from which a spread can be estimated
UNIFORM = "a uniform shuffle keeps no order, so no report belongs to a group"
ONE_OF_SEVERAL = Missing("one of several questions: `plan` compares randomizers for one")
NOT_ATTACKED = Missing(
    "the attacks guess from public columns beside the reports to one question, and know nothing of several"
)
DRAWN_IN_GROUPS = Missing(
    "how many people of a group drew this question differs from group to group; the guarantee covers all of them"
)
DRAWN = "{source}; of {n:,} people {m:,} answered, whoever is guessed at with probability {m:,}/{n:,}"


@dataclass(frozen=True)
class Answered:
    """One question of a collection, from its released reports."""

    part: Collection
    reports: int
    local: LocalDP
    estimates: Estimates | Missing
    leakage: BayesLeakage | Missing


@mute
@dataclass(frozen=True, eq=False)
class Beside:
    """The public columns beside the rows of a released table, where people are shuffled inside groups.

    Parameters
    ----------
    shuffler : Shuffler
    public : data frame (n, public columns)
    answered : bool (n,)
        Which rows hold an answer to the question.
    wanted : EstimateSection
    """

    shuffler: Shuffler
    public: pl.DataFrame
    answered: pl.Series
    wanted: EstimateSection


def evaluate_question(
    part: Collection, reports: Reports, *, known: bool, provenance: str, beside: Beside | None = None
) -> Answered:
    """Estimate and leakage of a question that m of the n people have answered, drawn by chance or all of them."""
    randomizer, m = part.randomizer, len(reports)
    local = randomizer.guarantee.drawn_from(provenance)
    if m < FEWEST:
        why = Missing(f"{m} of {part.n:,} people drew this question: too few to estimate anything")
        return Answered(part, m, local, why, why)
    truth = _truth(part, part.survey.values) if known else None
    everybody = _shares(part, reports, part.n, truth)
    measure = "mean" if isinstance(randomizer, NumericRandomizer) else "share"
    groups, withheld = (Missing(UNIFORM), []) if beside is None else _by_group(part, reports, beside, known=known)
    found = Estimates(measure, LEVEL, everybody, groups, withheld=withheld, better=ONE_OF_SEVERAL)
    if isinstance(randomizer, NumericRandomizer):
        found = replace(found, estimator=Missing("means of several questions have the unbiased estimator"))
    shares = np.asarray(everybody.possible if truth is None else truth)
    return Answered(part, m, local, found, _leakage(part, m, shares, beside, known=known))


def _shares(
    part: Collection, reports: Reports, people: int, truth: list[float] | None, **group: str
) -> IntervalEstimates:
    """The estimate for so many people, of whom those who sent these reports are a random sample."""
    randomizer = part.randomizer
    if isinstance(randomizer, NumericRandomizer):
        estimate, labels = estimate_mean(randomizer, reports), ["mean"]
    else:
        estimate, labels = estimate_frequencies(randomizer, reports), part.categories or []
    return shares_of(of_everybody(estimate, people), labels, truth, span=span_of(randomizer), **group)


def _by_group(
    part: Collection, reports: Reports, beside: Beside, *, known: bool
) -> tuple[list[IntervalEstimates] | Missing, list[dict[str, Any]]]:
    """One entry for each group of enough people: reports stay in their group, so each is a collection of its own."""
    if not beside.wanted.by:
        return Missing("no grouping column was asked for: list it in [estimate] by"), []
    name = beside.wanted.by[0]
    column = beside.public[name].cast(pl.String)  # as groups are made
    sent, values = column.filter(beside.answered).to_numpy(), part.survey.values
    found, small = [], []
    for label, people in column.value_counts(sort=False).sort(name).iter_rows():
        own = sent == label
        if people < beside.wanted.min_group_size or own.sum() < FEWEST:
            small.append(people)
            continue
        truth = _truth(part, values[(column == label).to_numpy()]) if known else None
        found.append(_shares(part, reports[own], people, truth, by=name, group=str(label)))
    return found, [{"by": name, "groups": len(small), "people": sum(small)}] if small else []


def of_everybody(estimate: Estimate, n: int) -> Estimate:
    r"""An estimate from m of n people drawn by chance alone, as one for all n.

    .. math:: \mathrm{se}^2 + \frac{n - m}{n - 1}\, (\mathrm{pe}^2 - \mathrm{se}^2)

    Who draws a question is a uniform sample without replacement of the m who drew it, whatever m is: the estimate is
    unbiased for everybody given m, and the drawing adds the variance of the values, over m, in so far as people are
    left out (Cochran 1977, Sampling Techniques, Theorem 2.2). The error for a population, pe, has it already.
    """
    left = (n - estimate.n) / max(n - 1, 1)
    drawing = estimate.population_error**2 - estimate.standard_error**2
    spread = None if estimate.spread is None else estimate.spread.drawn(left / estimate.n)
    error = np.sqrt(estimate.standard_error**2 + left * drawing)
    return replace(estimate, standard_error=error, spread=spread)


def _truth(part: Collection, values: NDArray[Any]) -> list[float]:
    if part.categories is None:
        return [float(values.mean())]
    return [float(share) for share in np.bincount(values, minlength=len(part.categories)) / values.size]


def _leakage(
    part: Collection, m: int, shares: np.ndarray, beside: Beside | None, *, known: bool
) -> BayesLeakage | Missing:
    """Vulnerability of the answer to this question, to somebody who knows of no link between questions."""
    absent = 0 if part.honest is None else part.n - part.honest
    if beside is not None and m < part.n:
        return DRAWN_IN_GROUPS
    shuffler, honest = (Uniform(m), max(1, m - absent)) if beside is None else (beside.shuffler, part.honest)
    found = bayes_leakage(
        part.randomizer, shuffler, honest=honest, shares=shares, law="empirical" if known else "estimated",
    )  # fmt: skip
    return found if isinstance(found, Missing) or m == part.n else of_those_who_drew(found, m, part.n)


def of_those_who_drew(found: BayesLeakage, m: int, n: int) -> BayesLeakage:
    r"""The vulnerability of a person of whom it is not known whether she is one of the m who answered.

    .. math:: V = \pi + \frac{m}{n} (V_m - \pi)

    Exact for equally likely values, an upper end for others: the maximum of a mixture is at most that of its parts.
    """

    def mixed(value: float | Missing, prior: float) -> float | Missing:
        return value if isinstance(value, Missing) else prior + m / n * (value - prior)

    hand = found.at_hand
    if isinstance(hand, GuessAtHand):
        own = mixed(hand.randomized, hand.prior)
        assert not isinstance(own, Missing)
        both = mixed(hand.randomized_shuffled, hand.prior)
        hand = replace(hand, randomized=own, randomized_shuffled=both, method="bracket")
    alone = mixed(found.randomized, found.prior)
    assert not isinstance(alone, Missing)
    return replace(
        found,
        randomized=alone,
        shuffled=mixed(found.shuffled, found.prior),
        randomized_shuffled=mixed(found.randomized_shuffled, found.prior),
        curve=Missing("drawn for questions that everybody answers"),
        at_hand=hand,
        source=DRAWN.format(source=found.source, n=n, m=m),
    )


# What a report on several questions says: who answers what, what is assumed, and what each step promises.


ANSWERS = {
    "all": "Each person answers every question once, each answer randomized by itself and sent as a report of its "
    "own; reports on different questions have nothing in common: no name, no id, no time.",
    "joint": "Each person sends exactly one report, with her answers to all questions, each randomized by itself.",
    "one": "Each person draws one question by chance alone, whatever her answers are, and sends exactly one report, "
    "which names the question and holds her randomized answer to it.",
}
RELEASED = {
    "all": "Released are the reports on each question, shuffled by themselves: no two answers of a person are "
    "linked. The central guarantee covers all of these batches together.",
    "joint": "Released are whole reports, shuffled: which answers are one person's is released and covered by the "
    "central guarantee; who she is, is not released.",
    "one": "Released are the reports and the question of each; how many people answered a question is covered by the "
    "central guarantee. Nobody answers twice, so there is no link to release.",
}
INSIDE = (
    "People are shuffled inside the groups of {name} alone: no report leaves its group, public columns stand beside "
    "the reports of their group, and the central guarantee is that of the smallest group."
)
MIXED = {
    "all": "The shuffler mixes the reports on each question by themselves, with randomness of its own.",
    "joint": "The shuffler mixes whole reports; the answers in a report stay together.",
    "one": "The shuffler mixes all reports, whatever question they are about.",
}


def questions_document(collection: QuestionsCollection, answered: tuple[Answered, ...]) -> list[dict[str, Any]]:
    """Each question with the keys that a report about it alone would have."""
    total = sum(collection.weights)
    return [
        {
            "column": column,
            "chance": weight / total if collection.ask == "one" else 1.0,
            "answers": one.reports,
            "collection": collection_document(one.part),
            "randomizer": to_jsonable(randomizer_document(one.part.randomizer)),
            "local": _local(one.local),
            "leakage": to_jsonable(one.leakage),
            "attack": to_jsonable(NOT_ATTACKED),
            "attacks": to_jsonable(NOT_ATTACKED),
            "estimates": to_jsonable(one.estimates),
        }
        for column, weight, one in zip(collection.columns, collection.weights, answered, strict=True)
    ]


def _local(local: LocalDP) -> dict[str, Any]:
    return {
        "epsilon": local.epsilon,
        "delta": local.delta,
        "source": local.source,
        "caveats": list(local.caveats),
    }


def collection_of(collection: QuestionsCollection) -> dict[str, Any]:
    """Who was asked what."""
    return {
        "n": collection.n, "private": ", ".join(collection.columns), "public": collection.public.columns,
        **published_document(collection.public.select(collection.released_columns), collection.n),
        "kind": "questions", "inferred": any(part.inferred for part in collection.parts),
        "ask": collection.ask, "questions": len(collection.columns),
    }  # fmt: skip


def randomizer_of(collection: QuestionsCollection) -> dict[str, Any]:
    """One for each question; epsilon is what a person spends."""
    each = {column: part.randomizer.label for column, part in zip(collection.columns, collection.parts, strict=True)}
    return {
        "name": "one for each question", "label": "a randomizer for each question",
        "epsilon": collection.local.epsilon, "parameters": each,
    }  # fmt: skip


def config_of(asked: QuestionsConfig) -> dict[str, Any]:
    """The configuration, without where the table is and how it is spelled."""
    grouped = asked.head.shuffle.groups is not None
    whole = asked.head.model_dump(mode="json", exclude={"seed", *(() if grouped else ("shuffle", "estimate"))})
    questions = []
    for question in asked.questions:
        data = question.settings.data.model_dump(
            mode="json", include={"categories", "lower", "upper", "grid", "missing"}, exclude_none=True
        )
        randomize = question.settings.randomize
        own = {} if randomize is None else randomize.model_dump(mode="json", exclude={"by", "epsilons"})
        drawn = {"weight": question.weight} if asked.head.ask == "one" else {}
        questions.append({"column": question.column, **data, **own, **drawn})
    data = {"person": asked.data.person, **({"public": asked.data.public} if grouped else {})}
    return {**whole, "data": data, "questions": questions}


def sanitized_of(collection: QuestionsCollection, provenance: str) -> dict[str, Any]:
    """What a later stage must know of the released table."""
    each = [
        {"column": column, **describe_reports(part.randomizer, part.categories, provenance)}
        for column, part in zip(collection.columns, collection.parts, strict=True)
    ]
    return {
        "schema_version": 1,
        "entropy": provenance,
        "ask": collection.ask,
        "people": collection.n,
        **({"public": collection.released_columns} if collection.released_columns else {}),
        "questions": each,
    }


def assumptions_of(collection: QuestionsCollection, *, mode: str) -> tuple[str, ...]:
    """What must be true for the numbers to mean what they say."""
    inferred = [column for column, part in zip(collection.columns, collection.parts, strict=True) if part.inferred]
    known = "Questions, categories, bounds and grids are public knowledge, not read off the private columns."
    if inferred:
        known = (
            f"The categories of {', '.join(inferred)} were inferred from the private column and may tell who is in "
            "it; the promises hold only if they are public knowledge too. A release must declare them."
        )
    groups, honest = collection.asked.head.shuffle.groups, collection.asked.head.promise.honest or collection.n
    lines = [
        ANSWERS[collection.ask],
        RELEASED[collection.ask],
        *([] if groups is None else [INSIDE.format(name=groups.labels)]),
        known,
        f"The shuffler keeps the order to itself, and {honest:,} of {collection.n:,} people follow the "
        "protocol; otherwise the local guarantee is all that remains.",
        "Vulnerability of a question is against somebody who holds every category equally likely beforehand and "
        "knows of no link between questions; the guarantees need no such assumption.",
    ]
    if mode == "release":
        lines += [
            "The number of people is no secret.",
            "A later release about the same people adds its budget to this one.",
        ]
    return tuple(lines)


def _promised(central: CentralDP | Missing) -> dict[str, str]:
    if isinstance(central, Missing):
        return {"guarantee": f"none: {central.reason}", "theorem": "docs/theory/several-questions.md"}
    return {
        "guarantee": f"({upward(central.epsilon)}, {upward(central.delta)}) for a person's answers to all questions",
        "theorem": f"{central.source}; docs/theory/several-questions.md",
    }


def steps_of(
    collection: QuestionsCollection, local: LocalDP, central: CentralDP | Missing
) -> tuple[dict[str, str], ...]:
    """The stages with their guarantees and theorems."""
    budgets = ", ".join(
        f"{column} {upward(part.randomizer.guarantee.epsilon)}"
        for column, part in zip(collection.columns, collection.parts, strict=True)
    )
    return (
        {
            "stage": "randomize",
            "what": f"Each device answers on its own, before anything is sent. Epsilon by question: {budgets}.",
            "guarantee": f"({upward(local.epsilon)}, {upward(local.delta)})-local differential privacy of everything "
            "that one person sends",
            "theorem": local.source,
        },
        {
            "stage": "shuffle",
            "what": MIXED[collection.ask] + ("" if not collection.released_columns else " Each group by itself."),
            **_promised(central),
        },
        {
            "stage": "estimate",
            "what": "The analyst inverts the known randomization, question by question; intervals say how far off it "
            "may be" + (", also because people drew their question." if collection.ask == "one" else "."),
            "guarantee": "post-processing: costs no privacy",
            "theorem": "Dwork and Roth (2014), The Algorithmic Foundations of Differential Privacy, Proposition 2.1",
        },
    )


BY_QUESTION: Any = Missing("each question has its own, which stands with it")


def run_questions(
    asked: QuestionsConfig, rng: Entropy, ledger: ReleaseLedger, *, table: Any, new_release: bool, progress: Progress
) -> PrivacyReport:
    """The report; a rehearsal beside the truth, a release recorded in the ledger."""
    progress("read the table", 0, 1)
    collection = QuestionsCollection.of(asked, rng, table=table)
    if asked.mode == "release":
        refuse_still(collection.shuffler)
    progress("read the table", 1, 1)
    if collection.n < 2:
        raise UnsupportedError("one person is shuffled with nobody: her local guarantee is all there is.")
    progress("what it promises", 0, 1)
    central = collection.central()
    progress("what it promises", 1, 1)
    progress("draw the reports", 0, 1)
    drawn, released = _drawn(collection, rng, ledger, new_release=new_release)
    progress("draw the reports", 1, 1)
    known = asked.mode == "rehearsal"
    answered = tuple(
        evaluate_question(part, reports, known=known, provenance=rng.provenance, beside=_beside(collection, q, drawn))
        for q, (part, reports) in enumerate(zip(collection.parts, collection.reports(drawn), strict=True))
    )
    return _report(collection, central, answered, released, rng)


def _beside(collection: QuestionsCollection, q: int, drawn: pl.DataFrame) -> Beside | None:
    """What stands beside the reports; the recorded rows of a release have an order of their own."""
    if not collection.shuffler.keeps_places:
        return None
    public = drawn.select(collection.public.columns)
    return Beside(collection.shuffler, public, collection.answered(q, drawn), collection.asked.head.estimate)


def _drawn(
    collection: QuestionsCollection, rng: Entropy, ledger: ReleaseLedger, *, new_release: bool
) -> tuple[pl.DataFrame, ReleasedTable | None]:
    """What is released: of a release the recorded reports of this table under these terms, or fresh ones."""
    if collection.asked.mode == "rehearsal":
        return collection.release(rng), None
    answer = ledger.answer(collection.request(), new_release=new_release, draw=lambda: collection.release(rng))
    return answer.reports, ReleasedTable.of(answer)


def _report(
    collection: QuestionsCollection,
    central: CentralDP | Missing,
    answered: tuple[Answered, ...],
    released: ReleasedTable | None,
    rng: Entropy,
) -> PrivacyReport:
    asked, provenance = collection.asked, rng.provenance
    local = collection.local.drawn_from(provenance)
    evaluation = Evaluation(
        shuffler=collection.shuffler.name,
        local=local,
        central=central if isinstance(central, Missing) else central.drawn_from(provenance),
        order=order_evaluation(collection.shuffler, provenance=provenance),
        leakage=BY_QUESTION,
        estimates=Estimates("share", LEVEL, BY_QUESTION, BY_QUESTION, withheld=[], better=BY_QUESTION),
        attacks=NO_TRUTH if released is not None else NOT_ATTACKED,
        learnability=NOT_ATTACKED, sections=NOT_ATTACKED,
    )  # fmt: skip
    if released is not None:
        evaluation = released.compose(evaluation)
        if isinstance(evaluation.central, Missing):  # one of several releases about these people
            answered = tuple(replace(one, leakage=evaluation.central) for one in answered)
    return report_of(
        asked.head.title or f"Collection of {', '.join(collection.columns)}",
        evaluation,
        released,
        rng,
        collection=collection_of(collection),
        randomizer=randomizer_of(collection),
        assumptions=assumptions_of(collection, mode=asked.mode),
        steps=steps_of(collection, local, central),
        config=config_of(asked),
        table=sha256(canonical(collection.identity())).hexdigest() if released is None else NO_DIGEST,
        sanitized_description=sanitized_of(collection, provenance),
        questions=questions_document(collection, answered),
    )
