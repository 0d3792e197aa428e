"""Files that are whole or not there, and the one line of a disk that is full."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from dovetail.core.errors import StorageError, UnsupportedError

_PIECE = 1 << 20


@contextmanager
def write_whole(target: Path) -> Iterator[Path]:
    """A file beside `target` that takes its name when the block ends well; attempts of one task do not meet.

    Raises
    ------
    StorageError
        When it cannot be written.
    """
    scratch = target.with_name(f".{target.stem}-{uuid4().hex[:12]}{target.suffix}")
    try:
        yield scratch
        scratch.replace(target)
    except OSError as error:
        raise cannot_write(target.parent, error) from None
    finally:
        scratch.unlink(missing_ok=True)


def cannot_write(place: Path, error: OSError) -> StorageError:
    """The one line of a disk that is full or forbidden."""
    return StorageError(f"{place}: cannot be written ({error.strerror or error}); nothing was released.")


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    found = sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def memory() -> int:
    """Bytes of memory that this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return sys.maxsize


def need_memory(what: str, wanted: int, instead: str) -> None:
    """UnsupportedError before a machine is asked for more than it has, which would end in a process killed."""
    if wanted > memory():
        raise UnsupportedError(
            f"--engine: {what} takes {wanted / 1e9:.1f} GB, and this machine has {memory() / 1e9:.1f} GB of memory; "
            f"{instead}."
        )


def need_space(folder: Path, wanted: int) -> None:
    """StorageError before anything is read, where the disk cannot hold what the job will write."""
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise StorageError(
            f"{folder}: this job may write {_sized(wanted)} there, and {_sized(free)} are free; make room, or name a "
            "place on another disk with --out."
        )


def _sized(size: float) -> str:
    """Bytes in words.

    >>> _sized(0), _sized(2_345_000), _sized(17e9)
    ('0 MB', '2.3 MB', '17.0 GB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB" if size else "0 MB"
