"""The roster of a running shuffler: it follows the file, so that a revocation counts with the next report."""

from __future__ import annotations

from pathlib import Path

from dovetail.collect.campaign.mapped_roster import MappedRoster, changes_of, is_mapped, open_roster
from dovetail.collect.campaign.roster import Roster, RosterError
from dovetail.collect.logs import Log

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
        """What is wrong with the file as of now; empty where the roster is the file's."""
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
        return [_stamp(path) for path in self._watched]


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino  # ctime: chmod mends a file too
