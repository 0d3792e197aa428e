"""The private release ledger: the same table is released once, and anybody who asks again gets the same reports.

A second draw about the same people is a second release: its budget adds. The ledger recognises a table by a keyed
fingerprint (BLAKE2b under a key that never leaves the ledger), holds no private values, only reports that were
released anyway, and lies outside every output folder. Fresh draws need an explicit wish. Where the table names its
people, every release that one of them took part in counts, whatever the table, with what each of them spent there;
where it has rounds, what somebody reported in one of them is never drawn afresh unasked.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import typer
from numpy.typing import NDArray

from dovetail.core.certified import Bracket, sum_as_written
from dovetail.core.display import counted, mute, upward
from dovetail.core.errors import OutputError, StorageError, UnsupportedError
from dovetail.core.extras import pl
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.missing import Missing
from dovetail.ledger.files import put_once, sync
from dovetail_protocol.budget import cost

# What every private ledger stands on: numbered entries, each whole and on disk or not there, and keyed fingerprints.
#
# An entry is a folder with a record in JSON, and whatever files go with it. The key never leaves the ledger's folder.

Prints = NDArray[np.uint64]  # (n,), keyed fingerprints

_RECORD, _KEY, _KEY_BYTES = "record.json", "key", 32
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError)
_Found = TypeVar("_Found")


def fingerprint(content: bytes, key: bytes) -> str:
    """Fingerprint of a whole content, 20 bytes as text: tells nothing to anybody who lacks the key."""
    return blake2b(content, key=key, digest_size=20).hexdigest()


def fingerprints(contents: Iterable[bytes], key: bytes) -> Prints:
    """Fingerprints of many small contents, 8 bytes each, in their order."""
    keyed = blake2b(key=key, digest_size=8)

    def digest(content: bytes) -> bytes:
        own = keyed.copy()  # with the key, a whole block, hashed already
        own.update(content)
        return own.digest()

    return np.frombuffer(b"".join(map(digest, contents)), dtype=np.uint64)


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
        """Read the folder of an entry by `look`; a fault that it meets or raises is damage."""
        try:
            return look(self.place(number))
        except (*_UNREADABLE, pl.exceptions.PolarsError) as error:
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
        """The error for the second of two runs at once."""
        return StorageError(
            f"{self.folder}: another run has just recorded a release; nothing was released. Run again."
        )

    def _damaged(self, error: Exception) -> OutputError:
        return OutputError(f"{self.folder}: the {self.name} is damaged ({error}); restore it from a backup.")


# What a release ledger is asked, what it keeps of a release, and what it answers.


Counts = NDArray[np.int64]  # (n,)


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
    unit: float | None = None  # nats of one report; entries without it count `epsilon` for everybody
    schema_version: int = 2
    note: str = ""  # what else adding up releases needs to know
    dummies: int = 0  # most that the shuffler has added to the reports of n people
    dropped: int = 0  # most of them that the shuffler has left out
    manifest: str = ""  # of a release in many files: SHA-256 of their list; other releases lie in the ledger itself
    batch: dict[str, Any] = field(default_factory=dict)  # promise about it; empty where there is none on record

    def __post_init__(self) -> None:
        _ = self.central  # a record of anything else is damage, and found where it is read

    def is_what(self, request: ReleaseRequest) -> bool:
        """True if its guarantees are those of a request: whatever the terms say, no draw is promised anew as less."""
        made, asked = ((one.epsilon, one.alpha, one.shuffler, one.n) for one in (self, request))
        return made == asked

    @property
    def central(self) -> CentralDP | Missing:
        """What was promised about this batch alone."""
        if not self.batch:
            return Missing(f"release {self.number} has no promise about its batch on record")
        name = f"release {self.number}"
        return CentralDP(
            **self.batch, method=name, source=name, numeric=Bracket(0.0, self.batch["honest"]), attack_lower=0.0
        )


def recorded_promise(central: CentralDP | Missing) -> dict[str, Any]:
    """The numbers of a promise that a ledger keeps, so that those of several releases add."""
    if isinstance(central, Missing):
        return {}
    names = ("all", "honest", "colluding", "delta", "n", "honest_n", "trust")
    return {name: getattr(central, name) for name in names}


@mute
@dataclass(frozen=True)
class ReleaseRequest:
    """Request to the release ledger, in canonical form: the same people and values in any order give the same bytes.

    Parameters
    ----------
    table : bytes
        The people and their private values.
    terms : bytes
        Everything else that shapes the reports.
    groups : bytes
        Who is in a group with whom.
    people : list of str
        Names of the people, where the table has them: anybody who took part before adds up.
    epsilon, alpha, n, shuffler
        For the record; `epsilon` is what nobody spends more than.
    unit : float, nats, optional
        Of one report; default `epsilon`.
    sent : int array (people,), optional
        Reports of each person; default one each.
    rounds : list of str
        Names of reports that are never drawn twice unasked: of whom, about what, in which round.
    after : int, optional
        Number of the last release that was counted for this request; a later one makes it void.
    note : str
        What else adding up releases needs to know, such as a limit; no values.
    dummies : int
        Most reports of nobody that are released with those of the people.
    dropped : int
        Most reports of the people that are left out.
    central : CentralDP or Missing
        What is promised about the batch.
    """

    table: bytes
    terms: bytes
    groups: bytes
    people: list[str]
    epsilon: float
    alpha: float
    n: int
    shuffler: str
    unit: float | None = None
    sent: Counts | None = None
    rounds: list[str] = field(default_factory=list)
    after: int | None = None
    note: str = ""
    dummies: int = 0
    dropped: int = 0
    central: CentralDP | Missing = Missing("nothing is promised about the batch")


def charged(promise: LocalDP) -> float:
    """Epsilon that a report adds to the ledger; infinite with a delta, as the ledger adds epsilons alone."""
    return promise.epsilon if promise.delta == 0.0 else inf


def everybody(people: list[str]) -> bytes:
    """The group of everybody in a table: of other people it is another group, and promises about both do not add."""
    return b"everybody\n" + json.dumps(sorted(people)).encode()


@mute
@dataclass(frozen=True)
class LedgerAnswer:
    """The reports of a release, and every release in which some of the same people took part, this one included."""

    reports: pl.DataFrame
    history: tuple[LedgerEntry, ...]
    number: int
    reproduced: bool


_REPORTS, _PEOPLE, _SENT, _ROUNDS, _MANIFEST = (
    "reports.parquet", "people.npy", "sent.npy", "rounds.npy", "manifest.json"
)  # fmt: skip
_HEADER = 128  # bytes of a file of numbers before the numbers
_PIECE = 1 << 22  # prints that are looked up at once


@dataclass(frozen=True)
class ReleaseLedger:
    """A folder of releases.

    Parameters
    ----------
    folder : Path
        Private: readable by its owner only.

    Raises
    ------
    UnsupportedError
        For people or a table that were released before under other terms.
    OutputError, StorageError
        For a ledger that is damaged, has lost its key or cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ReleaseLedger(Path(folder)).folder == Path(folder)
    True
    """

    folder: Path

    @classmethod
    def default(cls) -> ReleaseLedger:
        """The folder named by DOVETAIL_LEDGER, or the user's application folder."""
        named = os.environ.get("DOVETAIL_LEDGER")
        return cls(Path(named) if named else Path(typer.get_app_dir("dovetail")) / "ledger")

    @property
    def _store(self) -> EntryStore:
        return EntryStore(self.folder, "release ledger")

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
        entries = self.entries()
        key = self._store.key(fresh=not entries)
        table, terms = fingerprint(request.table, key), fingerprint(request.terms, key)
        same = [entry for entry in entries if entry.table == table]
        exact = [entry for entry in same if entry.request == terms and entry.is_what(request)]
        if same and not exact and not new_release:
            raise other_terms(same)
        people = _prints(request.people, key)
        related = [entry for entry in entries if entry.table == table or self._meets(entry, people)]
        if exact and not new_release:
            return LedgerAnswer(self._read(exact[-1]), tuple(related), exact[-1].number, reproduced=True)
        rounds = _prints(request.rounds, key)
        if not new_release and (twice := int(self._known(rounds, entries).sum())):
            raise UnsupportedError(
                f"{twice:,} of these {len(request.rounds):,} reports were released before, of the same devices in "
                "the same rounds; leave those rounds out, or use --new-release if you mean to draw them afresh."
            )
        if not new_release and any(entry.manifest and self.same_people(entry, np.sort(people)) for entry in related):
            raise UnsupportedError(
                "Exactly these people were released before with --engine, where tables are recognised in another "
                "form; a fresh draw adds its budget to that: use --new-release if you mean it."
            )
        after = max((entry.number for entry in entries), default=0)
        entry = self._add(request, key, people, rounds, after=after, draw=draw)
        return LedgerAnswer(self._read(entry), (*related, entry), entry.number, reproduced=False)

    def record(self, request: ReleaseRequest, *, draw: Callable[[], pl.DataFrame]) -> int:
        """The number of a fresh release, which is recorded; the caller has looked at all those up to `request.after`.

        Raises
        ------
        StorageError
            When another release has been recorded since, or this one cannot be.
        """
        numbers = self._store.numbers()
        key, after = self._store.key(fresh=not numbers), max(numbers, default=0)
        people, rounds = _prints(request.people, key), _prints(request.rounds, key)
        return self._add(request, key, people, rounds, after=after, draw=draw).number

    def _add(
        self,
        request: ReleaseRequest,
        key: bytes,
        people: Prints,
        rounds: Prints,
        *,
        after: int,
        draw: Callable[[], pl.DataFrame],
    ) -> LedgerEntry:
        """Draw a release and record it as the next one after `after`, of which the request must know."""
        if request.after not in (None, after):
            raise self._store.overtaken()
        table, terms, groups = (fingerprint(part, key) for part in (request.table, request.terms, request.groups))
        unit = request.epsilon if request.unit is None else request.unit
        sent = np.ones(people.size, np.int64) if request.sent is None else request.sent
        entry = LedgerEntry(
            after + 1, table, terms, request.epsilon, request.alpha, groups, request.n, request.shuffler, unit,
            note=request.note, dummies=request.dummies, dropped=request.dropped,
            batch=recorded_promise(request.central),
        )  # fmt: skip
        self._write(entry, draw(), people, sent, rounds)
        return entry

    def find(self, table: bytes, terms: bytes, entries: list[LedgerEntry]) -> LedgerEntry | None:
        """The latest of these releases of a table under these terms, as `ReleaseRequest` has them; None of another.

        Raises
        ------
        UnsupportedError
            The table was released under other terms.
        """
        key = self._store.key(fresh=False) if entries else b""
        same = [entry for entry in entries if entry.table == fingerprint(table, key)]
        exact = [entry for entry in same if entry.request == fingerprint(terms, key)]
        if same and not exact:
            raise other_terms(same)
        return exact[-1] if exact else None

    def spent(self, people: list[str], entries: list[LedgerEntry]) -> list[Fraction]:
        """Nats that each of these people spent in some of the releases, in decimals as they were written."""
        prints = _prints(people, self._store.key(fresh=False)) if entries else np.empty(0, np.uint64)
        total = [Fraction(0)] * len(people)
        for entry in entries:
            sent, unit = self._sent(entry, prints), entry.epsilon if entry.unit is None else entry.unit
            for place in np.flatnonzero(sent).tolist():
                total[place] += cost(int(sent[place]), unit)
        return total

    def known(self, rounds: list[str], entries: list[LedgerEntry]) -> NDArray[np.bool_]:
        """Mark the reports that were released before, by their names as in `ReleaseRequest.rounds`."""
        key = self._store.key(fresh=False) if entries else b""
        return self._known(_prints(rounds, key), entries)

    def fingerprint(self, content: bytes) -> str:
        """Fingerprint of anything under the ledger's key, which tells nothing to those who lack it."""
        return fingerprint(content, self._store.key(fresh=not self._store.numbers()))

    def people_key(self) -> bytes:
        """The key under which people are known: prints are BLAKE2b of their names, 8 bytes, as numbers."""
        return self._store.key(fresh=not self._store.numbers())

    def meets(self, entry: LedgerEntry, people: Prints) -> bool:
        """True if any of these people, sorted, took part in that release; neither list need fit into memory."""
        theirs = self._array(entry, _PEOPLE, mapped=True)
        pieces = (people[start : start + _PIECE] for start in range(0, people.size, _PIECE))
        return bool(theirs.size) and any(bool(_found(theirs, piece).any()) for piece in pieces)

    def same_people(self, entry: LedgerEntry, people: Prints) -> bool:
        """True if exactly these people, sorted, took part in that release."""
        theirs = self._array(entry, _PEOPLE, mapped=True)
        pieces = range(0, people.size, _PIECE)
        return theirs.size == people.size > 0 and all(
            np.array_equal(theirs[start : start + _PIECE], people[start : start + _PIECE]) for start in pieces
        )

    def record_staged(self, entry: LedgerEntry, people: Path, manifest: bytes) -> None:
        """Record a release whose files lie elsewhere; `people` is a file of sorted prints.

        Raises
        ------
        StorageError
            When another release has been recorded since, or this one cannot be.
        """
        if entry.number != max(self._store.numbers(), default=0) + 1:
            raise self._store.overtaken()

        def fill(scratch: Path) -> None:
            shutil.copyfile(people, scratch / _PEOPLE)
            (scratch / _MANIFEST).write_bytes(manifest)

        self._put_entry(entry, fill)

    def entries(self, *, after: int = 0) -> list[LedgerEntry]:
        """All releases with higher numbers than `after`, in order."""
        return self._store.records(
            lambda record: LedgerEntry(**{**record, "alpha": float(record["alpha"])}), after=after
        )

    def _meets(self, entry: LedgerEntry, people: Prints) -> bool:
        """True if any of these people took part in that release."""
        return bool(people.size and self._sent(entry, people).any())

    def _sent(self, entry: LedgerEntry, people: Prints) -> Counts:
        """Reports of each of these people in that release."""

        def read(place: Path) -> tuple[NDArray[Any], NDArray[Any]]:
            theirs = np.load(place / _PEOPLE, allow_pickle=False)
            sent = np.ones(theirs.size, np.int64)
            if entry.unit is not None:
                sent = np.load(place / _SENT, allow_pickle=False)
            if theirs.size != sent.size:
                raise ValueError(f"release {entry.number} counts {sent.size} of {theirs.size} people")
            return theirs, sent

        theirs, sent = self._store.read(entry.number, read)
        if not theirs.size:
            return np.zeros(people.size, np.int64)
        place = np.minimum(np.searchsorted(theirs, people), theirs.size - 1)
        found: Counts = np.where(theirs[place] == people, sent[place], 0)
        return found

    def _known(self, rounds: Prints, entries: list[LedgerEntry]) -> NDArray[np.bool_]:
        found = np.zeros(rounds.size, dtype=np.bool_)
        for entry in entries:
            if rounds.size and entry.unit is not None:
                found |= np.isin(rounds, self._array(entry, _ROUNDS))
        return found

    def _array(self, entry: LedgerEntry, name: str, *, mapped: bool = False) -> NDArray[Any]:
        def read(place: Path) -> NDArray[Any]:
            full = (place / name).stat().st_size > _HEADER  # an empty file cannot be mapped
            array: NDArray[Any] = np.load(
                place / name, allow_pickle=False, mmap_mode="r" if mapped and full else None
            )
            return array

        return self._store.read(entry.number, read)

    def _read(self, entry: LedgerEntry) -> pl.DataFrame:
        def read(place: Path) -> pl.DataFrame:
            reports = pl.read_parquet(place / _REPORTS)
            if not entry.n - entry.dropped <= reports.height <= entry.n + entry.dummies:
                raise ValueError(f"{reports.height} reports instead of {entry.n} in release {entry.number}")
            return reports

        return self._store.read(entry.number, read)

    def _write(self, entry: LedgerEntry, reports: pl.DataFrame, people: Prints, sent: Counts, rounds: Prints) -> None:
        order = np.argsort(people)

        def fill(scratch: Path) -> None:
            reports.write_parquet(scratch / _REPORTS)
            for name, array in ((_PEOPLE, people[order]), (_SENT, sent[order]), (_ROUNDS, np.sort(rounds))):
                np.save(scratch / name, array)

        self._put_entry(entry, fill)

    def _put_entry(self, entry: LedgerEntry, fill: Callable[[Path], None]) -> None:
        later = ("manifest", "dropped", "batch")  # older ledgers know nothing of them
        record = {name: value for name, value in asdict(entry).items() if name not in later or value}
        self._store.put(entry.number, {**record, "alpha": repr(entry.alpha)}, fill)


def other_terms(same: list[LedgerEntry]) -> UnsupportedError:
    """The refusal to draw a table afresh that these releases are of."""
    spent = sum_as_written(entry.epsilon for entry in same)
    return UnsupportedError(
        f"These private values were released before ({counted(len(same), 'time')}, epsilon {upward(spent)} in "
        "all) under other terms; a fresh draw adds its budget to that: use --new-release if you mean it."
    )


def _found(theirs: Prints, people: Prints) -> NDArray[np.bool_]:
    """Mark those of these people who are among the others, who are sorted."""
    place = np.minimum(np.searchsorted(theirs, people), theirs.size - 1)
    return np.asarray(theirs[place] == people)


def _prints(names: list[str], key: bytes) -> Prints:
    """Keyed fingerprints of names, in their order."""
    return fingerprints((name.encode() for name in names), key)
