"""Files and folders of results that are either complete or not there, and still there after a power cut."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from dovetail.core.errors import ConfigError, DataError, OutputError, StorageError

# A file that is complete or not there.


@contextmanager
def write_whole(target: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """A file beside `target` that takes its name when the block ends well; attempts of several processes do not meet.

    Parameters
    ----------
    mode : int
        Of a file that only its owner may read: 0o600; what the process masks is taken away.

    Raises
    ------
    OutputError, StorageError
        When there is no place for it, and when the disk does not take it.
    """
    scratch = target.with_name(f".{target.stem}-{uuid4().hex[:12]}{target.suffix}")
    try:
        scratch.touch(mode=mode, exist_ok=False)
    except OSError as error:
        raise OutputError(f"{target}: cannot be written ({error.strerror}); name another place.") from None
    try:
        yield scratch
        scratch.replace(target)
    except _faults_of_disks() as error:
        why = getattr(error, "strerror", None) or error
        raise StorageError(f"{target}: could not be written ({why}); nothing was left.") from None
    finally:
        scratch.unlink(missing_ok=True)


def _faults_of_disks() -> tuple[type[Exception], ...]:
    """Errors of writing a file; polars, where it is loaded, has its own."""
    polars = sys.modules.get("polars")
    return (OSError,) if polars is None else (OSError, polars.exceptions.PolarsError)


def replace_durably(target: Path, content: bytes) -> None:
    """Replace a file at once or not at all, and for good: a power cut undoes nothing.

    It keeps its mode, since servers may read it as another user; a new file is its owner's alone.

    Raises
    ------
    OutputError, StorageError
    """
    with write_whole(target, mode=0o600) as scratch:
        scratch.write_bytes(content)
        if target.exists():
            scratch.chmod(target.stat().st_mode & 0o777)
        sync(scratch)
    try:
        sync(target.parent)
    except OSError as error:
        raise StorageError(f"{target}: was written, but may be lost in a power cut ({error.strerror}).") from None


# Reading a document that a user names.


def read_json(place: Path, *, error: type[ConfigError | DataError] = DataError) -> Any:
    """The document of a JSON file, or an error of this kind that says in one line what is wrong with it."""
    try:
        return json.loads(place.read_text("utf-8-sig"))
    except OSError as fault:
        raise error(f"{place}: cannot be read ({fault.strerror}).") from None
    except (ValueError, RecursionError):
        raise error(f"{place}: is not JSON.") from None


# Writing a folder of results so that it is either complete or not there.


OURS = {"report.json", "report.html", "sanitized.parquet"}  # what a folder of ours holds, and nothing else


def check_target(target: Path, *, force: bool | None) -> None:
    """Refuse early what `publish` would refuse late: existing folders and places that cannot be written.

    `force` is None where nothing is ever replaced.
    """
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise OutputError(f"{target}: exists and is not a folder; name another place with --out.")
    if target.exists() and any(target.iterdir()):
        foreign = sorted(path.name for path in target.iterdir() if path.name not in OURS)
        if foreign:
            raise OutputError(f"{target}: holds {foreign[0]!r}, which is no report; name another place with --out.")
        if force is None:
            raise OutputError(f"{target}: holds a report already; name another place with --out.")
        if not force:
            raise OutputError(f"{target}: holds a report already; use --force to replace it, or another --out.")
    try:
        if target.is_mount():
            raise OutputError(f"{target}: is a mount point, which cannot be replaced; name a folder inside it.")
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=_existing_parent(target)):
            pass
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{target}: cannot be written ({error.strerror}); name another place with --out.") from None


@contextmanager
def publish(target: Path, *, force: bool) -> Iterator[Path]:
    """A scratch folder beside `target` that takes its place when the block ends well, and vanishes otherwise."""
    check_target(target, force=force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise OutputError(f"{target}: cannot be written ({error.strerror}).") from None
    try:
        work = scratch / "new"
        work.mkdir()
        yield work
        if target.exists():
            target.rename(scratch / "old")
        work.rename(target)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise StorageError(f"{target}: could not be written ({error.strerror or error}); nothing was left.") from None
    finally:
        if (scratch / "old").exists() and not target.exists():
            (scratch / "old").rename(target)
        shutil.rmtree(scratch, ignore_errors=True)


def _existing_parent(target: Path) -> Path:
    for parent in target.absolute().parents:
        if parent.exists():
            return parent
    return Path.cwd()


# What must be there after a power cut.


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on disk before what depends on them is done.

    Raises
    ------
    OSError
        When the disk does not take it.
    """
    if path.is_dir() and os.name == "nt":
        return  # Windows has no descriptors of folders
    handle = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def put_once(place: Path, content: bytes) -> None:
    """Create a file at once, completely and on disk; anybody who comes second keeps the first one's.

    Raises
    ------
    OSError
        When the disk does not take it.
    """
    handle, scratch = tempfile.mkstemp(dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        sync(Path(scratch))
        os.link(scratch, place)
    except FileExistsError:
        pass
    finally:
        Path(scratch).unlink()
    sync(place.parent)


# What a process had done when it was killed.


@dataclass(frozen=True)
class LineJournal:
    """JSON values in a file, one a line: a killed process loses none that was appended.

    Only the file's owner may read it. A line that was cut off is none.

    Parameters
    ----------
    place : Path
    """

    place: Path

    def read(self) -> list[Any]:
        """All values, in the order in which they were appended; none where there is no file.

        Raises
        ------
        OSError, UnicodeDecodeError
        """
        found = []
        for line in self.place.read_text(encoding="ascii").splitlines() if self.place.exists() else ():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    def append(self, value: Any) -> None:
        """Write one more.

        Raises
        ------
        OSError
            When the disk does not take it.
        """
        descriptor = os.open(self.place, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                file.write(b"" if file.read() == b"\n" else b"\n")  # ends a line that was cut off
            file.write(json.dumps(value).encode("ascii") + b"\n")
