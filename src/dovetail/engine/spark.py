"""The engine of a cluster: Apache Spark through its DataFrame interface alone, classic or Connect (extra `spark`).

A secret is in closures only: never in an expression, a literal or a setting, which event logs keep, and never in a
broadcast, which lies on disk.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from functools import reduce
from logging import LogRecord, getLogger
from operator import add
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar, final
from warnings import catch_warnings, simplefilter

import polars as pl

from dovetail import __version__
from dovetail.core.errors import DataError, StorageError, UnreachableError, UnsupportedError
from dovetail.core.extras import require
from dovetail.core.progress import Progress
from dovetail.engine.processes import Blobs, Counted, Engine, Exchanged, Pack, Summary, Unpack
from dovetail.engine.source import Batch, Source, few_rows
from dovetail.table.data_section import DataSection

# What Spark raises, as one line: ours where a task met it, else the remedy, else Spark's own words.


_OURS = re.compile(r"dovetail_protocol\.errors\.(\w+): (.*)")
_SAME = "set PYSPARK_PYTHON to a Python that has the same dovetail on all machines"
_VERSIONS = re.compile(r"PYTHON_VERSION_MISMATCH")
_PROGRAM = re.compile(r'Cannot run program "([^"]*)"')
_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_FILE = re.compile(r"(?:CANNOT_READ_FILE_FOOTER|FAILED_READ_FILE|Could not read footer|is not a Parquet file)")
_NOWHERE = re.compile(
    r"\[(?:PATH_NOT_FOUND|UNABLE_TO_INFER_SCHEMA)\]|Class [\w.]+ not found|No FileSystem for scheme"
)
_PLACE = re.compile(r"(?:file:)?/*(/[^\s:']+\.(?:parquet|pq))\b")
_DEAD = re.compile(
    r"Error from python worker|Python worker exited unexpectedly|Python worker failed to connect back|worker crashed"
)
_GONE = re.compile(r"Answer from Java side is empty|Error while sending or receiving|Connection refused|StatusCode")
_NOISE = re.compile(r"^An error occurred while calling|^An exception was thrown from the Python worker|^Traceback")
_CLASS = re.compile(r"^:? ?(?:[\w$]+\.)+[\w$]+(?:Exception|Error):(?: |$)")
_TASK = re.compile(r"^.*Lost task [^(]*\(TID \d+\) \([^)]*\): ")

Result = TypeVar("Result")


@contextmanager
def quiet() -> Iterator[None]:
    """Without Spark's remarks on the versions of what is not used here, and on a command that was interrupted."""
    root = getLogger()
    root.addFilter(_is_news)
    try:
        with catch_warnings():
            simplefilter("ignore", FutureWarning)
            simplefilter("ignore", UserWarning)
            simplefilter("ignore", ResourceWarning)
            yield
    finally:
        root.removeFilter(_is_news)


def _is_news(record: LogRecord) -> bool:
    return "while sending command" not in record.getMessage()


def tried(action: Callable[[], Result]) -> Result:
    """The result of an action of Spark, or its fault in one line."""
    try:
        with quiet():
            return action()
    except Exception as error:
        raise told(error) from None


def told(error: BaseException) -> Exception:
    """One line of what a task met."""
    text = str(error)
    ours = _OURS.findall(text)
    if ours:
        kind, line = ours[-1]
        kinds: dict[str, type[Exception]] = {"DataError": DataError, "UnsupportedError": UnsupportedError}
        return kinds.get(kind, StorageError)(line.strip())
    if _VERSIONS.search(text):
        return UnsupportedError(f"Spark's workers run another Python than this one: {_SAME}.")
    if found := _PROGRAM.search(text):
        return UnsupportedError(f"Spark's workers find no program {found[1]}: {_SAME}.")
    if found := _MODULE.search(text):
        return UnsupportedError(f"Spark's workers run a Python that lacks {found[1]}: install it there, or {_SAME}.")
    if _FULL.search(text):
        return StorageError(
            "a disk is full, of --out or of Spark's spark.local.dir; make room and run again: nothing was released."
        )
    if _FILE.search(text):
        place = _PLACE.search(text)
        return DataError(
            f"{place[1] if place else 'a file of the table'}: is not readable as Parquet, or was cut off; replace "
            "it, or take it out of the table: nothing was released."
        )
    if _NOWHERE.search(text):
        return DataError(
            f"Spark finds no table at [data] `path`: {_first(text)}; check it, and what Spark can reach."
        )
    if _DEAD.search(text):
        return StorageError(
            f"Spark's workers end at once, for want of memory or because their Python is too old: {_SAME}. Nothing "
            "was released."
        )
    if _GONE.search(text):
        return StorageError("Spark has gone away; start it again and run again: nothing was released.")
    return StorageError(f"Spark gave up: {_first(text) or type(error).__name__}; nothing was released.")


def _first(text: str) -> str:
    """The first line that says something, without the names of classes before it."""
    lines = (_CLASS.sub("", _TASK.sub("", _CLASS.sub("", line.strip()))) for line in text.splitlines())
    said = next((line for line in lines if line and not _NOISE.match(line)), "")
    return said[:200].rstrip(".")


# Starting a Spark session, or saying in one line why there is none: Java, the workers' Python, the address.


PATIENCE = 10.0  # seconds until a host that does not answer is given up
_MASTER = re.compile(r"local(-cluster)?(\[.+\])?|(spark|sc|k8s)://.+|yarn(-.+)?")
_PORTS = {"spark": 7077, "sc": 15002}
_REMEDY = "apt-get install openjdk-17-jre-headless, or set JAVA_HOME"
_LOCAL = {
    "spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1", "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR",
}  # fmt: skip


def session_at(master: str) -> Any:
    """A session of Spark at this address.

    Raises
    ------
    MissingExtraError
        Without pyspark.
    UnsupportedError
        Without Java, or a Python for the workers.
    UnreachableError
        When nobody listens there.
    """
    sql = require("pyspark.sql", extra="spark")
    need_address(master)
    remote = master.startswith("sc://")
    if not remote:
        need_java()
        need_python()
    builder = sql.SparkSession.builder.appName("dovetail")
    settings = _LOCAL if master.startswith("local") else {}
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with quiet(), _own_interrupts():
            if not remote:
                _begin({"spark.app.name": "dovetail", "spark.master": master, **settings})
            return (builder.remote(master) if remote else builder.master(master)).getOrCreate()
    except StorageError:
        raise
    except Exception as error:
        if "unresponsive" in str(error):
            raise UnreachableError(f"{master}: no Spark answers there; check --master.") from None
        raise told(error) from None


def need_address(master: str) -> None:
    """Refuse what is no address of Spark, and one where nobody listens: Spark itself would try for minutes."""
    if not _MASTER.fullmatch(master):
        raise UnsupportedError(
            f"`master` must be local[4], spark://host:7077, sc://host:15002, yarn or k8s://..., got {master!r}."
        )
    kind, _, rest = master.partition("://")
    if kind not in _PORTS:
        return
    fault = ""
    for one in re.split(r"[/;]", rest)[0].split(","):
        host, _, port = one.rpartition(":") if re.search(r":\d+$", one) else (one, "", str(_PORTS[kind]))
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
            return
        except (OSError, OverflowError) as error:
            fault = getattr(error, "strerror", None) or str(error)
    raise UnreachableError(f"{master}: nobody answers there ({fault}); check --master, and that Spark is running.")


def need_java() -> None:
    """Refuse to start Spark where it would find no Java; its scripts complain in their own words."""
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(Path(home) / "bin" / "java", os.X_OK):
        raise UnsupportedError(f"Spark needs Java 17 or later, and JAVA_HOME={home} has no bin/java: {_REMEDY}.")
    if not home and shutil.which("java") is None:
        raise UnsupportedError(f"Spark needs Java 17 or later, and none was found: {_REMEDY}.")


def need_python() -> None:
    """Give the workers this Python, unless PYSPARK_PYTHON names one; refuse a name without a program."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ[name] = os.environ.get(name) or sys.executable
    named = os.environ["PYSPARK_PYTHON"]
    if shutil.which(named) is None:
        raise UnsupportedError(
            f"PYSPARK_PYTHON={named} is no program that runs here: name the Python of all machines, or unset it."
        )


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Ctrl-C stays what it was: Spark would ask Java to stop from within a question to Java, which fails loudly."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _begin(settings: dict[str, str]) -> None:
    """Start Java; its remarks, and tracebacks of tasks that Spark tries again, go to a file without a name."""
    pyspark, gateway = require("pyspark", extra="spark"), require("pyspark.java_gateway", extra="spark")
    started = pyspark.SparkContext._gateway is not None
    if started or os.environ.get("DOVETAIL_DEBUG") or {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"} & {*os.environ}:
        return
    conf = pyspark.SparkConf().setAll(list(settings.items()))
    with TemporaryFile() as log:
        try:
            java = gateway.launch_gateway(conf, {"stdout": log, "stderr": log})
        except Exception:
            log.seek(0)
            raise _no_start(log.read().decode(errors="replace")) from None
    pyspark.SparkContext(conf=conf, gateway=java)


def _no_start(log: str) -> Exception:
    """Why Java ended before Spark had begun."""
    if "UnsupportedClassVersionError" in log or "Unrecognized option" in log:
        return UnsupportedError(f"Spark needs Java 17 or later, and the one that was found is older: {_REMEDY}.")
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    cause = next((line for line in lines if "rror" in line or "xception" in line), (lines or ["it said nothing"])[-1])
    return StorageError(f"Spark's Java ended at once: {cause[:200].rstrip('.')}; nothing was released.")


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

    def source(self, data: DataSection, table: Any = None, further: Sequence[str] = ()) -> SparkSource | Source:
        """Files that the tasks read themselves, which saves Spark's way from row to row; or a data frame."""
        wanted = [name for name in (data.person, data.private, *further, *data.public) if name]
        if table is None and data.table is not None:
            table = self._table(data.table)
        if table is None and "://" not in (data.path or ""):
            files = Source.of(data, further)
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
        named = [(place, *astuple(one)) for place, one in enumerate(source.batches(rows))]
        frame = self.session.createDataFrame(named, "place int, file string, start long, rows long, before long")
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
        named = (one for batch in batches for one in batch.drop_columns(["place"]).to_pylist())
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
