"""The messages of a person: each answer in one of its own, all in one, or one that she draws by chance."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.estimate import Tally
from dovetail.core.extras import pl
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question, Values
from dovetail.core.stages import Labels, NumericRandomizer, Reports
from dovetail.table.released import PREFIX, from_columns, to_columns

Drawn = NDArray[np.int64]  # (n,) the question of each person
Doors = Callable[[str], Entropy]  # the randomness of a purpose, row by row of the people
CHOSEN = "drawn"  # field of a message that names the question it is about


@final
@dataclass(frozen=True)
class Part:
    """A question, and what hides its answers.

    Parameters
    ----------
    question : Question
    noise : Noise
    column : str
        What its columns of reports are called by where several questions are asked; empty where one is.
    """

    question: Question
    noise: Noise
    column: str = ""

    @property
    def purpose(self) -> str:
        """Of the randomness of its reports."""
        return " ".join(("randomize", *([self.column] if self.column else []), self.noise.randomizer.name))

    @cached_property
    def nobody(self) -> Reports:
        """The reports of nobody, in the fewest bytes that hold every report of this randomizer."""
        randomizer: Any = self.noise.randomizer
        if self.question.of_arrays:
            return np.asarray(randomizer.randomize(np.zeros((1, randomizer.d))))[:0]
        empty = np.empty(0, dtype=np.float64 if isinstance(randomizer, NumericRandomizer) else np.int64)
        shape: Reports = randomizer.randomize(empty)
        if shape.ndim > 1 or isinstance(randomizer, NumericRandomizer):
            return shape
        return shape.astype(np.min_scalar_type((1 << randomizer.report_bits) - 1))

    def send(self, values: Values, people: People, rng: Entropy) -> Reports:
        """Everybody's report."""
        if not len(values):
            return self.nobody
        return self.noise.randomize(self.question.answer(values, rng), people, rng)

    def columns(self, reports: Reports) -> pl.DataFrame:
        """Reports as columns of a released table."""
        short = reports.ndim == 1 and reports.dtype != np.uint64  # words of 64 bits are as wide as they get
        wide = reports.astype(np.int64, copy=False) if short else reports
        found = to_columns(self.noise.randomizer, wide, self.question.names)
        return found.rename({name: f"{self.column}.{name}" for name in found.columns}) if self.column else found

    def own(self, table: pl.DataFrame) -> list[str]:
        """The columns of a released table that hold its reports, where several questions are asked."""
        pattern = re.compile(re.escape(f"{self.column}.") + rf"{PREFIX}(_\d+)?")
        return [name for name in table.columns if pattern.fullmatch(name)]

    def answered(self, table: pl.DataFrame) -> NDArray[np.bool_]:
        """Which rows of a released table hold a report of it."""
        own = self.own(table)
        if not self.column or not own:
            return np.full(table.height, not self.column)
        return table.select(pl.all_horizontal(pl.col(own).is_not_null())).to_series().to_numpy()

    def read(self, table: pl.DataFrame) -> Reports:
        """Its reports in a released table; DataError for what it never sends."""
        if self.column:
            own = self.own(table)
            if not own:
                return self.nobody
            table = table.select(own).filter(pl.Series(self.answered(table)))
            table = table.rename({name: name.removeprefix(f"{self.column}.") for name in own})
        return from_columns(self.noise.randomizer, table, self.question.names)


@final
@dataclass(frozen=True)
class Message:
    """One message of each person: the report of one part, of all, or of one that she draws with these weights.

    Parameters
    ----------
    parts : tuple of Part
        Several of them are a tuple of reports, each with noise of its person alone, or, among dummies, the number of
        the combination of her answers. Dummies of one question are answers to it: a message of it is sent by those
        who have drawn it.
    places : tuple of int
        Which of all questions they are.
    weights : tuple of int
        How often each of all questions is drawn, against the others; empty where everybody answers all.
    """

    parts: tuple[Part, ...]
    places: tuple[int, ...] = (0,)
    weights: tuple[int, ...] = ()

    @property
    def noise(self) -> Noise:
        """The noise that people and the shuffler add to a batch."""
        return self.parts[0].noise.carrier

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many answers of each part are combined to one number; none where each answer is a report of its own."""
        combined = len(self.parts) > 1 and self.noise.kinds > 0
        return tuple(part.noise.kinds for part in self.parts) if combined else ()

    @cached_property
    def nobody(self) -> Reports:
        """The messages of nobody."""
        if len(self.parts) == 1:
            return self.parts[0].nobody
        if self.sizes:
            return np.empty(0, dtype=np.min_scalar_type(self.noise.kinds - 1))
        fields: list[Any] = [(str(q), part.nobody.dtype, part.nobody.shape[1:]) for q, part in enumerate(self.parts)]
        return np.empty(0, dtype=[*([(CHOSEN, np.uint8)] if self.weights else []), *fields])

    @property
    def size(self) -> int:
        """Bytes of a message while it travels."""
        return self.nobody.itemsize * int(np.prod(self.nobody.shape[1:]))

    def narrow(self, messages: Reports) -> Reports:
        """The same in the fewest bytes."""
        return messages.astype(self.nobody.dtype, copy=False)

    def senders(self, drawn: Drawn | None) -> Labels | None:
        """The places of the people who send one, by the question that each has drawn; None where everybody does."""
        return None if drawn is None or len(self.parts) > 1 else np.flatnonzero(drawn == self.places[0])

    def send(self, values: Sequence[Values], people: People, rng: Doors, drawn: Drawn | None = None) -> Reports:
        """The message of each sender; `values` are those of all questions, and of everybody."""
        if len(self.parts) == 1:
            own = self.senders(drawn)
            return self._report(self.parts[0], values[self.places[0]], people, rng, own)
        if self.sizes:
            each = enumerate(self.parts)  # everybody answers all of them
            return np.ravel_multi_index(
                [self._report(one, values[q], people, rng, None) for q, one in each], self.sizes
            )
        found = np.zeros(people.n, dtype=self.nobody.dtype)
        if self.weights:
            found[CHOSEN] = drawn
        for q, part in enumerate(self.parts):
            own = np.flatnonzero(drawn == q) if self.weights else np.arange(people.n)
            found[str(q)][own] = self._report(part, values[self.places[q]], people, rng, own)
        return found

    def _report(self, part: Part, values: Values, people: People, rng: Doors, own: Labels | None) -> Reports:
        """The reports of the people at these places, or of everybody."""
        door = rng(part.purpose)
        if own is None:
            return part.send(values, people, door)
        public = people.public[own] if people.public.width else people.public
        return part.send(values[own], People(own.size, public), door.owners(own, people.n))

    def columns(self, messages: Reports) -> pl.DataFrame:
        """Messages as columns of a released table, with nulls for questions that a person did not draw."""
        if len(self.parts) == 1:
            return self.parts[0].columns(messages)
        if self.sizes:
            both = zip(self.parts, np.unravel_index(messages, self.sizes), strict=True)
            return pl.concat([part.columns(own) for part, own in both], how="horizontal")
        frames = []
        for q, part in enumerate(self.parts):
            frame = part.columns(messages[str(q)])
            if self.weights:
                frame = frame.select(pl.when(pl.Series(messages[CHOSEN] == q)).then(pl.all()))
            frames.append(frame)
        return pl.concat(frames, how="horizontal")


def messages_of(parts: Sequence[Part], ask: str, weights: tuple[int, ...] = ()) -> tuple[Message, ...]:
    """The messages of a person who is asked these questions: `ask` is "all", "joint" or "one"."""
    chosen = weights if ask == "one" else ()
    if ask == "all" or (ask == "one" and any(part.noise.trust != "local" for part in parts)):
        return tuple(Message((part,), (place,), chosen) for place, part in enumerate(parts))
    return (Message(tuple(parts), tuple(range(len(parts))), chosen),)


def draw_questions(n: int, weights: tuple[int, ...], rng: Entropy) -> Drawn:
    """The question of each of n people, with exact chances weight / sum, whatever they answer."""
    ends = np.cumsum(weights)
    return np.searchsorted(ends, rng.below(int(ends[-1]), n), side="right").astype(np.int64)


@final
@dataclass(frozen=True)
class Tallies:
    """Counts of released tables: their rows, and of each part its groups; those of several tables add.

    `drawn` is how many people have drawn each question, where their reports do not tell.
    """

    rows: int
    parts: tuple[Tally, ...]
    drawn: tuple[int, ...] | None = None

    def __add__(self, other: Tallies) -> Tallies:
        both = zip(self.parts, other.parts, strict=True)
        return Tallies(self.rows + other.rows, tuple(one + more for one, more in both))


def count(parts: Sequence[Part], table: pl.DataFrame, groups: Labels, *, number: int) -> Tallies:
    """The tallies (groups, ..) of a released table, whose rows belong to these `groups` (rows,) of so many."""
    counted = [part.noise.tallies(part.read(table), groups[part.answered(table)], number) for part in parts]
    return Tallies(table.height, tuple(counted))
