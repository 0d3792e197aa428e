"""MQTT against Mosquitto: acknowledged means with the broker, whatever is disconnected, killed or restarted."""

from __future__ import annotations

import gc
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import pytest
from tests.collect import servers
from tests.collect.device.made import Bench, FakeTransport, campaign
from tests.collect.device.test_http import AUTHORITY
from tests.waiting import PATIENCE, ends, until

from dovetail_device.client import Device
from dovetail_device.mqtt import MqttTransport
from dovetail_device.sender import ACCEPTED, UNAUTHORIZED, UNREACHABLE, UNTRUSTED, refusal_event
from dovetail_protocol.endpoint import topic
from dovetail_protocol.errors import ConfigError

CAMPAIGN = campaign(budget=1000.0, schedule='schedule = "manual"\ncount = 1000')
paho = pytest.importorskip("paho.mqtt.client")
UNAVAILABLE = refusal_event("unavailable")


@pytest.fixture
def broker(mosquitto: servers.Mosquitto) -> Iterator[servers.Mosquitto]:
    """A broker of this test alone, which it may kill; absent where the shared one is."""
    with servers.mosquitto() as server:
        yield server


@contextmanager
def subscribed(broker: servers.Mosquitto, where: str) -> Iterator[SimpleQueue[bytes]]:
    """What arrives at a subscriber with a session that lasts."""
    from paho.mqtt.enums import CallbackAPIVersion
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    seen, ready = SimpleQueue[bytes](), threading.Event()
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="shuffler", protocol=paho.MQTTv5)
    client.reconnect_delay_set(1, 1)
    client.on_connect = lambda *_: client.subscribe(where, qos=1)
    client.on_subscribe = lambda *_: ready.set()
    client.on_message = lambda _c, _u, got: seen.put((got.payload, got.qos, got.retain))  # type: ignore[arg-type]
    lasting = Properties(PacketTypes.CONNECT)
    lasting.SessionExpiryInterval = 3600
    client.connect("127.0.0.1", broker.process.port, clean_start=False, properties=lasting)
    client.loop_start()
    assert ready.wait(PATIENCE)
    yield seen
    client.disconnect()
    client.loop_stop()


def over(transport: MqttTransport) -> Bench:
    made = Bench(CAMPAIGN, FakeTransport())
    made.transport = transport  # type: ignore[assignment]
    made.restart()
    return made


def test_a_report_travels_with_qos_1_unretained_on_the_campaigns_topic(broker: servers.Mosquitto) -> None:
    transport = MqttTransport(broker.url)
    made = over(transport)
    with subscribed(broker, topic(CAMPAIGN.digest)) as seen:
        entry = made.outbox.draw(CAMPAIGN, 1, budget=9.0, make=lambda: bytes(4))
        wire = made.device._seal(entry).wire
        assert made.device.flush()[0].state == "accepted"
        assert seen.get(timeout=PATIENCE) == (wire, 1, False)
    transport.close()
    assert topic(CAMPAIGN.digest) == f"dovetail/v1/{CAMPAIGN.digest.hex()}/reports"


def test_every_session_has_a_random_client_id_and_no_user(broker: servers.Mosquitto) -> None:
    for _ in range(3):
        transport = MqttTransport(broker.url)
        transport.send(CAMPAIGN_WIRE)
        transport.close()
    broker.process.stop()  # Mosquitto writes its log when it ends
    lines = re.findall(r"New client connected from \S+ as (\S+) \((.*)\)", broker.process.log.read_text())
    found = [(name, settings) for name, settings in lines if name != "shuffler"]
    assert len({name for name, _ in found}) == 3 and all(re.fullmatch("[0-9a-f]{32}", name) for name, _ in found)
    assert all(settings == "p5, c1, k60" for _, settings in found)  # MQTT 5, clean session, no user


def test_a_broker_that_nobody_listens_to_does_not_count_as_delivered(broker: servers.Mosquitto) -> None:
    transport = MqttTransport(broker.url)
    assert transport.send(CAMPAIGN_WIRE) == UNAVAILABLE
    with subscribed(broker, "dovetail/v1/+/reports") as seen:
        assert transport.send(CAMPAIGN_WIRE) == ACCEPTED
        assert seen.get(timeout=PATIENCE)[0] == CAMPAIGN_WIRE  # type: ignore[comparison-overlap]
    assert transport.send(CAMPAIGN_WIRE) == ACCEPTED  # the subscriber's session lasts while it is away
    transport.close()


def test_acknowledged_reports_arrive_although_the_broker_restarts(broker: servers.Mosquitto) -> None:
    transport = MqttTransport(broker.url, timeout=PATIENCE)
    made, sent = over(transport), set()
    whole = transport.send
    transport.send = lambda wire: (sent.add(wire), whole(wire))[1]  # type: ignore[method-assign]
    with subscribed(broker, topic(CAMPAIGN.digest)) as seen:
        for number in range(1, 31):
            if number % 10 == 0:
                broker.process.stop()
                assert made.device.submit("red", number).reason == "unreachable"
                broker.process.start()
                made.clock.time += 10.0  # beyond the back-off
            made.device.submit("red", number)

        def settled() -> bool:
            made.clock.time += 10.0
            made.device.flush()
            return not made.outbox.waiting(CAMPAIGN.id)

        until(settled)
        got: set[bytes] = set()
        while len(got) < 30:
            got.add(seen.get(timeout=PATIENCE)[0])  # type: ignore[arg-type]
    assert made.outbox.waiting(CAMPAIGN.id) == [] and got == sent and len(sent) == 30
    transport.close()


def test_a_broker_killed_before_it_acknowledges_leaves_the_report_waiting(broker: servers.Mosquitto) -> None:
    transport = MqttTransport(broker.url, timeout=PATIENCE)
    assert transport.send(CAMPAIGN_WIRE) == UNAVAILABLE  # connected
    broker.process.kill()
    assert transport.send(CAMPAIGN_WIRE) == UNREACHABLE
    assert transport.send(CAMPAIGN_WIRE) == UNREACHABLE
    broker.process.start()
    assert transport.send(CAMPAIGN_WIRE) == UNAVAILABLE
    transport.close()


def test_a_broker_that_asks_for_a_password_gets_it_and_a_wrong_one_is_named(broker: servers.Mosquitto) -> None:
    known = broker.folder / "passwords"
    maker = servers.program("mosquitto_passwd")
    subprocess.run(
        [maker, "-b", "-c", known, "fleet", "right-4711"], check=True, capture_output=True, timeout=PATIENCE
    )
    rules = broker.folder / "rules"
    rules.write_text("user fleet\ntopic write dovetail/v1/+/reports\n")
    for path in (known, rules):
        path.chmod(0o600)
    place = broker.folder / "mosquitto.conf"
    private = f"allow_anonymous false\npassword_file {known}\nacl_file {rules}"
    place.write_text(place.read_text().replace("allow_anonymous true", private))
    broker.process.restart()
    for login in (None, ("fleet", "wrong"), ("nobody", "right-4711")):
        assert MqttTransport(broker.url, login=login).send(CAMPAIGN_WIRE) == UNAUTHORIZED
    transport = MqttTransport(broker.url, login=("fleet", "right-4711"))
    assert transport.send(CAMPAIGN_WIRE) == UNAVAILABLE  # nobody has subscribed
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
    assert MqttTransport(url).send(CAMPAIGN_WIRE) == UNTRUSTED
    gc.collect()
    trusting = MqttTransport(url, tls=ssl.create_default_context(cadata=AUTHORITY[0]))
    assert trusting.send(CAMPAIGN_WIRE) == UNAVAILABLE
    trusting.close()


def test_something_that_is_no_broker_is_left_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        transport = MqttTransport(f"mqtt://127.0.0.1:{silent.getsockname()[1]}", timeout=0.3)
        assert ends(lambda: transport.send(CAMPAIGN_WIRE)) == UNREACHABLE
    assert transport.send(CAMPAIGN_WIRE) == UNREACHABLE


def test_only_a_plain_mqtt_url_is_taken_and_without_http_nothing_is_asked() -> None:
    with pytest.raises(ConfigError, match="mqtt://host:port or mqtts://host:port"):
        MqttTransport("http://host")
    transport = MqttTransport("mqtt://host")
    assert transport.fetch("colours") is None and transport.round("colours") is None


def _wire() -> bytes:
    made = Bench(CAMPAIGN)
    assert isinstance(made.device, Device)
    made.device.submit("red", 1)
    return made.transport.sent[0]


CAMPAIGN_WIRE = _wire()
