"""One release in many files: what was asked, and the objects that it stands for."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.display import mute
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.question import Question
from dovetail.core.stages import SHUFFLERS
from dovetail.engine.fitted_orders import arrangement_of
from dovetail.engine.orders import Arrangement, Fitted, Layout, RowPlaces, fit_line
from dovetail.engine.passes import Batch, Census, TallyFile
from dovetail.engine.rows import BETWEEN, Asked, People, Reader, Secret
from dovetail.job.build import UNPUBLISHED, build_noises, build_question, refuse_honest, terms
from dovetail.job.collection import Collection
from dovetail.job.config import RunConfig
from dovetail.job.messages import Message, Part, messages_of
from dovetail.job.questions import QuestionsCollection, QuestionsConfig
from dovetail.ledger.releases import LedgerEntry, ReleaseLedger, charged, recorded_promise
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.uniform import Uniform
from dovetail.table.data_section import DataSection
from dovetail.table.reader import Survey

# The order of a release in many files as its report sees it: by sizes of groups alone, never person by person.


@dataclass(frozen=True)
class EqualLabels:
    """Groups of people with equal labels in a public column, known by name and number alone."""

    column: str
    count: int

    def __repr__(self) -> str:
        return f"{self.count:,} groups of equal {self.column}"

    def covers(self, other: object) -> bool:
        """True if they are the same."""
        return self == other


@dataclass(frozen=True, eq=False)
class StagedOrder:
    """Everybody, or everybody within a public group, in a uniformly random order.

    Parameters
    ----------
    name : of the shuffler
    n : int
    sizes : int array (g,)
        People in each group.
    keeps_places : bool
        Whether the group stands beside the reports.
    column : of the groups
    """

    name: str
    n: int
    sizes: NDArray[np.int64]
    keeps_places: bool
    column: str | None

    moves_reports = True

    @property
    def label(self) -> str:
        """The label of the shuffler."""
        return SHUFFLERS[self.name].label

    @property
    def acting(self) -> StagedOrder:
        """Itself: it has decided for no other."""
        return self

    @property
    def smallest_block(self) -> int:
        """People in the smallest group."""
        return int(self.sizes.min())

    @property
    def guarantee(self) -> OrderPrivacy:
        """The guarantee of the order."""
        where = "over all orders" if self.column is None else f"inside each group of equal {self.column}"
        return OrderPrivacy(
            0.0, None if self.column is None else EqualLabels(self.column, len(self.sizes)),
            source=f"uniform {where}, up to the advantage against AES-256: reports are sorted by keys of a "
            "pseudorandom function",
        )  # fmt: skip

    def summary(self) -> dict[str, Any]:
        """A summary of the fitted shuffler, in public numbers."""
        groups = {} if self.column is None else {"groups": len(self.sizes), "largest_group": int(self.sizes.max())}
        return {"shuffler": self.name, "n": self.n, "alpha": 0.0, **groups}


def survey_of(data: DataSection, census: Census) -> Survey:
    """The table as reports describe it: nobody's value is in it."""
    nobody = np.broadcast_to(np.int64(0), (census.n,))
    public = pl.DataFrame(schema=dict.fromkeys(data.public, pl.String))
    categories = None if data.categories is None else tuple(data.categories)
    return Survey(
        nobody, public, categories, public.clear(), public.select([]),
        census.left_out if data.missing == "drop" else None, 0 if data.clip else None,
    )  # fmt: skip


_BYTES = 1 << 25  # of keys and reports in a partition

Order = StagedOrder | Fitted | Identity


@mute
@dataclass(frozen=True)
class Job:
    """A release as a configuration asks for it.

    Parameters
    ----------
    asked : RunConfig or QuestionsConfig
    key : bytes
        Of the release ledger.
    """

    asked: RunConfig | QuestionsConfig
    key: bytes

    @cached_property
    def each(self) -> tuple[RunConfig, ...]:
        """A configuration for each question, as if it were the only one."""
        return self.asked.each if isinstance(self.asked, QuestionsConfig) else (self.asked,)

    @property
    def config(self) -> RunConfig:
        """The settings that the questions have in common, and the first of them."""
        return self.each[0]

    def parts(self, n: int) -> tuple[Part, ...]:
        """Every question, and what hides the answers of n people to it."""
        several, chances = len(self.each) > 1, getattr(self.asked, "chances", (1.0,))
        ask = self.asked.head.ask if isinstance(self.asked, QuestionsConfig) else "all"
        noises = build_noises(self.each, self.questions, n=n, ask=ask, chances=chances)
        return tuple(
            Part(question, noise, config.data.private if several else "")
            for config, question, noise in zip(self.each, self.questions, noises, strict=True)
        )

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The questions to every person."""
        return tuple(build_question(config, config.data.categories) for config in self.each)

    def messages(self, n: int) -> tuple[Message, ...]:
        """The message of each of n people."""
        if isinstance(self.asked, QuestionsConfig):
            return messages_of(self.parts(n), self.asked.head.ask, self.asked.weights)
        return (Message(self.parts(n)),)

    @property
    def further(self) -> tuple[str, ...]:
        """The private columns beside the first one."""
        asked = (Asked(config.data, one.further) for config, one in zip(self.each, self.questions, strict=True))
        return tuple(name for one in asked for name in one.columns)[1:]

    @property
    def keeps_rows(self) -> bool:
        """Whether nothing is shuffled, so that every report stays where its row stands."""
        return not SHUFFLERS[self.config.shuffle.shuffler].moves_reports

    @property
    def columns(self) -> tuple[str, ...]:
        """The public columns that stand beside the reports; none where everybody is mixed."""
        groups, public = self.config.shuffle.groups, self.config.data.public
        if self.keeps_rows:
            return tuple(public)
        if self.config.shuffle.shuffler == Uniform.name or groups is None:
            return ()
        return tuple(public) if sorted(public) == sorted(groups.columns) else ()

    @property
    def group(self) -> str | None:
        """The one public column whose labels groups are made of."""
        return self.columns[0] if len(self.columns) == 1 else None

    @property
    def _classes(self) -> tuple[str, ...]:
        """The public columns that set somebody's epsilon."""
        asked = [one.randomize.by for one in self.each if one.randomize is not None]
        return tuple(dict.fromkeys(name for name in asked if name is not None))

    def _counted(self, census: Census, config: RunConfig) -> dict[str, int]:
        """How many people have each label of the public column that sets the epsilon of a question."""
        by, found = None if config.randomize is None else config.randomize.by, Counter[str]()
        if by is None or self.columns:
            return {}
        for label, people in census.groups.items():
            found[label.split(BETWEEN)[self._classes.index(by)]] += people
        return dict(found)

    def reader(self, *, numbers: bool) -> Reader:
        """The reader that encodes batches; `numbers` as `People` has it."""
        columns = self.columns or self._classes
        measured = tuple(name for name in self.config.numbers if name in columns)
        asked = tuple(
            Asked(
                config.data.model_copy(update={"public": list(columns)}),
                question.further,
                question.domain["d"] if question.of_arrays else None,
            )
            for config, question in zip(self.each, self.questions, strict=True)
        )
        return Reader(asked, People(self.key, numbers), columns, measured)

    def partitions(self, n: int, report_bytes: int) -> int:
        """Partitions of n reports."""
        return max(1, -(-n * (16 + report_bytes) // _BYTES))

    def tally(self, census: Census) -> TallyFile:
        """The counter of a file's reports."""
        return TallyFile(self.parts(census.n), self.group, tuple(census.groups) if self.group else ())

    def order(self, census: Census) -> Order:
        """The order of the release, fitted to the public labels where it is not uniform."""
        kind, shuffle = arrangement_of(self.config.shuffle.shuffler), self.config.shuffle
        if kind is not None:
            return fit_line(shuffle, self.columns, census.groups)
        if self.keeps_rows:
            return Identity(census.n)
        sizes = np.array(list(census.groups.values()) if self.columns else [census.n], dtype=np.int64)
        return StagedOrder(shuffle.shuffler, census.n, sizes, self.group is not None, self.group)

    def batches(self, census: Census, order: Order, secret: Secret, *, parts: int | None = None) -> tuple[Batch, ...]:
        """Everybody's messages, each kind in the order, in partitions that fit into memory or in about so many."""
        found: list[Batch] = []
        kind, messages = arrangement_of(order.name), self.messages(census.n)
        for place, message in enumerate(messages):
            wanted = self.partitions(census.n, message.size) if parts is None else parts
            layout: Arrangement = Layout(census.n, wanted, census.groups if self.columns else {})
            if isinstance(order, Fitted) and kind is not None:
                layout = kind.of(order, wanted)
            if self.keeps_rows:
                layout = RowPlaces(census.n + census.left_out, wanted, tuple(census.groups) if self.columns else ())
            own = secret if len(messages) == 1 else Secret(secret.of(f"batch {place}"))
            found.append(Batch(message, layout, own, found[-1].end if found else 0))
        return tuple(found)

    def entry(self, census: Census, ledger: ReleaseLedger, number: int) -> LedgerEntry:
        """The entry of the ledger, but for its manifest."""
        made, section = self.collection(census), self.config.shuffle
        kind = arrangement_of(section.shuffler)
        table = f"table in files: {census.n} {census.fingerprint}".encode()
        groups, alpha = f"{json.dumps(self.columns)} {census.grouping}", 0.0  # of these people, in these groups
        if kind is not None and section.groups is not None:  # budgets add for the same groups: in the same table
            groups, alpha = f"{section.groups.model_dump_json()} {census.fingerprint}", section.alpha or 0.0
        notes = (part.noise.rounds_note() for part in self.parts(census.n))
        asked = self.asked.terms() if isinstance(self.asked, QuestionsConfig) else terms(self.asked)
        return LedgerEntry(
            number, ledger.fingerprint(table), ledger.fingerprint(b"in files" + asked), charged(made.local),
            alpha * len(self.messages(census.n)), ledger.fingerprint(f"in files {groups}".encode()),
            census.n, section.shuffler, note="; ".join(dict.fromkeys(filter(None, notes))),
            batch=recorded_promise(made.central),
        )  # fmt: skip

    def collection(self, census: Census) -> Collection | QuestionsCollection:
        """The collection as reports describe it: nobody's value is in it."""
        made = tuple(self._part(census, *one) for one in zip(self.each, self.parts(census.n), strict=True))
        return QuestionsCollection(self.asked, made) if isinstance(self.asked, QuestionsConfig) else made[0]

    def _part(self, census: Census, config: RunConfig, part: Part) -> Collection:
        data, honest = config.data, config.promise.honest
        refuse_honest(config, census.n)
        return Collection(
            survey_of(data, census), part.question, part.noise, None, config.shuffle.groups,
            delta=config.promise.delta, honest=honest, private=data.private, title=config.title or "",
            asked=config.published(UNPUBLISHED),
            counted=self._counted(census, config),
        )  # fmt: skip
