"""The simulation: rounds of a campaign through every role, with crashes, losses, repeats and delays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.analyzer.answers.queries import CampaignAnswers
from dovetail.collect.analyzer.arriving_parts import Manifest
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.batch import IN_PARTS, PREFIX, head_bytes
from dovetail.collect.clock import FrozenClock
from dovetail.collect.http.problems import Refusal
from dovetail.collect.shuffler.campaign_registry import CampaignRegistry
from dovetail.collect.shuffler.close_request import Action, owner_request
from dovetail.collect.shuffler.delivery import NotDelivered
from dovetail.collect.shuffler.endpoints.metrics import round_now
from dovetail.collect.shuffler.link_key_store import MemoryLinkKeyStore
from dovetail.collect.shuffler.report_intake import Reply
from dovetail.collect.shuffler.shuffler import ShufflerRole, ShufflerSettings
from dovetail.collect.shuffler.trusted_clock import ClockLimits, TrustedClock
from dovetail.collect.simulate.crash_injection import CrashInjector
from dovetail.collect.simulate.delivery_audit import AuditResult, DeliveryAudit
from dovetail.collect.simulate.faults import Crash, FaultRates, MessageFate, Role, SeededChance
from dovetail.collect.simulate.faulty_network import FaultyNetwork
from dovetail.collect.simulate.simulated_devices import SimulatedDevices
from dovetail.collect.simulate.throwaway_campaign import START, ThrowawayCampaign
from dovetail.collect.store.analyzer_store import open_analyzer_store
from dovetail.collect.store.shuffler_store import open_shuffler_store
from dovetail.core.entropy import Entropy, system_entropy
from dovetail.pipeline.evaluate.estimates import LEVEL
from dovetail_protocol.wire.message import Rejected

_STEPS = 8  # times within a round that the shuffler looks at its clock
_LIMITS = ClockLimits(outage=inf)  # rounds of a simulation may be as long as they like
_TRIES = 40  # steps after the last round: every back-off is shorter than a round


@dataclass(frozen=True)
class RoundResult:
    """A counted batch beside the truth of exactly the people in it; arrays (k,) of shares, or (1,) of a mean."""

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
    """What a simulation found; `miscounted` batches must be 0, like the faults of the verdict."""

    verdict: AuditResult
    results: tuple[RoundResult, ...]
    crashes: dict[str, int]  # by role
    messages: dict[str, int]  # by what became of them
    miscounted: int  # batches that the analyzer has not counted exactly once, whole
    level: float = LEVEL

    @property
    def sound(self) -> bool:
        """Whether nothing was lost and nothing counted twice."""
        return self.verdict.sound and not self.miscounted


class Simulation:
    """Servers that die and come back on what they had stored; whoever asks a dead one starts it again.

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
        self.restart_analyzer()
        self.shuffler: ShufflerRole | None = None
        self._believed = TrustedClock(self.clock, self.store, _LIMITS)

    # what devices and the shuffler reach

    def answer(self, messages: Sequence[bytes]) -> list[Reply] | None:
        """What the shuffler says to messages that arrive at once; None if it dies over them, or believes no clock."""
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

    def close_round(self, number: int) -> None:
        """The owner closes a round."""
        self._alive(
            lambda shuffler: shuffler.close_round(
                self.world.campaign.id, number, self._word(shuffler, "close", number), self._believed.now()
            )
        )

    def drop_round(self, number: int) -> None:
        """The owner gives a round up; Refusal unless it is lost."""
        self._alive(
            lambda shuffler: shuffler.drop_round(
                self.world.campaign.id, number, self._word(shuffler, "drop", number), self._believed.now()
            )
        )

    def _word(self, shuffler: ShufflerRole, action: Action, number: int) -> bytes:
        """What the owner sends, for a challenge that the shuffler draws now."""
        campaign, key = self.world.campaign, self.world.owner.signing
        assert key is not None
        challenge = shuffler.challenge(action, campaign.id, number, self._believed.now())
        return owner_request(action, key, campaign.digest, number, challenge)

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
        """What has become of all reports so far."""
        return self.audit.verdict(self.store, self.link_keys)

    def close(self) -> None:
        """Let go of the stores."""
        self.store.close()
        self.counted.close()


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
    About 1 ms for each device and round.
    """
    chance = SeededChance(seed)
    simulation = Simulation(
        world,
        dies=lambda _: chance.happens(faults.crash / 2),
        fate=lambda _: chance.fate(faults),
        rng=system_entropy(),
    )
    fleet = SimulatedDevices.of(world, simulation.dying, chance)
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
        crashes={role: simulation.crashes[role] for role in ("device", "shuffler", "analyzer")},
        messages=dict(sorted(simulation.messages.items())),
        miscounted=simulation.audit.count_miscounted(simulation.counted)
        + simulation.audit.count_uncounted(simulation.counted),
    )
    fleet.close()
    simulation.close()
    return found


def _round_results(simulation: Simulation, fleet: SimulatedDevices) -> Iterator[RoundResult]:
    slot = {device.signing.verifying_key(): n for n, device in enumerate(simulation.world.devices) if device.signing}
    members = {header.batch: envelopes for header, envelopes in simulation.audit.members()}
    answers = CampaignAnswers(simulation.world.campaign, simulation.counted)
    for batch, counted in zip(answers.batches(), answers.rounds(), strict=True):
        estimate = counted.by_group[""]
        low, high = estimate.interval(LEVEL)
        by_round: dict[int, list[int]] = {}
        for envelope in members[batch.id]:
            by_round.setdefault(envelope.round, []).append(slot[envelope.device])
        n = sum(map(len, by_round.values()))
        whole = sum(map(fleet.weight, by_round.values()))
        parts = (fleet.weight(found) / whole * fleet.truth(round, found) for round, found in by_round.items())
        truth = sum(parts, np.zeros(1))
        yield RoundResult(
            batch.rounds, n, np.atleast_1d(truth), np.atleast_1d(estimate.value),
            np.stack([np.atleast_1d(low), np.atleast_1d(high)], axis=1),
        )  # fmt: skip
