"""The engine of one machine: plain processes, each with one batch in memory, and sealed files between them."""

from __future__ import annotations

import multiprocessing
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Protocol, TypeVar, final

import polars as pl

from dovetail.core.errors import StorageError, UnsupportedError
from dovetail.core.progress import Progress
from dovetail.engine.source import Batch, Source, few_rows
from dovetail.ledger.files import write_whole
from dovetail.table.data_section import DataSection

# What an engine can do: exchange packed rows between tasks, and count what was written. Jobs know no more of it.


class TaskSource(Protocol):
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
    def source(self, data: DataSection, table: Any = None, further: Sequence[str] = ()) -> TaskSource:
        """The table that [data] names, or the one that is given, looked at but not read.

        `further` are private columns beside the first one.
        """

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
        """The engine for the report: its `name`, and `where` the job ran, in words."""

    @abstractmethod
    def close(self) -> None:
        """Give back what was started."""


MOST_ATTEMPTS = 3
EXCHANGE = "exchange"  # folder of sealed rows, gone when the partitions are written

Result = TypeVar("Result")
Told = Callable[[int], None]  # how many tasks are done
Stretch = tuple[int, str, int, int]  # partition, file, offset, length


@final
@dataclass(eq=False)
class Processes(Engine):
    """As many processes as `workers`; with one, this process alone.

    A process that dies, by hand or for want of memory, is replaced and its tasks are done again, at most three times;
    they draw the same reports. Secrets reach the processes through pipes.
    """

    name = "processes"
    workers: int
    _pool: ProcessPoolExecutor | None = field(default=None, init=False, repr=False)
    _retried: int = field(default=0, init=False, repr=False)

    def source(self, data: DataSection, table: Any = None, further: Sequence[str] = ()) -> Source:
        if table is not None:
            raise UnsupportedError("`table` must be a Spark data frame; processes read files, [data] `path`.")
        if data.table is not None:
            raise UnsupportedError(f"[data] `table` {data.table!r} is of Spark's catalogue: use --engine spark.")
        return Source.of(data, further)

    def exchange(
        self, source: Any, pack: Pack, unpack: Unpack, *, parts: int, rows: int, staging: Path, progress: Progress
    ) -> Exchanged:
        before, folder = self._retried, staging / EXCHANGE
        folder.mkdir(exist_ok=True)
        batches = list(source.batches(rows))
        few = few_rows(parts)
        packing = [(pack, batch, source.columns, few, str(folder / f"{i:06d}")) for i, batch in enumerate(batches)]
        stretches = self._all(_pack, packing, lambda done: progress("randomize and exchange", done, len(batches)))
        mine: list[list[Stretch]] = [[] for _ in range(parts)]
        for stretch in (one for some in stretches for one in some):
            mine[stretch[0]].append(stretch)
        unpacking = [(unpack, part, mine[part]) for part in range(parts)]
        summaries = self._all(_unpack, unpacking, lambda done: progress("order and write", done, parts))
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        return Exchanged(tuple(summaries), self._retried - before)

    def count(self, files: Sequence[Path], tally: Callable[[Path], Counted], *, progress: Progress) -> Counted:
        tasks = [(tally, file) for file in files]
        counted = self._all(_count, tasks, lambda done: progress("count the reports", done, len(files)))
        total: Counted = reduce(add, counted)
        return total

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "workers": self.workers, "where": "on one machine"}

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _all(self, function: Callable[..., Result], tasks: Sequence[Any], tell: Told) -> list[Result]:
        """The results of all tasks in their order."""
        if self.workers == 1:
            return [self._told(function(*task), tell, done) for done, task in enumerate(tasks, start=1)]
        results: dict[int, Result] = {}
        for _ in range(MOST_ATTEMPTS):
            todo = [place for place in range(len(tasks)) if place not in results]
            try:
                waiting = {self._start(function, tasks[place]): place for place in todo}
                for future in as_completed(waiting):
                    results[waiting[future]] = future.result()
                    tell(len(results))
                return [results[place] for place in range(len(tasks))]
            except BrokenProcessPool:
                self._retried += len(tasks) - len(results)
                self.close()
        raise StorageError(
            f"a process died {MOST_ATTEMPTS} times in a row, most likely for want of memory; nothing was released. "
            "Use fewer --workers, and start the job below `if __name__ == '__main__':` in a program of your own."
        )

    @staticmethod
    def _told(result: Result, tell: Told, done: int) -> Result:
        tell(done)
        return result

    def _start(self, function: Callable[..., Result], task: Any) -> Future[Result]:
        if self._pool is None:
            # spawned: a copy of this process would share its compiled code's locks and polars' threads
            self._pool = ProcessPoolExecutor(self.workers, mp_context=multiprocessing.get_context("spawn"))
        with _deaf():
            return self._pool.submit(function, *task)


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that begin here do not hear Ctrl-C: this one does, and ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def default_workers() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def need_workers(workers: object) -> int:
    """A number of processes, at least 1."""
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise UnsupportedError(f"`workers` must be a whole number, at least 1, got {workers!r}.")
    return workers


def _pack(pack: Pack, batch: Batch, columns: Sequence[str], few: int, target: str) -> list[Stretch]:
    """Pack a batch, a few rows at a time, into one file; which stretch of it is for which partition."""
    stretches, offset = [], 0
    with write_whole(Path(target)) as place, place.open("wb") as file:
        for part, blob in (one for rows in batch.pieces(columns, few) for one in pack(rows)):
            file.write(blob)
            stretches.append((part, target, offset, len(blob)))
            offset += len(blob)
    return stretches


def _unpack(unpack: Unpack, part: int, stretches: Sequence[Stretch]) -> Summary:
    """Unpack the stretches of a partition."""
    blobs = []
    for _, path, offset, length in stretches:
        with Path(path).open("rb") as file:
            file.seek(offset)
            blobs.append(file.read(length))
    return unpack(part, blobs)


def _count(tally: Callable[[Path], Counted], file: Path) -> Counted:
    return tally(file)
