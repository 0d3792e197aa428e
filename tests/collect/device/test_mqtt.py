"""MQTT against Mosquitto: accepted means by the shuffler, whatever is disconnected, killed, restarted or forged."""

from __future__ import annotations

import gc
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import pytest
from tests.collect import servers
from tests.collect.device.made import OWNER, SHUFFLER, Bench, FakeTransport, campaign
from tests.collect.device.test_http import AUTHORITY
from tests.waiting import PATIENCE, ends, until

from dovetail_device.client import Device
from dovetail_device.mqtt import MqttTransport
from dovetail_device.sender import (
    ACCEPTED,
    UNANSWERED,
    UNAUTHORIZED,
    UNREACHABLE,
    UNSUBSCRIBED,
    UNTRUSTED,
    DeliveryEvent,
    refusal_event,
)
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.endpoint import topic
from dovetail_protocol.errors import ConfigError
from dovetail_protocol.keys import RoleKeys, SigningKey
from dovetail_protocol.messages import Answer, make_answer

CAMPAIGN = campaign(budget=1000.0, schedule='schedule = "manual"\ncount = 1000')
paho = pytest.importorskip("paho.mqtt.client")
Answering = Callable[[bytes], list[bytes]]  # what the other end publishes for a message


@pytest.fixture
def broker(mosquitto: servers.Mosquitto) -> Iterator[servers.Mosquitto]:
    """A broker of this test alone, which it may kill; absent where the shared one is."""
    with servers.mosquitto() as server:
        yield server


def signed(kind: str, after: int = 0) -> Answering:
    return lambda wire: [make_answer(Answer(kind, after), wire, SHUFFLER.signing)]


accepting = signed("accepted")


def silent(_: bytes) -> list[bytes]:
    return []


@contextmanager
def subscribed(
    broker: servers.Mosquitto, where: str, answering: Answering = accepting
) -> Iterator[SimpleQueue[tuple[bytes, int, bool, str]]]:
    """What arrives at a shuffler with a session that lasts, which publishes these answers."""
    from paho.mqtt.enums import CallbackAPIVersion
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    seen, ready = SimpleQueue[tuple[bytes, int, bool, str]](), threading.Event()
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="shuffler", protocol=paho.MQTTv5)
    client.reconnect_delay_set(1, 1)

    def arrived(_c: object, _u: object, got: paho.MQTTMessage) -> None:
        answers = got.properties.ResponseTopic
        for each in answering(got.payload):
            client.publish(answers, each)
        seen.put((got.payload, got.qos, got.retain, answers))

    client.on_connect = lambda *_: client.subscribe(where, qos=1)
    client.on_subscribe = lambda *_: ready.set()
    client.on_message = arrived
    lasting = Properties(PacketTypes.CONNECT)
    lasting.SessionExpiryInterval = 3600
    client.connect("127.0.0.1", broker.process.port, clean_start=False, properties=lasting)
    client.loop_start()
    assert ready.wait(PATIENCE)
    yield seen
    client.disconnect()
    client.loop_stop()


def to(broker: servers.Mosquitto, **settings: Any) -> MqttTransport:
    return MqttTransport(broker.url, CAMPAIGN, **{"timeout": PATIENCE, **settings})


def in_vain(transport: MqttTransport) -> DeliveryEvent:
    """What is told of a message that nobody answers; the broker gets ever more time to take it over."""
    for timeout in (1.0, 4.0, 16.0, 64.0):
        transport.close()
        transport._timeout = timeout
        if (event := transport.send(CAMPAIGN_WIRE)) != UNREACHABLE:
            break
    return event


def over(transport: MqttTransport) -> Bench:
    made = Bench(CAMPAIGN, FakeTransport())
    made.transport = transport  # type: ignore[assignment]
    made.restart()
    return made


def test_a_report_travels_with_qos_1_unretained_on_the_campaigns_topic(broker: servers.Mosquitto) -> None:
    transport = to(broker)
    made = over(transport)
    with subscribed(broker, topic(CAMPAIGN.digest)) as seen:
        entry = made.outbox.draw(CAMPAIGN, 1, budget=9.0, make=lambda: bytes(4))
        wire = made.device._seal(entry).wire
        assert made.device.flush()[0].state == "accepted"
        assert seen.get(timeout=PATIENCE)[:3] == (wire, 1, False)
    with subscribed(broker, topic(CAMPAIGN.digest)) as later:  # the broker has kept nothing for who comes later
        assert transport.send(CAMPAIGN_WIRE) == ACCEPTED
        assert later.get(timeout=PATIENCE)[:3] == (CAMPAIGN_WIRE, 1, False)
    transport.close()
    assert topic(CAMPAIGN.digest) == f"dovetail/v1/{CAMPAIGN.digest.hex()}/reports"


def test_every_session_has_a_random_client_id_and_no_user(broker: servers.Mosquitto) -> None:
    for _ in range(3):
        transport = to(broker)
        transport.send(CAMPAIGN_WIRE)
        transport.close()
    broker.process.stop()  # Mosquitto writes its log when it ends
    lines = re.findall(r"New client connected from \S+ as (\S+) \((.*)\)", broker.process.log.read_text())
    found = [(name, settings) for name, settings in lines if name != "shuffler"]
    assert len({name for name, _ in found}) == 3 and all(re.fullmatch("[0-9a-f]{32}", name) for name, _ in found)
    assert all(settings == "p5, c1, k60" for _, settings in found)  # MQTT 5, clean session, no user


def test_a_broker_that_nobody_listens_to_does_not_count_as_delivered(broker: servers.Mosquitto) -> None:
    transport = to(broker)
    assert transport.send(CAMPAIGN_WIRE) == UNSUBSCRIBED
    with subscribed(broker, "dovetail/v1/+/reports") as seen:
        assert transport.send(CAMPAIGN_WIRE) == ACCEPTED
        assert seen.get(timeout=PATIENCE)[0] == CAMPAIGN_WIRE
    transport.close()


def test_the_brokers_word_alone_is_never_acceptance(broker: servers.Mosquitto) -> None:
    with subscribed(broker, topic(CAMPAIGN.digest), silent) as seen:
        transport = to(broker)
        assert in_vain(transport) == UNANSWERED  # although the broker has it, and the shuffler too
        assert seen.get(timeout=PATIENCE)[0] == CAMPAIGN_WIRE
    assert in_vain(transport) == UNANSWERED  # the subscriber's session lasts while it is away
    transport.close()


def test_a_report_that_is_not_answered_waits_and_is_sent_again_as_the_same_bytes(broker: servers.Mosquitto) -> None:
    told: list[bytes] = []

    def answering(wire: bytes) -> list[bytes]:
        told.append(wire)
        return accepting(wire) if len(told) > 1 else []

    transport = to(broker)
    made = over(transport)
    with subscribed(broker, topic(CAMPAIGN.digest), answering):
        transport._timeout = 1.0
        receipt = made.device.submit("red", 1)
        assert receipt.state == "waiting" and receipt.reason in ("unanswered", "unreachable")
        transport.close()
        transport._timeout = PATIENCE
        while made.outbox.waiting(CAMPAIGN.id):
            made.clock.time += 10.0
            made.device.flush()
    assert len(told) >= 2 and len(set(told)) == 1
    transport.close()


@pytest.mark.parametrize("kind", ["accepted", "revoked_device", "late"])
def test_what_the_shuffler_has_not_signed_for_this_message_changes_nothing(
    broker: servers.Mosquitto, kind: str
) -> None:
    stranger = SigningKey.generate()
    other = CAMPAIGN_WIRE[:-1] + bytes([CAMPAIGN_WIRE[-1] ^ 1])

    def forging(wire: bytes) -> list[bytes]:
        answer = Answer(kind)
        right = make_answer(answer, wire, SHUFFLER.signing)
        return [
            make_answer(answer, wire, stranger),
            make_answer(answer, wire, None),
            make_answer(answer, other, SHUFFLER.signing),
            make_answer(Answer("too_early"), wire, SHUFFLER.signing)[:-9] + kind.encode(),
            right[:-1],
            right + b"x",
            b"",
            b"DVTA",
            kind.encode(),
        ]

    with subscribed(broker, topic(CAMPAIGN.digest), forging) as seen:
        transport = to(broker)
        assert in_vain(transport) == UNANSWERED
        seen.get(timeout=PATIENCE)
    transport.close()


def test_refusals_of_the_shuffler_reach_the_device_with_the_wait_that_it_asks_for(broker: servers.Mosquitto) -> None:
    for answering, event in (
        (signed("late"), refusal_event("late")),
        (signed("rate_limited", 17), refusal_event("rate_limited", 17.0)),
        (signed("campaign"), refusal_event("campaign")),
        (lambda wire: [make_answer(Answer("campaign", 9), wire, None)], refusal_event("campaign")),
    ):
        with subscribed(broker, topic(CAMPAIGN.digest), answering) as seen:
            transport = to(broker)
            assert transport.send(CAMPAIGN_WIRE) == event
            seen.get(timeout=PATIENCE)
            transport.close()


def test_after_keys_have_changed_the_device_follows_and_believes_the_new_shuffler_only(
    broker: servers.Mosquitto,
) -> None:
    newer = RoleKeys.generate("shuffler")
    changed = CAMPAIGN.signed.decode()[: CAMPAIGN.signed.rindex(b"# signed: ")].replace(
        "\nversion = 1", "\nversion = 2"
    )
    assert newer.opening and newer.signing and SHUFFLER.opening and SHUFFLER.signing and OWNER.signing
    for old, new in (
        (SHUFFLER.opening.sealing_key(), newer.opening.sealing_key()),
        (SHUFFLER.signing.verifying_key(), newer.signing.verifying_key()),
    ):
        changed = changed.replace(str(old), str(new))
    second = Campaign.parse(sign(changed.encode(), OWNER.signing))
    transport = to(broker, questions=FakeTransport(file=second.signed))
    made = over(transport)
    keys = [SHUFFLER.signing, newer.signing]
    told: list[Any] = []

    def answering(wire: bytes) -> list[bytes]:
        told.append(wire)
        return [make_answer(Answer("accepted"), wire, key) for key in keys[: len(told)]]

    with subscribed(broker, topic(second.digest), answering):
        transport._timeout = 1.0
        assert made.device.submit("red", 1).state == "waiting"  # signed with the old key, for the new version
        transport.close()
        transport._timeout = PATIENCE
        while made.outbox.waiting(CAMPAIGN.id):
            made.clock.time += 10.0
            made.device.flush()
    assert made.device.campaign == second and len(told) >= 2 and len(set(told)) == 1
    transport.close()


def test_answers_come_on_a_topic_that_says_no_more_than_the_session_itself(broker: servers.Mosquitto) -> None:
    topics: list[str] = []
    with subscribed(broker, topic(CAMPAIGN.digest)) as seen:
        for _ in range(2):
            transport = to(broker)
            for _ in range(2):
                assert transport.send(CAMPAIGN_WIRE) == ACCEPTED
                topics.append(seen.get(timeout=PATIENCE)[3])
            transport.close()
    broker.process.stop()  # Mosquitto writes its log when it ends
    names = re.findall(r"New client connected from \S+ as ([0-9a-f]{32}) ", broker.process.log.read_text())
    assert topics == [f"dovetail/v1/answers/{name}" for name in names for _ in range(2)] and len(set(names)) == 2


@pytest.mark.exhaust
def test_answered_reports_arrive_although_the_broker_restarts(broker: servers.Mosquitto) -> None:
    transport = to(broker)
    made, sent = over(transport), set()
    whole = transport.send
    transport.send = lambda wire: (sent.add(wire), whole(wire))[1]  # type: ignore[method-assign]
    got = set[bytes]()
    with subscribed(broker, topic(CAMPAIGN.digest)) as seen:
        for number in range(1, 31):
            if number % 10 == 0:
                broker.process.stop()
                assert made.device.submit("red", number).reason == "unreachable"
                broker.process.start()
                made.clock.time += 10.0  # beyond the back-off
            made.device.submit("red", number)

        def delivered() -> bool:
            made.clock.time += 10.0
            made.device.flush()
            return not made.outbox.waiting(CAMPAIGN.id)

        until(delivered)
        while not seen.empty():
            got.add(seen.get()[0])
    assert got == sent and len(sent) == 30
    transport.close()


def test_a_broker_killed_before_it_acknowledges_leaves_the_report_waiting(broker: servers.Mosquitto) -> None:
    transport = to(broker)
    assert transport.send(CAMPAIGN_WIRE) == UNSUBSCRIBED  # connected
    broker.process.kill()
    assert transport.send(CAMPAIGN_WIRE) == UNREACHABLE
    assert transport.send(CAMPAIGN_WIRE) == UNREACHABLE
    broker.process.start()
    assert transport.send(CAMPAIGN_WIRE) == UNSUBSCRIBED
    transport.close()


def test_a_broker_that_asks_for_a_password_gets_it_and_a_wrong_one_is_named(broker: servers.Mosquitto) -> None:
    known = broker.folder / "passwords"
    maker = servers.program("mosquitto_passwd")
    subprocess.run(
        [maker, "-b", "-c", known, "fleet", "right-4711"], check=True, capture_output=True, timeout=PATIENCE
    )
    rules = broker.folder / "rules"
    rules.write_text("user fleet\ntopic write dovetail/v1/+/reports\npattern read dovetail/v1/answers/%c\n")
    for path in (known, rules):
        path.chmod(0o600)
    place = broker.folder / "mosquitto.conf"
    private = f"allow_anonymous false\npassword_file {known}\nacl_file {rules}"
    place.write_text(place.read_text().replace("allow_anonymous true", private))
    broker.process.restart()
    for login in (None, ("fleet", "wrong"), ("nobody", "right-4711")):
        assert to(broker, login=login).send(CAMPAIGN_WIRE) == UNAUTHORIZED
    transport = to(broker, login=("fleet", "right-4711"))
    assert transport.send(CAMPAIGN_WIRE) == UNSUBSCRIBED  # nobody has subscribed
    transport.close()
    rules.write_text("user fleet\ntopic write other\n")
    broker.process.restart()
    assert transport.send(CAMPAIGN_WIRE) == UNAUTHORIZED
    transport.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho leaves the refused socket to GC
def test_over_tls_only_a_trusted_broker_gets_the_message(broker: servers.Mosquitto) -> None:
    place, pem = broker.folder / "mosquitto.conf", broker.folder / "broker.pem"
    pem.write_text("".join(AUTHORITY))
    pem.chmod(0o600)
    place.write_text(f"{place.read_text()}certfile {pem}\nkeyfile {pem}\n")
    broker.process.restart()
    url = broker.url.replace("mqtt://", "mqtts://")
    assert MqttTransport(url, CAMPAIGN).send(CAMPAIGN_WIRE) == UNTRUSTED
    gc.collect()
    trusting = MqttTransport(url, CAMPAIGN, tls=ssl.create_default_context(cadata=AUTHORITY[0]))
    assert trusting.send(CAMPAIGN_WIRE) == UNSUBSCRIBED
    trusting.close()


def test_something_that_is_no_broker_is_left_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        transport = MqttTransport(f"mqtt://127.0.0.1:{silent.getsockname()[1]}", CAMPAIGN, timeout=0.3)
        assert ends(lambda: transport.send(CAMPAIGN_WIRE)) == UNREACHABLE
    assert transport.send(CAMPAIGN_WIRE) == UNREACHABLE


def test_only_a_plain_mqtt_url_is_taken_and_without_http_nothing_is_asked() -> None:
    with pytest.raises(ConfigError, match="mqtt://host:port or mqtts://host:port"):
        MqttTransport("http://host", CAMPAIGN)
    transport = MqttTransport("mqtts://host", CAMPAIGN)
    assert transport.fetch("colours") is None and transport.round("colours") is None


def _wire() -> bytes:
    made = Bench(CAMPAIGN)
    assert isinstance(made.device, Device)
    made.device.submit("red", 1)
    return made.transport.sent[0]


CAMPAIGN_WIRE = _wire()
