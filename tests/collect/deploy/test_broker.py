"""The broker's configuration as it is shipped, really running: who gets in, who hears what, and what is kept."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
from deploy import make_secrets
from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from tests.collect import servers
from tests.collect.deploy.certificates import make_certificates
from tests.collect.shuffler.test_mqtt import count, subscribed
from tests.collect.shuffler.world import DEVICES, World, campaign, message
from tests.waiting import PATIENCE, until

from dovetail_device.mqtt import MqttTransport
from dovetail_device.sender import ACCEPTED, UNAUTHORIZED

SHIPPED = Path(__file__).parents[3] / "deploy" / "broker"
LOGINS = {"shuffler": "secret-1", "devices": "secret-2"}


@pytest.fixture
def broker(mosquitto: servers.Mosquitto) -> Iterator[servers.Mosquitto]:
    """The shipped broker on a loopback port, and on its TLS one; absent where Mosquitto is."""
    with servers.mosquitto() as server:
        folder = server.folder
        make_certificates(folder / "tls", ["localhost"])
        logins = "".join(f"{user}:{make_secrets._hash(password)}\n" for user, password in LOGINS.items())
        (folder / "logins").write_text(logins)
        (folder / "rules").write_text((SHIPPED / "rules").read_text())
        for name in ("logins", "rules"):
            (folder / name).chmod(0o600)
        text = (SHIPPED / "mosquitto.conf").read_text()
        for shipped, here in (
            ("8883", str(server.process.port)),
            ("/tls/", f"{folder}/tls/"),
            ("/mosquitto/config/", f"{folder}/"),
            ("/mosquitto/data/", f"{folder}/"),
            ("autosave_interval 60", "autosave_interval 1"),
        ):
            assert shipped in text
            text = text.replace(shipped, here)
        (folder / "mosquitto.conf").write_text(text + ("user root\n" if os.geteuid() == 0 else ""))
        server.process.restart()
        yield server


def trusting(broker: servers.Mosquitto) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(broker.folder / "tls" / "authority.pem"))


def url(broker: servers.Mosquitto) -> str:
    return f"mqtts://localhost:{broker.process.port}"


@contextmanager
def listening(broker: servers.Mosquitto, topics: list[str]) -> Iterator[list[str]]:
    """What a device hears that listens wherever it likes: the topics of what arrives."""
    client, ready, heard = Client(CallbackAPIVersion.VERSION2, "", protocol=MQTTv5), Event(), list[str]()
    client.username_pw_set("devices", LOGINS["devices"])
    client.tls_set_context(trusting(broker))

    def arrived(_: object, __: object, got: MQTTMessage) -> None:
        heard.append(got.topic)

    client.on_message = arrived
    client.on_connect = lambda *_: client.subscribe([(topic, 1) for topic in topics])
    client.on_subscribe = lambda *_: ready.set()
    client.connect("localhost", broker.process.port)
    client.loop_start()
    assert ready.wait(PATIENCE)
    yield heard
    client.disconnect()
    client.loop_stop()


def device(broker: servers.Mosquitto, world: World, login: tuple[str, str] | None) -> MqttTransport:
    return MqttTransport(url(broker), world.campaign, timeout=PATIENCE, tls=trusting(broker), login=login)


def test_with_the_shipped_rules_a_report_is_taken_and_answered_and_nobody_else_hears_of_it(
    broker: servers.Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(broker.folder / "tls" / "authority.pem"))
    world, session = World(campaign(id="rules")), tmp_path / "mqtt.session"
    sender = device(broker, world, ("devices", LOGINS["devices"]))
    everywhere = ["#", "dovetail/v1/+/reports", "dovetail/v1/answers/#", "dovetail/v1/answers/+"]
    with (
        listening(broker, everywhere) as heard,
        subscribed(world, url(broker), session, user="shuffler", password=LOGINS["shuffler"]),
    ):
        assert sender.send(message(world.campaign, DEVICES[0])) == ACCEPTED
    sender.close()
    assert count(world) == 1 and heard == []


def test_nobody_gets_in_without_a_login_and_devices_are_no_shuffler(broker: servers.Mosquitto) -> None:
    world = World(campaign(id="logins"))
    for login in (None, ("devices", "wrong"), ("anybody", LOGINS["devices"])):
        assert device(broker, world, login).send(message(world.campaign, DEVICES[0])) == UNAUTHORIZED
    forger = device(broker, world, ("devices", LOGINS["devices"]))
    session = forger._connect()
    with pytest.raises(Exception, match="refuses"):
        session.ask("dovetail/v1/answers/" + 32 * "0", message(world.campaign, DEVICES[0]), None)
    session.close()


def test_what_waits_for_the_shuffler_outlives_the_broker(
    broker: servers.Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(broker.folder / "tls" / "authority.pem"))
    world, session = World(campaign(id="waiting")), tmp_path / "mqtt.session"
    known = {"user": "shuffler", "password": LOGINS["shuffler"]}
    with subscribed(world, url(broker), session, **known):
        pass
    sender = device(broker, world, ("devices", LOGINS["devices"]))
    sender._timeout = 1.0
    sender.send(message(world.campaign, DEVICES[0]))
    sender.close()
    broker.process.restart()
    with subscribed(world, url(broker), session, **known):
        until(lambda: count(world) == 1)
