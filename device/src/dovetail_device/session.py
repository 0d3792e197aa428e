"""Sessions of both command lines: a device opened from its files, values read, waiting, one form of answers."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from dovetail_device.client import Device, Receipt, SystemClock, Transport
from dovetail_device.entropy import system_entropy as words
from dovetail_device.files import load_campaign, load_keys, secret_line
from dovetail_device.http import HttpIssuer, HttpTransport, ObliviousTransport
from dovetail_device.ledger import Ledger, Spending
from dovetail_device.mqtt import MqttTransport
from dovetail_device.outbox import Outbox
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.checks import not_negative
from dovetail_protocol.errors import ConfigError, DataError
from dovetail_protocol.keys import RoleKeys, SigningKey, VerifyingKey
from dovetail_protocol.tokens import read_entitlement

TransportName = Literal["http", "mqtt"]
VISIBLE = "a value on the command line is seen by everybody who lists processes; use --value - and standard input."


@contextmanager
def open_device(
    campaign: Path,
    keys: Path,
    *,
    outbox: Path | None = None,
    owner: str | None = None,
    max_epsilon: float | None = None,
    question: str | None = None,
    via: TransportName = "http",
    url: str | None = None,
    user: str | None = None,
    password_file: Path | None = None,
    insecure_http: bool = False,
    insecure_mqtt: bool = False,
    hand_over: bool = True,
    trust: str | None = None,
    epsilon_class: str | None = None,
    entitlement_file: Path | None = None,
) -> Iterator[Device]:
    """The device of these files; the outbox stands beside the keys, whose ledger it is, unless it is named.

    `owner` is a public key that may ask, and `question` what budgets are counted by, see `Device`; `user` and
    `password_file` log in to a broker; `insecure_http` and `insecure_mqtt` allow what has no TLS beyond this machine;
    without `hand_over` no other owner is followed, whatever the first one has signed; with `trust` "users" or
    "shuffler" the device answers also where only their dummies hide the answer; `epsilon_class` is chosen once, see
    `Device`; `entitlement_file` holds the code or the voucher by which tokens are asked for, instead of the device's
    own key.
    """
    login = login_of(user, password_file, via)
    secret = load_keys(keys, "device")
    consent = VerifyingKey.parse("owner", owner) if owner else None
    asked = load_campaign(campaign, consent)
    with (
        closing(Outbox.open(outbox_of(keys, outbox), signing_key(secret, keys).verifying_key())) as store,
        closing(
            transport_of(asked, via, url, login=login, insecure_http=insecure_http, insecure_mqtt=insecure_mqtt)
        ) as transport,
    ):
        device = Device(
            asked,
            secret,
            outbox=store,
            transport=transport,
            clock=SystemClock(),
            words=words(),
            max_epsilon=max_epsilon,
            owners=() if consent is None else (consent,),
            question=question,
            hand_over=hand_over,
            trust=trust,
            epsilon_class=epsilon_class,
            issuer=None if asked.tokens is None else HttpIssuer(insecure_http=insecure_http),
            entitlement=None
            if entitlement_file is None
            else read_entitlement(secret_line(entitlement_file, "a code or a voucher")),
        )
        yield device


def first_use(device: Device) -> str:
    """Warning of a device without memory before it answers; empty otherwise."""
    if device.remembers:
        return ""
    return (
        "this device has no memory of earlier reports: what it has spent counts from now on. If it was used before, "
        f"its earlier reports are not counted. It answers {device.campaign.owner}, and others only with --owner."
    )


def ledgers(keys: Path, outbox: Path | None = None) -> list[Ledger]:
    """Records of the device of these keys."""
    with _existing(keys, outbox) as store:
        return store.ledgers()


def spent(keys: Path, outbox: Path | None = None) -> Spending:
    """Total that the device of these keys has spent."""
    with _existing(keys, outbox) as store:
        return store.spending()


def limit(
    keys: Path, outbox: Path | None = None, *, total: float | None = None, per_question: float | None = None
) -> Spending:
    """Set what the device of these keys gives at most, nats; None leaves a limit as it is."""
    given = {name: value for name, value in (("total", total), ("per_question", per_question)) if value is not None}
    with _store(keys, outbox) as store:
        store.limit(replace(store.spending().limits, **given))
        return store.spending()


@contextmanager
def _existing(keys: Path, outbox: Path | None) -> Iterator[Outbox]:
    place = outbox_of(keys, outbox)
    if not place.exists():
        raise ConfigError(f"{place}: no such outbox; the first `submit` makes one.")
    with _store(keys, outbox) as store:
        yield store


@contextmanager
def _store(keys: Path, outbox: Path | None) -> Iterator[Outbox]:
    name = signing_key(load_keys(keys, "device"), keys).verifying_key()
    with closing(Outbox.open(outbox_of(keys, outbox), name)) as store:
        yield store


def outbox_of(keys: Path, outbox: Path | None) -> Path:
    """Place of the outbox: beside the keys, unless it is named."""
    return outbox or keys.with_name(keys.name + ".outbox")


def signing_key(keys: RoleKeys, place: Path) -> SigningKey:
    """The device's key of a key file."""
    if keys.signing is None:
        raise ConfigError(f"{place} holds no signing key; `dovetail-device keys` makes a file that does.")
    return keys.signing


def login_of(user: str | None, password_file: Path | None, via: TransportName) -> tuple[str, str] | None:
    """User and password for a broker; both or neither, and the password never from the command line."""
    if user is None and password_file is None:
        return None
    if user is None or password_file is None or via != "mqtt":
        raise ConfigError("--user and --password-file go together, and with --via mqtt.")
    return user, secret_line(password_file, "a password")


def transport_of(
    campaign: Campaign,
    via: TransportName,
    url: str | None = None,
    *,
    login: tuple[str, str] | None = None,
    insecure_http: bool = False,
    insecure_mqtt: bool = False,
) -> Transport:
    """The way that the campaign names, or `url`; over MQTT what the broker cannot answer is asked over HTTP.

    With [ohttp] it is the relay, and `url` another relay: there is no way around it.
    """
    if campaign.ohttp is not None:
        if via != "http":
            raise ConfigError(f"the campaign {campaign.id} is answered by a relay alone, not over MQTT.")
        return ObliviousTransport(url or campaign.ohttp.relay, insecure_http=insecure_http)
    place = url or campaign.endpoints.get(via)
    if place is None:
        raise ConfigError(f"the campaign {campaign.id} names no `endpoints.{via}`; give --url.")
    if via == "http":
        return HttpTransport(place, insecure_http=insecure_http)
    asked = campaign.endpoints.get("http")
    questions = HttpTransport(asked, insecure_http=insecure_http) if asked else None
    return MqttTransport(place, campaign, login=login, questions=questions, insecure_mqtt=insecure_mqtt)


def read_value(text: str, campaign: Campaign) -> Any:
    """The value that a text says, "-" for a line of standard input: a category, or else a number.

    Where [asks] names several values, or an array, they stand in their order with commas between them, as in CSV.
    """
    if text == "-":
        text = sys.stdin.readline().rstrip("\r\n")
    if campaign.asked is not None:
        array = campaign.asked.values[0].length > 0
        many = array or len(campaign.asked.values) > 1
        given = [one.strip() for one in next(csv.reader([text]))] if many and text else [text]
        if array:
            return [_number(one) for one in given]
        if len(given) == len(campaign.asked.values):
            parts = zip(campaign.asked.values, given, strict=True)
            return [one if value.categories or one == value.missing else _number(one) for value, one in parts]
        return given
    if campaign.categories:
        return text
    return _number(text)


def _number(text: str) -> float:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    raise DataError("`value` must be a number.")


def submit(
    device: Device, value: Any, round: int | None = None, *, group: str | None = None, patience: float = 0.0
) -> Receipt:
    """Submit a value, and go on trying for at most `patience` seconds, also until what waited before has arrived."""
    end = time.monotonic() + not_negative("wait", patience)
    first = device.submit(value, round, group=group)
    last = _last(device, first, end=end)
    if first.drawn or first.state != "waiting" or last.state == "waiting":
        return replace(last, drawn=first.drawn)
    first = device.submit(value, round, group=group)  # the way is free now
    return replace(_last(device, first, end=end), drawn=first.drawn)


def _last(device: Device, receipt: Receipt, *, end: float) -> Receipt:
    """Last receipt of one report."""
    return next(last for last in _persist(device, [receipt], end=end) if last.round == receipt.round)


def line(receipt: Receipt) -> str:
    """Tell people what became of a submitted value."""
    if receipt.drawn:
        return str(receipt)
    if receipt.state == "waiting":
        return f"{receipt} What was drawn before has to arrive first; this value was not used."
    return f"{receipt} It is what was drawn before; this value was not used."


def flush(device: Device, *, patience: float = 0.0) -> list[Receipt]:
    """Send what waits, and go on trying for at most `patience` seconds."""
    end = time.monotonic() + not_negative("wait", patience)
    return _persist(device, device.flush(), end=end)


def _persist(device: Device, receipts: Sequence[Receipt], *, end: float) -> list[Receipt]:
    """Send what waits again, until `end` (of the monotonic clock); the last receipt of every round."""
    found = {receipt.round: receipt for receipt in receipts}
    while waits := [receipt.wait for receipt in found.values() if receipt.state == "waiting"]:
        if time.monotonic() + min(waits) > end:
            break
        time.sleep(min(waits))
        found |= {receipt.round: receipt for receipt in device.flush()}
    return list(found.values())


def receipts_document(receipts: Sequence[Receipt]) -> dict[str, Any]:
    """Receipts for machines."""
    return {"schema_version": 1, "receipts": [asdict(receipt) for receipt in receipts]}


def status(receipts: Sequence[Receipt]) -> int:
    """Exit status: 1 where a report is refused for good; a report that waits is safe in the outbox."""
    return int(any(receipt.state == "refused" for receipt in receipts))
