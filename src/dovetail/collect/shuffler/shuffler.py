"""The shuffler at work: the batch rule applied to a store of reports, one of link keys and a transport.

It has no thread and no clock of its own: `start` once, then `accept` and `step`, from a server's threads or from a
simulation. Whatever is killed in between, `start` finds every round in a state of the table and goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock

from dovetail.collect.campaign.roster import MappedRoster, Roster
from dovetail.collect.clock import minute
from dovetail.collect.http import Refusal
from dovetail.collect.logs import AuditLog, Log
from dovetail.collect.shuffler import batches as batch_in_parts
from dovetail.collect.shuffler import rounds as batch_rule
from dovetail.collect.shuffler import rounds as round_keys
from dovetail.collect.shuffler import rounds as round_schedule
from dovetail.collect.shuffler.batches import ClosedRound
from dovetail.collect.shuffler.campaigns import (
    Action,
    CampaignRegistry,
    OwnerChallenges,
    ServedVersion,
    challenge_key,
)
from dovetail.collect.shuffler.delivery import AnalyzerTransport, DeliveryQueue
from dovetail.collect.shuffler.intake import CheckedReport, MessageCounters, RateLimiter, Reply, ReportIntake
from dovetail.collect.shuffler.link_key_store import LinkKeyStore
from dovetail.collect.shuffler.rounds import (
    RoundCache,
    RoundFaults,
    TidiedRounds,
    abandon_half_built,
    can_go_on,
    turning_alone,
)
from dovetail.collect.store.interfaces import OutgoingBatch, RoundRecord, RoundState, ShufflerStore
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError, DovetailError
from dovetail.core.stages import Shuffler
from dovetail_protocol.messages import Answer, Rejected, make_answer, read_head

_LOG = Log("shuffler")
_DAY = 86_400.0


@dataclass(frozen=True)
class ShufflerSettings:
    """Settings of the operator: what devices may send, how long digests are kept, how batches are sent."""

    per_device_per_minute: float = 60.0
    retention_days: float = 90.0
    part_reports: int | None = None  # most of a batch in one piece, and of a part
    parts_at_once: int = 1


class ShufflerRole:
    """One shuffler and the campaigns that it serves.

    roster : the roster as of now, where a campaign asks for one.
    roster_fault : what is wrong with its file, or empty.
    audit : the log of what owners have asked for.
    fitted : the shufflers of order-private campaigns, by id.
    """

    def __init__(
        self,
        campaigns: CampaignRegistry,
        *,
        store: ShufflerStore,
        link_keys: LinkKeyStore,
        transport: AnalyzerTransport,
        roster: Callable[[], Roster | MappedRoster] | None = None,
        roster_fault: Callable[[], str] = str,
        fitted: Mapping[str, Shuffler] | None = None,
        settings: ShufflerSettings | None = None,
        audit: AuditLog | None = None,
        rng: Entropy,
    ) -> None:
        for version in campaigns.newest.values():
            if version.campaign.promise.authentication == "roster" and roster is None:
                raise ConfigError(f"the campaign {version.campaign.id} asks for a roster; name it as `roster`.")
            if version.campaign.order_private and version.campaign.id not in (fitted or {}):
                raise ConfigError(f"the campaign {version.campaign.id} needs a shuffler fitted to its public table.")
        self.campaigns, self.counters, self.roster_fault = campaigns, MessageCounters(), roster_fault
        self.faults = RoundFaults()
        self.rounds = RoundCache(store, link_keys, ended=self.counters.settle)
        self._fitted, self._settings, self._rng = fitted or {}, settings or ShufflerSettings(), rng
        self._outbox = DeliveryQueue(store, transport, rng, self._settings.parts_at_once)
        self._ingest = ReportIntake(
            campaigns,
            self.rounds,
            self.counters,
            roster=roster,
            slots={id: shuffler.n for id, shuffler in self._fitted.items()},
            rates=RateLimiter(self._settings.per_device_per_minute),
            memory=self._settings.retention_days * _DAY,
        )
        self._challenges, self._audit = OwnerChallenges(store, challenge_key(campaigns, link_keys)), audit
        self._lock = RLock()  # rounds change one at a time, here; `alone` says so among all processes
        self._tidied = TidiedRounds()
        self._held = set[tuple[str, int]]()  # rounds of which the log has said that they wait
        self._purged = 0.0

    # reports

    def accept(self, messages: Sequence[bytes], now: float) -> list[Reply]:
        """Take messages in one transaction; what each sender is told."""
        checked = [self.check(message, now) for message in messages]
        answers = iter(self.commit([found for found in checked if isinstance(found, CheckedReport)], now))
        return [found if isinstance(found, Reply) else next(answers) for found in checked]

    def check(self, message: bytes, now: float, quiet: bool = False) -> CheckedReport | Reply:
        """See `ReportIntake.check`."""
        return self._ingest.check(message, now, quiet)

    def commit(self, reports: Sequence[CheckedReport], now: float) -> list[Reply]:
        """See `ReportIntake.commit`."""
        return self._ingest.commit(reports, now) if reports else []

    def answer(self, message: bytes, reply: Reply) -> bytes:
        """Reply to the sender of a message, signed with the shuffler's key for the message's version.

        Without a signature where that version is unknown: devices then look for a newer one, and believe no more.
        """
        try:
            version = self.campaigns.versions.get(read_head(message).digest)
        except Rejected:
            version = None
        after = -int(-(reply.retry_after or 0.0) // 1)  # whole seconds, rounded up
        return make_answer(Answer(reply.kind, after), message, None if version is None else version.signing)

    # rounds

    def claim(self) -> None:
        """Refuse to work where another shuffler does with other keys of rounds: each would lose the other's reports.

        Raises
        ------
        ConfigError
            When somebody uses another vault, or this one holds another key for a round than its reports lie under.
        """
        for id in self.campaigns.newest:
            round_keys.require_own_keys(self.rounds.link_keys, self.rounds.refresh(id).values())
        round_keys.claim_vault(self.rounds.link_keys, self.rounds.store)

    def start(self, now: float) -> None:
        """Take up what was left: half-built batches are abandoned, keys of released rounds are destroyed."""
        self.claim()
        for version in self.campaigns.versions.values():
            if not version.takes_reports(now):
                _LOG.warning(
                    "expired, no reports are taken", campaign=version.campaign.id, version=version.campaign.version
                )
        for id in self.campaigns.newest:
            self.rounds.forgotten(id)  # looked up while the vault is surely there
        with self._lock, self.rounds.store.alone("rounds") as mine:
            if mine:  # else nothing was left, or whoever turns rounds next takes it up
                abandon_half_built(self.rounds.store)
                for version in self.campaigns.newest.values():
                    self._tidy(version, now)

    def step(self, now: float) -> None:
        """Do everything that is due: open, close and release rounds, then deliver."""
        self.turn(now)
        self.deliver(now)

    def turn(self, now: float) -> None:
        """Open, close and release rounds as the time has come; only look at them while another process does it."""
        with self._lock, self.rounds.store.alone("rounds") as mine:
            if not mine:
                for id in self.campaigns.newest:
                    self.rounds.refresh(id)
                self.counters.save(self.rounds.store)
                return
            self.rounds.date_vault(now)
            abandon_half_built(self.rounds.store)  # of a process that was killed, or stopped by an error
            faults = [fault for version in self.campaigns.newest.values() if (fault := self._try(version, now))]
            self.counters.save(self.rounds.store)
            if now - self._purged >= _DAY:
                self._purged = now
                self.rounds.store.purge(minute(now - self._settings.retention_days * _DAY))
        if faults:
            raise faults[0]

    def deliver(self, now: float) -> None:
        """Send the batches that are due, unless another process does."""
        with self.rounds.store.alone("delivery") as mine:
            if mine:
                self._outbox.deliver(now)

    def challenge(self, action: Action, campaign: str, number: int, now: float) -> bytes:
        """Challenge that the owner signs to close a round of a manual schedule, or to drop one, now."""
        return self._challenges.issue(action, self._served(campaign).campaign, number, now)

    def close_round(self, campaign: str, number: int, request: bytes, now: float) -> str:
        """The owner closes a round of a manual schedule; the state it is in then."""
        version = self._served(campaign)
        self._challenges.check("close", version.campaign, number, request, now)
        with self._lock, turning_alone(self.rounds.store):
            if number not in self.rounds.refresh(campaign):
                raise Refusal("round", "this round has not been opened.")
            if self.rounds.of(campaign)[number].state == "open":
                if self._audit is not None:  # before it has effect
                    named = version.campaign
                    self._audit.append("round closed", campaign=campaign, version=named.version, round=number)
                self._advance(version, number, "over", now)
                self._turn(version, now)
            return self.rounds.of(campaign)[number].state

    def drop_round(self, campaign: str, number: int, request: bytes, now: float) -> str:
        """The owner gives up a round that is lost, does not open, or is refused by the analyzer; its state then."""
        version = self._served(campaign)
        self._challenges.check("drop", version.campaign, number, request, now)
        with self._lock, turning_alone(self.rounds.store):
            if number not in (rounds := self.rounds.refresh(campaign)):
                raise Refusal("round", "this round has not been opened.")
            abandon_half_built(self.rounds.store, rounds[number].batch)
            self.rounds.refresh(campaign)
            if self._find_transition(version, number, "owner drops", now) is not None:
                if self._audit is not None:  # before it has effect
                    named = version.campaign
                    self._audit.append("round dropped", campaign=campaign, version=named.version, round=number)
                self._advance(version, number, "owner drops", now)
            state = self.rounds.of(campaign)[number].state
        if state != "dropped":
            raise Refusal(
                "round",
                f"round {number} is {state}; only one that is lost, or does not open, or whose batch the analyzer "
                "refuses, is dropped.",
            )
        return state

    def ready(self) -> bool:
        """True if a report could be stored now, in a round that has a key or gets one."""
        return self.rounds.store.ready() and self.rounds.link_keys.ready()

    def lost_rounds(self) -> dict[str, list[int]]:
        """Rounds without their key, by campaign; campaigns that have none are left out."""
        found = {id: self.rounds.lost(id) for id in self.campaigns.newest}
        return {id: numbers for id, numbers in found.items() if numbers}

    def refused_batches(self) -> dict[str, dict[int, str]]:
        """See `DeliveryQueue.refused_rounds`."""
        return self._outbox.refused_rounds()

    def stop(self) -> None:
        """Say what is still to be said; everything else is durable already."""
        self.counters.save(self.rounds.store)
        self.rounds.store.close()

    def _served(self, campaign: str) -> ServedVersion:
        version = self.campaigns.newest.get(campaign)
        if version is None:
            raise Refusal("not_found", "no such campaign is served here.")
        return version

    def _turn(self, version: ServedVersion, now: float) -> None:
        campaign = version.campaign
        self.faults.begin(campaign.id)
        self.rounds.refresh(campaign.id)
        self._tidy(version, now)
        for number in self._in_state(campaign.id, "releasing"):  # its builder was killed, or stopped by an error
            self._advance_alone(version, number, "restarted", now)
        for number, round in sorted(self.rounds.of(campaign.id).items()):
            if round.state in ("open", "held", "lost"):
                with self.faults.isolate(campaign.id, number):
                    self._look_for_key(version, round, now)
        next_round = round_schedule.round_to_open(campaign, self.rounds.of(campaign.id), now)
        if next_round is not None:
            self._advance_alone(version, next_round, "begins", now)
        for number, round in sorted(self.rounds.of(campaign.id).items()):
            if round.state == "open" and round_schedule.is_over(campaign, round, now):
                self._advance_alone(version, number, "over", now)
        held = [n for n in self._in_state(campaign.id, "held") if not self.faults.faulty(campaign.id, n)]
        for number in held[:-1] if campaign.batch.small == "merge" else ():
            self._advance_alone(version, number, "next closed", now)
        for number in self._in_state(campaign.id, "held"):
            self._advance_alone(version, number, "counted", now)

    def _look_for_key(self, version: ServedVersion, round: RoundRecord, now: float) -> None:
        found = round_keys.has_key(self.rounds.link_keys, self.rounds.store, round)
        if found == (round.state == "lost"):
            self._advance(version, round.number, "key back" if found else "key gone", now)

    def _advance_alone(self, version: ServedVersion, number: int, event: batch_rule.RoundEvent, now: float) -> None:
        with self.faults.isolate(version.campaign.id, number):
            self._advance(version, number, event, now)

    def _try(self, version: ServedVersion, now: float) -> DovetailError | None:
        """Turn the rounds of one campaign; a fault in it stops no other one."""
        try:
            self._turn(version, now)
        except DovetailError as error:
            return error
        return None

    def _in_state(self, campaign: str, state: RoundState) -> list[int]:
        return sorted(number for number, round in self.rounds.of(campaign).items() if round.state == state)

    def _advance(
        self,
        version: ServedVersion,
        number: int,
        event: batch_rule.RoundEvent,
        now: float,
        batch: OutgoingBatch | None = None,
    ) -> None:
        """One event for one round: the row of the table that fits, effect by effect; `batch` is what was built."""
        row = self._find_transition(version, number, event, now)
        for effect in () if row is None else row.effects:
            self._do(effect, version, number, now, batch)
        if row is not None and event != "restarted":
            self.rounds.refresh(version.campaign.id)

    def _find_transition(
        self, version: ServedVersion, number: int, event: batch_rule.RoundEvent, now: float
    ) -> batch_rule.Transition | None:
        campaign, rounds = version.campaign, self.rounds.of(version.campaign.id)
        round = rounds.get(number)
        state: batch_rule.RuleState = "unopened" if round is None else round.state
        count = 0 if round is None else round.count
        facts = batch_rule.round_facts(
            campaign, count, now=now, follows=round_schedule.later_round_can_close(campaign, rounds, now)
        )
        if self.faults.unreadable(campaign.id, number):
            facts |= {"unreadable"}
        if round is not None and self._outbox.refuses(round.batch):
            facts |= {"refused"}
        if round is not None and can_go_on(round, self.rounds, self.faults):
            facts |= {"begun"}
        return batch_rule.find_transition(state, event, facts)

    def _do(
        self,
        effect: batch_rule.RoundEffect,
        version: ServedVersion,
        number: int,
        now: float,
        batch: OutgoingBatch | None,
    ) -> None:
        campaign, store = version.campaign.id, self.rounds.store
        match effect:
            case "open":
                self.rounds.open(campaign, number, now)
            case "close":
                store.set_state(campaign, number, "open", "held")
            case "hold":
                self._hold(version, number)
            case "merge":
                self._merge(version, number)
            case "drop":
                dropped = store.drop(campaign, number)
                _LOG.warning("round dropped", campaign=campaign, round=number, dropped=dropped)
            case "build" | "build on":
                self._build(version, number, now)
            case "release":
                assert batch is not None
                store.finish_batch(batch.id, batch.header)
            case "lose":
                round_keys.claim_vault(self.rounds.link_keys, store)  # with another vault nobody may say so
                store.set_state(campaign, number, self.rounds.of(campaign)[number].state, "lost")
                over = number in self.rounds.forgotten(campaign)
                what = "the round is over, says the vault" if over else "the key of a round is gone, round lost"
                _LOG.warning(what, campaign=campaign, round=number)
            case "recover":
                store.set_state(campaign, number, "lost", "open")
                _LOG.warning("the key of a round is back", campaign=campaign, round=number)
            case "erase":
                self.rounds.link_keys.erase(campaign, number)
            case "discard":
                refused = self.rounds.of(campaign)[number].batch
                assert refused is not None
                self._outbox.discard(refused)
                _LOG.warning("refused batch dropped", campaign=campaign, round=number, batch=refused)
            case "abandon":
                abandon_half_built(store, self.rounds.of(campaign)[number].batch)
                self.rounds.refresh(campaign)
            case "deliver" | "retry later" | "forget":
                pass  # the outbox sends what waits, and forgets it

    def _hold(self, version: ServedVersion, number: int) -> None:
        campaign = version.campaign
        if (campaign.id, number) not in self._held:
            self._held.add((campaign.id, number))
            _LOG.info(
                "too few reports, round held", campaign=campaign.id, round=number, minimum=campaign.batch.minimum
            )

    def _merge(self, version: ServedVersion, number: int) -> None:
        campaign = version.campaign.id
        into = self._in_state(campaign, "held")[-1]
        key = round_keys.require_key(self.rounds.link_keys, self.rounds.of(campaign)[into])
        superseded = self._closed_round(campaign, number).merge(into, key)
        _LOG.info("round merged", campaign=campaign, round=number, superseded=superseded)

    def _build(self, version: ServedVersion, number: int, now: float) -> None:
        campaign = version.campaign.id
        merged = [n for n, round in self.rounds.of(campaign).items() if round.into == number]
        batch = batch_in_parts.build_in_parts(
            self._closed_round(campaign, number),
            version,
            (*sorted(merged), number),
            id=self._rng.words(2).tobytes().hex(),
            shuffler=self._fitted.get(campaign),
            part_reports=self._settings.part_reports,
            rng=self._rng,
        )
        if batch is not None:
            _LOG.info("batch built", campaign=campaign, round=number, batch=batch.id)
            self.rounds.refresh(campaign)
            self._advance(version, number, "built", now, batch)

    def _tidy(self, version: ServedVersion, now: float) -> None:
        """Do what is left of rounds that are over, no matter who ended them."""
        id = version.campaign.id
        for number in self._tidied.missing(id, self.rounds.of(id)):
            with self.faults.isolate(id, number):
                self._advance(version, number, "restarted", now)
                self._tidied.add(id, number)

    def _closed_round(self, campaign: str, number: int) -> ClosedRound:
        round = self.rounds.of(campaign)[number]
        return ClosedRound(self.rounds.store, round, round_keys.require_key(self.rounds.link_keys, round))
