"""The private release ledger: the same table is released once, and whoever asks again gets the same reports.

A second draw about the same people is a second release: its budget adds. The ledger recognises a table by a keyed
fingerprint (BLAKE2b under a key that never leaves the ledger), holds no private values, only reports that were
released anyway, and lies outside every output folder. Fresh draws need an explicit wish.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import polars as pl
import typer

from dovetail.core.errors import OutputError, StorageError, UnsupportedError

_RECORD, _REPORTS, _KEY = "record.json", "reports.parquet", "key"


@dataclass(frozen=True)
class Release:
    """One entry: what was promised, and which request it answered; no values."""

    number: int
    request: str
    epsilon: float
    n: int
    shuffler: str
    schema_version: int = 1


@dataclass(frozen=True)
class Answer:
    """The reports of a release, and everything ever released about the same table.

    `history` ends with the release that `reports` belong to when it is the newest one.
    """

    reports: pl.DataFrame
    history: tuple[Release, ...]
    number: int
    reproduced: bool


@dataclass(frozen=True)
class Ledger:
    """A folder of releases.

    Parameters
    ----------
    folder : Path
        Private: readable by its owner only.
    """

    folder: Path

    @classmethod
    def default(cls) -> Ledger:
        """The folder named by DOVETAIL_LEDGER, or the user's application folder."""
        named = os.environ.get("DOVETAIL_LEDGER")
        return cls(Path(named) if named else Path(typer.get_app_dir("dovetail")) / "ledger")

    def answer(
        self,
        *,
        table: bytes,
        request: bytes,
        terms: dict[str, Any],
        new_release: bool,
        draw: Callable[[], pl.DataFrame],
    ) -> Answer:
        """Reports for this request: the recorded ones, or a fresh draw that is recorded before anybody sees it.

        Parameters
        ----------
        table : bytes
            Canonical content that identifies the people and their private values.
        request : bytes
            Canonical content of everything else that shapes the reports.
        terms : dict
            `epsilon`, `n` and `shuffler` of this request, for the record.
        new_release : bool
            Draw afresh although the table has been released before; budgets add.
        draw : function
            Makes the reports.

        Raises
        ------
        UnsupportedError
            The table was released under other terms and `new_release` was not asked for.
        OutputError
            The ledger cannot be written: then nothing is released.
        """
        key = self._key()
        home = self.folder / blake2b(table, key=key, digest_size=20).hexdigest()
        wanted = blake2b(request, key=key, digest_size=20).hexdigest()
        history = self._history(home)
        same = [entry for entry in history if entry.request == wanted]
        if same and not new_release:
            return Answer(self._read(home, same[-1]), history, same[-1].number, reproduced=True)
        if history and not new_release:
            spent = sum(entry.epsilon for entry in history)
            raise UnsupportedError(
                f"These private values were released before ({len(history)} times, epsilon {spent:g} in all) under "
                "other terms; a fresh draw adds its budget to that: use --new-release if you mean it."
            )
        entry = Release(number=len(history) + 1, request=wanted, **terms)
        reports = draw()
        self._write(home, entry, reports)
        return Answer(reports, (*history, entry), entry.number, reproduced=False)

    def _key(self) -> bytes:
        place = self.folder / _KEY
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not place.exists():
                self._put(place, os.urandom(32))
            return place.read_bytes()
        except OSError as error:
            raise OutputError(
                f"{self.folder}: the release ledger cannot be used ({error.strerror}); nothing was released. "
                "Name a private folder with --ledger or DOVETAIL_LEDGER."
            ) from None

    def _put(self, place: Path, content: bytes) -> None:
        """Create a file at once and completely; whoever comes second keeps the first one's."""
        handle, scratch = tempfile.mkstemp(dir=self.folder)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        try:
            os.link(scratch, place)
        except FileExistsError:
            pass
        finally:
            Path(scratch).unlink()

    def _history(self, home: Path) -> tuple[Release, ...]:
        places = sorted(home.glob(f"[0-9]*/{_RECORD}"))
        try:
            return tuple(Release(**json.loads(place.read_text())) for place in places)
        except (OSError, ValueError, TypeError) as error:
            raise OutputError(f"{home}: the release ledger is damaged ({error}); restore it from a backup.") from None

    def _read(self, home: Path, entry: Release) -> pl.DataFrame:
        try:
            return pl.read_parquet(home / f"{entry.number:06d}" / _REPORTS)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise OutputError(f"{home}: the release ledger is damaged ({error}); restore it from a backup.") from None

    def _write(self, home: Path, entry: Release, reports: pl.DataFrame) -> None:
        try:
            home.mkdir(exist_ok=True, mode=0o700)
            scratch = Path(tempfile.mkdtemp(dir=home))
            try:
                reports.write_parquet(scratch / _REPORTS)
                (scratch / _RECORD).write_text(json.dumps(asdict(entry)))
                scratch.rename(home / f"{entry.number:06d}")
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StorageError(
                f"{self.folder}: the release could not be recorded ({error}); nothing was released."
            ) from None
