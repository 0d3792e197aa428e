"""What a person has opened: tables in folders of their own, reports in memory; nothing is kept for ever."""

from __future__ import annotations

import re
import secrets
import shutil
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from dovetail.collect.http.problems import Refusal

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
        """Where the copy lies."""
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
