"""A collection of several questions: who answers what, and the table of reports that leaves the shuffler."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.account.composition.questions_guarantee import Ask, local_guarantee, questions_guarantee
from dovetail.core.display.display import mute
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import ConfigError
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.stages import Reports, Shuffler
from dovetail.pipeline.collection import Collection
from dovetail.pipeline.config.build import build_collection, fit_of, terms
from dovetail.pipeline.evaluate.guarantees import smallest_batch
from dovetail.pipeline.files.report_columns import PREFIX, from_columns, to_columns
from dovetail.pipeline.files.table import as_text, canonical, table_of
from dovetail.pipeline.questions.config import QuestionsConfig
from dovetail.pipeline.questions.groups import honest_in
from dovetail.pipeline.release_entry import ReleaseRequest, everybody
from dovetail.report.document import Missing
from dovetail.shuffle.uniform import Uniform

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
