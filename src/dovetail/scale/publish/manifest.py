"""The list of what a release consists of: readers accept no folder without it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from dovetail import __version__
from dovetail.core.errors import OutputError
from dovetail.scale.storage import digest_of

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
    """

    release: str
    n: int
    groups: dict[str, int]
    engine: dict[str, Any]
    parts: list[dict[str, Any]]
    version: str = __version__
    schema_version: int = 1

    def __post_init__(self) -> None:
        rows = sum(part["rows"] for part in self.parts)
        if rows != self.n:
            raise OutputError(f"the files hold {rows:,} reports of {self.n:,} people; nothing was released.")

    @property
    def content(self) -> bytes:
        """The file `_DOVETAIL`."""
        return (json.dumps(asdict(self), indent=1, sort_keys=True) + "\n").encode()

    @property
    def digest(self) -> str:
        """What the ledger keeps of it."""
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
