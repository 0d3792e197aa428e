"""The rounds of a fleet in the private release ledger: what was spent elsewhere, and what must not be drawn twice."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import Reports
from dovetail.pipeline.files.report_columns import to_columns
from dovetail.pipeline.release_entry import LedgerEntry, ReleaseRequest
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.pipeline.stream.fleet import Fleet
from dovetail.pipeline.stream.fleet_values import Places
from dovetail_protocol.budget import NOTHING


class FleetLedger:
    """One run's view of a ledger; every round that it adds is a release of its own."""

    def __init__(self, fleet: Fleet, ledger: ReleaseLedger, about: str) -> None:
        self._fleet, self._ledger, self._about = fleet, ledger, about
        self._people = [str(device) for device in fleet.roster]
        self._seen = 0  # number of the last release that is counted
        self._others: list[LedgerEntry] = []  # releases of other runs, whose rounds are not drawn again

    def news(self) -> list[Fraction]:
        """Nats that each device spent in releases since this was last asked, less those that were added here."""
        fresh = self._ledger.entries(after=self._seen)
        self._seen = max((entry.number for entry in fresh), default=self._seen)
        self._others += fresh
        return self._ledger.spent(self._people, fresh) if fresh else [NOTHING] * len(self._people)

    def refuse_released(self, t: int, senders: Places) -> None:
        """A round that was released before is not drawn again."""
        known = int(self._ledger.known(self._rounds(t, senders), self._others).sum())
        if known:
            raise UnsupportedError(
                f"round {t} was released before, with {known:,} of these devices; the next one has a later stamp."
            )

    def add(self, t: int, senders: Places, batch: Reports) -> None:
        """Record a round, before anybody sees its reports.

        Raises
        ------
        StorageError
            When it cannot be recorded, or somebody else has just recorded a release; then nothing leaves.
        """
        fleet, people = self._fleet, [self._people[place] for place in senders]
        self._seen = self._ledger.record(
            ReleaseRequest(
                table=json.dumps(["round", self._about, t, people]).encode(),
                terms=repr((fleet.randomizer, fleet.shuffler.name, fleet.cap, fleet.spread)).encode(),
                groups=json.dumps([fleet.shuffler.name, self._people]).encode(),
                people=people,
                epsilon=fleet.randomizer.guarantee.epsilon,
                alpha=fleet.shuffler.guarantee.alpha,
                n=len(batch),
                shuffler=fleet.shuffler.name,
                rounds=self._rounds(t, senders),
                after=self._seen,
            ),
            draw=lambda: to_columns(fleet.randomizer, np.asarray(batch), None),
        )

    def _rounds(self, t: int, senders: Places) -> list[str]:
        return round_names(self._about, ((self._people[place], t) for place in senders))


def round_names(about: str, reports: Iterable[tuple[str, int]]) -> list[str]:
    """The names by which a ledger knows reports: what they are about, of whom (device), in which round (stamp)."""
    return [json.dumps([about, device, t]) for device, t in reports]
