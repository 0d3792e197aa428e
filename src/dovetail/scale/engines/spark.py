"""The engine of a cluster: Apache Spark through its DataFrame interface alone, classic or Connect (extra `spark`).

A secret is in closures only: never in an expression, a literal or a setting, which event logs keep, and never in a
broadcast, which lies on disk.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, final

import polars as pl

from dovetail import __version__
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.extras import require
from dovetail.pipeline.config.sections import DataSection
from dovetail.pipeline.progress import Progress
from dovetail.scale.engines.engine import Blobs, Counted, Engine, Exchanged, Pack, Summary, Unpack
from dovetail.scale.engines.spark_errors import quiet, told, tried
from dovetail.scale.engines.spark_session import session_at
from dovetail.scale.source import Batch, Source, few_rows

MOST_CLOSURE = 1 << 19  # bytes; above 1 MiB Spark broadcasts a closure, which lies on disk
_BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"


@dataclass(frozen=True, eq=False)
class SparkSource:
    """A Spark data frame of the columns that are read, with its number of rows."""

    frame: Any
    n: int


@final
@dataclass(eq=False)
class Spark(Engine):
    """Runs the tasks on Spark; every machine sees the staging folder and has this Python with this dovetail.

    Parameters
    ----------
    session : SparkSession
        Classic or Connect.
    own : bool
        Whether to stop it afterwards, so that it forgets the secret.
    """

    name = "spark"
    session: Any
    own: bool = False

    def __post_init__(self) -> None:
        self._refuse_plain_network()
        self._check_workers()

    def source(self, data: DataSection, table: Any = None) -> SparkSource | Source:
        """Files that the tasks read themselves, which saves Spark's way from row to row; or a data frame."""
        wanted = [name for name in (data.person, data.private, *data.public) if name]
        if table is None and data.table is not None:
            table = self._table(data.table)
        if table is None and "://" not in (data.path or ""):
            files = Source.of(data)
            return replace(files, files=tuple((str(Path(file).absolute()), rows) for file, rows in files.files))
        frame = tried(lambda: self.session.read.parquet(data.path)) if table is None else table
        known = tried(lambda: frame.columns)  # Connect asks only now
        missing = [name for name in wanted if name not in known]
        if missing:
            raise DataError(f"the table has no column {missing[0]!r}.")
        n = tried(frame.count)
        if not n:
            raise DataError("the table has no rows.")
        quoted = ["`" + name.replace("`", "``") + "`" for name in wanted]
        return SparkSource(frame.select(*quoted), n)

    def exchange(
        self, source: Any, pack: Pack, unpack: Unpack, *, parts: int, rows: int, staging: Path, progress: Progress
    ) -> Exchanged:
        few = few_rows(parts)
        self.session.conf.set(_BATCH_SETTING, str(min(rows, few)))
        with quiet():
            if isinstance(source, Source):
                read, task = self._batches(source, rows), checked(_PackFiles(pack, source.columns, few))
            else:
                read, task = source.frame, checked(_PackBatches(pack))
            packed = read.mapInArrow(task, "part int, blob binary")
            moved = packed.repartitionById(parts, packed["part"])
            done = moved.mapInArrow(checked(_UnpackBlobs(unpack)), "part int, summary string")
        progress("randomize and exchange", 0, 1)
        failed = self._failed()
        found: dict[int, Summary] = {row[0]: json.loads(row[1]) for row in tried(done.collect)}
        for part in range(parts):
            if part not in found:  # nobody's report fell into it
                found[part] = unpack(part, [])
        progress("order and write", 1, 1)
        return Exchanged(tuple(found[part] for part in range(parts)), self._failed() - failed)

    def count(self, files: Sequence[Path], tally: Callable[[Path], Counted], *, progress: Progress) -> Counted:
        progress("count the reports", 0, len(files))
        paths = self.session.createDataFrame(
            [(place, str(file)) for place, file in enumerate(files)], "part int, file string"
        )
        spread = paths.repartitionById(len(files), paths["part"])
        found = tried(lambda: spread.mapInArrow(checked(_CountFiles(tally)), "counted binary").collect())
        total: Counted = reduce(add, [pickle.loads(bytes(row[0])) for row in found])
        progress("count the reports", len(files), len(files))
        return total

    def describe(self) -> dict[str, Any]:
        master = self._setting("spark.master", "connect")
        return {"name": self.name, "workers": None, "where": f"on Spark ({master.split('[')[0].split(':')[0]})"}

    def close(self) -> None:
        if self.own:
            with quiet():
                self.session.stop()

    def _batches(self, source: Source, rows: int) -> Any:
        """A data frame whose every partition names a batch."""
        named = [(place, one.file, one.start, one.rows) for place, one in enumerate(source.batches(rows))]
        frame = self.session.createDataFrame(named, "place int, file string, start long, rows long")
        return frame.repartitionById(len(named), frame["place"])

    def _table(self, name: str) -> Any:
        """A table of the catalogue; DataError where there is none."""
        try:
            with quiet():
                frame = self.session.table(name)
                _ = frame.schema  # Connect asks for it only now
            return frame
        except Exception as error:
            if "NOT_FOUND" in str(error) or "PARSE_SYNTAX_ERROR" in str(error):
                raise DataError(f"Spark's catalogue has no table {name!r}.") from None
            raise told(error) from None

    def _refuse_plain_network(self) -> None:
        """Closures carry the secret: beyond one host only through an encrypted network."""
        master = self._setting("spark.master", "local")
        if not master.startswith("local") and self._setting("spark.network.crypto.enabled", "false") != "true":
            raise UnsupportedError(
                f"Spark at {master} would send the secret of the release over a plain network: start the session "
                "with spark.authenticate=true and spark.network.crypto.enabled=true."
            )

    def _check_workers(self) -> None:
        """One task, which says what runs there; DataError where that is another Python or dovetail."""
        there = tried(lambda: self.session.range(1).mapInArrow(_versions, "version string").collect())[0][0]
        here = _version()
        if there != here:
            raise UnsupportedError(
                f"Spark's workers run {there}, but this is {here}: install the same on all machines."
            )

    def _setting(self, name: str, default: str) -> str:
        return str(self.session.conf.get(name, default))

    def _failed(self) -> int:
        """Failed attempts so far; 0 where Spark does not tell, as with Connect."""
        context = getattr(self.session, "_sc", None)
        if context is None:
            return 0
        tracker = context.statusTracker()
        known = [
            tracker.getStageInfo(stage) for job in tracker.getJobIdsForGroup() for stage in _stages(tracker, job)
        ]
        return sum(stage.numFailedTasks for stage in known if stage is not None)


def session_of(table: Any) -> Any:
    """The session of a Spark data frame."""
    session = getattr(table, "sparkSession", None)
    if session is None or not hasattr(table, "mapInArrow"):
        raise UnsupportedError(f"`table` must be a Spark data frame, got a value of type {type(table).__name__}.")
    return session


def start(master: str) -> Spark:
    """An engine with a session of its own, or with the one that this process has; errors as `session_at` has them."""
    own = require("pyspark.sql", extra="spark").SparkSession.getActiveSession() is None
    session = session_at(master)
    try:
        return Spark(session, own=own)
    except BaseException:
        if own:
            with quiet():
                session.stop()
        raise


@dataclass(frozen=True)
class _PackBatches:
    pack: Pack

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        arrow = require("pyarrow", extra="spark")
        for batch in batches:
            if batch.num_rows:
                frame = pl.from_arrow(batch)
                assert isinstance(frame, pl.DataFrame)
                yield _as_batch(arrow, self.pack(frame))


@dataclass(frozen=True)
class _PackFiles:
    pack: Pack
    columns: tuple[str, ...]
    few: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        arrow = require("pyarrow", extra="spark")
        named = (one for batch in batches for one in batch.select(["file", "start", "rows"]).to_pylist())
        for batch in (Batch(**one) for one in named):
            for rows in batch.pieces(self.columns, self.few):
                yield _as_batch(arrow, self.pack(rows))


def _as_batch(arrow: Any, packed: Blobs) -> Any:
    parts, blobs = zip(*packed, strict=True)
    columns = [arrow.array(parts, arrow.int32()), arrow.array(blobs, arrow.binary())]
    return arrow.RecordBatch.from_arrays(columns, names=["part", "blob"])


@dataclass(frozen=True)
class _UnpackBlobs:
    unpack: Unpack

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        arrow = require("pyarrow", extra="spark")
        mine: dict[int, list[bytes]] = {}
        for batch in batches:
            for part, blob in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                mine.setdefault(part, []).append(blob)
        done = [(part, json.dumps(self.unpack(part, mine.pop(part)), sort_keys=True)) for part in sorted(mine)]
        columns = [
            arrow.array([one[0] for one in done], arrow.int32()),
            arrow.array([one[1] for one in done], arrow.string()),
        ]
        yield arrow.RecordBatch.from_arrays(columns, names=["part", "summary"])


@dataclass(frozen=True)
class _CountFiles:
    tally: Callable[[Path], Any]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        arrow = require("pyarrow", extra="spark")
        for batch in batches:
            counted = [pickle.dumps(self.tally(Path(file))) for file in batch.column("file").to_pylist()]
            yield arrow.RecordBatch.from_arrays([arrow.array(counted, arrow.binary())], names=["counted"])


def checked(task: Any) -> Any:
    """A task that is small enough to travel in a closure."""
    if len(pickle.dumps(task)) > MOST_CLOSURE:
        raise UnsupportedError(
            "so many categories or groups would make Spark write the secret of the release to disk; join some, or "
            "use --engine processes."
        )

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        return iter(task(batches))

    return run


def _versions(batches: Iterable[Any]) -> Iterator[Any]:
    arrow = require("pyarrow", extra="spark")
    for _ in batches:
        yield arrow.RecordBatch.from_arrays([arrow.array([_version()])], names=["version"])


def _version() -> str:
    return f"Python {sys.version_info.major}.{sys.version_info.minor} with dovetail {__version__}"


def _stages(tracker: Any, job: int) -> list[int]:
    info = tracker.getJobInfo(job)
    return [] if info is None else list(info.stageIds)
