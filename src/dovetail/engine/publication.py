"""Publishing in five steps, so that whenever a job is killed there is one whole release in the ledger, or none.

1. a note in the ledger that a release is being drawn, and where; 2. the files, in a private folder beside the target;
3. the manifest, once rows and counts agree; 4. the entry of the ledger, with the manifest's digest: from here on it
is a release; 5. the folder takes its name. Killed before 4, the next run clears up and draws afresh, after it, the
next run does step 5.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from dovetail import __version__
from dovetail.core.errors import DovetailError, OutputError, StorageError, UnsupportedError
from dovetail.ledger.files import sync, write_whole
from dovetail.ledger.releases import LedgerEntry, ReleaseLedger

# Digests of files, and what a job needs of a disk and of memory.


_PIECE = 1 << 20


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


# The list of what a release consists of: readers accept no folder without it.


MANIFEST, PARTS = "_DOVETAIL", "sanitized"


@dataclass(frozen=True)
class Manifest:
    """The files of a release with their rows and digests.

    Parameters
    ----------
    release : str
        A random name, the same in the ledger.
    n : int
    groups : people in each public group
    engine : what drew it, for the report
    parts : name, rows, bytes and SHA-256 of each file, in the order of the release
    drawn : people who drew each question, where one of several is answered behind dummies
    """

    release: str
    n: int
    groups: dict[str, int]
    engine: dict[str, Any]
    parts: list[dict[str, Any]]
    version: str = __version__
    schema_version: int = 1
    drawn: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        rows = sum(part["rows"] for part in self.parts)
        if rows != self.n:
            raise OutputError(f"the files hold {rows:,} reports of {self.n:,} people; nothing was released.")

    @property
    def content(self) -> bytes:
        """The file `_DOVETAIL`."""
        told = {name: value for name, value in asdict(self).items() if name != "drawn" or value}
        return (json.dumps(told, indent=1, sort_keys=True) + "\n").encode()

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest, which the ledger keeps."""
        return sha256(self.content).hexdigest()

    def files(self, folder: Path) -> list[Path]:
        """The files of reports in their order."""
        return [folder / PARTS / part["name"] for part in self.parts]


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None of one that has none.

    Raises
    ------
    OutputError
        When it is damaged.
    """
    place = folder / MANIFEST
    if not place.exists():
        return None
    try:
        return Manifest(**json.loads(place.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise OutputError(f"{place}: is damaged ({error}); restore it from a backup.") from None


def verify(manifest: Manifest, folder: Path) -> None:
    """OutputError for the first file that is not what was released."""
    for part, file in zip(manifest.parts, manifest.files(folder), strict=True):
        if not file.exists() or digest_of(file) != part["sha256"]:
            raise OutputError(
                f"{file}: is gone or not what was released; restore it from a backup, or draw afresh with "
                "--new-release and another --out: budgets add."
            )


_LOCK, _RELEASE, _NOTE = "lock", "release", "drawing-"
_OTHERS = (DovetailError, ConnectionError, TimeoutError)  # that say themselves what is the matter


@dataclass(frozen=True)
class Staging:
    """A private folder in which a release is drawn.

    Parameters
    ----------
    target : where the release will lie
    folder : private, beside it
    name : of the release
    """

    target: Path
    folder: Path
    name: str

    @property
    def release(self) -> Path:
        """The folder that takes the name of the target."""
        return self.folder / _RELEASE

    @property
    def parts(self) -> Path:
        """Where the reports are written."""
        return self.release / PARTS

    def note(self, ledger: ReleaseLedger, entry: LedgerEntry) -> None:
        """Step 1: the ledger knows that a release is being drawn, and where."""
        text = json.dumps({"table": entry.table, "request": entry.request, "staging": str(self.folder.absolute())})
        _write(ledger.folder / f"{_NOTE}{self.name}.json", text.encode())

    def write(self, name: str, content: bytes) -> None:
        """A further file of the release."""
        _write(self.release / name, content)

    def seal(self, manifest: Manifest) -> None:
        """Step 3: all files are on disk, then the manifest is; what attempts that died left behind is gone."""
        listed = set(manifest.files(self.release))
        for stray in [file for file in self.parts.iterdir() if file not in listed]:
            stray.unlink()
        for file in (*manifest.files(self.release), self.parts):
            sync(file)
        self.write(MANIFEST, manifest.content)
        sync(self.release)

    def publish(self, ledger: ReleaseLedger) -> None:
        """Step 5: the folder takes its name."""
        try:
            if self.target.exists():
                self.target.rmdir()  # empty, or it would have been refused
            self.release.rename(self.target)
            sync(self.target.parent)
        except OSError as error:
            raise StorageError(
                f"{self.target}: the release is recorded, but could not take its name ({error.strerror}); run again."
            ) from None
        self.clear(ledger)

    def clear(self, ledger: ReleaseLedger) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (ledger.folder / f"{_NOTE}{self.name}.json").unlink(missing_ok=True)


@contextmanager
def staged(target: Path, ledger: ReleaseLedger) -> Iterator[Staging]:
    """A staging folder that is cleared when the block fails, unless the process dies; what others left is settled.

    Raises
    ------
    OutputError
        When another run is at work on this target, or it holds something else.
    """
    settle(target, ledger)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        name = uuid4().hex[:16]
        staging = Staging(target, target.parent / f"{_prefix(target)}{name}", name)
        staging.folder.mkdir(mode=0o700)
        (staging.folder / "people").mkdir()
        staging.parts.mkdir(parents=True)
    except OSError as error:
        raise OutputError(f"{target}: cannot be written ({error.strerror}); name another place with --out.") from None
    lock = _lock(staging.folder)
    try:
        yield staging
    except (Exception, KeyboardInterrupt) as error:
        if _entry_of(staging.release, ledger) is None:
            staging.clear(ledger)
            if isinstance(error, OSError) and not isinstance(error, _OTHERS):  # of a disk
                place = error.filename or target.parent
                raise StorageError(f"{place}: cannot be written ({error.strerror}); nothing was released.") from None
        raise
    finally:
        if lock is not None:
            os.close(lock)


def settle(target: Path, ledger: ReleaseLedger) -> None:
    """Finish what a killed run has recorded, and clear away what it has not."""
    for folder in sorted({*target.parent.glob(f"{_prefix(target)}*"), *_noted(ledger)}):
        if not folder.is_dir():
            continue
        lock = _lock(folder)
        if lock is not None:
            os.close(lock)
        name = folder.name.rpartition(".staging-")[2]
        home = folder.parent / folder.name[1:].rpartition(".staging-")[0]
        staging = Staging(home, folder, name)
        if _entry_of(staging.release, ledger) is not None:
            staging.publish(ledger)
        else:
            staging.clear(ledger)
    for note in ledger.folder.glob(f"{_NOTE}*.json"):
        if not Path(json.loads(note.read_text())["staging"]).exists():
            note.unlink()


def _write(place: Path, content: bytes) -> None:
    """A file that is whole and on disk, or not there: half a list would stop every later run."""
    with write_whole(place) as scratch:
        scratch.write_bytes(content)
        sync(scratch)


def _entry_of(release: Path, ledger: ReleaseLedger) -> LedgerEntry | None:
    """The entry of the ledger for the release in a folder."""
    manifest = read_manifest(release)
    if manifest is None:
        return None
    return next((entry for entry in ledger.entries() if entry.manifest == manifest.digest), None)


def _noted(ledger: ReleaseLedger) -> list[Path]:
    """Staging folders that the ledger knows of."""
    try:
        return [Path(json.loads(note.read_text())["staging"]) for note in ledger.folder.glob(f"{_NOTE}*.json")]
    except (OSError, ValueError, KeyError):
        raise OutputError(f"{ledger.folder}: the release ledger is damaged; restore it from a backup.") from None


def _prefix(target: Path) -> str:
    return f".{target.name}.staging-"


def _lock(folder: Path) -> int | None:
    """Hold a folder while this process lives; OutputError when another one does. None where there are no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise OutputError(f"{folder}: another run is drawing a release there; wait for it to end.") from None
    return handle
