"""A small world with tokens: a campaign, an issuer and a shuffler in this process, and devices between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.collect.device.made import Bench, FakeClock
from tests.collect.shuffler.world import BEGIN, World, campaign, roster
from tests.device.issuer import public_of, secret_of, sign_blinded

from dovetail.collect.campaign.roster import Roster
from dovetail.collect.http import Refusal
from dovetail.collect.issuer.issuer import Entitlement, IssuerRole
from dovetail.collect.issuer.signing import BlindSigner
from dovetail.collect.store.issuer_store import IssuerStore, open_issuer_store
from dovetail_device.sender import ACCEPTED, DeliveryEvent, refusal_event
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import RoleKeys, SigningKey, VerifyingKey
from dovetail_protocol.tokens import Application, TokenKey

ROUNDS = 5
SIGNING = SigningKey(b"i" * 32)  # the issuer's own


@cache
def with_tokens(
    *, url: str = "https://issuer.example.org", first: int = 0, top: str = "", **more: object
) -> Campaign:
    """The campaign of the shuffler's world, of five rounds, with a key for each, from this one on."""
    keys = ", ".join(f'"{public_of(secret_of(first + place))}"' for place in range(ROUNDS))
    named = f'signing = "{SIGNING.verifying_key()}"'
    section = f'[tokens]\nissuer = "issuer.example.org"\nurl = "{url}"\nkeys = [{keys}]\n{named}\n{top}'
    return campaign(authentication="token", expires=section, **more)


@dataclass(frozen=True)
class WholeNumbers:
    """A signer by the definition, which starts no process."""

    place: int

    def sign(self, blinded: bytes) -> bytes:
        return sign_blinded(secret_of(self.place), blinded)


def signers(first: int = 0, count: int = ROUNDS) -> dict[TokenKey, BlindSigner]:
    return {public_of(secret_of(place)): WholeNumbers(place) for place in range(first, first + count)}


def pem(place: int) -> bytes:
    """The secret key of a round as its file has it."""
    return secret_of(place).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def of(devices: Roster) -> Entitlement:
    """Devices of this roster."""

    def entitled(asked: Application, key: TokenKey) -> bool:
        device = VerifyingKey(asked.holder)
        return asked.is_signed(key) and devices.slot(device) is not None and not devices.is_revoked(device)

    return Entitlement("roster", entitled)


@dataclass
class Direct:
    """A device's way to an issuer in this process; `fault` is asked before and after, and may raise or answer."""

    issuer: IssuerRole
    now: Callable[[], float]
    asked: list[bytes] = field(default_factory=list)
    answered: list[bytes] = field(default_factory=list)
    places: list[str] = field(default_factory=list)  # where it was asked
    before: Callable[[], str | None] = lambda: None
    after: Callable[[bytes], bytes | str] = lambda signed: signed

    def ask(self, url: str, application: bytes) -> bytes | str:
        self.places.append(url)
        if fault := self.before():
            return fault
        self.asked.append(application)
        try:
            signed = self.issuer.issue(application, self.now())
        except Refusal as refusal:
            return refusal.kind
        self.answered.append(signed)
        return self.after(signed)


@dataclass
class ToShuffler:
    """A device's way to a shuffler in this process."""

    world: World
    sent: list[bytes] = field(default_factory=list)

    def trust(self, campaign: Campaign) -> None:
        pass

    def send(self, wire: bytes) -> DeliveryEvent:
        self.sent.append(wire)
        (told,) = self.world.deliver([wire])
        return ACCEPTED if told == "accepted" else refusal_event(told)

    def fetch(self, campaign: str) -> bytes | None:
        return self.world.campaign.signed

    def round(self, campaign: str) -> int | None:
        return None

    def close(self) -> None:
        pass


@dataclass
class TokenWorld:
    """A shuffler without a roster, an issuer with one, and as many devices as it has."""

    count: int = 3
    folder: Path | None = None
    asked: Campaign = field(default_factory=with_tokens)
    keys: Sequence[RoleKeys] = ()
    entitled: Entitlement | None = None  # default the devices of its roster

    def __post_init__(self) -> None:
        self.keys = self.keys or [RoleKeys.generate("device") for _ in range(self.count)]
        self.roster = roster([key.signing for key in self.keys if key.signing])
        self.world = World(self.asked, folder=self.folder)
        url = "sqlite://" if self.folder is None else f"sqlite:///{self.folder / 'issuer.sqlite'}"
        self.store: IssuerStore = open_issuer_store(url)
        self.issuer = self.opened()
        self.way = Direct(self.issuer, self.world.clock.now)
        self.transport = ToShuffler(self.world)
        self.clock = FakeClock(BEGIN)

    def opened(self, **more: object) -> IssuerRole:
        """An issuer on this store."""
        given = {
            "signers": signers(),
            "entitled": self.entitled or of(self.roster),
            "secret": b"s" * 32,
            "signing": SIGNING,
            **more,
        }
        return IssuerRole([self.asked], store=self.store, **given)  # type: ignore[arg-type]

    def bench(self, place: int = 0, **more: object) -> Bench:
        """A device with its outbox."""
        return Bench(
            self.asked, self.transport, self.clock, self.keys[place], issuer=self.way, **more  # type: ignore[arg-type]
        )  # fmt: skip
