"""A collection as a Hypothesis state machine; `test_state_machine` says what counts as failure."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.collect.typescript_devices import TypeScriptDevices

from dovetail.collect.http import Refusal
from dovetail.collect.shuffler.campaigns import Action, owner_request
from dovetail.collect.shuffler.link_key_store import MemoryLinkKeyStore, RoundKey
from dovetail.collect.shuffler.shuffler import ShufflerRole
from dovetail.collect.simulate.delivery_audit import AuditResult
from dovetail.collect.simulate.deployment import COMMUTE, PERIOD, ThrowawayCampaign, schedule, with_tokens
from dovetail.collect.simulate.faults import MessageFate, Role, SeededChance
from dovetail.collect.simulate.simulation import SimulatedDevices, Simulation
from dovetail.collect.store.interfaces import RoundRecord
from dovetail.core.entropy import simulation
from dovetail_protocol.exact_thresholds import Words
from dovetail_protocol.messages import inner_info, split

DEVICES, ROUNDS, MINIMUM = 5, 4, 3
REACH = 2  # dummies of each answer on average, where the shuffler adds them
SMALL, LATE, BY, REPORTS = ("wait", "merge", "drop"), ("refuse", "next"), ("clock", "hand"), (2, ROUNDS)

numbers = st.sets(st.integers(0, DEVICES - 1), min_size=1)
rounds = st.integers(1, ROUNDS)
fates = st.sampled_from(["arrives", "arrives", "lost", "unanswered", "delayed", "repeated"])
roles = st.sampled_from(["device", "shuffler", "analyzer"])


def ask_as_owner(simulation: Simulation, action: Action, number: int) -> None:
    """The owner closes a round or gives one up; Refusal unless it is open, or lost."""
    campaign, key = simulation.world.campaign, simulation.world.owner.signing
    assert key is not None

    def work(shuffler: ShufflerRole) -> None:
        now = simulation._believed.now()
        challenge = shuffler.challenge(action, campaign.id, number, now)
        word = owner_request(action, key, campaign.digest, number, challenge)
        (shuffler.close_round if action == "close" else shuffler.drop_round)(campaign.id, number, word, now)

    simulation._alive(work)


def _event(name: str, *details: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(name), *details)


# One rule for all of them: Hypothesis leaves out half of the rules in every example, and a collection without answers
# or without time is none.
EVENTS = st.one_of(
    _event("a_round_goes_by", st.integers(0, DEVICES), st.lists(fates, min_size=1, max_size=3)),
    _event("a_round_goes_by", st.integers(0, DEVICES), st.just(["arrives"])),
    _event("devices_answer", numbers, rounds, fates, st.just("device"), st.none() | st.integers(0, 18)),
    _event("devices_answer", numbers, rounds, fates, st.just("device"), st.integers(11, 16)),  # over its sending
    _event("devices_answer", numbers, rounds, fates, st.just("shuffler"), st.integers(0, 6)),  # over its storing
    _event("devices_try_again", numbers, fates),
    _event("messages_arrive_again_at_once", st.lists(st.integers(0, 19), min_size=1, max_size=3)),
    _event("everything_late_arrives"),
    _event("time_passes", st.sampled_from([0.0, 0.3, 0.3, 1.0, 2.5]), fates),
    _event("the_owner_closes_a_round", rounds, fates),
    _event("a_round_loses_its_key", rounds),
    _event("lost_keys_come_back"),
    _event("the_owner_gives_a_round_up", rounds),
    _event("the_clock_is_wrong_for_a_while", st.sampled_from([-400.0, -90.0, 90.0, 4000.0]), st.booleans()),
    _event("a_role_will_die", st.just("shuffler"), st.integers(0, 40)),
    _event("a_role_will_die", st.just("analyzer"), st.integers(0, 5)),
    _event("a_role_dies_between_its_operations", roles, st.integers(0, DEVICES - 1)),
)


class Seeded(Words):
    """So that a failing example fails again."""

    def __init__(self) -> None:
        self._random = random.Random(1)

    def bits(self, count: int) -> int:
        return self._random.getrandbits(count)


@lru_cache
def world(small: str, late: str, by: str, reports: int, trust: str = "local") -> ThrowawayCampaign:
    """A campaign of these rules; `reports` are paid for by a device's budget."""
    rows = schedule(ROUNDS, grace=PERIOD / 4) if by == "clock" else {"schedule": "manual", "count": ROUNDS}
    tables = COMMUTE | {
        "rounds": rows,
        "batch": {"minimum": MINIMUM, "small": small, "late": late},
        "promise": {
            "delta": 1e-6,
            "device_budget": 2.0 * reports,
            "trust": "local" if trust in ("classes", "tokens") else trust,
        },
    }
    if trust == "classes":
        tables["classes"] = {"careful": 1.0, "open": COMMUTE["randomizer"]["epsilon"]}
    if trust == "tokens":
        tables = with_tokens(tables)
    if trust == "users":  # few, so that next to nothing is promised of one batch
        asked = COMMUTE["randomizer"]
        tables["randomizer"] = {"name": "none", "k": asked["k"], "categories": asked["categories"]}
        tables["promise"] |= {"assumed_honest": MINIMUM, "delta": 0.5}
        tables["dummies"] = {"epsilon": 2.0, "delta": 0.5, "rate": 1.0}
    if trust == "shuffler":
        tables["dummies"] = {"epsilon": 3.0, "delta": 0.1, "reach": REACH}
    return ThrowawayCampaign.of(tables, DEVICES)


def _life(round: RoundRecord) -> tuple[int, str]:
    """What a wrong clock must not change; a start may still abandon a half-built batch."""
    return round.number, "held" if round.state == "releasing" else round.state


class Collection(RuleBasedStateMachine):
    """One collection, first report to last batch; `stores` makes two new ones, and `small` leaves one rule only."""

    def __init__(
        self,
        stores: Callable[[], tuple[str, str]],
        small: str | None = None,
        trust: str = "local",
        parts: int | None = None,
        typescript: str | None = None,
    ) -> None:
        super().__init__()
        self._parts, self._typescript = parts, typescript
        self._stores, self._small, self._trust = stores, small, trust
        self._fuses: dict[Role, int] = {}  # points that a role passes before it dies
        self._fates: dict[Role, MessageFate] = {}  # of the next message
        self._sound = True

    @initialize(
        small=st.sampled_from(SMALL),
        late=st.sampled_from(LATE),
        by=st.sampled_from(BY),
        reports=st.sampled_from(REPORTS),
    )
    def begin(self, small: str, late: str, by: str, reports: int) -> None:
        if self._trust == "tokens":  # those of two rounds are two strangers, who may not share a batch
            small, late = "wait" if small == "merge" else small, "refuse"
        self.world = world(self._small or small, late, by, reports, self._trust)
        self.simulation = Simulation(
            self.world,
            dies=self._dies,
            fate=self._fate,
            stores=self._stores(),
            part_reports=self._parts,
            rng=simulation(1),
        )
        self.network, self.clock = self.simulation.network, self.simulation.clock
        fleet = SimulatedDevices.of(self.world, self.simulation.dying, SeededChance(1), self.simulation.issuer)
        self.fleet = replace(fleet, words=Seeded())
        if self._typescript:
            self.fleet = TypeScriptDevices.like(self.fleet, self._typescript)
        assert self.world.analyzer.opening
        self._opener = self.world.analyzer.opening.opener()
        self._mislaid = dict[tuple[str, int], RoundKey]()

    # what happens

    @rule(event=EVENTS)
    def something_happens(self, event: tuple[Any, ...]) -> None:
        name, *details = event
        getattr(self, name)(*details)

    def devices_answer(self, numbers: set[int], round: int, fate: MessageFate, dies: Role, fuse: int | None) -> None:
        if fuse is not None:
            self._fuses[dies] = fuse
        for number in sorted(numbers):
            self._answer(number, round, fate)

    def a_round_goes_by(self, missing: int, fates: list[MessageFate]) -> None:
        for number in range(DEVICES):
            if number != missing:
                self._answer(number, None, fates[number % len(fates)])
        self._fates["shuffler"] = fates[-1]
        self.simulation.pass_time(PERIOD)
        self._close_by_hand()

    def devices_try_again(self, numbers: set[int], fate: MessageFate) -> None:
        self._fates["device"] = fate
        self.fleet.flush(self.network, self.clock, sorted(numbers))

    def messages_arrive_again_at_once(self, which: list[int]) -> None:
        sent = self.simulation.audit.messages
        self.network.deliver([sent[place % len(sent)] for place in which if sent])

    def everything_late_arrives(self) -> None:
        self.simulation.deliver_late()

    def time_passes(self, share: float, fate: MessageFate) -> None:
        self._fates["shuffler"] = fate
        self.simulation.pass_time(share * PERIOD)

    def the_owner_closes_a_round(self, number: int, fate: MessageFate) -> None:
        self._fates["shuffler"] = fate
        with suppress(Refusal):  # not opened yet, or closed by the clock
            ask_as_owner(self.simulation, "close", number)

    def a_round_loses_its_key(self, number: int) -> None:
        """Its file is gone from the vault, as after a restore without it; nobody has destroyed it."""
        place = (self.world.campaign.id, number)
        if place in self.simulation.link_keys._keys:
            self._mislaid[place] = self.simulation.link_keys._keys.pop(place)

    def lost_keys_come_back(self) -> None:
        for place, key in self._mislaid.items():
            self.simulation.link_keys._keys.setdefault(place, key)
        self._mislaid.clear()

    def the_owner_gives_a_round_up(self, number: int) -> None:
        with suppress(Refusal):  # it is not lost, or not known
            ask_as_owner(self.simulation, "drop", number)

    def the_clock_is_wrong_for_a_while(self, days: float, restarts: bool) -> None:
        """Nothing opens, closes or is taken, whatever arrives; afterwards everything goes on."""
        store, right = self.simulation.store, self.clock.now()
        if store.moment() is None:
            return  # a first start knows no other time
        before, stored = store.rounds(self.world.campaign.id), self._verdict().stored
        self.clock.set(right + days * 86_400.0)
        if restarts:
            self.simulation.shuffler = None
        self.simulation.step()
        self.messages_arrive_again_at_once([0, 1, 2])
        if self.simulation.shuffler is not None or restarts:
            assert self._verdict().stored == stored, "a report is taken at a time that nobody believes"
            assert [_life(each) for each in store.rounds(self.world.campaign.id)] == [_life(each) for each in before]
        self.clock.set(right)

    def a_role_will_die(self, role: Role, after: int) -> None:
        self._fuses[role] = after

    def a_role_dies_between_its_operations(self, role: Role, number: int) -> None:
        if role == "device":
            self.fleet.switch_off(number)
        elif role == "shuffler":
            self.simulation.shuffler = None
        else:
            self.simulation.restart_analyzer()

    def _verdict(self) -> AuditResult:
        """Reports under a key that is mislaid are not gone."""
        keys = MemoryLinkKeyStore()
        keys._keys = self._mislaid | self.simulation.link_keys._keys
        return self.simulation.audit.verdict(self.simulation.store, keys)

    # what must hold

    @invariant()
    def nothing_is_lost_and_nothing_doubled(self) -> None:
        verdict = self._verdict()
        self._sound = verdict.sound
        assert verdict.sound, verdict

    @invariant()
    def every_counted_batch_is_counted_once_and_right(self) -> None:
        audit, counted, campaign = self.simulation.audit, self.simulation.counted, self.world.campaign
        assert audit.count_miscounted(counted) == 0
        sent = {header.batch: members for header, members in audit.members()}
        for batch in counted.batches(campaign.id):
            inner = [(part, e.round) for e in sent[batch.id] for part in split(e.inner, campaign.entries)]
            plain = [self._opener.open(part, inner_info(campaign, round)) for part, round in inner]
            symbols = Counter(campaign.mechanism.decode(found[3:]) for found in plain if found)
            (tally,) = counted.tallies(campaign.id, batch.id)
            extra = Counter(dict(tally.counts))
            extra.subtract(symbols)
            most = 2 * REACH if self._trust == "shuffler" else 0
            assert all(0 <= more <= most for more in extra.values()), "symbols of a batch are not counted as they are"

    def _check_the_ledgers(self) -> None:
        """Every report that was drawn is charged once, as its device's class pays for it."""
        campaign = self.world.campaign
        for outbox in self.fleet.outboxes:
            for ledger in outbox.ledgers():
                own = campaign.of_class(outbox.class_of(campaign))
                assert ledger.spent == sum(ledger.counts.values()) * own.charged
                assert ledger.spent <= ledger.budget

    def teardown(self) -> None:
        """Everything calms down, unless something is wrong already; then everything must be where it belongs."""
        try:
            if self._sound:
                self._calm_down()
                self.nothing_is_lost_and_nothing_doubled()
                self.every_counted_batch_is_counted_once_and_right()
                self._check_the_end()
                self._check_the_ledgers()
        finally:
            self.fleet.close()
            self.simulation.close()

    def _answer(self, number: int, round: int | None, fate: MessageFate) -> None:
        """A device answers, and is asked once more, because somebody has changed his mind, or the device has died."""
        self._fates["device"] = fate
        for answer in (number % 4, 3):
            self.fleet.submit(number, round, answer, self.network, self.clock)

    def _calm_down(self) -> None:
        """Nobody dies any more, every message arrives, and time goes on."""
        self._fuses.clear()
        self._fates.clear()
        self.lost_keys_come_back()
        for _ in range(ROUNDS + 3):
            self.simulation.deliver_late()
            self.simulation.pass_time(PERIOD)
            self.fleet.flush(self.network, self.clock)
            self._close_by_hand()

    def _close_by_hand(self) -> None:
        """The owner closes all rounds that are open."""
        if self.world.campaign.schedule.period is None:
            for round in self.simulation.store.rounds(self.world.campaign.id):
                ask_as_owner(self.simulation, "close", round.number)

    def _check_the_end(self) -> None:
        simulated, campaign = self.simulation, self.world.campaign
        assert simulated.audit.count_uncounted(simulated.counted) == 0 and simulated.store.outgoing() == []
        left = [round for round in simulated.store.rounds(campaign.id) if round.state in ("open", "held")]
        assert all(round.count < MINIMUM for round in left)
        if campaign.batch.small != "wait" and campaign.schedule.period is not None:
            assert left == []
        if campaign.schedule.period is not None:
            assert all(not outbox.waiting(campaign.id) for outbox in self.fleet.outboxes)
        shown = sum(sum(header.dropped.values()) for header, _ in simulated.audit.members())
        rounds = simulated.store.rounds(campaign.id)
        assert shown == sum(round.superseded for round in rounds if round.state == "delivered")

    def _dies(self, role: Role) -> bool:
        left = self._fuses.get(role, -1)
        if left == 0:
            del self._fuses[role]
            return True
        if left > 0:
            self._fuses[role] = left - 1
        return False

    def _fate(self, role: Role) -> MessageFate:
        return self._fates.pop(role, "arrives")


class TokenCollection(Collection):
    """One whose devices show tokens: its issuer fails, too."""

    @rule(fate=fates, fuse=st.none() | st.integers(0, 3), dies=st.booleans())
    def the_issuer_fails(self, fate: MessageFate, fuse: int | None, dies: bool) -> None:
        assert self.simulation.issuer is not None
        self._fates["issuer"] = fate
        if fuse is not None:
            self._fuses["issuer"] = fuse
        if dies:
            self.simulation.issuer.restart()

    @invariant()
    def nobody_has_two_tokens_and_no_round_more_reports_than_tokens(self) -> None:
        assert self.simulation.issuer is not None
        given = self.simulation.issuer.store.counts()
        for each in self.simulation.store.rounds(self.world.campaign.id):
            assert each.count <= given.get((each.campaign, each.number), 0) <= DEVICES, "reports without tokens"
        for outbox in self.fleet.outboxes:
            states = outbox._connection.execute("SELECT state, reason FROM token").fetchall()
            assert ("refused", "issued") not in states, "a device has asked for two tokens of a round"


def run(
    stores: Callable[[], tuple[str, str]],
    *,
    examples: int,
    steps: int = 30,
    small: str | None = None,
    trust: str = "local",
    parts: int | None = None,
    typescript: str | None = None,
) -> None:
    """The machine on these stores; the same examples every time. Batches of more than `parts` reports go in parts."""
    wanted = settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    kind = TokenCollection if trust == "tokens" else Collection
    run_state_machine_as_test(lambda: kind(stores, small, trust, parts, typescript), settings=wanted)  # type: ignore[arg-type]


def in_memory() -> tuple[str, str]:
    return ("sqlite://", "sqlite://")
