"""The roster of a running shuffler: it follows the file, so that a revocation counts with the next report."""

from __future__ import annotations

from pathlib import Path

from dovetail.collect.campaign.mapped_roster import MappedRoster, changes_of, is_mapped, open_roster
from dovetail.collect.campaign.roster import Roster
from dovetail.collect.logs import Log
from dovetail.core.errors import ConfigError

_LOG = Log("roster")


class LiveRoster:
    """The roster of a file, read again when the file changes: a revocation counts without a restart.

    A mapped roster is followed in its changes. A file that has become unreadable or wrong changes nothing; the log
    says so, and so does `fault`.
    """

    def __init__(self, path: Path) -> None:
        self._watched = (path, changes_of(path)) if is_mapped(path) else (path,)
        self._seen = self._stamps()
        self._roster = open_roster(path)
        self.fault = False

    def current(self) -> Roster | MappedRoster:
        """The roster as of now; one look at the file's time."""
        stamps = self._stamps()
        if stamps != self._seen:
            self._seen = stamps
            try:
                self._roster, self.fault = open_roster(self._watched[0]), False
                _LOG.info("roster read again", count=len(self._roster))
            except ConfigError as error:
                self.fault = True
                _LOG.fault("roster unreadable, the old one stays", error)
        return self._roster

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) for path in self._watched]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
