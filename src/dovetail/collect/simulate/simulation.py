"""The simulation: rounds of a campaign through every role, with crashes, losses, repeats and delays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPrivateNumbers
from numpy.typing import NDArray

from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.analyzer.answers import CampaignAnswers
from dovetail.collect.analyzer.batch_intake import Manifest
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.batch import IN_PARTS, PREFIX, head_bytes
from dovetail.collect.campaign.terms import question_of
from dovetail.collect.clock import FrozenClock
from dovetail.collect.files import token_key
from dovetail.collect.http import Refusal
from dovetail.collect.issuer.issuer import Entitlement, IssuerRole
from dovetail.collect.shuffler.app import round_now
from dovetail.collect.shuffler.campaigns import CampaignRegistry
from dovetail.collect.shuffler.delivery import NotDelivered
from dovetail.collect.shuffler.intake import ACCEPTED, Reply
from dovetail.collect.shuffler.link_key_store import MemoryLinkKeyStore
from dovetail.collect.shuffler.shuffler import ShufflerRole, ShufflerSettings
from dovetail.collect.shuffler.trusted_clock import ClockLimits, TrustedClock
from dovetail.collect.simulate.delivery_audit import AuditResult, DeliveryAudit
from dovetail.collect.simulate.deployment import START, ThrowawayCampaign
from dovetail.collect.simulate.faults import Crash, FaultRates, MessageFate, Role, SeededChance
from dovetail.collect.store.analyzer_store import open_analyzer_store
from dovetail.collect.store.issuer_store import open_issuer_store
from dovetail.collect.store.shuffler_store import open_shuffler_store
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, system_entropy
from dovetail.core.question import Question
from dovetail.job.evaluate import LEVEL
from dovetail.randomize.sampling.open_reports import from_device
from dovetail_device.client import Clock, Device, RoundUnknown, Transport
from dovetail_device.entropy import system_entropy as entropy_system_entropy
from dovetail_device.ledger import Limits
from dovetail_device.outbox import BudgetSpent, Outbox
from dovetail_device.sender import ACCEPTED as TAKEN
from dovetail_device.sender import UNREACHABLE, DeliveryEvent, refusal_event
from dovetail_device.tokens import Issuer, TokenRefused
from dovetail_protocol.asked import Value
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.exact_thresholds import Words
from dovetail_protocol.keys import VerifyingKey
from dovetail_protocol.messages import Rejected
from dovetail_protocol.tokens import Application, TokenKey

# Devices with answers: who they are, what they would say, and how they say it.


TrueAnswers = NDArray[Any]  # (rounds, devices): symbols or numbers on the grid


@mute
@dataclass(frozen=True)
class SimulatedDevices:
    """The devices of a world, each with an outbox that outlives its crashes.

    Their reports are drawn from the operating system; what they would answer, and the faults, from a seed.
    """

    world: ThrowawayCampaign
    answers: TrueAnswers
    groups: tuple[str | None, ...]
    outboxes: tuple[Outbox, ...]
    dying: Callable[[Any, Role], Any] = field(repr=False)
    words: Words = field(repr=False)
    issuer: Issuer | None = None  # whom devices ask for tokens
    _alive: dict[int, Device] = field(default_factory=dict, repr=False)
    _unsettled: set[int] = field(default_factory=set, repr=False)  # devices whose reports may wait

    @classmethod
    def of(
        cls,
        world: ThrowawayCampaign,
        dying: Callable[[Any, Role], Any],
        chance: SeededChance,
        issuer: Issuer | None = None,
    ) -> SimulatedDevices:
        """Answers and public groups by chance: symbols ever rarer, numbers ever more alike.

        dying : wraps what a device of this role works with, so that it may die over it.
        """
        campaign, count = world.campaign, len(world.devices)
        answers = np.array(
            [[_answer(campaign, chance) for _ in range(count)] for _ in range(campaign.schedule.count)]
        )
        if campaign.memoized:
            answers[:] = answers[0]
        groups = [
            campaign.groups[chance.below(len(campaign.groups))] if campaign.groups else None for _ in range(count)
        ]
        keys = [device.signing.verifying_key() for device in world.devices if device.signing]
        outboxes = tuple(Outbox.in_memory(key) for key in keys)
        for outbox in outboxes:  # nobody's values: only the campaign's own budget counts
            outbox.limit(Limits(campaign.promise.device_budget, campaign.promise.device_budget))
        return cls(world, answers, tuple(groups), outboxes, dying, entropy_system_entropy(), issuer)

    def truth(self, round: int, devices: list[int]) -> NDArray[np.float64]:
        """True shares of the symbols of these devices, or their mean; 0 where there are none.

        Where people have different epsilons the shares are weighted, as estimates are.
        """
        if self.world.campaign.asked is not None:
            return self.truth_of([(round, devices)])
        answers, k = self.answers[round - 1, devices], getattr(self.world.campaign.mechanism, "k", None)
        if k is None:
            return np.array([answers.sum() / max(1, len(devices))])
        weights = np.array([self._weight(number) for number in devices])
        sums = np.bincount(answers.astype(np.int64), weights=weights, minlength=k)
        return np.asarray(sums / (self.weight(devices) or 1.0))

    def truth_of(self, parts: Iterable[tuple[int, list[int]]]) -> NDArray[np.float64]:
        """The truths that the questions of a campaign ask for, of these devices in these rounds, one by one."""
        held, found = np.concatenate([self.answers[round - 1, devices] for round, devices in parts]), list[float]()
        for asked, columns in self._questions:
            own = held[:, columns]
            if not asked.of_numbers and not asked.of_arrays:
                own = own.astype(np.int64)
            found += list(asked.truth(own[:, 0] if own.shape[1] == 1 else own)[: len(asked.labels)])
        return np.array(found)

    @cached_property
    def _questions(self) -> list[tuple[Question, slice]]:
        """Each question, and where its values are among those of a person."""
        found, first = list[tuple[Question, slice]](), 0
        for one in self.world.campaign.questions:
            last = first + (1 if one.asked is None else len(one.asked.values))
            found.append((question_of(one), slice(first, last)))
            first = last
        return found

    def weight(self, devices: list[int]) -> float:
        """Weight of these devices in estimates: their number where all have one epsilon."""
        return float(sum(self._weight(number) for number in devices))

    def place(self, number: int) -> int:
        """The class in which a device takes part: one after the other."""
        return number % max(1, len(self.world.campaign.classes))

    def _weight(self, number: int) -> float:
        campaign = self.world.campaign
        if not campaign.classes:
            return 1.0
        own: Any = from_device(campaign.of_class(self.place(number)).mechanism)
        return float(own.channel().contrast)

    def device(self, number: int, transport: Transport, clock: Clock) -> Device:
        """Device `number`, switched on if it was not."""
        if number not in self._alive:
            keys = self.world.devices[number]
            assert keys.signing
            own = transport
            if isinstance(transport, FaultyNetwork):
                own = transport.of(keys.signing.verifying_key().public)
            self._alive[number] = Device(
                self.world.campaign,
                keys,
                outbox=self.dying(self.outboxes[number], "device"),
                transport=self.dying(own, "device"),
                issuer=self.issuer and self.dying(self.issuer, "device"),
                clock=clock,
                words=self.words,
                trust=self.world.campaign.promise.trust if self.world.campaign.open else None,
                epsilon_class=self._class_name(number),
            )
        return self._alive[number]

    def _class_name(self, number: int) -> str | None:
        classes = self.world.campaign.classes
        return classes[self.place(number)].name if classes else None

    def submit(self, number: int, round: int | None, answer: Any, transport: Transport, clock: Clock) -> None:
        """One device answers, if its budget still pays for that and it does not die."""
        self._unsettled.add(number)
        with self._switched_on(number), suppress(BudgetSpent, RoundUnknown, TokenRefused):
            self.device(number, transport, clock).submit(answer, round, group=self.groups[number])

    def report(self, round: int, numbers: Iterable[int], transport: Transport, clock: Clock) -> None:
        """These devices report for a round, in this order."""
        for number in numbers:
            self.submit(number, round, self.answers[round - 1, number].tolist(), transport, clock)

    def flush(self, transport: Transport, clock: Clock, numbers: Iterable[int] | None = None) -> None:
        """Devices with something that waits try to send it."""
        for number in sorted(self._unsettled) if numbers is None else numbers:
            if self.outboxes[number].waiting(self.world.campaign.id):
                with self._switched_on(number):
                    self.device(number, transport, clock).flush()
            else:
                self._unsettled.discard(number)

    def switch_off(self, number: int) -> None:
        """All that is left of the device is its outbox."""
        self._alive.pop(number, None)

    @contextmanager
    def _switched_on(self, number: int) -> Iterator[None]:
        try:
            yield
        except Crash:
            self.switch_off(number)

    def close(self) -> None:
        """Let go of the outboxes."""
        for outbox in self.outboxes:
            outbox.close()


def _answer(campaign: Campaign, chance: SeededChance) -> Any:
    k = getattr(campaign.mechanism, "k", None)
    if campaign.asked is not None:
        if campaign.asked.values[0].length:
            return [_array(campaign.mechanism, chance)]
        return [_value(one, chance) for one in campaign.asked.values]
    if k is not None:
        return int(k * chance.number() ** 2)  # small symbols are common, the last one is rare
    randomizer: Any = from_device(campaign.mechanism)
    place = (chance.number() + chance.number() + chance.number()) / 3
    return float(randomizer.lower + randomizer.step * round(place * randomizer.steps))


def _array(mechanism: Any, chance: SeededChance) -> list[float]:
    """Of about the length to which longer ones are shortened."""
    return [2.0 * mechanism.radius / mechanism.d**0.5 * chance.number() for _ in range(mechanism.d)]


def _value(value: Value, chance: SeededChance) -> float:
    if value.categories:
        return int(len(value.categories) * chance.number() ** 2)
    return value.lower + (value.upper - value.lower) * (chance.number() + chance.number() + chance.number()) / 3


# The network between devices and shuffler: loses, repeats and delays messages, and tells the audit.


class ShufflerConnection(Protocol):
    """The shuffler as the network reaches it; None where it dies over the question."""

    def answer(self, messages: Sequence[bytes]) -> list[Reply] | None: ...
    def round(self) -> int | None: ...


class FaultyNetwork:
    """A `dovetail_device` transport for every device; `late` holds what has not arrived yet."""

    def __init__(self, server: ShufflerConnection, audit: DeliveryAudit, fate: Callable[[], MessageFate]) -> None:
        self._server, self._audit, self._fate = server, audit, fate
        self.late: list[bytes] = []

    def trust(self, campaign: Campaign) -> None:
        """Answers come from the shuffler of the simulation itself."""

    def of(self, person: bytes) -> Any:
        """The way of one person's device, whose messages the audit knows to be this person's."""
        return _OwnWay(self, person)

    def send(self, wire: bytes, person: bytes | None = None) -> DeliveryEvent:
        """One message, or what the network makes of it; its sender learns of trouble only that nobody answered."""
        self._audit.record_sent(wire, person)
        fate = self._fate()
        if fate in ("delayed", "repeated"):
            self.late.append(wire)
        if fate in ("delayed", "lost"):
            return UNREACHABLE
        told = self.deliver([wire])
        if told is None or fate == "unanswered":
            return UNREACHABLE
        return TAKEN if told[0].kind == ACCEPTED else refusal_event(told[0].kind, told[0].retry_after or 0.0)

    def fetch(self, campaign: str) -> bytes | None:
        """Nobody changes the campaign of a simulation."""
        return None

    def round(self, campaign: str) -> int | None:
        """The round that the shuffler says, for devices whose clock was wrong and for rounds by hand."""
        return self._server.round()

    def close(self) -> None:
        """There is nothing to close."""

    def deliver(self, messages: Sequence[bytes]) -> list[Reply] | None:
        """Messages of any age, all at once. What is acknowledged counts as such, no matter who hears of it."""
        told = self._server.answer(messages)
        for wire, answer in zip(messages, told or (), strict=False):
            if answer.kind == ACCEPTED:
                self._audit.record_acknowledged(wire)
        return told

    def deliver_late(self) -> None:
        """Deliver what was held up and repeated; nobody waits for these answers any more."""
        waiting, self.late = self.late, []
        if waiting:
            self.deliver(waiting)


@dataclass(frozen=True)
class _OwnWay:
    """The network as one person's device has it."""

    network: FaultyNetwork
    person: bytes

    def send(self, wire: bytes) -> DeliveryEvent:
        return self.network.send(wire, self.person)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)


# The issuer of tokens, where a campaign has one.


@dataclass(frozen=True)
class ThrowawaySigner:
    """Signs in whole numbers, whose time tells the key: for keys that protect nobody, without a process for each."""

    key: RSAPrivateKey = field(repr=False)

    @cached_property
    def _numbers(self) -> RSAPrivateNumbers:
        return self.key.private_numbers()

    def sign(self, blinded: bytes) -> bytes:
        """blinded^d modulo p and q, and both put together."""
        known, number = self._numbers, int.from_bytes(blinded)
        by_p, by_q = pow(number, known.dmp1, known.p), pow(number, known.dmq1, known.q)
        return (by_q + known.q * (known.iqmp * (by_p - by_q) % known.p)).to_bytes(len(blinded))


class SimulatedIssuer:
    """An issuer that dies and comes back on its store, behind a network that loses requests and answers."""

    def __init__(
        self,
        world: ThrowawayCampaign,
        *,
        clock: Clock,
        dying: Callable[[Any, Role], Any],
        fate: Callable[[], MessageFate],
    ) -> None:
        self.store = open_issuer_store("sqlite://")
        self._world, self._clock, self._dying, self._fate = world, clock, dying, fate
        self._signers = {token_key(key): ThrowawaySigner(key) for key in world.round_keys}
        self._running: IssuerRole | None = None

    def restart(self) -> None:
        """The next request finds a new issuer on what the old one had stored."""
        self._running = None

    def ask(self, url: str, application: bytes) -> bytes | str:
        """The answer that a device gets; none of an issuer that dies over it, or if it is lost."""
        fate = self._fate()
        if fate == "lost":
            return "unavailable"
        try:
            if self._running is None:
                self._running = self._start()
            if fate == "repeated":
                self._running.issue(application, self._clock.now())
            signed = self._running.issue(application, self._clock.now())
        except Refusal as refusal:
            return refusal.kind
        except Crash:
            self.restart()
            return "unavailable"
        return signed if fate in ("arrives", "repeated") else "unavailable"

    def _start(self) -> IssuerRole:
        roster = self._world.roster()

        def entitled(asked: Application, key: TokenKey) -> bool:
            return asked.is_signed(key) and roster.slot(VerifyingKey(asked.holder)) is not None

        return IssuerRole(
            [self._world.campaign],
            store=self._dying(self.store, "issuer"),
            signers=self._signers,
            entitled=Entitlement("roster", entitled),
            secret=bytes(32),
        )


# Stores that die: every operation may end the process before it happens, or after.


_SAFE = frozenset({"ready", "close"})


class CrashInjector:
    """A store, vault, outbox or transport whose operations raise `Crash` when `dies` says so, before or afterwards.

    What a real operation does is atomic and durable, so that before and after are all there is.
    """

    def __init__(self, inside: Any, dies: Callable[[], bool]) -> None:
        self._inside, self._dies = inside, dies

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inside, name)
        if name.startswith("_") or name in _SAFE or not callable(found):
            return found

        def dying(*arguments: Any, **named: Any) -> Any:
            self._die()
            result = found(*arguments, **named)
            self._die()
            return result

        return dying

    def _die(self) -> None:
        if self._dies():
            raise Crash


_STEPS = 8  # times within a round that the shuffler looks at its clock
_LIMITS = ClockLimits(outage=inf)  # rounds of a simulation may be as long as they like
_TRIES = 40  # steps after the last round: every back-off is shorter than a round


@dataclass(frozen=True)
class RoundResult:
    """A counted batch beside the truth of exactly the people in it; arrays (k,) of shares, or (1,) of a mean.

    Of several questions they stand one after the other.
    """

    rounds: tuple[int, ...]
    n: int
    truth: NDArray[np.float64]
    value: NDArray[np.float64]
    interval: NDArray[np.float64]  # (k, 2), or (1, 2)

    @property
    def covered(self) -> int:
        """How many intervals contain the truth."""
        return int(((self.interval[:, 0] <= self.truth) & (self.truth <= self.interval[:, 1])).sum())


@dataclass(frozen=True)
class SimulationResult:
    """Result of a simulation; `miscounted` batches must be 0, like the faults of the verdict."""

    verdict: AuditResult
    results: tuple[RoundResult, ...]
    crashes: dict[str, int]  # by role
    messages: dict[str, int]  # by what became of them
    miscounted: int  # batches that the analyzer has not counted exactly once, whole
    level: float = LEVEL

    @property
    def sound(self) -> bool:
        """True if nothing was lost and nothing counted twice."""
        return self.verdict.sound and not self.miscounted


class Simulation:
    """Servers that die and come back on what they had stored; anybody who asks a dead one starts it again.

    Parameters
    ----------
    dies : function of the role
        Whether the process dies now: asked before and after every operation of a store, vault or transport.
    fate : function of the role
        What becomes of the next message of a device, or of the next batch of the shuffler.
    stores : URLs of the shuffler's and the analyzer's store
    """

    def __init__(
        self,
        world: ThrowawayCampaign,
        *,
        dies: Callable[[Role], bool],
        fate: Callable[[Role], MessageFate],
        stores: tuple[str, str] = ("sqlite://", "sqlite://"),
        part_reports: int | None = None,
        rng: Entropy,
    ) -> None:
        self._settings = ShufflerSettings(per_device_per_minute=1e9, part_reports=part_reports)
        self.world, self._dies, self._fate, self._rng = world, dies, fate, rng
        self.clock = FrozenClock((world.campaign.schedule.start or START).timestamp())
        assert world.shuffler.opening is not None
        self.audit = DeliveryAudit(world.campaign, world.shuffler.opening)
        self.store, self.link_keys = open_shuffler_store(stores[0]), MemoryLinkKeyStore()
        self.counted = open_analyzer_store(stores[1])
        self.crashes, self.messages = Counter[Role](), Counter[str]()
        self.network = FaultyNetwork(self, self.audit, lambda: fate("device"))
        self.late: list[Callable[[], Any]] = []  # batches and parts on their way
        self._roster = world.roster()
        self.issuer: SimulatedIssuer | None = None
        if world.round_keys:
            self.issuer = SimulatedIssuer(world, clock=self.clock, dying=self.dying, fate=lambda: fate("issuer"))
        self.restart_analyzer()
        self.shuffler: ShufflerRole | None = None
        self._believed = TrustedClock(self.clock, self.store, _LIMITS)

    # what devices and the shuffler reach

    def answer(self, messages: Sequence[bytes]) -> list[Reply] | None:
        """Replies of the shuffler to messages that arrive at once; None if it dies over them, or trusts no clock."""
        found: list[Reply] | None = None
        with suppress(Refusal):  # while the clock is not believed nothing is taken
            found = self._alive(lambda shuffler: shuffler.accept(messages, self._believed.now()))
        self.messages.update(["unanswered"] * len(messages) if found is None else [each.kind for each in found])
        return found

    def round(self) -> int | None:
        """The round that the shuffler takes reports for."""
        found = self._alive(lambda shuffler: round_now(shuffler, self.world.campaign, self._believed.last()))
        return None if found is None else int(found["round"])

    def send(self, batch: str, header: bytes, parts: Iterator[bytes]) -> None:
        """The shuffler's transport to the analyzer."""
        wire, fate = header + b"".join(parts), self._fate("shuffler")
        self.audit.record_batch(header, wire[len(header) :])
        if fate in ("delayed", "repeated"):
            self.late.append(lambda: self.analyzer.receive(wire))
        if fate in ("delayed", "lost"):
            raise NotDelivered
        self._alive_analyzer(lambda: self.analyzer.receive(wire))
        if fate == "unanswered":
            raise NotDelivered

    def offer(self, batch: str, manifest: bytes) -> list[int]:
        """The same for a batch in parts: its manifest, which may come late and again like anything else."""
        head = manifest[: head_bytes(manifest[:PREFIX], IN_PARTS)]
        self.audit.record_batch(head, b"".join(self.store.parts(batch)))
        missing: list[int] = self._by_part(
            lambda: self.analyzer.offer(Manifest.read(manifest, self.analyzer.campaigns))
        )
        return missing

    def send_part(self, batch: str, number: int, body: bytes) -> None:
        """A part of it."""
        self._by_part(lambda: self.analyzer.parts.keep(batch, number, body))

    def _by_part(self, work: Callable[[], Any]) -> Any:
        """A part or a manifest on its way; a late one comes at once, and again when all that is late does."""
        fate = self._fate("shuffler")
        if fate in ("delayed", "repeated"):
            self.late.append(work)
        if fate in ("delayed", "lost"):
            raise NotDelivered
        told = self._alive_analyzer(work)
        if fate == "unanswered":
            raise NotDelivered
        return told

    def deliver_late(self) -> None:
        """Everything that was held up or repeated on the way arrives; nobody waits for these answers any more."""
        self.network.deliver_late()
        batches, self.late = self.late, []
        for batch in batches:
            with suppress(NotDelivered):
                self._alive_analyzer(batch)

    # time and death

    def step(self) -> None:
        """The shuffler does what is due, and lives or dies."""
        with suppress(Refusal):
            self._alive(self._step)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, then let the shuffler do what is due."""
        self.clock.advance(seconds)
        self.step()

    def dying(self, inside: Any, role: Role) -> Any:
        """A store, vault, outbox or transport in the hands of a process of this role."""
        return CrashInjector(inside, lambda: self._dies_now(role))

    def restart_analyzer(self) -> None:
        """A new analyzer on what the old one had stored."""
        campaigns = AnalyzerCampaigns.of([self.world.campaign], [self.world.analyzer])
        self.analyzer = Analyzer(campaigns, store=self.dying(self.counted, "analyzer"), clock=self.clock)

    def _dies_now(self, role: Role) -> bool:
        dies = self._dies(role)
        self.crashes[role] += dies
        return dies

    def _alive_analyzer(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Rejected:
            raise NotDelivered(400) from None
        except Refusal:
            raise NotDelivered(503, "unavailable") from None
        except Crash:
            self.restart_analyzer()
            raise NotDelivered from None

    def _step(self, shuffler: ShufflerRole) -> None:
        now = self._believed.now()
        self._believed.note()
        shuffler.step(now)

    def _alive(self, work: Callable[[ShufflerRole], Any]) -> Any:
        try:
            if self.shuffler is None:
                self.shuffler = self._start()
            return work(self.shuffler)
        except Crash:
            self.shuffler = None
            return None

    def _start(self) -> ShufflerRole:
        shuffler = ShufflerRole(
            CampaignRegistry.of([self.world.campaign], [self.world.shuffler]),
            store=self.dying(self.store, "shuffler"),
            link_keys=self.dying(self.link_keys, "shuffler"),
            transport=self.dying(self, "shuffler"),
            roster=lambda: self._roster,
            settings=self._settings,
            rng=self._rng,
        )
        self._believed = TrustedClock(self.clock, self.store, _LIMITS)
        shuffler.start(self._believed.last())
        return shuffler

    # the end

    def verdict(self) -> AuditResult:
        """Count the fates of all reports so far."""
        return self.audit.verdict(self.store, self.link_keys)

    def close(self) -> None:
        """Let go of the stores."""
        self.store.close()
        self.counted.close()
        if self.issuer is not None:
            self.issuer.store.close()


def simulate(
    world: ThrowawayCampaign, *, faults: FaultRates, seed: int, progress: Callable[[int], None] = lambda round: None
) -> SimulationResult:
    """All rounds of a campaign whose rounds go by the clock, and what became of every report.

    Parameters
    ----------
    seed : int
        Of the answers and of everything that goes wrong. Reports and permutations come from the operating system.
    progress : function of the number of rounds done

    Notes
    -----
    About 1 ms for each device and round, 10 where devices show tokens.
    """
    chance = SeededChance(seed)
    simulation = Simulation(
        world,
        dies=lambda _: chance.happens(faults.crash / 2),
        fate=lambda _: chance.fate(faults),
        rng=system_entropy(),
    )
    fleet = SimulatedDevices.of(world, simulation.dying, chance, simulation.issuer)
    roles: list[Role] = ["device", "shuffler", "analyzer"]
    roles += ["issuer"] if simulation.issuer is not None else []
    schedule = world.campaign.schedule
    assert schedule.period is not None
    for round in range(1, schedule.count + 1):
        order = np.argsort([chance.number() for _ in world.devices])
        for part in np.array_split(order, _STEPS):
            fleet.report(round, part.tolist(), simulation.network, simulation.clock)
            simulation.deliver_late()
            fleet.flush(simulation.network, simulation.clock)
            simulation.pass_time(schedule.period / _STEPS)
        progress(round)
    for _ in range(_TRIES):
        simulation.deliver_late()
        simulation.pass_time(schedule.grace + schedule.period)
        fleet.flush(simulation.network, simulation.clock)
    found = SimulationResult(
        verdict=simulation.verdict(),
        results=tuple(_round_results(simulation, fleet)),
        crashes={role: simulation.crashes[role] for role in roles},
        messages=dict(sorted(simulation.messages.items())),
        miscounted=simulation.audit.count_miscounted(simulation.counted)
        + simulation.audit.count_uncounted(simulation.counted),
    )
    fleet.close()
    simulation.close()
    return found


def _round_results(simulation: Simulation, fleet: SimulatedDevices) -> Iterator[RoundResult]:
    devices = enumerate(simulation.world.devices)
    slot = {device.signing.verifying_key().public: n for n, device in devices if device.signing}
    members = {header.batch: envelopes for header, envelopes in simulation.audit.members()}
    answers = CampaignAnswers(simulation.world.campaign, simulation.counted)
    for batch, counted in zip(answers.batches(), answers.rounds(), strict=True):
        told = [one.round(counted.t).by_group.get("") for one in answers.questions]
        estimates = [estimate for estimate in told if estimate is not None]
        if len(estimates) < len(told):  # the noise leaves nothing to be told
            continue
        by_round: dict[int, list[int]] = {}
        for envelope in members[batch.id]:
            by_round.setdefault(envelope.round, []).append(slot[simulation.audit.person(envelope)])
        n = sum(map(len, by_round.values()))
        whole = sum(map(fleet.weight, by_round.values()))
        parts = (fleet.weight(found) / whole * fleet.truth(round, found) for round, found in by_round.items())
        asked = simulation.world.campaign.asked is not None
        truth = fleet.truth_of(by_round.items()) if asked else sum(parts, np.zeros(1))
        yield RoundResult(
            batch.rounds, n, np.atleast_1d(truth), np.concatenate([np.atleast_1d(one.value) for one in estimates]),
            np.concatenate([np.stack(np.atleast_1d(*one.interval(LEVEL)), axis=1) for one in estimates]),
        )  # fmt: skip
