"""Rounds at the shuffler: which one a report belongs to, and when its reports may leave as a batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from dovetail.collect.clock import minute
from dovetail.collect.http import Refusal
from dovetail.collect.logs import Log
from dovetail.collect.shuffler.batches import half_built
from dovetail.collect.shuffler.link_key_store import ErasedKey, ForeignKey, LinkKeyStore, RoundKey, UnusableKey
from dovetail.collect.store.interfaces import CampaignId, RoundRecord, RoundState, ShufflerStore
from dovetail.core.errors import ConfigError, DataError, DovetailError, StorageError
from dovetail_protocol.campaign import Campaign

# The batch rule of the shuffler: when the reports of a round may leave as a batch, and what happens to them if not.
#
# A batch leaves only with at least `minimum` reports of distinct devices, of the roster where there is one, whose
# seal and signature hold; a smaller round waits, merges into the next one or is dropped, as the campaign says. What a
# report says is sealed to the analyzer: whether it is valid is checked there, and below `minimum` valid ones nothing
# is told. `BATCH_RULE` is the life of a round as a table: which event, under which facts, has which effects. No
# clock, no store, no network.
#
# A round takes reports while it is open. It is over when its time and grace have passed, when it holds `close_at`
# reports, or when its owner closes it. It is then closed (held), counted, and released, merged or dropped by the
# rule. Each change of state is one transaction of the store, so that a crash leaves every round in a state of this
# table and `restarted` takes it from there.


RuleState = RoundState | Literal["unopened"]
RoundEvent = Literal[
    "begins",
    "over",
    "next closed",
    "counted",
    "built",
    "restarted",
    "delivered",
    "failed",
    "key gone",
    "key back",
    "owner drops",
]
RoundEffect = Literal[
    "open",
    "close",
    "hold",
    "merge",
    "drop",
    "build",
    "build on",
    "abandon",
    "release",
    "erase",
    "deliver",
    "retry later",
    "forget",
    "lose",
    "recover",
    "discard",
]


@dataclass(frozen=True)
class Transition:
    """One row: in this state, on this event, where the fact `when` holds (empty: always)."""

    state: RuleState
    event: RoundEvent
    when: str
    effects: tuple[RoundEffect, ...]
    after: RuleState


# the first row that fits is taken
BATCH_RULE = (
    Transition("unopened", "begins", "", ("open",), "open"),
    Transition("open", "over", "enough", ("close",), "held"),
    Transition("open", "over", "waits", ("hold",), "open"),
    Transition("open", "over", "", ("close",), "held"),
    Transition("held", "next closed", "", ("merge", "erase"), "merged"),
    Transition("held", "counted", "enough", ("build",), "releasing"),
    Transition("held", "counted", "merges", ("hold",), "held"),
    Transition("held", "counted", "", ("drop", "erase"), "dropped"),
    Transition("releasing", "built", "", ("release", "erase", "deliver"), "released"),
    Transition("releasing", "restarted", "begun", ("build on",), "releasing"),
    Transition("releasing", "restarted", "", ("abandon",), "held"),
    Transition("released", "restarted", "", ("erase", "deliver"), "released"),
    Transition("merged", "restarted", "", ("erase",), "merged"),
    Transition("dropped", "restarted", "", ("erase",), "dropped"),
    Transition("released", "failed", "", ("retry later",), "released"),
    Transition("released", "delivered", "", ("forget",), "delivered"),
    Transition("delivered", "restarted", "", ("erase",), "delivered"),
    Transition("open", "key gone", "", ("lose",), "lost"),
    Transition("held", "key gone", "", ("lose",), "lost"),
    Transition("lost", "key back", "", ("recover",), "open"),
    Transition("lost", "owner drops", "", ("drop", "erase"), "dropped"),
    Transition("held", "owner drops", "unreadable", ("drop", "erase"), "dropped"),
    Transition("released", "owner drops", "refused", ("discard", "erase"), "dropped"),
)

FACTS = {
    "enough": "at least `minimum` signed reports of distinct devices, merged ones included",
    "waits": "small = wait, and the campaign has not expired",
    "merges": "small = merge, and a later round can still close",
    "unreadable": "its reports do not open under its key",
    "begun": "its batch goes in parts, of which those that stand can be kept: order and key are there",
    "refused": "the analyzer has refused its batch when it last answered",
}

EFFECTS: dict[RoundEffect, str] = {
    "open": "the round takes reports, under a key of its own",
    "close": "the round takes no more reports",
    "hold": "nothing is released; status and log say so",
    "merge": "the reports are sealed again under the next round's key; where a device has one there, that one stays",
    "drop": "the reports are deleted and their number is shown",
    "build": "a permutation and dummies, if any, are drawn, and the batch is put together in its order",
    "build on": "the parts that are not there yet are built, in the order that the others have",
    "release": "the reports are deleted, and the batch waits to be sent: one transaction",
    "deliver": "the batch is sent to the analyzer",
    "retry later": "the batch is sent again after a jittered back-off",
    "erase": "the round's key is destroyed, and with it the link between devices and reports",
    "abandon": "the half-built batch is deleted; nothing of it has left, the next one draws its own",
    "forget": "the body of the batch is deleted",
    "lose": "nothing is deleted; devices are told that the round is lost, and status, health and metrics show it",
    "discard": "the batch is deleted, and nobody can count it any more",
    "recover": "the round goes on where it was: by its time and count it is open, held or released",
}


def find_transition(state: RuleState, event: RoundEvent, facts: Collection[str] = ()) -> Transition | None:
    """The row that fits; None where the event changes nothing."""
    for row in BATCH_RULE:
        if row.state == state and row.event == event and (not row.when or row.when in facts):
            return row
    return None


def round_facts(campaign: Campaign, count: int, *, now: float, follows: bool) -> frozenset[str]:
    """Facts of a round that is over with `count` signed reports of distinct devices.

    follows : whether a later round can still close.
    """
    living = campaign.expires is None or now < campaign.expires.timestamp()
    small = campaign.batch.small
    facts = {
        "enough": count >= campaign.batch.minimum,
        "waits": small == "wait" and living,
        "merges": small == "merge" and living and follows,
    }
    return frozenset(fact for fact, true in facts.items() if true)


# Which round: by the clock, by what is closed already, and for a report that comes early or late.


RoundsByNumber = Mapping[int, RoundRecord]  # by number


def current_round(campaign: Campaign, rounds: RoundsByNumber, now: float) -> int:
    """The round that devices report for: by the clock, or the first that is not closed; 0 before the first round,
    count + 1 after the last."""
    if campaign.schedule.period is not None:
        return campaign.schedule.round_at(now)
    number = max(rounds, default=1)
    while number > 1 and not _is_closed(rounds, number - 1):
        number -= 1
    return number + 1 if _is_closed(rounds, number) else number


def round_to_open(campaign: Campaign, rounds: RoundsByNumber, now: float) -> int | None:
    """The round that is to be opened now, if there is one."""
    number = current_round(campaign, rounds, now)
    return number if 1 <= number <= campaign.schedule.count and number not in rounds else None


def is_over(campaign: Campaign, round: RoundRecord, now: float) -> bool:
    """True if an open round ends by itself: its time has passed, or it is full. An owner's close needs no reason."""
    full = campaign.batch.close_at
    return _is_past(campaign, round.number, now) or (full is not None and round.count >= full)


def later_round_can_close(campaign: Campaign, rounds: RoundsByNumber, now: float) -> bool:
    """True if a round can still close after those that are closed now."""
    if any(round.state == "open" for round in rounds.values()):
        return True
    last = campaign.schedule.count
    return last not in rounds and not _is_past(campaign, last, now)


def receiving_round(
    campaign: Campaign, number: int, rounds: RoundsByNumber, *, now: float, known: float = -math.inf
) -> int | Literal["too_early", "late", "lost"]:
    """The round in which a report for round `number` counts, or why it counts in none.

    One round ahead is taken, because clocks differ; a late report joins the current round, or the next one, where the
    campaign's rule is late = "next", and its own round began after `known` (seconds since 1970): of rounds before,
    nobody remembers which reports came, and a copy of one would count again.
    """
    running = current_round(campaign, rounds, now)
    if number > running + 1:
        return "too_early"
    if _takes(campaign, number, rounds, now):
        return number
    if campaign.batch.late == "next" and _began_at(campaign, number, rounds) > known:
        for later in (running, running + 1):
            if later > number and _takes(campaign, later, rounds, now):
                return later
    return "lost" if number in rounds and rounds[number].state == "lost" else "late"


def _takes(campaign: Campaign, number: int, rounds: RoundsByNumber, now: float) -> bool:
    if number in rounds:
        return rounds[number].state == "open"
    return 1 <= number <= campaign.schedule.count and not _is_past(campaign, number, now)


def _began_at(campaign: Campaign, number: int, rounds: RoundsByNumber) -> float:
    """When a round before the current one began, at the latest."""
    schedule = campaign.schedule
    opened = rounds[number].opened if number in rounds else math.inf
    return opened if schedule.period is None else min(opened, schedule.ends(number) - schedule.period)


def _is_closed(rounds: RoundsByNumber, number: int) -> bool:
    return number in rounds and rounds[number].state != "open"


def _is_past(campaign: Campaign, number: int, now: float) -> bool:
    schedule = campaign.schedule
    return schedule.period is not None and now >= schedule.ends(number) + schedule.grace


# Whether the vault has the keys under which the reports of rounds lie: the store keeps their fingerprints.


_WITH_REPORTS = ("open", "held", "releasing")


def own_key(link_keys: LinkKeyStore, round: RoundRecord) -> RoundKey | None:
    """The key under which the reports of a round lie; None if there is none here.

    Raises
    ------
    ForeignKey
        When the key here is another one: this vault belongs to another database.
    """
    key = link_keys.key(round.campaign, round.number)
    if key is not None and round.key not in (None, key.fingerprint):
        raise ForeignKey(
            f"the vault has another key for round {round.number} of {round.campaign} than its reports lie under"
        )
    return key


def has_key(link_keys: LinkKeyStore, store: ShufflerStore, round: RoundRecord) -> bool:
    """True if the reports of a round can be read here; notes which key does where that was never noted."""
    try:
        key = own_key(link_keys, round)
    except (ForeignKey, UnusableKey):
        return False
    if key is not None and round.key is None:
        store.record_key(round.campaign, round.number, key.fingerprint)
    return key is not None


def claim_vault(link_keys: LinkKeyStore, store: ShufflerStore) -> None:
    """Refuse to go on where somebody works on the database with another vault.

    A vault that takes the place of another one knows nothing of the rounds before it, and notes that.
    """
    if not store.claim_vault(link_keys.identity(), lambda: link_keys.forget_before(math.inf)):
        raise ConfigError(
            "another shuffler works on this database with another `vault`; give both the same folder, or stop it."
        )


def require_own_keys(link_keys: LinkKeyStore, rounds: Iterable[RoundRecord]) -> None:
    """Refuse a vault that belongs to another database; keys that are missing are no reason."""
    for round in rounds:
        try:
            if round.state in _WITH_REPORTS:
                own_key(link_keys, round)
        except ForeignKey as error:
            raise ConfigError(
                f"{error}; name the right folder as `vault`, or an empty one if it is gone: the round is lost then."
            ) from None
        except UnusableKey:
            continue  # damaged: that round is lost, and no other


def require_key(link_keys: LinkKeyStore, round: RoundRecord) -> RoundKey:
    """The key under which the reports of a round lie; StorageError without one."""
    key = own_key(link_keys, round)
    if key is None:
        raise missing_key(round.campaign, round.number)
    return key


def missing_key(campaign: CampaignId, number: int) -> StorageError:
    """The vault has no key for a round that still has reports."""
    return StorageError(f"the key of round {number} of {campaign} is gone from the vault.")


# The rounds of every campaign as last seen in the store. The store decides; what is seen here may be old.


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
        """True if a report for round `first` that joins a later one may have left before, as far as anybody knows.

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


# What is wrong with single rounds: one that cannot go on stops no other one, and is tried again at the next turn.


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
        """Turn what is raised inside into a fault of this round."""
        try:
            yield
        except DovetailError as error:
            place = (campaign, number)
            if repr(self._before.get(place, self._found.get(place))) != repr(error):
                _LOG.fault("a round cannot go on", error, campaign=campaign, round=number)
            self._found[place] = error

    def faulty(self, campaign: CampaignId, number: int) -> bool:
        """True if the round could not go on in this turn or the one before."""
        return (campaign, number) in self._found or (campaign, number) in self._before

    def unreadable(self, campaign: CampaignId, number: int) -> bool:
        """True if that was because its reports do not open under its key."""
        place = (campaign, number)
        return isinstance(self._found.get(place, self._before.get(place)), DataError)

    def rounds(self) -> dict[CampaignId, list[int]]:
        """The rounds that could not go on, by campaign."""
        found: dict[CampaignId, list[int]] = {}
        for campaign, number in sorted(self._found):
            found.setdefault(campaign, []).append(number)
        return found


# Turning rounds is one process's work at a time; whoever comes next finishes what a dead one has left.


_LEFTOVERS_LOG = Log("shuffler")
_PATIENCE = 10.0  # seconds that an owner's word waits for another process
_LEFTOVERS_OVER = ("released", "delivered", "merged", "dropped")


@contextmanager
def turning_alone(store: ShufflerStore) -> Iterator[None]:
    """Wait for the process that turns rounds; Refusal where it builds a batch that takes longer."""
    with store.alone("rounds", _PATIENCE) as mine:
        if not mine:
            raise Refusal("unavailable", "a batch is being built; come back later.", retry_after=_PATIENCE)
        yield


def abandon_half_built(store: ShufflerStore, only: str | None = None) -> None:
    """Abandon what is half built while nobody else turns rounds: an error stopped it, or the end of its process.

    What can be built on stays, unless it is the `only` batch that is asked for.
    """
    for batch in store.outgoing():
        if batch.state == "building" and (batch.id == only or not batch.secret):
            store.abandon_batch(batch.id)
            _LEFTOVERS_LOG.warning("half built batch abandoned", campaign=batch.campaign, batch=batch.id)


def can_go_on(round: RoundRecord, rounds: RoundCache, faults: RoundFaults) -> bool:
    """True if the batch of this round was left half built, in parts, and everything is there to build on."""
    if round.state != "releasing" or half_built(rounds.store, round) is None:
        return False
    readable = not faults.unreadable(round.campaign, round.number)
    return readable and has_key(rounds.link_keys, rounds.store, round)


class TidiedRounds:
    """Rounds that are over, of which this process knows that their key is destroyed, no matter who ended them."""

    def __init__(self) -> None:
        self._done = set[tuple[CampaignId, int]]()

    def missing(self, campaign: CampaignId, rounds: RoundsByNumber) -> list[int]:
        """Rounds that are over and not among these."""
        over = (number for number, round in rounds.items() if round.state in _LEFTOVERS_OVER)
        return sorted(number for number in over if (campaign, number) not in self._done)

    def add(self, campaign: CampaignId, number: int) -> None:
        self._done.add((campaign, number))
