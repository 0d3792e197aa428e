"""The first pass: how many people and groups there are, who stands twice, what is wrong, and which table this is."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.core.errors import DataError
from dovetail.pipeline.files.table import in_several_rows
from dovetail.scale.engines.engine import Blobs, Summary
from dovetail.scale.passes.people import Prints, low_words
from dovetail.scale.passes.rows import Reader
from dovetail.scale.secrets import Sealer
from dovetail.scale.storage import write_whole

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
