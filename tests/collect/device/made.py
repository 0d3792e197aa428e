"""Campaigns, keys, clocks and transports for the tests of the device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dovetail_device.client import Device
from dovetail_device.entropy import system_entropy
from dovetail_device.ledger import Limits
from dovetail_device.outbox import Outbox
from dovetail_device.sender import ACCEPTED, DeliveryEvent
from dovetail_device.tokens import Issuer
from dovetail_protocol import messages as message
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.exact_thresholds import Words
from dovetail_protocol.keys import RoleKeys, VerifyingKey
from dovetail_protocol.messages import Answer, answer_header, make_answer

GENEROUS = Limits(total=1e6, per_question=1e6)  # only the budget of the campaign counts
START = 1893456000.0  # 2030-01-01T00:00:00Z
PERIOD = 100.0
OWNER, SHUFFLER, ANALYZER = (RoleKeys.generate(role) for role in ("owner", "shuffler", "analyzer"))
KRR = 'name = "krr"\nk = 4\nepsilon = 1.0\ncategories = ["red", "green", "blue", "other"]'


def campaign(
    *,
    id: str = "colours",
    version: int = 1,
    question: str = "Which colour?",
    randomizer: str = KRR,
    schedule: str | None = None,
    budget: float = 3.0,
    extra: str = "",
    analyzer: RoleKeys = ANALYZER,
    shuffler: RoleKeys = SHUFFLER,
    owner: RoleKeys = OWNER,
    expires: str = "",
    batch: str = "",
) -> Campaign:
    """A signed campaign of ten rounds of `PERIOD` seconds."""
    period = f'schedule = "period"\nstart = 2030-01-01T00:00:00Z\nperiod_seconds = {PERIOD}\ncount = 10'
    assert owner.signing and analyzer.opening and shuffler.opening and shuffler.signing
    body = f"""
schema_version = 1
id = "{id}"
version = {version}
question = "{question}"
{expires}
[randomizer]
{randomizer}
[rounds]
{schedule or period}
[batch]
minimum = 1
{batch}
[shuffle]
[promise]
delta = 1e-6
device_budget = {budget}
{extra}
[keys]
suite = "{analyzer.opening.suite}"
owner = "{owner.signing.verifying_key()}"
analyzer = "{analyzer.opening.sealing_key()}"
shuffler = "{shuffler.opening.sealing_key()}"
shuffler_signing = "{shuffler.signing.verifying_key()}"
"""
    return Campaign.parse(sign(body.encode(), owner.signing))


def opened(campaign: Campaign, wire: bytes, analyzer: RoleKeys = ANALYZER) -> tuple[message.Envelope, bytes]:
    """The envelope and the inner plaintext of a message."""
    assert SHUFFLER.opening and analyzer.opening
    envelope = message.open_envelope(campaign, wire, SHUFFLER.opening.opener())
    inner = analyzer.opening.opener().open(envelope.inner, message.inner_info(campaign, envelope.round))
    assert inner is not None
    return envelope, inner


def word(wire: bytes, kind: str = "accepted", after: int = 0, by: RoleKeys = SHUFFLER) -> str:
    """The header in which the shuffler, or somebody else, signs what became of a message."""
    return answer_header(make_answer(Answer(kind, after), wire, by.signing))


@dataclass
class FakeClock:
    """A clock that the test moves."""

    time: float = START

    def now(self) -> float:
        return self.time


@dataclass
class FakeTransport:
    """Answers from a list, then acceptance; remembers what was sent."""

    answers: Iterable[DeliveryEvent] = ()
    file: bytes | None = None
    running: int | None = None
    sent: list[bytes] = field(default_factory=list)
    fetched: int = 0

    def __post_init__(self) -> None:
        self._answers: Iterator[DeliveryEvent] = iter(self.answers)

    def trust(self, campaign: Campaign) -> None:
        pass

    def send(self, wire: bytes) -> DeliveryEvent:
        self.sent.append(wire)
        return next(self._answers, ACCEPTED)

    def fetch(self, campaign: str) -> bytes | None:
        self.fetched += 1
        return self.file

    def round(self, campaign: str) -> int | None:
        return self.running

    def close(self) -> None:
        pass


@dataclass
class Bench:
    """A device with everything around it; `restart` makes a new one on the same outbox."""

    campaign: Campaign
    transport: FakeTransport = field(default_factory=FakeTransport)
    clock: FakeClock = field(default_factory=FakeClock)
    keys: RoleKeys = field(default_factory=lambda: RoleKeys.generate("device"))
    max_epsilon: float | None = None
    path: Path | None = None
    limits: Limits = GENEROUS
    owners: tuple[VerifyingKey, ...] = ()
    question: str | None = None
    trust: str | None = None
    epsilon_class: str | None = None
    words: Words = field(default_factory=system_entropy)
    issuer: Issuer | None = None
    entitlement: bytes | None = None

    def __post_init__(self) -> None:
        assert self.keys.signing
        name = self.keys.signing.verifying_key()
        self.outbox = Outbox.open(self.path, name) if self.path else Outbox.in_memory(name)
        self.outbox.limit(self.limits)
        self.restart()

    def restart(self, campaign: Campaign | None = None) -> Device:
        self.device = Device(
            campaign or self.campaign,
            self.keys,
            outbox=self.outbox,
            transport=self.transport,
            clock=self.clock,
            words=self.words,
            max_epsilon=self.max_epsilon,
            owners=self.owners,
            question=self.question,
            trust=self.trust,
            epsilon_class=self.epsilon_class,
            issuer=self.issuer,
            entitlement=self.entitlement,
        )
        return self.device
