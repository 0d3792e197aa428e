"""The passes over a table in many files: census, draw, places, tally."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.entropy import KeyedEntropy, keyed_prints
from dovetail.core.errors import DataError, OutputError
from dovetail.core.estimate import Tally
from dovetail.core.progress import Progress
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.engine.fitted_orders import NoisyPlaces
from dovetail.engine.orders import Arrangement, Codes, Keys, Marks, labels_of
from dovetail.engine.processes import Blobs, Engine, Summary
from dovetail.engine.processes import TaskSource as Source
from dovetail.engine.publication import digest_of
from dovetail.engine.rows import Prints, Reader, Sealer, Secret, low_words
from dovetail.engine.supported import estimator_of
from dovetail.ledger.files import write_whole
from dovetail.table.reader import in_several_rows
from dovetail.table.released import Analyst, from_columns, to_columns

# The first pass: how many people and groups there are, who stands twice, what is wrong, and which table this is.


_HASHES = ("fingerprint", "grouping")
PEOPLE = "people"  # folder of sorted prints, one file for each partition
EVERYBODY = "all.npy"  # there, all of them
_HEADER = 128  # bytes of a file of numbers before the numbers


@dataclass(frozen=True)
class PackPeople:
    """Prints of people by their upper bits, so that whoever stands in two rows meets; and totals of the batch.

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
    counted = {name: Counter[str]() for name in ("wrong", "groups")}
    for one in totals:
        for name, counter in counted.items():
            counter.update(one.get(name, {}))
    return {
        "n": sum(one["n"] for one in totals),
        **{name: str(sum(int(one.get(name, 0)) for one in totals) % (1 << 128)) for name in _HASHES},
        "numbers": sum(one.get("numbers", 0) for one in totals),
        "texts": sum(one.get("texts", 0) for one in totals),
        **{name: dict(sorted(counter.items())) for name, counter in counted.items()},
    }


@dataclass(frozen=True)
class Census:
    """What the first pass found out.

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
    """

    n: int
    fingerprint: int
    grouping: int
    groups: dict[str, int]
    mixed: bool

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
        names = {"person": reader.data.person, "private": reader.data.private, "group": columns}
        for sentence, count in totals["wrong"].items():
            raise DataError(f"{sentence.format(n=count, **names)}; correct the table: nothing was released.")
        twice = sum(part["twice"] for part in parts)
        if twice:
            raise DataError(
                f"person column {reader.data.person!r}: {in_several_rows(twice)}; one report per "
                "person, so keep one row each: nothing was released."
            )
        return cls(
            totals["n"], int(totals["fingerprint"]), int(totals["grouping"]), totals["groups"],
            bool(totals["numbers"] and totals["texts"]),
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
# Where it goes, what travels beside it and who ends up where is the arrangement's to say (`engine.orders`).


_KEYS = 16  # bytes


@dataclass(frozen=True)
class PackReports:
    """Randomizes a batch and packs (key, marks, report) by partition."""

    reader: Reader
    secret: Secret
    randomizer: Analyst
    layout: Arrangement

    def __call__(self, frame: pl.DataFrame) -> Blobs:
        rows, layout, sealer = self.reader.exactly(frame), self.layout, Sealer(self.secret)
        keys = keyed_prints(self.secret.of("order"), rows.ids)
        own = KeyedEntropy(self.secret.of(f"randomize {self.randomizer.name}"), rows.ids)
        reports = narrow(self.randomizer, self.randomizer.randomize(rows.values, own))
        parts, marks = layout.send(rows, keys, self.secret)
        columns: list[NDArray[Any]] = [keys, *marks, reports]
        blobs = []
        for part, chosen in by_part(parts):
            content = b"".join(column.take(chosen, axis=0).tobytes() for column in columns)
            blobs.append((part, sealer.seal(content, part)))
        totals = {"n": rows.n, "fingerprint": str(self.reader.fingerprint(rows))}
        return [*blobs, (layout.parts, sealer.seal(json.dumps(totals).encode(), layout.parts))]


@dataclass(frozen=True)
class UnpackReports:
    """Puts a partition into its order, forgets the keys, and writes its reports, the public labels beside them."""

    secret: Secret
    randomizer: Analyst
    layout: Arrangement
    categories: tuple[str, ...] | None
    columns: tuple[str, ...]
    folder: str
    description: str

    def __call__(self, part: int, blobs: list[bytes]) -> Summary:
        sealer, layout = Sealer(self.secret), self.layout
        contents = [sealer.open(blob, part) for blob in blobs]
        if part == layout.parts:
            return add_totals([json.loads(content) for content in contents])
        shape = narrow(self.randomizer, self.randomizer.randomize(_nobody(self.randomizer)))
        keys, marks, reports = _join(
            [_split(content, shape, layout.marks) for content in contents], shape, layout.marks
        )
        order, labels = layout.order(part, keys, marks, self.secret)
        frame = self._frame(labels, reports[order])
        target = Path(self.folder) / f"part-{part:05d}.parquet"
        with write_whole(target) as place:
            frame.write_parquet(place, metadata={"dovetail": self.description})
        return {
            "name": target.name,
            "rows": frame.height,
            "bytes": target.stat().st_size,
            "sha256": digest_of(target),
        }

    def _frame(self, labels: Codes, reports: Reports) -> pl.DataFrame:
        wide = np.dtype(np.int64) if reports.ndim == 1 else reports.dtype
        columns = to_columns(self.randomizer, reports.astype(wide, copy=False), _listed(self.categories))
        if not self.columns:
            return columns
        names = labels_of(self.columns, pl.Series(self.layout.names, dtype=pl.String))
        return pl.DataFrame([*names[labels], *columns])


def narrow(randomizer: Analyst, reports: Reports) -> Reports:
    """Reports in the fewest bytes that hold every report of this randomizer."""
    if reports.ndim > 1 or isinstance(randomizer, NumericRandomizer):
        return reports
    return reports.astype(np.min_scalar_type((1 << randomizer.report_bits) - 1))


def report_bytes(randomizer: Analyst) -> int:
    """Bytes of a report while it travels."""
    shape = narrow(randomizer, randomizer.randomize(_nobody(randomizer)))
    return shape.itemsize * (1 if shape.ndim == 1 else shape.shape[1])


def _nobody(randomizer: Analyst) -> NDArray[Any]:
    return np.empty(0, dtype=np.float64 if isinstance(randomizer, NumericRandomizer) else np.int64)


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


def _listed(categories: tuple[str, ...] | None) -> list[str] | None:
    return None if categories is None else list(categories)


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


def counted(
    engine: Engine,
    source: Source,
    layout: NoisyPlaces,
    reader: Reader,
    secret: Secret,
    *,
    rows: int,
    staging: Path,
    progress: Progress,
) -> NoisyPlaces:
    """The layout with the rows of each partition: a pass that draws the same places as the next one."""
    found = engine.exchange(
        source, PackCounts(reader, secret, layout), UnpackCounts(secret), parts=1, rows=rows, staging=staging,
        progress=progress,
    )  # fmt: skip
    return layout.counted(found.summaries[0])


# Counting what is published: tallies of released files add.


@dataclass(frozen=True)
class TallyFile:
    """The tally (groups, width) of the reports of one file.

    Parameters
    ----------
    group : column of public groups beside the reports, or None
    groups : their names, in order
    """

    randomizer: Analyst
    categories: tuple[str, ...] | None
    group: str | None
    groups: tuple[str, ...]

    def __call__(self, file: Path) -> Tally:
        try:
            table = pl.read_parquet(file)
            reports = from_columns(self.randomizer, table, None if self.categories is None else list(self.categories))
        except (pl.exceptions.PolarsError, OSError, DataError):
            raise OutputError(f"{file}: is damaged; restore it from a backup.") from None
        labels = np.zeros(len(reports), dtype=np.int64)
        if self.group is not None:
            labels = table[self.group].replace_strict(
                list(self.groups), range(len(self.groups)), return_dtype=pl.Int64
            ).to_numpy()  # fmt: skip
        return estimator_of(self.randomizer, max(1, len(self.groups))).tally(reports, labels)
