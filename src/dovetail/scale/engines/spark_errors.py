"""What Spark raises, as one line: ours where a task met it, else the remedy, else Spark's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import LogRecord, getLogger
from typing import TypeVar
from warnings import catch_warnings, simplefilter

from dovetail.core.errors import DataError, StorageError, UnsupportedError

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
    """What an action of Spark gives, or the one line of what it met."""
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
