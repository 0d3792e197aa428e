"""Builds of the pipeline from device to batch, right and broken, each by one part that is handed in."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dovetail.collect.clock import FrozenClock
from dovetail.collect.shuffler.campaigns import CampaignRegistry
from dovetail.collect.shuffler.link_key_store import MemoryLinkKeyStore
from dovetail.collect.shuffler.shuffler import ShufflerRole, ShufflerSettings
from dovetail.collect.simulate.deployment import START, ThrowawayCampaign, schedule
from dovetail.collect.store.shuffler_store import open_shuffler_store
from dovetail.core.entropy import Entropy
from dovetail_device.client import Device
from dovetail_device.ledger import Limits
from dovetail_device.outbox import Outbox
from dovetail_device.sender import ACCEPTED, UNREACHABLE, DeliveryEvent
from dovetail_protocol.exact_thresholds import Words
from dovetail_protocol.keys import RoleKeys
from dovetail_protocol.messages import inner_info, open_envelope

EPSILON = 1.0
DOCUMENT: dict[str, Any] = {
    "schema_version": 1,
    "id": "audited",
    "question": "Yes or no?",
    "randomizer": {"name": "krr", "k": 2, "epsilon": EPSILON},
    "rounds": schedule(100_000, period=10.0),
    "batch": {"minimum": 2},
    "promise": {"delta": 1e-6},
}


class Biased(Words):
    """A coin that is not fair: every bit is 1 with probability 1/4."""

    def __init__(self, fair: Words) -> None:
        self._fair = fair

    def bits(self, count: int) -> int:
        return self._fair.bits(count) & self._fair.bits(count)


class Seeded(Words):
    """The same words for everybody who has the seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def bits(self, count: int) -> int:
        return self._random.getrandbits(count) if count else 0


class Unmoved(Entropy):
    """Words with which nothing moves: Fisher and Yates draw every place for itself."""

    provenance = "simulation"

    def words(self, count: int) -> Any:
        return np.maximum(count - 65 - np.arange(count), 0).astype(np.uint64)  # 64 words are spare


class Remembering:
    """A store that hands tags back in order of arrival."""

    def __init__(self, inside: Any) -> None:
        self._inside, self._arrived = inside, dict[tuple[int, bytes], None]()

    def accept(self, reports: Sequence[Any]) -> Any:
        self._arrived |= {(report.round, report.tag): None for report in reports}
        return self._inside.accept(reports)

    def tags(self, campaign: str, rounds: Sequence[int]) -> list[tuple[int, bytes]]:
        return [place for place in self._arrived if place[0] in rounds]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)


@dataclass
class Wire:
    """A network that keeps every message; of the first `losing` tries nobody hears back."""

    losing: int = 0
    messages: list[bytes] = field(default_factory=list)

    def trust(self, campaign: object) -> None: ...

    def send(self, wire: bytes) -> DeliveryEvent:
        self.messages.append(wire)
        return UNREACHABLE if len(self.messages) <= self.losing else ACCEPTED

    def fetch(self, campaign: str) -> bytes | None:
        return None

    def round(self, campaign: str) -> int | None:
        return None

    def close(self) -> None: ...


@dataclass
class Owner:
    """A person's device with an outbox of its own, and everything that a build can get wrong about it."""

    world: ThrowawayCampaign
    keys: RoleKeys
    words: Words
    clock: FrozenClock = field(default_factory=lambda: FrozenClock(START.timestamp()))
    wire: Wire = field(default_factory=Wire)

    def __post_init__(self) -> None:
        assert self.keys.signing
        outbox = Outbox.in_memory(self.keys.signing.verifying_key())
        outbox.limit(Limits(1e6, 1e6))  # only the budget of the campaign counts
        self.device = Device(
            self.world.campaign, self.keys, outbox=outbox,
            transport=self.wire, clock=self.clock, words=self.words,
        )  # fmt: skip

    def report(self, value: int, round: int, *, lost: int = 0) -> tuple[int, ...]:
        """Every message of this round that leaves the device, as shuffler and analyzer together read them."""
        self.wire.messages.clear()
        self.wire.losing = lost
        self.device.submit(value, round)
        for _ in range(lost):
            self.clock.advance(100_000.0)
            self.device.flush()
        return tuple(opened(self.world, wire) for wire in dict.fromkeys(self.wire.messages))


def opened(world: ThrowawayCampaign, wire: bytes) -> int:
    """The report of a message, for who holds both keys."""
    assert world.shuffler.opening and world.analyzer.opening
    envelope = open_envelope(world.campaign, wire, world.shuffler.opening.opener())
    plain = world.analyzer.opening.opener().open(envelope.inner, inner_info(world.campaign, envelope.round))
    assert plain is not None
    return int(world.campaign.mechanism.decode(plain[3:]))


def order(world: ThrowawayCampaign, *, store: Callable[[Any], Any] = lambda store: store, rng: Entropy) -> list[int]:
    """At each place of a batch the time of arrival of its report, after one round of this world's devices."""
    handed = list[bytes]()

    class Analyzer:
        def send(self, batch: str, header: bytes, parts: Iterator[bytes]) -> None:
            handed.append(b"".join(parts))

    clock = FrozenClock(START.timestamp())
    roster = world.roster()
    shuffler = ShufflerRole(
        CampaignRegistry.of([world.campaign], [world.shuffler]), store=store(open_shuffler_store("sqlite://")),
        link_keys=MemoryLinkKeyStore(), transport=Analyzer(), roster=lambda: roster,
        settings=ShufflerSettings(1e9), rng=rng,
    )  # fmt: skip
    shuffler.start(clock.now())
    arrived = dict[bytes, int]()
    assert world.shuffler.opening
    opener = world.shuffler.opening.opener()
    for place, keys in enumerate(world.devices):
        owner = Owner(world, keys, Seeded(place), clock)
        owner.report(place % 2, 1)
        (answer,) = shuffler.accept(owner.wire.messages, clock.now())
        assert answer.kind == "accepted"
        arrived[open_envelope(world.campaign, owner.wire.messages[0], opener).inner] = place
    clock.advance(20.0)
    shuffler.step(clock.now())
    shuffler.stop()
    size = len(next(iter(arrived)))
    return [arrived[handed[0][start : start + size]] for start in range(0, len(handed[0]), size)]
