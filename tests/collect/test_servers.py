"""The servers that other tests stand on."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import psycopg
import pytest
from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from tests.collect import servers
from tests.waiting import until


@pytest.mark.exhaust
@pytest.mark.usefixtures("postgres")  # skips where there is none
def test_what_postgres_has_committed_is_there_after_a_kill() -> None:
    with servers.postgres(durable=True) as server:
        url = server.database("kept")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE t AS SELECT 7 AS x")
        server.process.kill()
        server.start()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT x FROM t").fetchall() == [(7,)]


@pytest.mark.exhaust
def test_a_message_that_the_broker_has_taken_outlives_a_restart(mosquitto: servers.Mosquitto) -> None:
    keeper = _session(mosquitto, "keeper")
    subscribed: list[bool] = []
    keeper.on_subscribe = lambda *_: subscribed.append(True)
    keeper.subscribe("t", qos=1)
    _turn(keeper, subscribed)
    keeper.disconnect()
    sender = _session(mosquitto, "sender")
    published: list[bool] = []
    sender.on_publish = lambda *_: published.append(True)
    sender.publish("t", b"kept", qos=1)
    _turn(sender, published)
    sender.disconnect()
    mosquitto.process.restart()
    got: list[bytes] = []
    keeper = _session(mosquitto, "keeper", on_message=lambda *arguments: got.append(arguments[2].payload))
    _turn(keeper, got)
    keeper.disconnect()
    assert got == [b"kept"]


def _session(mosquitto: servers.Mosquitto, name: str, **callbacks: Any) -> mqtt.Client:
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=name, clean_session=False)
    for event, callback in callbacks.items():
        setattr(client, event, callback)
    client.connect("127.0.0.1", mosquitto.process.port)
    connected: list[bool] = []
    client.on_connect = lambda *_: connected.append(True)
    _turn(client, connected)
    return client


def _turn(client: mqtt.Client, come: Sized) -> None:
    """Let the client work until something has come."""
    until(lambda: come or (client.loop(0.05) and False))


@pytest.mark.exhaust
@pytest.mark.usefixtures("postgres")
def test_servers_leave_neither_process_nor_folder() -> None:
    with servers.postgres() as server:
        process, folder = server.process.running, server.folder
    assert process is not None and process.poll() is not None
    assert not folder.exists()


def test_a_missing_program_is_named() -> None:
    with pytest.raises(servers.Absent, match="no-such-server is not installed"):
        servers.program("no-such-server")
