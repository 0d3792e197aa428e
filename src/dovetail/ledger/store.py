"""What every private ledger stands on: numbered entries, each whole and on disk or not there, and keyed fingerprints.

An entry is a folder with a record in JSON, and whatever files go with it. The key never leaves the ledger's folder.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.errors import OutputError, StorageError
from dovetail.ledger.files import put_once, sync

Prints = NDArray[np.uint64]  # (n,), keyed fingerprints

_RECORD, _KEY, _KEY_BYTES = "record.json", "key", 32
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError, pl.exceptions.PolarsError)
_Found = TypeVar("_Found")


def fingerprint(content: bytes, key: bytes) -> str:
    """Of a whole content, 20 bytes as text: equal for equal contents, and nothing to whoever lacks the key."""
    return blake2b(content, key=key, digest_size=20).hexdigest()


def fingerprints(contents: Iterable[bytes], key: bytes) -> Prints:
    """Of many small contents, 8 bytes each, in their order."""
    return np.frombuffer(b"".join(blake2b(one, key=key, digest_size=8).digest() for one in contents), dtype=np.uint64)


@dataclass(frozen=True)
class EntryStore:
    """The folder of a ledger.

    Parameters
    ----------
    folder : Path
        Private: readable by its owner only.
    name : str
        For errors: "release ledger".

    Raises
    ------
    OutputError, StorageError
        For a ledger that is damaged, has lost its key or cannot be written.
    """

    folder: Path
    name: str

    def numbers(self) -> list[int]:
        """Numbers of all entries, ascending."""
        return sorted(int(place.name) for place in self.folder.glob("[0-9]*") if place.name.isdigit())

    def place(self, number: int) -> Path:
        """The folder of an entry."""
        return self.folder / f"{number:06d}"

    def key(self, *, fresh: bool) -> bytes:
        """The ledger's key; only a `fresh` ledger, without entries, may begin one."""
        place = self.folder / _KEY
        if not fresh and not place.exists():
            raise OutputError(f"{self.folder}: the {self.name} has lost its key; restore it from a backup.")
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not place.exists():
                put_once(place, os.urandom(_KEY_BYTES))
            key = place.read_bytes()
        except OSError as error:
            raise OutputError(
                f"{self.folder}: the {self.name} cannot be used ({error.strerror}); nothing was released. "
                "Name a private folder with --ledger or DOVETAIL_LEDGER."
            ) from None
        if len(key) != _KEY_BYTES:
            raise self._damaged(ValueError(f"its key has {len(key)} bytes instead of {_KEY_BYTES}"))
        return key

    def records(self, make: Callable[[dict[str, Any]], _Found], *, after: int = 0) -> list[_Found]:
        """The records of all entries with higher numbers than `after`, in order, each made into an object."""
        return [
            self.read(number, lambda place: make(json.loads((place / _RECORD).read_text())))
            for number in self.numbers()
            if number > after
        ]

    def read(self, number: int, look: Callable[[Path], _Found]) -> _Found:
        """What `look` finds in the folder of an entry; a fault that it meets or raises is damage."""
        try:
            return look(self.place(number))
        except _UNREADABLE as error:
            raise self._damaged(error) from None

    def put(self, number: int, record: dict[str, Any], fill: Callable[[Path], None]) -> None:
        """Keep an entry before anybody sees what it is about: its files are on disk, then its name is, or nothing is.

        Raises
        ------
        StorageError
            Also when another entry has this number by now.
        """
        try:
            scratch = Path(tempfile.mkdtemp(dir=self.folder))
            try:
                fill(scratch)
                (scratch / _RECORD).write_text(json.dumps(record))
                for path in (*scratch.iterdir(), scratch):
                    sync(path)
                if self.place(number).exists():
                    raise self.overtaken()
                scratch.rename(self.place(number))
                sync(self.folder)  # what a power cut forgets would be drawn again, with other noise
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
        except StorageError:
            raise
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StorageError(
                f"{self.folder}: the release could not be recorded ({error}); nothing was released."
            ) from None

    def overtaken(self) -> StorageError:
        """Of two runs at once, what the second one hears."""
        return StorageError(
            f"{self.folder}: another run has just recorded a release; nothing was released. Run again."
        )

    def _damaged(self, error: Exception) -> OutputError:
        return OutputError(f"{self.folder}: the {self.name} is damaged ({error}); restore it from a backup.")
