"""The roster: which devices may send, and the public slot of each.

A CSV file with the columns `device` (`ed25519:...`), `slot` (0, 1, ..: the device's row in public tables) and
`revoked` (yes or no). Slots of revoked devices stay taken, so that no slot ever changes hands.
"""

from __future__ import annotations

import csv
import io
import mmap
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from dovetail.collect.logs import Log
from dovetail.core.errors import ConfigError, DataError, DovetailError, OutputError
from dovetail.ledger.files import replace_durably, sync, write_whole
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
        """True if the device is listed, and must not send any more."""
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
        replace_durably(path, out.getvalue().encode())


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


# A roster of any size: a sorted file of keys that all processes of a host map, and a short list of changes.
#
# ::
#
#     file    = "DVTR" | version 1 | zeros 3 | devices 8 | keys 32 each, ascending | slots 4 each, in the order of
#     keys
#     changes = `file`.changes: a roster as CSV, of what was revoked or added since; it overrides the file
#
# Looking a device up reads some pages that the system keeps once for everybody. The file never changes; a revocation
# rewrites the changes only. Without them nobody knows who was revoked, and the roster is refused.


_MAGIC = b"DVTR\1\0\0\0"
_HEAD, _KEY, _SLOT = 16, 32, 4
_BLOCK = 1 << 20  # keys written at once


def changes_of(path: Path) -> Path:
    """Where the changes to a mapped roster stand."""
    return path.with_name(f"{path.name}.changes")


def is_mapped(path: Path) -> bool:
    """True if a file is a mapped roster; what cannot be read is none."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def open_roster(path: Path) -> Roster | MappedRoster:
    """The roster of a file of either kind."""
    return MappedRoster.load(path) if is_mapped(path) else Roster.load(path)


@dataclass(frozen=True)
class _Keys:
    """The keys of a mapped file as a sequence."""

    data: mmap.mmap = field(repr=False)
    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, place: int) -> bytes:
        start = _HEAD + place * _KEY
        return self.data[start : start + _KEY]

    def slot(self, place: int) -> int:
        start = _HEAD + self.count * _KEY + place * _SLOT
        return int.from_bytes(self.data[start : start + _SLOT], "little")

    def last_slot(self) -> int:
        slots = np.frombuffer(self.data, dtype="<u4", count=self.count, offset=_HEAD + self.count * _KEY)
        return int(slots.max(initial=0)) if self.count else -1


class MappedRoster:
    """A roster in a mapped file, with the changes to it.

    Notes
    -----
    36 bytes a device in the file, and as many in the memory that all processes share.
    """

    def __init__(self, keys: _Keys, changes: Roster) -> None:
        self._keys, self._changes = keys, changes

    def __len__(self) -> int:
        return self._keys.count + sum(self._slot(entry.device.public) is None for entry in self._changes)

    def __iter__(self) -> Iterator[RosterEntry]:
        """Entries by key, then those added since."""
        for place in range(self._keys.count):
            device = VerifyingKey(self._keys[place])
            yield RosterEntry(device, self._keys.slot(place), self._changes.is_revoked(device))
        yield from (entry for entry in self._changes if self._slot(entry.device.public) is None)

    def slot(self, device: VerifyingKey) -> int | None:
        """The device's public slot; None if it is not listed."""
        found = self._slot(device.public)
        return self._changes.slot(device) if found is None else found

    def is_revoked(self, device: VerifyingKey) -> bool:
        """True if the device is listed, and must not send any more."""
        return self._changes.is_revoked(device)

    def with_devices(self, devices: Iterable[VerifyingKey]) -> MappedRoster:
        """With more devices, in the first slots after all others."""
        devices = list(devices)
        if known := sum(self.slot(device) is not None for device in devices):
            raise DataError(f"{known} of these devices are in the roster already.")
        free = 1 + max(self._keys.last_slot(), max((entry.slot for entry in self._changes), default=-1))
        added = [RosterEntry(device, free + place) for place, device in enumerate(devices)]
        return MappedRoster(self._keys, Roster([*self._changes, *added]))

    def without_devices(self, devices: Iterable[VerifyingKey]) -> MappedRoster:
        """With these devices revoked."""
        slots = {device: self.slot(device) for device in devices}
        if unknown := sum(slot is None for slot in slots.values()):
            raise DataError(f"{unknown} of these devices are not in the roster.")
        revoked = [RosterEntry(device, slot, True) for device, slot in slots.items() if slot is not None]
        others = [entry for entry in self._changes if entry.device not in slots]
        return MappedRoster(self._keys, Roster([*others, *revoked]))

    def save(self, path: Path) -> None:
        """Replace the changes at once or not at all; the file stays as it is."""
        self._changes.save(changes_of(path))

    @classmethod
    def load(cls, path: Path) -> Self:
        """The roster of a file and its changes."""
        try:
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            raise RosterError(path, "no roster that can be read.") from None
        count = int.from_bytes(data[len(_MAGIC) : _HEAD], "little")
        if data[: len(_MAGIC)] != _MAGIC or len(data) != _HEAD + count * (_KEY + _SLOT):
            raise RosterError(path, "is cut short, or no mapped roster; write it again with `roster index`.")
        if not changes_of(path).exists():
            raise RosterError(changes_of(path), "is missing, so that nobody knows which devices were revoked.")
        return cls(_Keys(data, count), Roster.load(changes_of(path)))

    def _slot(self, public: bytes) -> int | None:
        place = bisect_left(self._keys, public)
        return self._keys.slot(place) if place < len(self._keys) and self._keys[place] == public else None


def write_mapped(source: Path, path: Path) -> MappedRoster:
    """Write the roster `source`, of either kind, as a mapped one; an existing file is refused.

    Notes
    -----
    A process may have the old file mapped, so it is never written over. About 120 bytes of memory a device.
    """
    for place in (path, changes_of(path)):
        if place.exists():
            raise OutputError(f"{place} exists and may be in use; choose another name.")
    entries = MappedRoster.load(source) if is_mapped(source) else (entry for _, entry in read_lines(source))
    keys, slots, revoked = bytearray(), array("I"), list[RosterEntry]()
    for entry in entries:
        keys += entry.device.public
        slots.append(entry.slot)
        revoked += [entry] if entry.revoked else []
    _write(path, np.frombuffer(bytes(keys), dtype="S32"), np.frombuffer(slots, dtype=np.uint32), source)
    Roster(revoked).save(changes_of(path))
    return MappedRoster.load(path)


def _write(path: Path, keys: np.ndarray, slots: np.ndarray, source: Path) -> None:
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    if twice.size:
        raise DataError(f"{source}: the device of slot {slots[order[twice[0] + 1]]} is listed twice.")
    by_slot = np.sort(slots)
    if (same := by_slot[1:][by_slot[1:] == by_slot[:-1]]).size:
        raise DataError(f"{source}: slot {same[0]} is given to two devices.")
    with write_whole(path, mode=0o600) as draft:
        with draft.open("wb") as file:
            file.write(_MAGIC + keys.size.to_bytes(8, "little"))
            for start in range(0, keys.size, _BLOCK):
                file.write(keys[order[start : start + _BLOCK]].tobytes())
            file.write(slots[order].astype("<u4").tobytes())
        sync(draft)
    sync(path.parent)


# The roster of a running shuffler: it follows the file, so that a revocation counts with the next report.


_LOG = Log("roster")


class LiveRoster:
    """The roster of a file, read again when the file changes: a revocation counts without a restart.

    A mapped roster is followed in its changes. A file that has become unreadable or wrong changes nothing, so that a
    revocation in it does not count; the log says so, and `fault` names file and line.
    """

    def __init__(self, path: Path) -> None:
        self._watched = (path, changes_of(path)) if is_mapped(path) else (path,)
        self._seen = self._stamps()
        self._roster = open_roster(path)
        self._fault = ""

    @property
    def fault(self) -> str:
        """Say what is wrong with the file as of now; empty where the roster is the file's."""
        self.current()
        return self._fault

    def current(self) -> Roster | MappedRoster:
        """The roster as of now; one look at the file's time."""
        stamps = self._stamps()
        if stamps != self._seen:
            self._seen = stamps
            try:
                self._roster, self._fault = open_roster(self._watched[0]), ""
                _LOG.info("roster read again", count=len(self._roster))
            except RosterError as error:
                self._fault = error.fault
                _LOG.fault("roster unreadable, the old one stays", error)
        return self._roster

    def _stamps(self) -> list[tuple[int, ...] | None]:
        return [stamp(path) for path in self._watched]


def stamp(path: Path) -> tuple[int, ...] | None:
    """A mark that changes with a file; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino  # ctime: chmod mends a file too
