"""The devices' process of a soak: answers from many devices, everything sent and acknowledged in a journal first."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dovetail.collect.files import load_campaign, load_keys
from dovetail_device.client import Device, RoundUnknown, SystemClock
from dovetail_device.entropy import system_entropy as words
from dovetail_device.http import HttpIssuer, HttpTransport, ObliviousTransport
from dovetail_device.ledger import Limits
from dovetail_device.mqtt import MqttTransport
from dovetail_device.outbox import BudgetSpent, Outbox
from dovetail_device.sender import ACCEPTED, DeliveryEvent
from dovetail_device.tokens import TokenRefused
from dovetail_protocol.campaign import Campaign

PERIOD = 1.0  # seconds of a round
SLOT = 4  # bytes in front of a message in the journal: whose it is
REPORTS = 10  # that the budget of a device pays for
CALM = "calm"  # the file that tells devices to send what waits, and to end
_THREADS = 4
_PAUSE = 0.05  # seconds between answers in one thread
_TIMEOUT = 5.0  # seconds


def command(folder: Path) -> list[str]:
    """How the process is started."""
    return [sys.executable, "-m", "tests.collect.soak_devices", str(folder)]


def outbox_of(folder: Path, slot: int) -> Path:
    return folder / "devices" / f"{slot:05d}.outbox"


class Journal:
    """A file to which whole records are appended; what is written outlives the process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(self, kind: bytes, wire: bytes) -> None:
        os.write(self._file, kind + len(wire).to_bytes(4, "big") + wire)

    @staticmethod
    def read(path: Path) -> Iterator[tuple[bytes, bytes]]:
        """Records (kind, message), without one that was cut off."""
        data, place = path.read_bytes(), 0
        while place + 5 <= len(data):
            end = place + 5 + int.from_bytes(data[place + 1 : place + 5], "big")
            if end <= len(data):
                yield data[place : place + 1], data[place + 5 : end]
            place = end


@dataclass(frozen=True)
class FastClock:
    """A clock sixty times as fast since it began: a device that was not answered ten times waits half an hour."""

    began: float

    def now(self) -> float:
        return self.began + 60.0 * (time.time() - self.began)


@dataclass(frozen=True)
class Recording:
    """A transport of one device that keeps a journal, where the message may not say whose it is."""

    inside: HttpTransport | MqttTransport
    journal: Journal
    slot: int

    def trust(self, campaign: Campaign) -> None:
        self.inside.trust(campaign)

    def send(self, wire: bytes) -> DeliveryEvent:
        named = self.slot.to_bytes(SLOT) + wire
        self.journal.add(b"S", named)
        told = self.inside.send(wire)
        if told == ACCEPTED:
            self.journal.add(b"A", named)
        return told

    def fetch(self, campaign: str) -> bytes | None:
        return self.inside.fetch(campaign)

    def round(self, campaign: str) -> int | None:
        return self.inside.round(campaign)

    def close(self) -> None: ...


def devices(folder: Path) -> None:
    """Answers from random devices until `CALM`, then what waits; in threads, each with devices of its own."""
    campaign = load_campaign(folder / "campaign.toml")
    slots = [int(path.stem) for path in (folder / "devices").glob("*.key")]
    journal = Journal(folder / f"journal-{os.getpid()}")
    print(f"devices at {folder}", flush=True)
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda first: _answer(folder, campaign, journal, slots[first::_THREADS]), range(_THREADS)))


def _transport(campaign: Campaign) -> HttpTransport | MqttTransport:
    if campaign.ohttp is not None:
        return ObliviousTransport(campaign.ohttp.relay, timeout=_TIMEOUT)
    http = HttpTransport(campaign.endpoints["http"], timeout=_TIMEOUT)
    broker = campaign.endpoints.get("mqtt")
    return MqttTransport(broker, campaign, timeout=_TIMEOUT, questions=http) if broker else http


def _answer(folder: Path, campaign: Campaign, journal: Journal, slots: Sequence[int]) -> None:
    alive: dict[int, Device] = {}
    inside = _transport(campaign)
    issuer = None if campaign.tokens is None else HttpIssuer(timeout=_TIMEOUT)
    by_hand = campaign.schedule.period is None  # where rounds have a period no device waits longer than half of it
    clock = FastClock((folder / "campaign.toml").stat().st_mtime) if by_hand else SystemClock()

    def device(slot: int) -> Device:
        if slot not in alive:
            keys = load_keys(folder / "devices" / f"{slot:05d}.key", "device")
            assert keys.signing
            outbox = Outbox.open(outbox_of(folder, slot), keys.signing.verifying_key())
            outbox.limit(Limits(campaign.promise.device_budget, campaign.promise.device_budget))
            alive[slot] = Device(
                campaign,
                keys,
                outbox=outbox,
                transport=Recording(inside, journal, slot),
                clock=clock,
                words=words(),
                issuer=issuer,
            )
        return alive[slot]

    while not (folder / CALM).exists():
        one = device(random.choice(slots))
        with suppress(BudgetSpent, RoundUnknown, TokenRefused):
            if all(receipt.state != "waiting" for receipt in one.flush()):
                one.submit(random.randrange(4))
        time.sleep(_PAUSE)
    waiting = [slot for slot in slots if outbox_of(folder, slot).exists()]
    while waiting:
        waiting = [slot for slot in waiting if any(each.state == "waiting" for each in device(slot).flush())]
        time.sleep(_PAUSE)


if __name__ == "__main__":
    devices(Path(sys.argv[1]))
