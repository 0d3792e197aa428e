"""A run about several columns: one collection, one guarantee for a person, and a section for each question."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from hashlib import sha256
from math import isinf
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from dovetail.account.compose import NEIGHBOURS, Ask, local_guarantee, questions_guarantee
from dovetail.account.questions import MOST_QUESTIONS
from dovetail.core.certified import Bracket
from dovetail.core.checks import nearest
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import ConfigError, UnsupportedError
from dovetail.core.estimate import Tally
from dovetail.core.extras import pl
from dovetail.core.guarantee import CentralDP, LocalDP, OrderPrivacy
from dovetail.core.missing import Missing
from dovetail.core.noise import DOUBT, NOISES, Noise, People
from dovetail.core.progress import Progress
from dovetail.core.question import QUESTIONS
from dovetail.core.stages import NumericRandomizer, Reports, Shuffler
from dovetail.job.build import COMBINED, build_collection, build_noises, digest_of, terms
from dovetail.job.collection import Collection, Fit
from dovetail.job.config import (
    AnyShuffleSection,
    EstimateSection,
    MemoizeSection,
    PromiseSection,
    RunConfig,
    ShuffleSection,
    parse_config,
)
from dovetail.job.evaluate import (
    FEWEST,
    LEVEL,
    NO_ORDER,
    NOT_GROUPED,
    Beside,
    bayes_leakage,
    beside_of,
    collection_document,
    estimates_of,
    evaluation_of,
    gaps_and_outliers,
    leakage_of,
    order_evaluation,
    published_document,
    randomizer_document,
)
from dovetail.job.messages import CHOSEN, Message, Part, draw_questions, messages_of
from dovetail.job.rehearse import (
    ReleasedTable,
    collection_report,
    describe_collection,
    recorded,
    refuse_identity_shuffle,
    report_of,
)
from dovetail.job.together import choices_of
from dovetail.leak.linkage import Linkage, linkage_bound
from dovetail.ledger.releases import ReleaseLedger, ReleaseRequest, everybody
from dovetail.noise.local import ALONE, Local, honest_batch, smallest_batch
from dovetail.noise.memoized import Memoized
from dovetail.report.document import (
    NO_DIGEST,
    NO_TRUTH,
    BayesLeakage,
    Estimates,
    Evaluation,
    GuessAtHand,
    PrivacyReport,
    to_jsonable,
)
from dovetail.report.number_format import upward
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups
from dovetail.table.data_section import FileFormat, Ranges, Section, Spellings, parse_section, read_toml
from dovetail.table.reader import canonical, table_of
from dovetail.table.released import PREFIX, Analyst, describe_reports
from dovetail.table.spelling import names_of

# What of a configuration does not go with several questions.


def refuse_other_estimates(asked: EstimateSection) -> None:
    """ValueError for what is asked of one question only."""
    for key in sorted(asked.model_fields_set - {"by", "min_group_size"}):
        raise ValueError(f"[estimate] {key} does not go with [[questions]]; remove it")


def wrong_public(
    shuffle: ShuffleSection, estimate: EstimateSection, data: SharedData, asked: list[dict[str, Any]], name: str
) -> list[str]:
    """A line for each public column that nothing is done with, or that is missing."""
    grouped, public = [one for one in shuffle.columns if one != data.person], data.public
    classes = [str(one["by"]) for one in asked if "by" in one]
    if shuffle.shuffler == Uniform.name:
        idle = [column for column in public if column not in classes]
        unused = [("[data] public", bool(idle)), ("[estimate] by", bool(estimate.by)), ("groups", bool(grouped))]
        return [
            f"{name}: {place} does not go with [[questions]] that everybody is shuffled for: a uniform shuffle "
            f'releases no public column; use [shuffle] shuffler = "{WithinGroups.name}".'
            for place, given in unused
            if given
        ]
    kept = [re.compile(rf"{re.escape(str(one.get('column')))}\.{PREFIX}(_\d+)?") for one in asked]
    reports = [one for one in public if any(pattern.fullmatch(one) for pattern in kept)]
    found = [f"{name}: public column {one!r} has a name that the reports need; rename it." for one in reports]
    found += _unlisted("[shuffle] groups", grouped, public, name)
    return found + _unlisted("[estimate] by", estimate.by, public, name)


def _unlisted(place: str, columns: list[str], public: list[str], name: str) -> list[str]:
    return [
        f"{name}: {place}: column {one!r} is not listed in [data] public{nearest(one, public)}."
        for one in dict.fromkeys(columns)
        if one not in public
    ]


def honest_in(batch: int, n: int, honest: int | None) -> int | None:
    """The honest people of a group, if all the others sit in it."""
    return None if honest is None or honest == n else max(1, batch - (n - honest))


# The configuration of several questions: [[questions]] instead of [data] private and [randomize].


DOMAIN = ("categories", "lower", "upper", "grid", "missing", "clip")  # of a column, which [data] says of a single one
WHY = "every question is mixed evenly among all people or inside each group, with noise of its own"
MOST_WEIGHT = 1000
Found = TypeVar("Found")


class QuestionsHead(Section):
    """All but the table and the questions. `ask` says how people answer:

    "all": every question, each answer in a report of its own, each question shuffled by itself; budgets add.
    "joint": every question, all answers in one report, which stay together; budgets add.
    "one": one question each, drawn by chance on the device, `weight` against the others; the largest budget counts.

    With [promise] trust = "shuffler" or "users" its `epsilon` and `delta` are of all answers. Every question has an
    even part of them, or all of them with `ask` = "one".
    """

    schema_version: Literal[1]
    title: str | None = None
    mode: Literal["rehearsal", "release"]
    seed: Annotated[int, Field(ge=0)] | None = None
    ask: Ask = "all"
    promise: PromiseSection = PromiseSection()
    shuffle: AnyShuffleSection = ShuffleSection()
    estimate: EstimateSection = EstimateSection()
    memoize: MemoizeSection | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.mode == "release" and self.seed is not None:
            raise ValueError("a release draws from the operating system and refuses `seed`; remove it")
        if self.promise.cap is not None:
            raise ValueError("[promise] cap is for streams and does not go with [[questions]]; remove it")
        if self.shuffle.compare:
            raise ValueError("[shuffle] compare does not go with [[questions]]; remove it")
        if self.memoize is not None and self.shuffle.alpha is not None:
            raise ValueError(f"[shuffle] alpha does not go with [memoize]: {Memoized.fresh_orders}")
        refuse_other_estimates(self.estimate)
        return self


class SharedData(FileFormat, Spellings):
    """Where the table is and how it is written; what a column may hold is said by its question."""

    path: str | None = None
    person: str | None = None
    public: list[str] = Field(default_factory=list)
    duplicates: Literal["refuse", "first", "last"] = "refuse"
    ranges: Ranges = Field(default_factory=dict)


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

    @property
    def weights(self) -> tuple[int, ...]:
        """How often each question is drawn, against the others."""
        return tuple(question.weight for question in self.questions)

    @property
    def chances(self) -> tuple[float, ...]:
        """How likely a person is asked each question."""
        total = sum(self.weights)
        return tuple(weight / total if self.head.ask == "one" else 1.0 for weight in self.weights)

    def by(self, ask: Ask) -> QuestionsConfig:
        """The same questions asked in another way, with what of the promise of dummies each has then."""
        head, of = self.head.model_copy(update={"ask": ask}), len(self.questions) if ask == "all" else 1
        own = _part_of(head.promise, of)
        questions = (
            replace(
                one, settings=one.settings.model_copy(update={"promise": one.settings.promise.model_copy(update=own)})
            )
            for one in self.questions
        )
        return replace(self, head=head, questions=tuple(questions))

    @property
    def each(self) -> tuple[RunConfig, ...]:
        """The configuration of each question, with what all of them have in common."""
        shared = {"shuffle": self.head.shuffle, "estimate": self.head.estimate, "title": self.head.title}
        return tuple(question.settings.model_copy(update=shared) for question in self.questions)

    @property
    def choices(self) -> tuple[str, str, str]:
        """Question, noise and order, as the table of what goes together has them."""
        noises = [question.settings.choices[1] for question in self.questions]
        return self.head.ask, max(noises, key=lambda one: not NOISES[one].by_devices), self.head.shuffle.shuffler

    def terms(self, people: bytes = b"") -> bytes:
        """Everything that shapes the reports, for the ledger; `people` says who is grouped with whom."""
        head = self.head
        asked = json.dumps({"ask": head.ask, "weights": self.weights}).encode()
        if head.shuffle.shuffler != Uniform.name:
            asked += order_terms(head.shuffle) + people
        return asked + b"".join(b"\nquestion\n" + terms(question.settings) for question in self.questions)


def _part_of(promise: PromiseSection, of: int) -> dict[str, float]:
    """Of dummies, an even part of what all of them promise together."""
    return {} if promise.epsilon is None else {"epsilon": promise.epsilon / of, "delta": promise.delta / of}


def order_terms(shuffle: ShuffleSection) -> bytes:
    """The groups that shape the order, and for others than their own uniform ones also the shuffler."""
    groups = b"" if shuffle.groups is None else shuffle.groups.with_files(digest_of).model_dump_json().encode()
    if shuffle.shuffler == WithinGroups.name:
        return groups
    unset = {"line", "scores"} - shuffle.model_fields_set  # settings that earlier releases did not have
    return groups + shuffle.model_dump_json(exclude={"groups", "compare", *unset}).encode()


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
    """Read what can be read of a configuration of several questions, with one line for each fault in it.

    Nothing where [data] itself is faulty or no question can be read; otherwise the questions without a fault.
    """
    faults: list[str] = []
    others = [
        key for key in raw if key in RunConfig.model_fields and key not in (*QuestionsHead.model_fields, "data")
    ]
    if others:
        faults.append(f"{name}: [{others[0]}] does not go with [[questions]]: {WHY}.")
    own = {key: value for key, value in raw.items() if key not in ("data", "questions", *others)}
    head = _head(own, name, faults)
    data = _kept(faults, _shared, raw.get("data", {}), name)
    if data is not None and folder is not None and data.path is not None:
        data = data.model_copy(update={"path": str(folder / data.path)})
    if folder is not None:
        head = head.model_copy(update={"shuffle": head.shuffle.beside(folder)})
    asked = raw["questions"]
    if not isinstance(asked, list) or not all(isinstance(one, dict) for one in asked):
        return None, [*faults, f"{name}: `questions` must be tables, each headed [[questions]]."]
    if not 2 <= len(asked) <= MOST_QUESTIONS:
        faults.append(
            f"{name}: [[questions]] must stand 2 to {MOST_QUESTIONS} times, got {len(asked)}; a single question is "
            "[data] private and [randomize]."
        )
    if head.ask == "one" and head.promise.rounds > 1:
        faults.append(f'{name}: [promise] rounds does not go with `ask` = "one": each round draws other questions.')
    columns = [one.get("column") for one in asked]
    faults += _wrong_columns(columns, data, name)
    if data is not None and ("shuffle" not in raw or "shuffle" in head.model_fields_set):
        faults += wrong_public(head.shuffle, head.estimate, data, asked, name)
    if data is None:
        return None, faults
    read = [
        _kept(faults, _question, one, head, data, name=f"{name}: question {place}", of=len(asked))
        for place, one in enumerate(asked, 1)
        if isinstance(one.get("column"), str) and one["column"]
    ]
    questions = tuple({one.column: one for one in read if one is not None}.values())
    if not questions:
        return None, faults
    found = QuestionsConfig(head, data, questions)
    apart = choices_of(found).refusal
    return found, faults if apart is None or faults else [f"{name}: {apart}."]


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
    """The configuration as it was read, or nothing and its faults."""
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


def _question(raw: dict[str, Any], head: QuestionsHead, data: SharedData, *, name: str, of: int) -> Question:
    """One of [[questions]], checked as the configuration of a run about it alone."""
    column, weight = raw["column"], raw.get("weight", 1)
    name = f"{name} ({column!r})"
    if "weight" in raw and head.ask != "one":
        raise ConfigError(f'{name}: `weight` goes with `ask` = "one", where people draw their question.')
    if type(weight) is not int or not 1 <= weight <= MOST_WEIGHT:
        raise ConfigError(f"{name}: `weight` must be a whole number, 1 to {MOST_WEIGHT:,}, got {weight!r}.")
    shared = data.model_dump(exclude_unset=True, exclude={"labels"})
    own_columns = (column, data.person, *data.public)
    labels = {one: spelled for one, spelled in data.labels.items() if one in own_columns}
    domain = {key: raw[key] for key in DOMAIN if key in raw}
    if domain.get("missing") == "drop":
        raise ConfigError(
            f'{name}: `missing` = "drop" does not go with [[questions]], which ask the same people: count no answer '
            "as a category, or ask this column by itself."
        )
    kind = raw.get("ask", "")
    if head.ask == "joint" and head.promise.trust != Local.trust and "epsilon" in raw:
        raise ConfigError(
            f"{name}: `epsilon` of a question does not go with all answers in one report among dummies, which hide "
            "answers as they are; remove it, and what else it says of a randomizer."
        )
    if kind in QUESTIONS and QUESTIONS[kind].of_arrays:
        raise ConfigError(
            f"{name}: {QUESTIONS[kind].label} is asked by itself: several answers are accounted by the channel of "
            "each, and reports of vectors are too many for one."
        )
    if kind in QUESTIONS and head.ask == "one" and not QUESTIONS[kind].of_samples:
        raise ConfigError(
            f"{name}: {QUESTIONS[kind].label} is asked of everybody: how far off a sample of people is, is not "
            'known; use `ask` = "all".'
        )
    asked = ["ask", *(one.name for one in (QUESTIONS[kind].settings() if kind in QUESTIONS else ()))]
    own = {key: value for key, value in raw.items() if key not in ("column", "weight", *DOMAIN, *asked)}
    promise = head.promise.model_dump(exclude_none=True) | _part_of(head.promise, of if head.ask == "all" else 1)
    whole = {
        "schema_version": 1,
        "mode": head.mode,
        "data": {**shared, **({"labels": labels} if labels else {}), "private": column, **domain},
        "question": {key: raw[key] for key in asked if key in raw},
        **({"randomize": own} if own or head.promise.trust == Local.trust else {}),
        "promise": promise,
        **({} if head.memoize is None else {"memoize": head.memoize.model_dump(exclude_unset=True)}),
    }
    try:
        return Question(column, parse_config(whole, name=name), weight)
    except ConfigError as error:
        raise ConfigError(_in_a_question(str(error))) from None


def _in_a_question(text: str) -> str:
    """A fault in the words of [[questions]], whose keys stand in no further section."""
    for old, new in (
        ("without [randomize]", "without a randomizer"),
        ("`data.private`", "`column`"), ("`data.", "`"), ("`randomize.", "`"), ("`question.", "`"),
        ("in [data] public", "in `public`"), (" in [data]", ""), ("[data] ", ""), ("[randomize] ", ""),
        ("[question] ", ""),
        ("among `private`, `public`, `person` and `time`", "in these questions"),
    ):  # fmt: skip
        text = text.replace(old, new)
    return text


# A collection of several questions: who answers what, and the table of reports that leaves the shuffler.


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
        every = zip(asked.questions, asked.each, asked.chances, strict=True)
        for place, (question, settings, chance) in enumerate(every, 1):
            try:  # one order for all columns: a fixed one first, and below one from `rng`
                parts.append(build_collection(settings, simulation(0), table=frame, chance=chance))
            except ConfigError as error:
                raise ConfigError(
                    f"question {place} ({question.column!r}): {error}".replace("[randomize] ", "")
                ) from None
        made = [part.question for part in parts]
        if not NOISES[asked.choices[1]].by_devices:  # answers of a person may share a message
            noises = build_noises(asked.each, made, n=parts[0].n, ask=asked.head.ask, chances=asked.chances)
            parts = [replace(part, noise=noise) for part, noise in zip(parts, noises, strict=True)]
        order = rng.permutation(parts[0].n)
        return cls(asked, ()).of_parts(_reordered(part, order, rng.provenance) for part in parts)

    def of_parts(self, parts: Iterable[Collection]) -> QuestionsCollection:
        """The same questions of these collections, which share the shuffler of the first."""
        first, *others = parts
        return replace(self, parts=(first, *(part.through(lambda public: first.shuffler) for part in others)))

    def along(self, public: pl.DataFrame) -> QuestionsCollection:
        """The same collection with its rows as they were recorded, which have an order of their own."""
        return self.of_parts(part.along(public) for part in self.parts)

    def through(self, fit: Fit) -> QuestionsCollection:
        """The same collection through another shuffler."""
        return self.of_parts(part.through(fit) for part in self.parts)

    @property
    def n(self) -> int:
        """Number of people."""
        return self.parts[0].n

    @property
    def shuffler(self) -> Shuffler:
        """Of everybody, or fitted to public columns."""
        return self.parts[0].shuffler

    @cached_property
    def sent(self) -> tuple[Part, ...]:
        """Each question, and what hides its answers."""
        return tuple(
            Part(part.question, part.noise, column) for column, part in zip(self.columns, self.parts, strict=True)
        )

    @property
    def messages(self) -> tuple[Message, ...]:
        """The message of each person."""
        return messages_of(self.sent, self.ask, self.weights)

    @property
    def accounted(self) -> list[Analyst]:
        """The randomizers of devices, where every answer is hidden by them alone; else nothing."""
        found = [part.noise.accounted for part in self.parts]
        return [one for one in found if one is not None] if None not in found else []

    @property
    def order(self) -> OrderPrivacy:
        """The guarantee of the orders of all batches: independent ones for the same groups add."""
        own = self.shuffler.guarantee
        return own if own.alpha == 0.0 else reduce(OrderPrivacy.compose, [own] * len(self.messages))

    @property
    def public(self) -> pl.DataFrame:
        """The public columns, row by row of the people in their random order."""
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
        return self.asked.weights

    @property
    def columns(self) -> tuple[str, ...]:
        """The private columns, in the order of the questions."""
        return tuple(question.column for question in self.asked.questions)

    @property
    def local(self) -> LocalDP:
        """The guarantee of a person's reports together, no matter who looks."""
        once = local_guarantee([part.randomizer for part in self.parts], ask=self.ask)
        return self.parts[0].noise.of_all_rounds(once)

    @cached_property
    def central(self) -> CentralDP | Missing:
        """The guarantee of all that is released, in the smallest group where people are grouped.

        Given what the other groups sent, which her answers do not change, a person's reports are those of a uniform
        shuffle of her group. Anybody who is not honest may sit in it.
        """
        promise, batch = self.asked.head.promise, smallest_batch(self.shuffler)
        if not self.accounted:
            each = [(part.noise, part.people) for part in self.parts]
            if self.ask == "one":
                return drawn_guarantee(each, self.asked.chances, delta=promise.delta)
            return composed_guarantee(each[: len(self.messages)], self.shuffler, delta=promise.delta)
        if isinstance(batch, Missing):
            return batch
        if batch == 1:
            return Missing(ALONE)
        once = questions_guarantee(
            self.accounted, ask=self.ask, n=batch, delta=promise.delta,
            honest=honest_in(batch, self.n, promise.honest), weights=self.weights if self.ask == "one" else (),
        )  # fmt: skip
        return self.parts[0].noise.of_all_rounds(once)

    def refuse_drowned(self) -> None:
        """UnsupportedError for a question of which noise leaves nothing, of the people who are expected to answer."""
        k = self.parts[0].noise.carrier.kinds if self.ask == "joint" else 0
        for part, chance in zip(self.parts, self.asked.chances, strict=True):
            if k and (told := part.question.too_few(part.noise, part.people)) is not None:
                raise UnsupportedError(f"{told}, as {COMBINED.format(k=k)}; nothing was drawn.")
            part.refuse_drowned(those_who_drew(part.people, max(1, round(self.n * chance))))

    def release(self, rng: Entropy) -> pl.DataFrame:
        """The table that leaves the shuffler: n rows, in which no row belongs to a person.

        For "all" every column has an order of its own, so rows mean nothing; otherwise a row is one report. Where
        the order keeps places, the public columns stand beside the rows. Behind dummies a drawn question has an order
        of its own, and how many people drew each stands beside them.
        """
        values, frames = [part.survey.values for part in self.parts], list[pl.DataFrame]()
        drawn = draw_questions(self.n, self.weights, rng) if self.ask == "one" else None
        for message in self.messages:
            sent = message.send(values, self.parts[0].people, lambda purpose: rng, drawn)
            shuffler = self.shuffler if len(sent) == self.n else Uniform(len(sent))
            frames.append(message.columns(message.noise.complete(shuffler.shuffle(sent, rng), rng)))
        if drawn is not None and len(frames) > 1:
            frames.append(pl.DataFrame({CHOSEN: np.bincount(drawn, minlength=len(self.parts))}))
        if self.released_columns:
            frames.insert(0, self.public)
        most = max(frame.height for frame in frames)  # every question has dummies of its own
        return pl.DataFrame([column for one in frames for column in one.vstack(one.clear(most - one.height))])

    def request(self) -> ReleaseRequest:
        """The request to the release ledger."""
        first, groups = self.parts[0].survey, self.asked.head.shuffle.groups
        people = [] if not first.people.width else names_of(first.people.to_series()).to_list()
        together, beside = everybody(people), b""
        if groups is not None:
            grouped = [name for name in groups.columns if name in first.public.columns]
            shared = canonical(pl.DataFrame([*first.people, *first.public.select(grouped)]))
            together = groups.with_files(digest_of).model_dump_json().encode() + shared
            beside = shared + b"\nbeside\n" + canonical(pl.DataFrame([*first.people, *first.public]))
        return ReleaseRequest(
            table=b"questions\n" + canonical(self.identity()),
            terms=b"questions\n" + self.asked.terms(beside),
            groups=together,
            people=people,
            epsilon=self.local.epsilon,
            alpha=self.order.alpha,
            n=self.n,
            shuffler=self.shuffler.name,
            dummies=max(part.noise.most_added(part.people) for part in self.parts),
            central=self.central,
            dropped=self.n
            if self.ask == "one" and len(self.messages) > 1
            else min(part.noise.most_dropped(part.people) for part in self.parts),
        )

    def identity(self) -> pl.DataFrame:
        """The content by which the ledger tells this table from others, of all its questions."""
        identity = self.parts[0].survey.identity
        for column, part in zip(self.columns, self.parts, strict=True):  # rows stand in one order in all of them
            identity = identity.with_columns(part.survey.identity.select(column, *part.question.further))
        return identity


def composed_guarantee(
    each: Sequence[tuple[Noise, People]], shuffler: Shuffler, *, delta: float
) -> CentralDP | Missing:
    """Of batches with noise of their own: one person's answers change one value in each, so that they compose.

    One batch of all answers together is one of combinations, of which she changes one.
    """
    found = [noise.central(shuffler, people, delta=delta / len(each)) for noise, people in each]
    known = [one for one in found if isinstance(one, CentralDP)]
    if len(known) < len(found):
        return next(one for one in found if isinstance(one, Missing))
    total = reduce(CentralDP.compose, known)
    method = f"basic composition of {len(each)} questions" if len(each) > 1 else total.method
    whole = replace(total, neighbours=NEIGHBOURS, method=method)
    return each[0][0].of_all_rounds(whole)


def drawn_guarantee(
    each: Sequence[tuple[Noise, People]], chances: Sequence[float], *, delta: float
) -> CentralDP | Missing:
    r"""The guarantee where each person draws one question with these `chances` and answers it alone.

    .. math:: \delta(\epsilon) \le \sum_q w_q \left[\delta_q(\epsilon; m_q) + \beta_q\right] \le
              \max_q \left[\delta_q(\epsilon; m_q) + \beta_q\right]

    Draws do not depend on values, so both worlds are the same mixture over who drew what. Given that, all batches but
    that of the victim's question have one law, and hers is one of people who were asked it alone: of m_q people or
    more, but with probability beta_q. The hockey-stick divergence is jointly convex: who drew what may be known.

    Source
    ------
    docs/theory/several-questions.md.
    """
    found = []
    for (noise, people), chance in zip(each, chances, strict=True):
        few, left = fewest_asked(noise, people, chance, delta=delta)
        if few.n < 2:
            return Missing(ALONE)
        one = noise.central(Uniform(few.n), few, delta=left)
        if isinstance(one, Missing):
            return one
        trusted = people.trusted if noise.counts_on_people else one.honest_n
        found.append(replace(one, delta=min(1.0, one.delta + delta - left), n=people.n, honest_n=trusted))
    worst = max(found, key=lambda one: one.epsilon)
    caveats = tuple(dict.fromkeys(caveat for one in found for caveat in one.caveats))
    whole = replace(
        worst, all=max(one.all for one in found), colluding=max(one.colluding for one in found),
        delta=max(one.delta for one in found), honest_n=max(one.honest_n for one in found),
        numeric=Bracket(0.0, worst.epsilon), attack_lower=0.0,  # attacks would have to know who drew what
        caveats=caveats, neighbours=NEIGHBOURS, method=f"{worst.method}, the largest of {len(found)} drawn questions",
    )  # fmt: skip
    return each[0][0].of_all_rounds(whole)


def fewest_asked(noise: Noise, people: People, chance: float, *, delta: float) -> tuple[People, float]:
    """The fewest people who draw a question with this `chance`, and what of delta is left when there may be fewer."""
    if not noise.counts_on_people:
        return people, delta
    doubt = DOUBT * delta
    return noise.fewest(people, chance, doubt), delta - doubt


def _reordered(part: Collection, order: NDArray[np.int64], provenance: str) -> Collection:
    survey = part.survey
    tables = {"public": survey.public, "people": survey.people, "identity": survey.identity}
    moved: Any = {name: table[order] if table.width else table for name, table in tables.items()}
    return replace(part, provenance=provenance, survey=replace(survey, values=survey.values[order], **moved))


# What each question brings and tells: its estimate for everybody, and how well its answers can be guessed.


ONE_OF_SEVERAL = Missing("one of several questions: `plan` compares randomizers for one")
NOT_ATTACKED = Missing(
    "the attacks guess from public columns beside the reports to one question, and know nothing of several"
)
DRAWN_IN_GROUPS = Missing(
    "how many people of a group drew this question differs from group to group; the guarantee covers all of them"
)
DRAWN_BY_CHANCE = Missing("people draw their question by chance, and nothing is promised of how few answer with them")
DRAWN = "{source}; of {n:,} people {m:,} answered, among them the person guessed at with probability {m:,}/{n:,}"


@dataclass(frozen=True)
class Answered:
    """One question of a collection, from its released reports."""

    part: Collection
    reports: int
    local: LocalDP
    estimates: Estimates | Missing
    leakage: BayesLeakage | Missing


def evaluate_question(
    part: Collection, tally: Tally, columns: list[Beside] | Missing, truth: list[float] | None, *,
    drawn: int | None, wanted: EstimateSection, provenance: str,
) -> Answered:  # fmt: skip
    """Estimate and leakage of a question that all people have answered, or so many who have `drawn` it by chance.

    `columns` are the public groups beside its reports, or why there are none; `truth` is None in a release.
    """
    noise, m = part.noise, part.n if drawn is None else drawn
    local = noise.local.drawn_from(provenance)
    if m < FEWEST:
        why = Missing(f"{m} of {part.n:,} people drew this question: too few to estimate anything")
        return Answered(part, m, local, why, why)
    people = part.people if drawn is None else those_who_drew(part.people, m)
    found = estimates_of(part.question, noise, people, tally, columns, n=part.n, wanted=wanted, truth=truth)
    found = replace(found, better=ONE_OF_SEVERAL)
    if noise.hidden is None and isinstance(noise.randomizer, NumericRandomizer):
        found = replace(found, estimator=Missing("means of several questions have the unbiased estimator"))
    shares = np.asarray(found.overall.possible if truth is None else truth)
    return Answered(part, m, local, found, _leakage(part, m, shares, known=truth is not None))


def those_who_drew(people: People, m: int) -> People:
    """The m of these people who drew a question: any of them may be those who are not honest."""
    return replace(people, n=m, honest=honest_in(m, people.n, people.honest), drawn=True)


def _leakage(part: Collection, m: int, shares: np.ndarray, *, known: bool) -> BayesLeakage | Missing:
    """Vulnerability of the answer to this question, to somebody who knows of no link between questions."""
    if m == part.n:
        return leakage_of(part, shares, truth=known)
    if part.hidden is not None or part.shuffler.keeps_places:
        return part.hidden or DRAWN_IN_GROUPS
    absent = 0 if part.honest is None else part.n - part.honest
    found = bayes_leakage(
        part.randomizer, Uniform(m), honest=max(1, m - absent), shares=shares,
        law="empirical" if known else "estimated",
    )  # fmt: skip
    return found if isinstance(found, Missing) else of_those_who_drew(found, m, part.n)


def _linkage(collection: QuestionsCollection) -> Linkage | Missing:
    """Of one message: with all answers, with one, or with the one that chance has chosen whatever the values."""
    batch = honest_batch(collection.shuffler, collection.asked.head.promise.honest)
    if isinstance(batch, Missing):
        return batch
    if not collection.accounted and collection.ask == "one":
        return DRAWN_BY_CHANCE
    if not collection.accounted:  # that of the message that is named most easily
        each = [part.noise.carrier.linkage(collection.shuffler, part.people, None) for part in collection.parts]
        worst: Linkage | Missing = max(each, key=lambda one: getattr(one, "values_known", 1.0))
        return worst
    spent = [part.randomizer.guarantee.epsilon for part in collection.parts]
    return linkage_bound(sum(spent) if collection.ask == "joint" else max(spent), n=batch)


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
    "all": "Each person answers every question once, each answer {how} and sent as a report of its "
    "own; reports on different questions have nothing in common: no name, no id, no time.",
    "joint": "Each person sends exactly one report, with her answers to all questions, each {how}.",
    "one": "Each person draws one question by chance alone, whatever her answers are, and sends exactly one report, "
    "which names the question and holds her answer to it, {how}.",
}
RELEASED = {
    "all": "Released are the reports on each question, shuffled by themselves: no two answers of a person are "
    "linked. The central guarantee covers all of these batches together.",
    "joint": "Released are whole reports, shuffled: which answers are one person's is released and covered by the "
    "central guarantee; who she is, is not released.",
    "one": "Released are the reports and the question of each; how many people answered a question is covered by the "
    "central guarantee. Nobody answers twice, so there is no link to release.",
}
ORDERED = (
    "Public columns stand beside the reports, and every batch has an order of its own, by {label}; what is "
    "promised about order is about all batches together."
)
FEW = (
    "Numbers of people are those who draw the question at least: there are fewer with a chance that is part of delta."
)
APART = (
    "Released are the messages about each question, shuffled by themselves, and how many people drew each: draws do "
    "not depend on answers. The central guarantee holds for every outcome of the draws, also where it is known."
)
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
    unsaid = [*(() if grouped else ("shuffle", "estimate")), *(("memoize",) if asked.head.memoize is None else ())]
    whole = asked.head.model_dump(mode="json", exclude={"seed", *unsaid})
    questions = []
    for question in asked.questions:
        data = question.settings.data.model_dump(
            mode="json", include={*DOMAIN}, exclude={} if question.settings.data.clip else {"clip"}, exclude_none=True
        )
        randomize = question.settings.randomize
        own = {} if randomize is None else randomize.model_dump(mode="json", exclude={"by", "epsilons"})
        drawn = {"weight": question.weight} if asked.head.ask == "one" else {}
        questions.append({"column": question.column, **data, **own, **drawn})
    data = {"person": asked.data.person, **({"public": asked.data.public} if grouped else {})}
    return {**whole, "data": data, "questions": questions}


def sanitized_of(collection: QuestionsCollection, provenance: str) -> dict[str, Any]:
    """The settings that a later stage needs to read the released table."""
    each = [
        {
            "column": column,
            **describe_reports(part.randomizer, part.categories, provenance),
            **recorded(part.question),
        }
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


def assumptions_of(collection: QuestionsCollection, central: CentralDP | Missing, *, mode: str) -> tuple[str, ...]:
    """Assumptions under which the numbers mean what they say."""
    inferred = [column for column, part in zip(collection.columns, collection.parts, strict=True) if part.inferred]
    known = "Questions, categories, bounds and grids are public knowledge, not read off the private columns."
    if inferred:
        known = (
            f"The categories of {', '.join(inferred)} were inferred from the private column and may tell who is in "
            "it; the promises hold only if they are public knowledge too. A release must declare them."
        )
    shuffle, promise = collection.asked.head.shuffle, collection.asked.head.promise
    trusted = [
        f"The shuffler keeps the order to itself, and {promise.honest or collection.n:,} of {collection.n:,} people "
        "follow the protocol; otherwise the local guarantee is all that remains."
    ]
    if not collection.accounted:
        asked = [(part.noise, part.people, part.delta) for part in collection.parts]
        if collection.ask == "one":
            asked = [
                (noise, *fewest_asked(noise, people, chance, delta=promise.delta))
                for (noise, people, _), chance in zip(asked, collection.asked.chances, strict=True)
            ]
        each = [noise.assumptions(people, delta=delta, central=central) for noise, people, delta in asked]
        some = (
            [FEW] if collection.ask == "one" and any(part.noise.counts_on_people for part in collection.parts) else []
        )
        trusted = list(dict.fromkeys([*(line for _, *lines in each for line in lines), *some]))
    how = "sent as it is" if isinf(collection.local.epsilon) else "randomized by itself"
    order = {
        Uniform.name: [],
        WithinGroups.name: [INSIDE.format(name=shuffle.groups and ", ".join(shuffle.groups.columns))],
    }
    lines = [
        ANSWERS[collection.ask].format(how=how).replace("sent as it is and sent", "sent"),
        APART if collection.ask == "one" and len(collection.messages) > 1 else RELEASED[collection.ask],
        *order.get(collection.shuffler.name, [ORDERED.format(label=collection.shuffler.label)]),
        known,
        *(
            f"{column}: {line}"
            for column, part in zip(collection.columns, collection.parts, strict=True)
            for line in gaps_and_outliers(part.survey, mode=mode)
        ),
        *trusted,
        *collection.parts[0].noise.repeated(collection.local),
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
            "what": "Each device answers on its own, before anything is sent."
            + ("" if isinf(local.epsilon) else f" Epsilon by question: {budgets}."),
            "guarantee": "no local promise"
            if isinf(local.epsilon)
            else f"({upward(local.epsilon)}, {upward(local.delta)})-local differential privacy of everything "
            "that one person sends",
            "theorem": local.source,
        },
        {
            "stage": "shuffle",
            "what": MIXED[collection.ask]
            + (" Each group by itself." if collection.shuffler.name == WithinGroups.name else "")
            + collection.parts[0].noise.mixes,
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
        refuse_identity_shuffle(collection.shuffler)
        collection.refuse_drowned()
    progress("read the table", 1, 1)
    if collection.n < 2:
        raise UnsupportedError("one person is shuffled with nobody: her local guarantee is all there is.")
    progress("what it promises", 0, 1)
    collection.central  # noqa: B018 - it takes its time, and is kept
    progress("what it promises", 1, 1)
    progress("draw the reports", 0, 1)
    if asked.mode == "rehearsal":
        drawn, released = collection.release(rng), None
    else:  # the recorded reports of this table under these terms, or fresh ones
        answer = ledger.answer(collection.request(), new_release=new_release, draw=lambda: collection.release(rng))
        drawn, released = answer.reports, ReleasedTable.of(answer)
    progress("draw the reports", 1, 1)
    if collection.shuffler.keeps_places and released is not None:  # recorded rows have an order of their own
        collection = collection.along(drawn.select(collection.public.columns))
    reports = [part.read(drawn) for part in collection.sent]
    tallies = [part.noise.tally(one) for part, one in zip(collection.sent, reports, strict=True)]
    columns = [
        _columns(collection, *one, drawn) for one in zip(collection.sent, collection.parts, reports, strict=True)
    ]
    digest = NO_DIGEST if released is not None else sha256(canonical(collection.identity())).hexdigest()
    truths = None if released is not None else [part.question.truth(part.survey.values) for part in collection.parts]
    told = tuple(drawn[CHOSEN].drop_nulls().to_list()) if CHOSEN in drawn.columns else None
    return _report(
        collection,
        tallies,
        columns,
        released,
        rng,
        wanted=asked.head.estimate,
        truths=truths,
        drawn=told,
        table=digest,
    )


def _columns(
    collection: QuestionsCollection, part: Part, whose: Collection, reports: Reports, drawn: pl.DataFrame
) -> list[Beside] | Missing:
    """The public columns beside the reports to a question, by which estimates were asked for."""
    by = collection.asked.head.estimate.by
    if not collection.shuffler.keeps_places:
        return Missing(NO_ORDER)
    truth = None if collection.asked.mode == "release" else whose.survey.values
    return [
        beside_of(
            part.question, part.noise, collection.shuffler, reports, drawn[name], truth=truth,
            answered=part.answered(drawn),
        )
        for name in by
    ] or NOT_GROUPED  # fmt: skip


def description_of(made: Collection | QuestionsCollection, provenance: str) -> dict[str, Any]:
    """The settings that a later stage needs to read released reports."""
    return (describe_collection if isinstance(made, Collection) else sanitized_of)(made, provenance)  # type: ignore[arg-type]


def report_of_tallies(
    made: Collection | QuestionsCollection, tallies: Sequence[Tally], columns: Sequence[list[Beside] | Missing],
    released: ReleasedTable | None, rng: Entropy, *, wanted: EstimateSection,
    truths: Sequence[list[float]] | None, drawn: Sequence[int] | None = None, **rest: Any,
) -> PrivacyReport:  # fmt: skip
    """The report of what is known by the tallies (groups, ..) of each question; of a rehearsal with the truth.

    `drawn` is how many people have drawn each question, where their reports do not tell.
    """
    totals = [Tally(one.counts.sum(axis=0), int(np.sum(one.n))) for one in tallies]
    if isinstance(made, QuestionsCollection):
        return _report(made, totals, columns, released, rng, wanted=wanted, truths=truths, drawn=drawn, **rest)
    asked, noise, n = made.question, made.noise, made.n
    truth = None if truths is None else truths[0]
    found = estimates_of(asked, noise, made.people, totals[0], columns[0], n=n, wanted=wanted, truth=truth)
    if isinstance(noise.randomizer, NumericRandomizer) and noise.hidden is None:
        found = replace(found, estimator=Missing("the Rao-Blackwell mean adds up over files"))
    evaluation = evaluation_of(made, found, provenance=rng.provenance)
    if released is not None:
        evaluation = released.compose(evaluation, noise)
    elif made.hidden is not None:
        evaluation = replace(evaluation, attacks=made.hidden, learnability=made.hidden, sections=made.hidden)
    return collection_report(made, evaluation, released, rng, **rest)


def _report(
    collection: QuestionsCollection, tallies: Sequence[Tally], columns: Sequence[list[Beside] | Missing],
    released: ReleasedTable | None, rng: Entropy, *, wanted: EstimateSection,
    truths: Sequence[list[float]] | None, drawn: Sequence[int] | None = None, **rest: Any,
) -> PrivacyReport:  # fmt: skip
    asked, central, provenance = collection.asked, collection.central, rng.provenance
    known = [None] * len(tallies) if truths is None else truths
    chosen: Sequence[int | None] = [None] * len(tallies)
    if collection.ask == "one":
        chosen = [int(one.n) for one in tallies] if drawn is None else drawn
    answered = tuple(
        evaluate_question(*one, drawn=m, wanted=wanted, provenance=provenance)
        for one, m in zip(zip(collection.parts, tallies, columns, known, strict=True), chosen, strict=True)
    )
    local = collection.local.drawn_from(provenance)
    order = order_evaluation(collection.shuffler, provenance=provenance)
    evaluation = Evaluation(
        shuffler=collection.shuffler.name,
        local=local,
        central=central if isinstance(central, Missing) else central.drawn_from(provenance),
        order=replace(order, guarantee=collection.order.drawn_from(provenance)),
        leakage=BY_QUESTION,
        linkage=_linkage(collection),
        estimates=Estimates("share", LEVEL, BY_QUESTION, BY_QUESTION, withheld=[], better=BY_QUESTION),
        attacks=NO_TRUTH if released is not None else NOT_ATTACKED,
        learnability=NOT_ATTACKED, sections=NOT_ATTACKED,
    )  # fmt: skip
    if released is not None:
        evaluation = released.compose(evaluation)
        if len(released.history) > 1:
            answered = tuple(replace(one, leakage=evaluation.leakage) for one in answered)
    return report_of(
        asked.head.title or f"Collection of {', '.join(collection.columns)}",
        evaluation,
        released,
        rng,
        collection=collection_of(collection),
        randomizer=randomizer_of(collection),
        assumptions=assumptions_of(collection, evaluation.central, mode=asked.mode),
        steps=steps_of(collection, local, central),
        config=config_of(asked),
        sanitized_description=sanitized_of(collection, provenance),
        questions=questions_document(collection, answered),
        **rest,
    )
