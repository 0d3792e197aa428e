"""Reports over a real broker: durable before they are acknowledged, once each, through disconnects."""

import threading
from contextlib import contextmanager

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
from tests.collect.shuffler.world import DEVICES, World, campaign, message
from tests.waiting import PATIENCE, until

from dovetail.collect.shuffler.endpoints.mqtt import MqttSubscriber
from dovetail.collect.shuffler.service import ShufflerService
from dovetail.core.errors import ConfigError, StorageError
from dovetail_protocol.endpoint import topic


@contextmanager
def subscribed(world, url):
    """The world's shuffler at a broker, and its subscription."""
    service = ShufflerService(world.shuffler, world.clock)
    service.start()
    subscriber, counts = MqttSubscriber(service, url), threading.Event()
    subscriber._client.on_subscribe = lambda *_: counts.set()
    subscriber.start()
    try:
        assert counts.wait(PATIENCE)
        yield subscriber
    finally:
        subscriber.stop()
        service._stopping.set()
        service._checkers.shutdown(wait=True)
        service._writer.stop()


def publish(mosquitto, made, messages):
    host, _, port = mosquitto.url.removeprefix("mqtt://").partition(":")
    client = Client(CallbackAPIVersion.VERSION2)
    client.connect(host, int(port))
    client.loop_start()
    for each in messages:
        client.publish(topic(made.digest), each, qos=1).wait_for_publish(PATIENCE)
    client.disconnect()
    client.loop_stop()


def count(world):
    return world.store.rounds(world.campaign.id)[0].count


def test_reports_come_over_a_broker_once_each_and_bad_ones_do_not_stop_them(mosquitto):
    world = World(campaign(id="first"))
    with subscribed(world, mosquitto.url):
        reports = [message(world.campaign, device) for device in DEVICES[:5]]
        publish(mosquitto, world.campaign, [*reports, b"noise", *reports[:3], reports[0][:-1]])
        until(lambda: sum(world.shuffler.counters.total().values()) >= 10)
    assert count(world) == 5
    assert (world.count("accepted"), world.count("duplicate"), world.count("malformed")) == (5, 3, 1)


def test_what_comes_while_the_shuffler_is_away_waits_at_the_broker(mosquitto):
    world = World(campaign(id="second"))
    with subscribed(world, mosquitto.url):
        pass
    publish(mosquitto, world.campaign, [message(world.campaign, device) for device in DEVICES[:3]])
    assert count(world) == 0
    with subscribed(world, mosquitto.url):
        until(lambda: count(world) == 3)


def test_a_report_that_could_not_be_stored_is_not_acknowledged_and_comes_again(mosquitto, monkeypatch):
    world = World(campaign(id="third"))
    tried = []

    def full(reports):
        tried.append(reports)
        raise StorageError("the disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(world.store, "accept", full)
        with subscribed(world, mosquitto.url):
            publish(mosquitto, world.campaign, [message(world.campaign, DEVICES[0])])
            until(lambda: tried)
    assert count(world) == 0
    with subscribed(world, mosquitto.url):  # the broker still has it
        until(lambda: count(world) == 1)


@pytest.mark.parametrize(
    "url", ["http://broker", "mqtt://", "mqtt://user:secret@broker", "mqtt://broker:x", "broker"]
)
def test_addresses_of_brokers_are_checked_and_never_repeated(url):
    world = World(campaign())
    with pytest.raises(ConfigError, match="mqtt://host:port") as refused:
        MqttSubscriber(ShufflerService(world.shuffler, world.clock), url)
    assert "secret" not in str(refused.value)
