"""Invitations: a code for each person, good for one device key, and printed as a link whose code no server sees.

The file holds hashes of codes alone, and the key that each was used for: who reads it can take nobody's place.
"""

from __future__ import annotations

import csv
import io
import json
import secrets
import threading
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Literal, final

from dovetail.collect.campaign.roster import Roster
from dovetail.collect.survey.folder import Survey
from dovetail.collect.survey.qr import svg
from dovetail.core.checks import whole
from dovetail.core.errors import ConfigError, OutputError
from dovetail.ledger.files import replace_durably
from dovetail_protocol.errors import DovetailError
from dovetail_protocol.keys import VerifyingKey, text

NAME = "invitations.csv"
MOST = 10_000  # at once
_COLUMNS = ["code_sha256", "device"]
_LOCK = threading.Lock()

Enrolment = Literal["enrolled", "unknown", "used"]


@final
@dataclass
class Invitations:
    """The invitations of a survey's folder."""

    folder: Path
    _devices: dict[str, str] = field(default_factory=dict, repr=False)  # hash of a code to the device that used it

    @classmethod
    def load(cls, folder: Path) -> Invitations:
        """Those of the folder; none where nobody was invited yet."""
        path = folder / NAME
        try:
            rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
        except FileNotFoundError:
            return cls(folder)
        except (OSError, ValueError):
            raise ConfigError(f"{path} cannot be read.") from None
        if rows[:1] != [_COLUMNS] or any(len(row) != 2 for row in rows):
            raise ConfigError(f"{path} must have the columns {' and '.join(_COLUMNS)}.")
        return cls(folder, dict(rows[1:]))

    def __len__(self) -> int:
        return len(self._devices)

    def invite(self, count: int) -> list[str]:
        """New codes of 128 bits, which are told here and kept nowhere."""
        whole("count", count, least=1, most=MOST)
        codes = [text(secrets.token_bytes(16)) for _ in range(count)]
        self._devices |= {_hash(code): "" for code in codes}
        self._save()
        return codes

    def knows(self, code: str) -> bool:
        """True if the code is one of an invitation."""
        return _hash(code) in self._devices

    def enrol(self, code: str, device: VerifyingKey) -> Enrolment:
        """Put the device on the roster if its code is good and was used by no other; asking twice changes nothing."""
        with _LOCK:
            used = self._devices.get(_hash(code))
            if used is None:
                return "unknown"
            if used:
                return "enrolled" if used == str(device) else "used"
            roster = Roster.load(self.folder / "roster.csv")
            if roster.slot(device) is None:  # else it is there from before a crash, or by another invitation
                roster.with_devices([device]).save(self.folder / "roster.csv")
            self._devices[_hash(code)] = str(device)
            self._save()
            return "enrolled"

    def _save(self) -> None:
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(_COLUMNS)
        rows.writerows(self._devices.items())
        replace_durably(self.folder / NAME, out.getvalue().encode())


def read_enrolment(body: bytes) -> tuple[str, VerifyingKey] | None:
    """Code and device of a request; None for anything else."""
    try:
        found = json.loads(body)
        code, device = found["code"], found["device"]
        return (code, VerifyingKey.parse("device", device)) if isinstance(code, str) and len(code) == 22 else None
    except (ValueError, KeyError, TypeError, RecursionError, DovetailError):
        return None


def link(survey: Survey, code: str) -> str:
    """Where an invited person begins: the code stands behind #, which browsers send to nobody."""
    return f"{survey.page.rstrip('/')}/#i={code}"


def save_links(survey: Survey, codes: list[str], path: Path) -> None:
    """A sheet to print and cut: a link and its QR code for each person; a secret until they are used."""
    title = escape(survey.title)
    cards = "\n".join(_card(title, number, link(survey, code)) for number, code in enumerate(codes, 1))
    page = f"""<!doctype html>
<html lang="{survey.language}"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 11pt sans-serif }}
section {{ border-bottom: 1px dashed; break-inside: avoid; display: flex; gap: 6mm; padding: 6mm 0 }}
svg {{ background: #fff; flex: none; width: 34mm }}
h2 {{ font-size: 12pt; margin: 0 }} p {{ margin: 2mm 0 0 }} code {{ overflow-wrap: anywhere }}
</style></head><body>
{cards}
</body></html>
"""
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(page, encoding="utf-8")
    except FileExistsError:
        raise OutputError(f"{path} exists; its invitations may be printed already. Name another file.") from None
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}).") from None


def _card(title: str, number: int, place: str) -> str:
    told = f"<h2>{title}</h2><p>{number}</p><p><code>{escape(place)}</code></p>"
    return f"<section>{svg(place)}<div>{told}</div></section>"


def _hash(code: str) -> str:
    return sha256(b"dovetail invitation\0" + code.encode()).hexdigest()
