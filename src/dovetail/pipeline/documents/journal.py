"""A private journal of what was drawn: a run that was cut off goes on, and draws no document twice."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

from dovetail.core.errors import StorageError
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.text.protect import Drawn

_FOLDER = "unfinished"


@dataclass
class DocumentJournal:
    """Candidates of the documents of one request, in their order, in a file beside the releases of a ledger.

    Nothing of it has been seen by anybody: it is private until the release is recorded, and then it is removed.

    Parameters
    ----------
    place : Path
    """

    place: Path
    _known: dict[int, Drawn] = field(default_factory=dict, repr=False)
    _file: IO[str] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, ledger: ReleaseLedger, request: bytes) -> Self:
        """The journal of this request, in canonical form; after another release it is another request.

        Raises
        ------
        StorageError
            Where it cannot be read.
        """
        made = cls(ledger.folder / _FOLDER / f"{ledger.fingerprint(request)}.jsonl")
        made._known = made._read()
        return made

    def drawn(self, place: int) -> Drawn | None:
        return self._known.get(place)

    def keep(self, place: int, drawn: Drawn) -> None:
        """Written before the next document is drawn."""
        try:
            if self._file is None:
                self.place.parent.mkdir(mode=0o700, exist_ok=True)
                whole = self.place.read_bytes().endswith(b"\n") if self.place.exists() else True
                self._file = self.place.open("a", encoding="ascii")
                self._file.write("" if whole else "\n")  # ends a line that was cut off
            self._file.write(json.dumps([place, drawn.candidate, drawn.unread, drawn.empty]) + "\n")
            self._file.flush()
        except OSError as error:
            raise _broken(self.place, error) from None

    def close(self, *, finished: bool) -> None:
        """Stop writing; what is recorded elsewhere is forgotten here."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if finished:
            self.place.unlink(missing_ok=True)

    def _read(self) -> dict[int, Drawn]:
        """The first draw of each document; a line that was cut off is none."""
        found: dict[int, Drawn] = {}
        try:
            lines = self.place.read_text(encoding="ascii").splitlines() if self.place.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            raise _broken(self.place, error) from None
        for line in lines:
            try:
                place, candidate, unread, empty = json.loads(line)
            except (ValueError, TypeError):
                continue
            found.setdefault(int(place), Drawn(int(candidate), int(unread), bool(empty)))
        return found


def _broken(place: Path, error: Exception) -> StorageError:
    return StorageError(
        f"{place}: the journal of an unfinished release cannot be used ({error}); nothing was released."
    )
