"""Turning rounds is one process's work at a time; whoever comes next finishes what a dead one has left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.collect.http.problems import Refusal
from dovetail.collect.logs import Log
from dovetail.collect.shuffler.rounds.batch_in_parts import half_built
from dovetail.collect.shuffler.rounds.round_cache import RoundCache
from dovetail.collect.shuffler.rounds.round_faults import RoundFaults
from dovetail.collect.shuffler.rounds.round_keys import has_key
from dovetail.collect.shuffler.rounds.round_schedule import RoundsByNumber
from dovetail.collect.store.interfaces import CampaignId, RoundRecord, ShufflerStore

_LOG = Log("shuffler")
_PATIENCE = 10.0  # seconds that an owner's word waits for another process
_OVER = ("released", "delivered", "merged", "dropped")


@contextmanager
def turning_alone(store: ShufflerStore) -> Iterator[None]:
    """Wait for the process that turns rounds; Refusal where it builds a batch that takes longer."""
    with store.alone("rounds", _PATIENCE) as mine:
        if not mine:
            raise Refusal("unavailable", "a batch is being built; come back later.", retry_after=_PATIENCE)
        yield


def abandon_half_built(store: ShufflerStore, only: str | None = None) -> None:
    """What is half built while nobody else turns rounds was stopped: by an error, or with its process.

    What can be built on stays, unless it is the `only` batch that is asked for.
    """
    for batch in store.outgoing():
        if batch.state == "building" and (batch.id == only or not batch.secret):
            store.abandon_batch(batch.id)
            _LOG.warning("half built batch abandoned", campaign=batch.campaign, batch=batch.id)


def can_go_on(round: RoundRecord, rounds: RoundCache, faults: RoundFaults) -> bool:
    """Whether the batch of this round was left half built, in parts, and everything is there to build on."""
    if round.state != "releasing" or half_built(rounds.store, round) is None:
        return False
    readable = not faults.unreadable(round.campaign, round.number)
    return readable and has_key(rounds.link_keys, rounds.store, round)


class TidiedRounds:
    """Rounds that are over, of which this process knows that their key is destroyed, whoever ended them."""

    def __init__(self) -> None:
        self._done = set[tuple[CampaignId, int]]()

    def missing(self, campaign: CampaignId, rounds: RoundsByNumber) -> list[int]:
        """Rounds that are over and not among these."""
        over = (number for number, round in rounds.items() if round.state in _OVER)
        return sorted(number for number in over if (campaign, number) not in self._done)

    def add(self, campaign: CampaignId, number: int) -> None:
        self._done.add((campaign, number))
