"""The rounds of every campaign as last seen in the store. The store decides; what is seen here may be old."""

from __future__ import annotations

import math
from collections.abc import Callable

from dovetail.collect.clock import minute
from dovetail.collect.shuffler.link_key_store import ErasedKey, LinkKeyStore, RoundKey
from dovetail.collect.shuffler.rounds.round_keys import missing_key, own_key
from dovetail.collect.shuffler.rounds.round_schedule import RoundsByNumber
from dovetail.collect.store.interfaces import CampaignId, RoundRecord, ShufflerStore
from dovetail_protocol.campaign import Campaign

_OVER = ("released", "delivered", "dropped", "merged")


class RoundCache:
    """Looks rounds up, opens them, and finds their keys; safe between threads.

    ended : told of a campaign when one of its rounds is seen to take no more reports, whichever process closed it.
    """

    def __init__(
        self, store: ShufflerStore, link_keys: LinkKeyStore, ended: Callable[[CampaignId], None] = lambda _: None
    ) -> None:
        self.store, self.link_keys, self._ended = store, link_keys, ended
        self._seen: dict[CampaignId, RoundsByNumber] = {}
        self._forgotten: dict[CampaignId, frozenset[int]] = {}
        self._before: float | None = None  # see `LinkKeyStore.forgotten_before`

    def of(self, campaign: CampaignId) -> RoundsByNumber:
        """The rounds as last seen."""
        return self._seen[campaign] if campaign in self._seen else self.refresh(campaign)

    def refresh(self, campaign: CampaignId) -> RoundsByNumber:
        """The rounds as the store has them now."""
        found = {round.number: round for round in self.store.rounds(campaign)}
        before, self._seen[campaign] = self._seen.get(campaign), found
        if before is not None and not _takes_no_more(found) <= _takes_no_more(before):
            self._ended(campaign)
        return found

    def lost(self, campaign: CampaignId) -> list[int]:
        """Rounds without their key, as last seen; not those that the vault knows to be over."""
        return sorted(self._without_key(campaign) - self.forgotten(campaign))

    def ended_before(self, campaign: CampaignId) -> list[int]:
        """Rounds that ended after the backup from which the store was restored: there they still wait for a key."""
        return sorted(self._without_key(campaign) & self.forgotten(campaign))

    def _without_key(self, campaign: CampaignId) -> set[int]:
        return {number for number, round in self.of(campaign).items() if round.state == "lost"}

    def forgotten(self, campaign: CampaignId) -> frozenset[int]:
        """Rounds that the vault knows to be over and the store does not: it was restored from an older backup.

        Which reports were in them nobody remembers. A store that was not restored is always ahead of the vault, so
        that one look is enough.
        """
        if campaign not in self._forgotten:
            erased, rounds = self.link_keys.erased(campaign), self.refresh(campaign)
            known = {number for number, round in rounds.items() if round.state in _OVER}
            self._forgotten[campaign] = frozenset(erased - known)
        return self._forgotten[campaign]

    def may_have_left(self, campaign: Campaign, first: int, number: int) -> bool:
        """Whether a report for round `first` that joins a later one may have left before, as far as anybody knows.

        A vault that has taken another one's place does not know which rounds are over, nor, where rounds close by
        hand, how many there were.
        """
        if number <= first:
            return False
        if self._before in (None, math.inf):  # infinity: until the first turn has noted the time
            self._before = self.link_keys.forgotten_before()
        if self._before > -math.inf:
            schedule = campaign.schedule
            if schedule.period is None or schedule.ends(first) - schedule.period <= self._before:
                return True
        return any(first <= round < number for round in self.forgotten(campaign.id))

    def date_vault(self, now: float) -> None:
        """Note when this vault took another one's place, if it did; the clock is believed by now."""
        if self.link_keys.forgotten_before() == math.inf:
            self.link_keys.forget_before(minute(now) + 60.0)  # rounds of the minute under way, too

    def open(self, campaign: CampaignId, number: int, now: float) -> RoundRecord:
        """Open a round, with a key of its own; what the vault says is over is lost to a database from a backup."""
        try:
            fingerprint = self.link_keys.create(campaign, number).fingerprint
            round = self.store.open_round(campaign, number, minute(now), fingerprint)
        except ErasedKey:
            round = self.store.open_round(campaign, number, minute(now), state="lost")
        self.refresh(campaign)
        return round

    def key(self, campaign: CampaignId, number: int, now: float) -> RoundKey | None:
        """The key of a round that takes reports, which is opened if it is not known; None once it is released.

        Raises
        ------
        StorageError
            When the round is open and its key is gone: nothing more can be taken for it.
        """
        if number not in self.of(campaign):
            self.open(campaign, number, now)
        key = own_key(self.link_keys, self.of(campaign)[number])
        if key is None and self.refresh(campaign)[number].state == "open":
            raise missing_key(campaign, number)
        return key


def _takes_no_more(rounds: RoundsByNumber) -> set[int]:
    return {number for number, round in rounds.items() if round.state != "open"}
