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
        raise StorageError(
            f"{target.parent}: cannot be written ({error.strerror or error}); nothing was released."
        ) from None
    finally:
        scratch.unlink(missing_ok=True)


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
            f"{folder}: this job may write {wanted / 1e9:.1f} GB there, and {free / 1e9:.1f} GB are free; make room, "
            "or name a place on another disk with --out."
        )
