"""Files that a person has opened: tables in folders of their own, reports in memory; nothing is kept for ever."""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl
import polars.selectors as cs
from starlette.requests import Request

from dovetail.collect.http import Refusal, stream_limited
from dovetail.table.csv_text import SEPARATORS
from dovetail.table.reader import is_text_file

Item = TypeVar("Item")

MOST_TABLES, MOST_REPORTS = 6, 24
_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq")


@dataclass(frozen=True)
class OpenedTable:
    """A copy of a table, in a folder that holds nothing else."""

    name: str
    folder: Path
    id: str

    @property
    def path(self) -> Path:
        """Place of the copy."""
        return self.folder / self.name


@dataclass(frozen=True)
class OpenedReport:
    """A report that can be rendered."""

    name: str
    document: dict[str, Any] = field(repr=False)
    id: str


class Shelf(Generic[Item]):
    """Things by their id, the latest of them."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, OrderedDict[str, Item]()

    def put(self, id: str, item: Item) -> list[Item]:
        """Add one; those that have to go for it."""
        self._held[id] = item
        return [self._held.popitem(last=False)[1] for _ in range(len(self._held) - self._most)]

    def __getitem__(self, id: str) -> Item:
        if id not in self._held:
            raise Refusal("not_found", "this was closed, or never opened here.")
        return self._held[id]

    def remove(self, id: str) -> None:
        """Take one off."""
        self._held.pop(id, None)

    def all(self) -> list[Item]:
        """Everything, in the order in which it was opened."""
        return list(self._held.values())


def new_id() -> str:
    """An id that nobody guesses and that is safe in a path."""
    return secrets.token_hex(8)


def new_table(name: str, folder: Path) -> OpenedTable:
    """A place for a table: the file's name is the person's, less what could mean a path."""
    id = new_id()
    table = OpenedTable(safe_name(name), folder / id, id)
    table.folder.mkdir(mode=0o700)
    return table


def discard(table: OpenedTable) -> None:
    """Delete the copy."""
    shutil.rmtree(table.folder, ignore_errors=True)


def safe_name(name: str) -> str:
    """A plain file name with a suffix of a table.

    >>> safe_name("../../etc/passwd"), safe_name("C:\\\\my survey.CSV"), safe_name("..")
    ('passwd.csv', 'my_survey.csv', 'table.csv')
    """
    last = re.split(r"[/\\]", name)[-1]
    stem, dot, suffix = last.rpartition(".")
    kind = f".{suffix.lower()}" if dot and f".{suffix.lower()}" in _TABLES else ".csv"
    bare = re.sub(r"[^A-Za-z0-9_-]+", "_", stem if dot and kind == f".{suffix.lower()}" else last).strip("_-")
    return f"{bare[:60] or 'table'}{kind}"


# Bodies that a browser sends: to a file or into memory, within a size and a time.


MOST_TABLE = 256 << 20  # bytes
MOST_REPORT = 16 << 20
MOST_FORM = 256 << 10
LONGEST = 300.0  # seconds for a whole body


async def save(request: Request, place: Path, most: int = MOST_TABLE) -> int:
    """Write the body to `place`; its size. What is refused on the way leaves no file."""
    size = 0
    try:
        async with asyncio.timeout(LONGEST):
            with place.open("xb") as file:
                async for piece in stream_limited(request, most):
                    size += await asyncio.to_thread(file.write, piece)
    except BaseException as error:
        place.unlink(missing_ok=True)
        if isinstance(error, TimeoutError):
            raise Refusal("timeout", f"the file did not arrive within {LONGEST:g} seconds.") from None
        raise
    return size


async def read(request: Request, most: int) -> bytes:
    """The body in memory."""
    try:
        async with asyncio.timeout(LONGEST):
            return b"".join([piece async for piece in stream_limited(request, most)])
    except TimeoutError:
        raise Refusal("timeout", f"the file did not arrive within {LONGEST:g} seconds.") from None


# How large a table may be once it is unpacked: few bytes of Parquet, or of short lines, can be very many rows.


MOST_ROWS = 10_000_000
MOST_COLUMNS = 2_000
MOST_CELLS = 100_000_000
MOST_TEXT = 1 << 30  # bytes of all texts of a Parquet file, which may say once what stands in every row
_PIECE = 1 << 20


def refuse_too_large(place: Path) -> None:
    """Refusal for a table that would fill the memory, before it is read; what is no table is left to the reader."""
    rows, columns = _of_text(place) if is_text_file(str(place)) else _of_parquet(place)
    for count, most, things in (
        (columns, MOST_COLUMNS, "columns"),
        (rows, MOST_ROWS, "rows"),
        (rows * columns, MOST_CELLS, "values"),
    ):
        if count > most:
            raise Refusal("too_large", f"a table of at most {most:,} {things} is taken here, got {count:,}.")


def _of_text(place: Path) -> tuple[int, int]:
    """At most so many rows, and the fields of the first line."""
    with place.open("rb") as file:
        first = file.readline(_PIECE)
    rows = max(sum(piece.count(end) for piece in _pieces(place)) for end in (b"\n", b"\r"))
    return rows, 1 + max(first.count(mark.encode()) for mark in SEPARATORS)


def _pieces(place: Path) -> Iterator[bytes]:
    with place.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _of_parquet(place: Path) -> tuple[int, int]:
    """Rows and columns as the file declares them; its texts are counted where they are few enough to be."""
    try:
        table = pl.scan_parquet(place)
        rows, columns = table.select(pl.len()).collect().item(), len(table.collect_schema())
        if rows <= MOST_ROWS and columns <= MOST_COLUMNS:
            texts = table.select(cs.string().str.len_bytes().sum()).collect().row(0)
            if sum(texts) > MOST_TEXT:
                raise Refusal("too_large", f"a table of at most {MOST_TEXT >> 20:,} MB of text is taken here.")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return 0, 0
    return rows, columns
