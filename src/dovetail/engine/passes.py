"""The passes over a table in many files: census, draw, places, tally."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.entropy import KeyedEntropy, keyed_prints
from dovetail.core.errors import DataError, OutputError
from dovetail.core.noise import People
from dovetail.core.progress import Progress
from dovetail.core.question import Question
from dovetail.core.stages import Reports
from dovetail.engine.fitted_orders import NoisyPlaces
from dovetail.engine.orders import Arrangement, Codes, Keys, Marks, codes_of, labels_of
from dovetail.engine.processes import Blobs, Engine, Summary
from dovetail.engine.processes import TaskSource as Source
from dovetail.engine.publication import digest_of, need_memory
from dovetail.engine.rows import Prints, Reader, Rows, Sealer, Secret, in_words, low_words
from dovetail.job.messages import Drawn, Message, Part, Tallies, count, draw_questions
from dovetail.ledger.files import write_whole
from dovetail.table.reader import in_several_rows

# The first pass: how many people and groups there are, who stands twice, what is wrong, and which table this is.


_HASHES = ("fingerprint", "grouping")
PEOPLE = "people"  # folder of sorted prints, one file for each partition
EVERYBODY = "all.npy"  # there, all of them
_HEADER = 128  # bytes of a file of numbers before the numbers


@dataclass(frozen=True)
class PackPeople:
    """Prints of people by their upper bits, so that anybody who stands in two rows meets; and totals of the batch.

    Parameters
    ----------
    parts : int
        Partitions of people; the totals go to one more.
    """

    reader: Reader
    sealer: Sealer
    parts: int

    def __call__(self, frame: Any) -> Blobs:
        rows, wrong = self.reader.read(frame)
        prints = self.reader.people.prints(rows.people)
        part = ((prints >> np.uint64(32)) * np.uint64(self.parts) >> np.uint64(32)).astype(np.int64)
        numbers, texts = self.reader.people.kinds(rows.people)
        totals = {
            "n": rows.n,
            "left_out": rows.left_out,
            "wrong": dict(wrong),
            "fingerprint": str(self.reader.fingerprint(rows)),
            "grouping": str(self.reader.grouping(rows)),
            "groups": {} if rows.groups is None else dict(rows.groups.value_counts().iter_rows()),
            "numbers": numbers,
            "texts": texts,
        }
        pairs = np.column_stack([prints, low_words(rows.ids)])
        packed = [(place, pairs.take(chosen, axis=0).tobytes()) for place, chosen in by_part(part)]
        sealed = [(place, self.sealer.seal(content, place)) for place, content in packed]
        return [*sealed, (self.parts, self.sealer.seal(json.dumps(totals, sort_keys=True).encode(), self.parts))]


@dataclass(frozen=True)
class UnpackPeople:
    """Sorts the prints of a partition, counts who stands twice, and keeps the prints for the ledger."""

    sealer: Sealer
    parts: int
    folder: str

    def __call__(self, part: int, blobs: list[bytes]) -> Summary:
        contents = [self.sealer.open(blob, part) for blob in blobs]
        if part == self.parts:
            return add_totals([json.loads(content) for content in contents])
        pairs = np.frombuffer(b"".join(contents), dtype=np.uint64).reshape(-1, 2)
        prints, twice = np.sort(pairs[:, 0]), 0
        if (prints[1:] == prints[:-1]).any():  # hardly ever two people: then their ids decide
            ordered = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
            again = (ordered[1:] == ordered[:-1]).all(axis=1)
            twice = int((again & ~np.append(False, again[:-1])).sum())
        with write_whole(Path(self.folder) / f"{part:05d}.npy") as place:
            np.save(place, prints)
        return {"people": len(pairs), "twice": twice}


def add_totals(totals: list[dict[str, Any]]) -> Summary:
    """Totals of several batches."""
    counted = {name: Counter[str]() for name in ("wrong", "groups", "truth", "drawn")}
    for one in totals:
        for name, counter in counted.items():
            counter.update(one.get(name, {}))
    return {
        "n": sum(one["n"] for one in totals),
        **{name: sum(one.get(name, 0) for one in totals) for name in ("beside", "left_out")},
        **{name: str(sum(int(one.get(name, 0)) for one in totals) % (1 << 128)) for name in _HASHES},
        "numbers": sum(one.get("numbers", 0) for one in totals),
        "texts": sum(one.get("texts", 0) for one in totals),
        **{name: dict(sorted(counter.items())) for name, counter in counted.items()},
    }


@dataclass(frozen=True)
class Census:
    """Results of the first pass.

    Parameters
    ----------
    n : int
    fingerprint : int
        Of the multiset of rows, under the ledger's key.
    grouping : int
        Of people and their public groups alone.
    groups : people in each public group, in the order of their names; empty without groups
    mixed : bool
        Whether some names of people spell numbers and others do not.
    left_out : int
        Rows without an answer that `missing` = "drop" left out.
    """

    n: int
    fingerprint: int
    grouping: int
    groups: dict[str, int]
    mixed: bool
    left_out: int

    @classmethod
    def of(cls, summaries: tuple[Summary, ...], reader: Reader) -> Census:
        """The census of a table that is in order.

        Raises
        ------
        DataError
            With a count, for the first thing that is wrong with the table.
        """
        *parts, totals = summaries
        columns = " or ".join(repr(name) for name in reader.columns)
        names = {"person": reader.person, "group": columns}
        for sentence, rows in totals["wrong"].items():
            raise DataError(f"{in_words(sentence, rows, **names)}; correct the table: nothing was released.")
        twice = sum(part["twice"] for part in parts)
        if twice:
            raise DataError(
                f"person column {reader.person!r}: {in_several_rows(twice)}; one report per "
                "person, so keep one row each: nothing was released."
            )
        return cls(
            totals["n"], int(totals["fingerprint"]), int(totals["grouping"]), totals["groups"],
            bool(totals["numbers"] and totals["texts"]), totals["left_out"],
        )  # fmt: skip


def join_prints(folder: Path) -> Prints:
    """The sorted prints of all people, in one file, mapped.

    It is written piece by piece: writing into a map of a file kills the process where the disk is full.
    """
    pieces = [np.load(place, mmap_mode="r") if place.stat().st_size > _HEADER else np.empty(0, np.uint64)
              for place in sorted(folder.glob("[0-9]*.npy"))]  # fmt: skip
    every = folder / EVERYBODY
    size = sum(piece.size for piece in pieces)
    with write_whole(every) as place, place.open("wb") as file:
        kind = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.uint64)), "fortran_order": False, "shape": (size,)}
        np.lib.format.write_array_header_1_0(file, kind)
        for piece in pieces:
            file.write(np.ascontiguousarray(piece).data)
    joined: Prints = np.load(every, mmap_mode="r") if size else np.empty(0, np.uint64)
    return joined


def by_part(part: Any) -> list[tuple[int, Any]]:
    """The places of the rows of each partition that has some."""
    few = part.astype(np.uint16) if len(part) and part.max() < 1 << 16 else part
    order = np.argsort(few, kind="stable")  # of 16 bits: by counting
    counts = np.bincount(part)
    ends = np.cumsum(counts)
    return [(int(one), order[ends[one] - counts[one] : ends[one]]) for one in np.flatnonzero(counts)]


# The second pass: every report is drawn beside its sort key, and travels without its person.
#
# What a person sends is the message's to say (`job.messages`); where it goes, what travels beside it and who ends up
# where is the arrangement's (`engine.orders`).


_KEYS = 16  # bytes
_ADDED = 64  # bytes of a dummy while its place is found


@dataclass(frozen=True)
class Batch:
    """Everybody's messages of one kind, and the order that they are released in.

    Parameters
    ----------
    message : Message
    layout : Arrangement
    secret : Secret
        Of this batch alone, so that nothing links two messages of a person.
    first : int
        Number of its first partition.
    """

    message: Message
    layout: Arrangement
    secret: Secret
    first: int = 0

    @property
    def end(self) -> int:
        """The number after that of its last partition."""
        return self.first + self.layout.parts

    def pack(self, rows: Rows, people: People, drawn: Drawn | None = None) -> tuple[Blobs, int]:
        """The message of each sender by partition, sealed, with what is sent besides, and how many more than people.

        Every person has `drawn` a question, where each answers one.
        """
        message, layout, secret = self.message, self.layout, self.secret
        senders = message.senders(drawn)
        ids = rows.ids if senders is None else rows.ids[senders]
        sent = message.send(rows.values, people, lambda purpose: KeyedEntropy(secret.of(purpose), rows.ids), drawn)
        blobs, beside = [], -rows.n
        parts = message.noise.messages(sent, KeyedEntropy(secret.of("messages"), ids))
        for part, (places, own) in enumerate(parts):
            keys = keyed_prints(secret.of(f"order {part}" if part else "order"), ids[places])
            mixed = part or len(places) < rows.n  # of some people, or again: then everybody is mixed evenly
            where = (layout.spread(keys), ()) if mixed else layout.send(rows, keys, secret)
            blobs += self._blobs(keys, *where, own)
            beside += len(places)
        places, more = message.noise.beside(len(ids), KeyedEntropy(secret.of("dummies of people"), ids))
        if places.size:
            keys = keyed_prints(secret.of("order of dummies"), ids[places])
            blobs += self._blobs(keys, layout.spread(keys), (), more)
        return blobs, beside + places.size

    def _blobs(self, keys: Keys, parts: NDArray[np.int64], marks: Marks, messages: Reports) -> Blobs:
        columns, sealer = (keys, *marks, self.message.narrow(messages)), Sealer(self.secret)
        return [
            (
                self.first + part,
                sealer.seal(b"".join(column.take(chosen, axis=0).tobytes() for column in columns), part),
            )
            for part, chosen in by_part(parts)
        ]

    def added(self) -> tuple[Keys, Reports]:
        """Dummies of the shuffler, each with its sort key: a function of the secret, the same in every attempt."""
        drawn = self.message.noise.added(KeyedEntropy(self.secret.of("dummies"), np.arange(1)))  # one stream
        need_memory(f"adding {drawn.size:,} dummies", _ADDED * drawn.size, "join answers")
        return keyed_prints(self.secret.of("order of dummies"), np.arange(drawn.size)), drawn

    def unpack(self, part: int, blobs: list[bytes]) -> tuple[Codes, Reports]:
        """The messages of a partition in their order, and the public label at each place."""
        sealer, layout, shape = Sealer(self.secret), self.layout, self.message.nobody
        contents = [sealer.open(blob, part) for blob in blobs]
        keys, marks, messages = _join(
            [_split(content, shape, layout.marks) for content in contents], shape, layout.marks
        )
        if self.message.noise.hidden is not None and (found := self.added())[1].size:
            more, added = found
            here = layout.spread(more) == part
            keys, messages = np.concatenate([keys, more[here]]), np.concatenate([messages, added[here]])
        order, labels = layout.order(part, keys, marks, self.secret)
        return labels, messages[order]


@dataclass(frozen=True)
class Truth:
    """Counts of the answers themselves, which a rehearsal makes beside the reports.

    Parameters
    ----------
    questions : those that were asked; none in a release
    grouped : whether for each public group by itself
    """

    questions: tuple[Question, ...] = ()
    grouped: bool = False

    def count(self, rows: Rows) -> Counter[str]:
        """By question, group and what the question counts, as one text."""
        found: Counter[str] = Counter()
        if not self.questions:
            return found
        names, codes = [""], np.zeros(rows.n, dtype=np.int64)
        if self.grouped and rows.groups is not None:
            names = rows.groups.unique().sort().to_list()
            codes = codes_of(tuple(names), rows.groups, rows.n)
        for place, chosen in by_part(codes):
            for q, question in enumerate(self.questions):
                for key, value in question.known(rows.values[q][chosen]).items():
                    found[json.dumps([q, names[place], key])] += value
        return found

    def recalled(self, counted: Mapping[str, int], group: str | None = None) -> list[list[float]]:
        """The truth of each question, in a group or of everybody."""
        each = [Counter[str]() for _ in self.questions]
        for text, value in counted.items():
            q, name, key = json.loads(text)
            if group is None or name == group:
                each[q][key] += value
        return [question.recalled(held) for question, held in zip(self.questions, each, strict=True)]


@dataclass(frozen=True)
class PackReports:
    """Randomizes rows and packs (key, marks, message) by partition, and what people send besides."""

    reader: Reader
    secret: Secret
    batches: tuple[Batch, ...]
    truth: Truth = Truth()

    def __call__(self, frame: pl.DataFrame) -> Blobs:
        rows = self.reader.exactly(frame)
        public = pl.DataFrame() if rows.groups is None else labels_of(self.reader.columns, rows.groups)
        weights, drawn = self.batches[0].message.weights, None
        if weights:  # of all batches together: each person sends to one of them
            drawn = draw_questions(rows.n, weights, KeyedEntropy(self.secret.of("draw questions"), rows.ids))
        packed = [batch.pack(rows, People(rows.n, public), drawn) for batch in self.batches]
        beside = sum(count for _, count in packed)
        totals = {
            "n": rows.n,
            "drawn": {} if drawn is None else dict(enumerate(np.bincount(drawn, minlength=len(weights)).tolist())),
            "beside": beside,
            "fingerprint": str(self.reader.fingerprint(rows)),
            "truth": dict(self.truth.count(rows)),
        }
        end = self.batches[-1].end
        sealed = Sealer(self.secret).seal(json.dumps(totals).encode(), end)
        return [*(blob for blobs, _ in packed for blob in blobs), (end, sealed)]


@dataclass(frozen=True)
class UnpackReports:
    """Puts a partition into its order, forgets the keys, and writes its reports, the public labels beside them."""

    secret: Secret
    batches: tuple[Batch, ...]
    columns: tuple[str, ...]
    folder: str
    description: str

    def __call__(self, part: int, blobs: list[bytes]) -> Summary:
        if part == self.batches[-1].end:
            sealer = Sealer(self.secret)
            return add_totals([json.loads(sealer.open(blob, part)) for blob in blobs])
        batch = next(one for one in self.batches if part < one.end)
        frame = self._frame(batch, *batch.unpack(part - batch.first, blobs))
        target = Path(self.folder) / f"part-{part:05d}.parquet"
        with write_whole(target) as place:
            frame.write_parquet(place, metadata={"dovetail": self.description})
        return {
            "name": target.name,
            "rows": frame.height,
            "bytes": target.stat().st_size,
            "sha256": digest_of(target),
        }

    def _frame(self, batch: Batch, labels: Codes, messages: Reports) -> pl.DataFrame:
        columns = batch.message.columns(messages)
        if not self.columns:
            return columns
        names = labels_of(self.columns, pl.Series(batch.layout.names, dtype=pl.String))
        return pl.DataFrame([*names[labels], *columns])


def _split(content: bytes, shape: Reports, kinds: tuple[np.dtype[Any], ...]) -> tuple[Keys, Marks, Reports]:
    """The columns of a blob, which stand one after the other."""
    width = shape.itemsize * (1 if shape.ndim == 1 else shape.shape[1])
    n = len(content) // (_KEYS + sum(kind.itemsize for kind in kinds) + width)
    keys = np.frombuffer(content, dtype=np.uint64, count=2 * n).reshape(-1, 2)
    marks, offset = [], _KEYS * n
    for kind in kinds:
        marks.append(np.frombuffer(content, dtype=kind, count=n, offset=offset))
        offset += kind.itemsize * n
    reports = np.frombuffer(content, dtype=shape.dtype, offset=offset)
    return keys, tuple(marks), reports.reshape(n, *shape.shape[1:])


def _join(
    pieces: list[tuple[Keys, Marks, Reports]], shape: Reports, kinds: tuple[np.dtype[Any], ...]
) -> tuple[Keys, Marks, Reports]:
    empty = np.empty((0, 2), dtype=np.uint64), tuple(np.empty(0, dtype=kind) for kind in kinds), shape
    keys, marks, reports = zip(*(pieces or [empty]), strict=True)
    return (
        np.concatenate(keys),
        tuple(np.concatenate(one) for one in zip(*marks, strict=True)),
        np.concatenate(reports),
    )


# A pass between the two, for orders in which partitions fill by chance: how many rows fall to each of them.


@dataclass(frozen=True)
class PackCounts:
    """How many rows of a batch fall to each partition."""

    reader: Reader
    secret: Secret
    layout: NoisyPlaces

    def __call__(self, frame: Any) -> Blobs:
        rows = self.reader.exactly(frame)
        parts, _ = self.layout.send(rows, keyed_prints(self.secret.of("order"), rows.ids), self.secret)
        counts = {str(part): int(count) for part, count in enumerate(np.bincount(parts)) if count}
        return [(0, Sealer(self.secret).seal(json.dumps(counts).encode(), 0))]


@dataclass(frozen=True)
class UnpackCounts:
    """Their sum."""

    secret: Secret

    def __call__(self, part: int, blobs: list[bytes]) -> Summary:
        total = Counter[str]()
        for blob in blobs:
            total.update(json.loads(Sealer(self.secret).open(blob, part)))
        return dict(sorted(total.items()))


def with_row_counts(
    engine: Engine,
    source: Source,
    batches: tuple[Batch, ...],
    reader: Reader,
    *,
    rows: int,
    staging: Path,
    progress: Progress,
) -> tuple[Batch, ...]:
    """The batches with the rows of each partition: for noisy places a pass that draws the same ones as the next."""
    done: list[Batch] = []
    for batch in batches:
        layout = batch.layout
        if isinstance(layout, NoisyPlaces):
            found = engine.exchange(
                source, PackCounts(reader, batch.secret, layout), UnpackCounts(batch.secret), parts=1, rows=rows,
                staging=staging, progress=progress,
            )  # fmt: skip
            layout = layout.counted(found.summaries[0])
        done.append(replace(batch, layout=layout, first=done[-1].end if done else 0))
    return tuple(done)


# A pass for attacks in a rehearsal, which need everybody whom they look at in one memory: a random sample of people.


SAMPLED = "sampled"  # file in the staging folder, sealed


@dataclass(frozen=True)
class PackSample:
    """The rows of people whose keys are at most `most`."""

    reader: Reader
    secret: Secret
    most: int

    def __call__(self, frame: pl.DataFrame) -> Blobs:
        keys = keyed_prints(self.secret.of("sample"), self.reader.exactly(frame).ids)[:, 0]
        chosen = frame.filter(pl.Series(keys <= np.uint64(self.most)))
        return [(0, Sealer(self.secret).seal(chosen.write_ipc(None).getvalue(), 0))]


@dataclass(frozen=True)
class UnpackSample:
    """Writes them into one file, sealed."""

    secret: Secret
    folder: str

    def __call__(self, part: int, blobs: list[bytes]) -> Summary:
        sealer = Sealer(self.secret)
        frames = [pl.read_ipc(sealer.open(blob, part)) for blob in blobs]
        joined = pl.concat(frames).write_ipc(None).getvalue()
        with write_whole(Path(self.folder) / SAMPLED) as place:
            place.write_bytes(sealer.seal(joined, part))
        return {}


# Counting what is published: tallies of released files add.


@dataclass(frozen=True)
class TallyFile:
    """The tallies (groups, width) of the reports of one file.

    Parameters
    ----------
    parts : questions and noises
    group : column of public groups beside the reports, or None
    groups : their names, in order
    """

    parts: tuple[Part, ...]
    group: str | None
    groups: tuple[str, ...]

    def __call__(self, file: Path) -> Tallies:
        try:
            table = pl.read_parquet(file)
            labels = np.zeros(table.height, dtype=np.int64)
            if self.group is not None:
                labels = table[self.group].replace_strict(
                    list(self.groups), range(len(self.groups)), return_dtype=pl.Int64
                ).to_numpy()  # fmt: skip
            return count(self.parts, table, labels, number=max(1, len(self.groups)))
        except (pl.exceptions.PolarsError, OSError, DataError):
            raise OutputError(f"{file}: is damaged; restore it from a backup.") from None
