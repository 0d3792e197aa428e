"""The private release ledger: the same table is released once, and whoever asks again gets the same reports.

A second draw about the same people is a second release: its budget adds. The ledger recognises a table by a keyed
fingerprint (BLAKE2b under a key that never leaves the ledger), holds no private values, only reports that were
released anyway, and lies outside every output folder. Fresh draws need an explicit wish. Where the table names its
people, every release that one of them took part in counts, whatever the table.
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

import numpy as np
import polars as pl
import typer
from numpy.typing import NDArray

from dovetail.core.errors import OutputError, StorageError, UnsupportedError

_RECORD, _REPORTS, _PEOPLE, _KEY = "record.json", "reports.parquet", "people.npy", "key"
_KEY_BYTES = 32

People = NDArray[np.uint64]  # (n,), keyed fingerprints of names, sorted


@dataclass(frozen=True)
class LedgerEntry:
    """One entry: what was promised to whom, and which request it answered; no values."""

    number: int
    table: str
    request: str
    epsilon: float
    alpha: float
    groups: str
    n: int
    shuffler: str
    schema_version: int = 1

    def is_what(self, request: ReleaseRequest) -> bool:
        """Whether its guarantees are those of a request: whatever the terms say, no draw is promised anew as less."""
        made, asked = ((one.epsilon, one.alpha, one.shuffler, one.n) for one in (self, request))
        return made == asked


@dataclass(frozen=True)
class ReleaseRequest:
    """What a release is asked for, in canonical form: the same people and values in any order give the same bytes.

    Parameters
    ----------
    table : bytes
        The people and their private values.
    terms : bytes
        Everything else that shapes the reports.
    groups : bytes
        Who is in a group with whom.
    people : list of str
        Names of the people, where the table has them: whoever took part before adds up.
    epsilon, alpha, n, shuffler
        For the record.
    """

    table: bytes
    terms: bytes
    groups: bytes
    people: list[str]
    epsilon: float
    alpha: float
    n: int
    shuffler: str


@dataclass(frozen=True)
class LedgerAnswer:
    """The reports of a release, and every release in which some of the same people took part, this one included."""

    reports: pl.DataFrame
    history: tuple[LedgerEntry, ...]
    number: int
    reproduced: bool


@dataclass(frozen=True)
class ReleaseLedger:
    """A folder of releases.

    Parameters
    ----------
    folder : Path
        Private: readable by its owner only.
    """

    folder: Path

    @classmethod
    def default(cls) -> ReleaseLedger:
        """The folder named by DOVETAIL_LEDGER, or the user's application folder."""
        named = os.environ.get("DOVETAIL_LEDGER")
        return cls(Path(named) if named else Path(typer.get_app_dir("dovetail")) / "ledger")

    def answer(self, request: ReleaseRequest, *, new_release: bool, draw: Callable[[], pl.DataFrame]) -> LedgerAnswer:
        """Reports for this request: the recorded ones, or a fresh draw that is recorded before anybody sees it.

        Parameters
        ----------
        request : ReleaseRequest
        new_release : bool
            Draw afresh although the table has been released before; budgets add.
        draw : function
            Makes the reports.

        Raises
        ------
        UnsupportedError
            The table was released under other terms and `new_release` was not asked for.
        OutputError
            The ledger cannot be read or written: then nothing is released.
        """
        entries = self._entries()
        key = self._key(fresh=not entries)
        table, terms, groups = (_print(part, key) for part in (request.table, request.terms, request.groups))
        people = _prints(request.people, key)
        same = [entry for entry in entries if entry.table == table]
        exact = [entry for entry in same if entry.request == terms and entry.is_what(request)]
        if same and not exact and not new_release:
            spent = sum(entry.epsilon for entry in same)
            raise UnsupportedError(
                f"These private values were released before ({len(same)} times, epsilon {spent:g} in all) under "
                "other terms; a fresh draw adds its budget to that: use --new-release if you mean it."
            )
        related = [entry for entry in entries if entry.table == table or self._meets(entry, people)]
        if exact and not new_release:
            return LedgerAnswer(self._read(exact[-1]), tuple(related), exact[-1].number, reproduced=True)
        number = max((entry.number for entry in entries), default=0) + 1
        entry = LedgerEntry(
            number, table, terms, request.epsilon, request.alpha, groups, n=request.n, shuffler=request.shuffler
        )
        self._write(entry, draw(), people)
        return LedgerAnswer(self._read(entry), (*related, entry), number, reproduced=False)

    def _key(self, *, fresh: bool) -> bytes:
        place = self.folder / _KEY
        if not fresh and not place.exists():
            raise OutputError(f"{self.folder}: the release ledger has lost its key; restore it from a backup.")
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not place.exists():
                self._put(place, os.urandom(_KEY_BYTES))
            key = place.read_bytes()
            if len(key) != _KEY_BYTES:
                raise self._damaged(ValueError(f"its key has {len(key)} bytes instead of {_KEY_BYTES}"))
            return key
        except OutputError:
            raise
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

    def _entries(self) -> list[LedgerEntry]:
        try:
            records = [place.read_text() for place in sorted(self.folder.glob(f"[0-9]*/{_RECORD}"))]
            return [
                LedgerEntry(**{**json.loads(text), "alpha": float(json.loads(text)["alpha"])}) for text in records
            ]
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._damaged(error) from None

    def _meets(self, entry: LedgerEntry, people: People) -> bool:
        """Whether any of these people took part in that release."""
        if not people.size:
            return False
        try:
            return bool(np.isin(people, np.load(self._home(entry) / _PEOPLE, allow_pickle=False)).any())
        except (OSError, ValueError) as error:
            raise self._damaged(error) from None

    def _read(self, entry: LedgerEntry) -> pl.DataFrame:
        try:
            reports = pl.read_parquet(self._home(entry) / _REPORTS)
            if reports.height != entry.n:
                raise OSError(f"{reports.height} reports instead of {entry.n} in release {entry.number}")
            return reports
        except (OSError, pl.exceptions.PolarsError) as error:
            raise self._damaged(error) from None

    def _write(self, entry: LedgerEntry, reports: pl.DataFrame, people: People) -> None:
        try:
            scratch = Path(tempfile.mkdtemp(dir=self.folder))
            try:
                reports.write_parquet(scratch / _REPORTS)
                np.save(scratch / _PEOPLE, people)
                (scratch / _RECORD).write_text(json.dumps({**asdict(entry), "alpha": repr(entry.alpha)}))
                if self._home(entry).exists():
                    raise FileExistsError("another run has just recorded a release; run again")
                scratch.rename(self._home(entry))
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StorageError(
                f"{self.folder}: the release could not be recorded ({error}); nothing was released."
            ) from None

    def _home(self, entry: LedgerEntry) -> Path:
        return self.folder / f"{entry.number:06d}"

    def _damaged(self, error: Exception) -> OutputError:
        return OutputError(f"{self.folder}: the release ledger is damaged ({error}); restore it from a backup.")


def _print(content: bytes, key: bytes) -> str:
    return blake2b(content, key=key, digest_size=20).hexdigest()


def _prints(names: list[str], key: bytes) -> People:
    """Sorted keyed fingerprints of names."""
    digests = b"".join(blake2b(name.encode(), key=key, digest_size=8).digest() for name in names)
    return np.sort(np.frombuffer(digests, dtype=np.uint64))
