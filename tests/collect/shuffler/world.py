"""A small world for the shuffler's tests: a campaign, devices, a shuffler in memory, an analyzer that listens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dovetail.collect.batch import IN_PARTS, PREFIX, Header, Part, entry_bytes, head_bytes, read_parts
from dovetail.collect.campaign.roster import Roster, RosterEntry
from dovetail.collect.clock import FrozenClock
from dovetail.collect.shuffler.campaigns import Action, CampaignRegistry, owner_request
from dovetail.collect.shuffler.delivery import NotDelivered
from dovetail.collect.shuffler.link_key_store import FileLinkKeyStore, MemoryLinkKeyStore
from dovetail.collect.shuffler.shuffler import ShufflerRole, ShufflerSettings
from dovetail.collect.store.shuffler_store import open_shuffler_store
from dovetail.core.entropy import Entropy, simulation
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.keys import RoleKeys, SigningKey
from dovetail_protocol.messages import inner_info, plain, seal

OWNER, SHUFFLER, ANALYZER = (RoleKeys.generate(role) for role in ("owner", "shuffler", "analyzer"))
START = datetime(2030, 1, 1, tzinfo=UTC)
BEGIN = START.timestamp()
PERIOD = 3600.0
DEVICES = [SigningKey.generate() for _ in range(60)]

TEMPLATE = """
schema_version = 1
id = "{id}"
version = {version}
question = "How do you come to work?"
{expires}
[randomizer]
name = "krr"
k = 4
epsilon = 1.0
[rounds]
{rounds}
[batch]
minimum = {minimum}
small = "{small}"
late = "{late}"
{close_at}
[shuffle]
{shuffle}
[promise]
delta = 1e-6
device_budget = 1000.0
authentication = "{authentication}"
[keys]
owner = "{owner}"
analyzer = "{analyzer}"
shuffler = "{shuffler}"
shuffler_signing = "{signing}"
"""
BY_CLOCK = (
    f'schedule = "period"\nstart = 2030-01-01T00:00:00Z\nperiod_seconds = {PERIOD}\ngrace_seconds = 60\ncount = 5'
)
BY_HAND = 'schedule = "manual"\ncount = 5'


def campaign(
    *,
    id: str = "commute",
    version: int = 1,
    rounds: str = BY_CLOCK,
    minimum: int = 5,
    small: str = "wait",
    late: str = "refuse",
    close_at: int | None = None,
    shuffle: str = "",
    authentication: str = "roster",
    expires: str = "",
    shuffler: RoleKeys = SHUFFLER,
) -> Campaign:
    """A campaign as its owner signs it."""
    assert OWNER.signing and ANALYZER.opening and shuffler.opening and shuffler.signing
    body = TEMPLATE.format(
        id=id, version=version, rounds=rounds, minimum=minimum, small=small, late=late, shuffle=shuffle,
        close_at="" if close_at is None else f"close_at = {close_at}", authentication=authentication,
        expires=expires, owner=OWNER.signing.verifying_key(), analyzer=ANALYZER.opening.sealing_key(),
        shuffler=shuffler.opening.sealing_key(), signing=shuffler.signing.verifying_key(),
    )  # fmt: skip
    return Campaign.parse(sign(body.encode(), OWNER.signing))


def message(
    campaign: Campaign, device: SigningKey, *, round: int = 1, value: int = 0, id: bytes | None = None
) -> bytes:
    """A message as a device sends it, of a report that is not randomized: tests look for it in the batch."""
    return seal(campaign, round, plain(campaign, campaign.mechanism.encode(value)), device, id)


def roster(devices: Sequence[SigningKey] = DEVICES, revoked: Sequence[SigningKey] = ()) -> Roster:
    """Devices by their place in the list."""
    entries = [RosterEntry(device.verifying_key(), slot, device in revoked) for slot, device in enumerate(devices)]
    return Roster(entries)


@dataclass(frozen=True)
class Batch:
    """A batch as the analyzer has received it."""

    header: Header
    entries: tuple[bytes, ...] = field(repr=False)

    def slots(self) -> list[int]:
        return [int.from_bytes(entry[:4], "big") for entry in self.entries]

    def values(self, campaign: Campaign, *, slots: bool = False) -> list[int]:
        """What the analyzer reads; tests may open what the shuffler never can."""
        assert ANALYZER.opening
        opener, round = ANALYZER.opening.opener(), self.header.rounds[-1]
        plains = [opener.open(entry[4 * slots :], inner_info(campaign, round)) for entry in self.entries]
        return [int(campaign.mechanism.decode(found[3:])) for found in plains if found is not None]


@dataclass
class Analyzer:
    """The other end: keeps batches by id, and fails, or refuses batches of `refused` rounds, when it is told to.

    Of batches in parts it keeps what arrives until nothing is missing, and takes only `parts_left` more.
    """

    campaign: Campaign
    batches: dict[str, Batch] = field(default_factory=dict)
    sent: int = 0
    failing: bool = False
    refused: set[int] = field(default_factory=set)
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    put: list[tuple[str, int]] = field(default_factory=list)
    parts_left: int = 1 << 30

    def offer(self, batch: str, manifest: bytes) -> list[int]:
        length = head_bytes(manifest[:PREFIX], IN_PARTS)
        header = Header.read(manifest[:length], self.campaign.shuffler_signing)
        listed, here = read_parts(header, manifest[length:]), self.parts.setdefault(batch, {})
        size = entry_bytes(self.campaign)
        assert all(Part.of(body, size) == listed[number] for number, body in here.items())
        missing = [number for number in range(len(listed)) if number not in here]
        if not missing:
            body = b"".join(here[number] for number in range(len(listed)))
            entries = tuple(body[start : start + size] for start in range(0, len(body), size))
            self.sent += batch not in self.batches
            self.batches[batch] = Batch(header, entries)
        return missing

    def send_part(self, batch: str, number: int, body: bytes) -> None:
        if self.parts_left == 0:
            raise NotDelivered(503, "unavailable")
        self.parts_left -= 1
        self.put.append((batch, number))
        self.parts[batch][number] = body

    def send(self, batch: str, header: bytes, parts: Iterator[bytes]) -> None:
        self.sent += 1
        body = b"".join(parts)
        if self.failing:
            raise NotDelivered(503, "unavailable")
        assert head_bytes(header[:PREFIX]) == len(header)
        size = entry_bytes(self.campaign)
        entries = tuple(body[start : start + size] for start in range(0, len(body), size))
        found = Header.read(header, self.campaign.shuffler_signing)
        if self.refused & set(found.rounds):
            raise NotDelivered(409, "round")
        self.batches[batch] = Batch(found, entries)

    def only(self) -> Batch:
        """The only batch there is."""
        (batch,) = self.batches.values()
        return batch


@dataclass
class World:
    """One shuffler in this process; `clock` moves when it is told to."""

    campaign: Campaign
    folder: Path | None = None
    roster: Roster = field(default_factory=roster)
    fitted: Any = None
    settings: ShufflerSettings = field(default_factory=ShufflerSettings)
    rng: Entropy = field(default_factory=lambda: simulation(1))
    others: Sequence[Campaign] = ()
    keys: Sequence[RoleKeys] = (SHUFFLER,)

    def __post_init__(self) -> None:
        self.clock, self.analyzer = FrozenClock(BEGIN), Analyzer(self.campaign)
        self.link_keys = MemoryLinkKeyStore() if self.folder is None else FileLinkKeyStore(self.folder / "vault")
        self.restart()

    def restart(self) -> None:
        """Begin anew on the same store and vault, as after a crash (a store in memory stays)."""
        url = "sqlite://" if self.folder is None else f"sqlite:///{self.folder / 'shuffler.sqlite'}"
        if self.folder is not None or not hasattr(self, "store"):
            self.store = open_shuffler_store(url)
        self.shuffler = ShufflerRole(
            CampaignRegistry.of([self.campaign, *self.others], self.keys),
            store=self.store,
            link_keys=self.link_keys,
            transport=self.analyzer,
            roster=lambda: self.roster,
            fitted=None if self.fitted is None else {self.campaign.id: self.fitted},
            settings=self.settings,
            rng=self.rng,
        )
        self.shuffler.start(self.clock.now())
        self.shuffler.step(self.clock.now())

    def replace_vault(self, name: str = "another") -> None:
        """Go on with an empty vault, as after a restore; the next `restart` uses it."""
        assert self.folder is not None
        self.store.close()
        self.link_keys = FileLinkKeyStore(self.folder / name)

    def word(
        self, action: Action, number: int = 1, *, of: Campaign | None = None, key: SigningKey | None = None
    ) -> bytes:
        """What the owner, or whoever has this key, sends to close or drop a round now."""
        asked, owner = of or self.campaign, key or OWNER.signing
        assert owner
        challenge = self.shuffler.challenge(action, asked.id, number, self.clock.now())
        return owner_request(action, owner, asked.digest, number, challenge)

    def close(self, number: int = 1) -> str:
        """The owner closes a round; its state then."""
        return self.shuffler.close_round(self.campaign.id, number, self.word("close", number), self.clock.now())

    def drop(self, number: int = 1, *, key: SigningKey | None = None) -> str:
        """The owner, or whoever has this key, gives up a round; its state then."""
        word = self.word("drop", number, key=key)
        return self.shuffler.drop_round(self.campaign.id, number, word, self.clock.now())

    def send(self, *devices: int, round: int = 1, value: int = 0) -> list[str]:
        """One report of each of these devices; what they are told."""
        return self.deliver([message(self.campaign, DEVICES[device], round=round, value=value) for device in devices])

    def deliver(self, messages: Sequence[bytes]) -> list[str]:
        """Messages as they are; what their senders are told."""
        return [answer.kind for answer in self.shuffler.accept(messages, self.clock.now())]

    def advance(self, seconds: float) -> None:
        """Let time pass, then let the shuffler do what is due."""
        self.clock.advance(seconds)
        self.shuffler.step(self.clock.now())

    def to_round(self, number: int) -> None:
        """To the beginning of a round, when the grace of the one before has passed."""
        self.advance(BEGIN + (number - 1) * PERIOD + 61 - self.clock.now())

    def states(self) -> dict[int, str]:
        """State of each round."""
        return {round.number: round.state for round in self.store.rounds(self.campaign.id)}

    def count(self, kind: str) -> int:
        """How many messages became this."""
        return self.shuffler.counters.total().get((self.campaign.id, kind), 0)
