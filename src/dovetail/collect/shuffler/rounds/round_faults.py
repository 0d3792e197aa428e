"""What is wrong with single rounds: one that cannot go on stops no other one, and is tried again at the next turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.collect.logs import Log
from dovetail.collect.store.interfaces import CampaignId
from dovetail.core.errors import DataError, DovetailError

_LOG = Log("shuffler.rounds")

Place = tuple[CampaignId, int]


class RoundFaults:
    """The faults of the last turn; the log names a fault when it is new."""

    def __init__(self) -> None:
        self._found: dict[Place, DovetailError] = {}
        self._before: dict[Place, DovetailError] = {}

    def begin(self, campaign: CampaignId) -> None:
        """A turn of this campaign begins: what was wrong may be right now."""
        self._before = {place: fault for place, fault in self._found.items() if place[0] == campaign}
        self._found = {place: fault for place, fault in self._found.items() if place[0] != campaign}

    @contextmanager
    def isolate(self, campaign: CampaignId, number: int) -> Iterator[None]:
        """Whatever is raised inside is a fault of this round."""
        try:
            yield
        except DovetailError as error:
            place = (campaign, number)
            if repr(self._before.get(place, self._found.get(place))) != repr(error):
                _LOG.fault("a round cannot go on", error, campaign=campaign, round=number)
            self._found[place] = error

    def faulty(self, campaign: CampaignId, number: int) -> bool:
        """Whether the round could not go on in this turn or the one before."""
        return (campaign, number) in self._found or (campaign, number) in self._before

    def unreadable(self, campaign: CampaignId, number: int) -> bool:
        """Whether that was because its reports do not open under its key."""
        place = (campaign, number)
        return isinstance(self._found.get(place, self._before.get(place)), DataError)

    def rounds(self) -> dict[CampaignId, list[int]]:
        """The rounds that could not go on, by campaign."""
        found: dict[CampaignId, list[int]] = {}
        for campaign, number in sorted(self._found):
            found.setdefault(campaign, []).append(number)
        return found
