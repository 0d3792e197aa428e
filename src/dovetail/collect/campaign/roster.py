"""The roster: which devices may send, and the public slot of each.

A CSV file with the columns `device` (`ed25519:...`), `slot` (0, 1, ..: the device's row in public tables) and
`revoked` (yes or no). Slots of revoked devices stay taken, so that no slot ever changes hands.
"""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from dovetail.collect.files import sync_folder
from dovetail.core.errors import ConfigError, DataError, DovetailError, OutputError
from dovetail_protocol.keys import VerifyingKey

COLUMNS = ("device", "slot", "revoked")


class RosterError(ConfigError):
    """Raised when a roster cannot be used; `fault` says where and why, without the file's folder or any key."""

    def __init__(self, path: Path, fault: str) -> None:
        super().__init__(f"{path}: {fault}")
        self.fault = f"{path.name}, {fault}"


@dataclass(frozen=True)
class RosterEntry:
    """One device; its key is its name."""

    device: VerifyingKey = field(repr=False)
    slot: int
    revoked: bool = False


class Roster:
    """Devices by their key.

    Notes
    -----
    About 5 seconds and 210 MB for a million devices.
    """

    def __init__(self, entries: Iterable[RosterEntry]) -> None:
        self._slots, self._revoked = dict[bytes, int](), set[bytes]()
        taken = set[int]()
        for entry in entries:
            if entry.device.public in self._slots:
                raise DataError(f"the device of slot {entry.slot} is listed twice.")
            if entry.slot in taken:
                raise DataError(f"slot {entry.slot} is given to two devices.")
            taken.add(entry.slot)
            self._slots[entry.device.public] = entry.slot
            if entry.revoked:
                self._revoked.add(entry.device.public)

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[RosterEntry]:
        """Entries by slot."""
        for public, slot in sorted(self._slots.items(), key=lambda item: item[1]):
            yield RosterEntry(VerifyingKey(public), slot, public in self._revoked)

    def slot(self, device: VerifyingKey) -> int | None:
        """The device's public slot; None if it is not listed."""
        return self._slots.get(device.public)

    def is_revoked(self, device: VerifyingKey) -> bool:
        """Whether the device is listed, and must not send any more."""
        return device.public in self._revoked

    def with_devices(self, devices: Iterable[VerifyingKey]) -> Roster:
        """With more devices, in the first slots after all others."""
        devices = list(devices)
        if known := sum(device.public in self._slots for device in devices):
            raise DataError(f"{known} of these devices are in the roster already.")
        free = max(self._slots.values(), default=-1) + 1
        return Roster([*self, *(RosterEntry(device, free + place) for place, device in enumerate(devices))])

    def without_devices(self, devices: Iterable[VerifyingKey]) -> Roster:
        """With these devices revoked."""
        revoked = {device.public for device in devices}
        if unknown := revoked - self._slots.keys():
            raise DataError(f"{len(unknown)} of these devices are not in the roster.")
        return Roster([RosterEntry(e.device, e.slot, e.revoked or e.device.public in revoked) for e in self])

    @classmethod
    def load(cls, path: Path) -> Self:
        """The roster of a file; errors name the line, never the key in it."""
        line = 0

        def entries() -> Iterator[RosterEntry]:
            nonlocal line
            for line, entry in read_lines(path):  # noqa: B007, the error below names it
                yield entry

        try:
            return cls(entries())
        except DataError as error:
            raise RosterError(path, f"line {line}: {error}") from None

    def save(self, path: Path) -> None:
        """Replace the file at once or not at all."""
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows((entry.device, entry.slot, "yes" if entry.revoked else "no") for entry in self)
        try:
            handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(out.getvalue())
                file.flush()
                os.fsync(file.fileno())
            if path.exists():  # the shuffler may run as another user, who was given this file
                Path(scratch).chmod(path.stat().st_mode & 0o777)
            Path(scratch).replace(path)
            sync_folder(path.parent)  # a revocation that a power cut undoes would let the device in again
        except OSError as error:
            raise OutputError(f"{path}: cannot be written ({error.strerror}).") from None


def read_lines(path: Path) -> Iterator[tuple[int, RosterEntry]]:
    """The entries of a CSV file one by one, each with its line; errors name the line, never the key in it."""
    rows = None
    try:  # bytes that are no text stay in the file and break their own line only
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            rows = csv.reader(file, strict=True)
            if tuple(next(rows, [])) != COLUMNS:
                raise ConfigError(f"the first row must be {','.join(COLUMNS)}.")
            yield from ((rows.line_num, _read_entry(row)) for row in rows if row)
    except RosterError:  # of whoever takes the entries
        raise
    except DovetailError as error:
        raise RosterError(path, f"line {rows.line_num if rows else 1}: {error}") from None
    except csv.Error:
        raise RosterError(path, f"line {rows.line_num if rows else 1}: no row that can be read.") from None
    except OSError:
        raise RosterError(path, "no roster that can be read.") from None


def _read_entry(row: list[str]) -> RosterEntry:
    if len(row) != len(COLUMNS):
        raise ConfigError(f"must have {len(COLUMNS)} columns, got {len(row)}.")
    device, slot, revoked = row
    if not (slot.isascii() and slot.isdigit() and len(slot) <= 9):
        raise ConfigError("`slot` must be a whole number, at least 0.")
    if revoked not in ("yes", "no"):
        raise ConfigError("`revoked` must be yes or no.")
    return RosterEntry(VerifyingKey.parse("device", device), int(slot), revoked == "yes")
