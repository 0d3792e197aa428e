"""What an engine can do: exchange packed rows between tasks, and count what was written. Jobs know no more of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import polars as pl

from dovetail.pipeline.config.sections import DataSection
from dovetail.pipeline.progress import Progress


class Source(Protocol):
    """A table as an engine reads it."""

    @property
    def n(self) -> int:
        """Number of rows."""
        ...


Blobs = list[tuple[int, bytes]]  # (partition, sealed rows)
Summary = dict[str, Any]  # JSON-ready, the same in every attempt
Counted = TypeVar("Counted")


class Pack(Protocol):
    """From a batch of rows to one sealed blob for each partition; knows no engine.

    Law: what it returns is a function of itself and the rows, whatever the attempt.
    """

    def __call__(self, frame: pl.DataFrame) -> Blobs: ...


class Unpack(Protocol):
    """From all blobs of a partition to a file, written under a name of its own or not at all; knows no engine.

    Law: the file and the summary are functions of itself and the set of blobs, whatever their order.
    """

    def __call__(self, part: int, blobs: list[bytes]) -> Summary: ...


@dataclass(frozen=True)
class Exchanged:
    """The summaries of all partitions, in their order, and how many tasks were tried again."""

    summaries: tuple[Summary, ...]
    retried: int


class Engine(ABC):
    """Runs the tasks of a job, again where they fail, in any order and place."""

    name: str

    @abstractmethod
    def source(self, data: DataSection, table: Any = None) -> Source:
        """The table that [data] names, or the one that is given, looked at but not read."""

    @abstractmethod
    def exchange(
        self, source: Any, pack: Pack, unpack: Unpack, *, parts: int, rows: int, staging: Path, progress: Progress
    ) -> Exchanged:
        """Pack all batches of at most `rows` rows and unpack what was sent to each of 0..parts-1."""

    @abstractmethod
    def count(self, files: Sequence[Path], tally: Callable[[Path], Counted], *, progress: Progress) -> Counted:
        """The sum of what `tally` counts in each file."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What a report says of it: `name`, and `where` the job ran, in words."""

    @abstractmethod
    def close(self) -> None:
        """Give back what was started."""
