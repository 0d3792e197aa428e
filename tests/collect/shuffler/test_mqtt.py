"""Reports over a real broker: durable before they are answered, once each, through disconnects and changed keys."""

import json
import stat
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from tests.collect.shuffler.world import DEVICES, World, campaign, message
from tests.waiting import PATIENCE, until

from dovetail.collect.http import STATUS
from dovetail.collect.shuffler.intake import ACCEPTED as TAKEN
from dovetail.collect.shuffler.intake import Reply
from dovetail.collect.shuffler.mqtt import _JUNK as JUNK
from dovetail.collect.shuffler.mqtt import _MOST as MOST
from dovetail.collect.shuffler.mqtt import _ROOM as ROOM
from dovetail.collect.shuffler.mqtt import _TOLD as TOLD
from dovetail.collect.shuffler.mqtt import BrokerSession, MqttSubscriber, _Arrived
from dovetail.collect.shuffler.service import ShufflerService
from dovetail.core.errors import ConfigError, StorageError
from dovetail_device.mqtt import MqttTransport
from dovetail_device.sender import ACCEPTED, UNSUBSCRIBED, refusal_event
from dovetail_protocol.endpoint import answer_topic, topic
from dovetail_protocol.keys import RoleKeys
from dovetail_protocol.messages import read_answer


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "mqtt.session"


@contextmanager
def subscribed(world, url, session, **login):
    """The world's shuffler at a broker that knows its subscription."""
    service = ShufflerService(world.shuffler, world.clock)
    service.start()
    subscriber = MqttSubscriber(service, url, session=session, **login)
    granted, tell = Event(), subscriber._client.on_subscribe
    subscriber._client.on_subscribe = lambda *told: (tell(*told), granted.set())
    subscriber.start()
    try:
        assert granted.wait(PATIENCE)
        yield subscriber
    finally:
        subscriber.stop()
        service._stopping.set()
        service._intake.stop()


@contextmanager
def client(mosquitto, name="", **settings):
    """A stranger's connection."""
    host, _, port = mosquitto.url.removeprefix("mqtt://").partition(":")
    made, ready = Client(CallbackAPIVersion.VERSION2, name, protocol=MQTTv5), Event()
    made.on_connect = lambda *_: ready.set()
    made.connect(host, int(port), **settings)
    made.loop_start()
    assert ready.wait(PATIENCE)
    yield made
    made.disconnect()
    made.loop_stop()


def publish(mosquitto, made, messages, properties=None):
    """What another program publishes, and the broker acknowledges."""
    with client(mosquitto) as stranger:
        for each in messages:
            stranger.publish(topic(made.digest), each, qos=1, properties=properties).wait_for_publish(PATIENCE)


def device(mosquitto, made):
    return MqttTransport(mosquitto.url, made, timeout=PATIENCE)


def count(world):
    return world.store.rounds(world.campaign.id)[0].count


def test_reports_come_over_a_broker_once_each_and_bad_ones_do_not_stop_them(mosquitto, session):
    world = World(campaign(id="first"))
    with subscribed(world, mosquitto.url, session):
        reports = [message(world.campaign, device) for device in DEVICES[:5]]
        publish(mosquitto, world.campaign, [*reports, b"noise", *reports[:3], reports[0][:-1]])
        until(lambda: sum(world.shuffler.counters.total().values()) >= 10)
    assert count(world) == 5
    assert (world.count("accepted"), world.count("duplicate"), world.count("malformed")) == (5, 3, 1)


def test_each_message_is_answered_by_the_shuffler_and_a_retry_alike(mosquitto, session):
    world = World(campaign(id="answered"))
    with subscribed(world, mosquitto.url, session):
        sender = device(mosquitto, world.campaign)
        first, second = message(world.campaign, DEVICES[0]), message(world.campaign, DEVICES[0], value=1)
        assert sender.send(first) == ACCEPTED and count(world) == 1  # durable before it is said
        assert sender.send(first) == ACCEPTED and count(world) == 1
        assert sender.send(second) == refusal_event("second_report")
        assert sender.send(message(world.campaign, DEVICES[1], round=3)) == refusal_event("too_early")
        assert sender.send(first[:-1]) == refusal_event("malformed")
        sender.close()


@pytest.mark.exhaust
def test_a_device_that_sends_too_often_is_told_to_wait(mosquitto, session):
    world = World(campaign(id="often"))
    wire = message(world.campaign, DEVICES[0])
    with subscribed(world, mosquitto.url, session):
        sender = device(mosquitto, world.campaign)
        told = [sender.send(wire) for _ in range(61)]
        sender.close()
    assert told[:60] == [ACCEPTED] * 60 and told[60] == refusal_event("rate_limited", 1.0)


@pytest.mark.exhaust
def test_what_comes_while_the_shuffler_is_away_waits_at_the_broker(mosquitto, session):
    world = World(campaign(id="second"))
    with subscribed(world, mosquitto.url, session):
        pass
    publish(mosquitto, world.campaign, [message(world.campaign, device) for device in DEVICES[:3]])
    assert count(world) == 0
    with subscribed(world, mosquitto.url, session):
        until(lambda: count(world) == 3)


def test_who_knows_the_public_keys_cannot_take_the_session_over(mosquitto, session):
    world = World(campaign(id="taken"))
    with subscribed(world, mosquitto.url, session):
        pass
    publish(mosquitto, world.campaign, [message(world.campaign, device) for device in DEVICES[:3]])
    name = BrokerSession.open(session).client_id
    for guess in (world.campaign.digest, world.campaign.shuffler_signing.public, world.campaign.shuffler.public):
        assert guess.hex()[:12] not in name
    assert name != BrokerSession.open(session.with_name("another")).client_id
    with client(mosquitto, "dovetail-" + 32 * "0", clean_start=True):
        pass
    with subscribed(world, mosquitto.url, session):
        until(lambda: count(world) == 3)


def test_the_session_is_kept_through_restarts_and_by_its_owner_alone(session):
    first = BrokerSession.open(session)
    first.remember(["a", "b"])
    assert stat.S_IMODE(session.stat().st_mode) == 0o600 and first.client_id not in repr(first)
    again = BrokerSession.open(session)
    assert (again.client_id, again.topics) == (first.client_id, {"a", "b"})
    assert list(session.parent.iterdir()) == [session]
    session.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        BrokerSession.open(session)


def _document(version, client_id, topics):
    return json.dumps({"schema_version": version, "client_id": client_id, "topics": topics})


RIGHT = f"dovetail-{32 * 'a'}"


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{", '{"schema_version": 1}'),
        *(
            _document(2, RIGHT, []),
            _document(1, RIGHT, "x"),
            _document(1, RIGHT, [1]),
            _document(1, "dovetail-1", []),
        ),
    ],
)
def test_a_file_that_is_no_session_is_refused_and_left_alone(session, text):
    session.write_text(text)
    session.chmod(0o600)
    with pytest.raises(ConfigError, match="move it away"):
        BrokerSession.open(session)
    assert session.read_text() == text


def test_a_session_that_cannot_be_written_is_refused_with_the_key_to_set(tmp_path):
    with pytest.raises(StorageError, match=r"`mqtt\.session`"):
        BrokerSession.open(tmp_path / "absent" / "mqtt.session")


@pytest.mark.exhaust
def test_after_a_change_of_keys_old_messages_are_answered_and_their_topic_is_left(mosquitto, session):
    world = World(campaign(id="turned"))
    with subscribed(world, mosquitto.url, session):
        pass
    old, answers = message(world.campaign, DEVICES[0]), answer_topic(32 * "a")
    keys = RoleKeys.generate("shuffler")
    newer = World(campaign(id="turned", version=2, shuffler=keys), keys=[keys])
    told = []
    with client(mosquitto) as listener:
        heard = Event()
        listener.on_subscribe = lambda *_: heard.set()
        listener.on_message = lambda _c, _u, got: told.append(got.payload)
        listener.subscribe(answers, qos=1)
        assert heard.wait(PATIENCE)
        properties = Properties(PacketTypes.PUBLISH)
        properties.ResponseTopic = answers
        publish(mosquitto, world.campaign, [old], properties)  # into the queue of the session
        with subscribed(newer, mosquitto.url, session):
            until(lambda: told)
            assert read_answer(told[0], old, world.campaign.shuffler_signing).kind == "campaign"
            until(lambda: BrokerSession.open(session).topics == {topic(newer.campaign.digest)})
            sender = device(mosquitto, world.campaign)
            assert sender.send(old) == UNSUBSCRIBED  # so that the device looks for a newer version
            sender.trust(newer.campaign)
            assert sender.send(message(newer.campaign, DEVICES[0])) == ACCEPTED
            sender.close()
    assert count(newer) == 1


@pytest.mark.exhaust
def test_a_change_of_keys_keeps_the_session_and_what_waits_in_it(mosquitto, session):
    world = World(campaign(id="both"))
    with subscribed(world, mosquitto.url, session):
        before = BrokerSession.open(session).client_id
    publish(mosquitto, world.campaign, [message(world.campaign, device) for device in DEVICES[:3]])
    keys = RoleKeys.generate("shuffler")
    both = World(campaign(id="both", version=2, shuffler=keys), others=[world.campaign], keys=[keys, *world.keys])
    with subscribed(both, mosquitto.url, session):
        until(lambda: count(both) == 3)
        until(lambda: len(BrokerSession.open(session).topics) == 2)
    assert BrokerSession.open(session).client_id == before


def test_answers_go_to_topics_of_answers_only(mosquitto, session):
    world = World(campaign(id="elsewhere"))
    told = []
    with client(mosquitto) as listener, subscribed(world, mosquitto.url, session):
        heard = Event()
        listener.on_subscribe = lambda *_: heard.set()
        listener.on_message = lambda _c, _u, got: told.append(got.topic)
        listener.subscribe([("elsewhere", 0), ("dovetail/v1/answers/#", 0), ("dovetail/v1/+/reports/x", 0)])
        assert heard.wait(PATIENCE)
        right = answer_topic(32 * "b")
        for number, place in enumerate(
            (
                "elsewhere",
                answer_topic(31 * "b"),
                answer_topic(32 * "B"),
                f"{right}/x",
                f"dovetail/v1/{'0' * 64}/reports/x",
                right,
            )
        ):
            properties = Properties(PacketTypes.PUBLISH)
            properties.ResponseTopic = place
            publish(mosquitto, world.campaign, [message(world.campaign, DEVICES[number])], properties)
        until(lambda: right in told)
    assert told == [right]  # the last to be asked for: the others were passed over before


def test_a_report_that_could_not_be_stored_is_neither_answered_nor_acknowledged_and_comes_again(
    mosquitto, session, monkeypatch
):
    world = World(campaign(id="third"))
    tried, answered = [], []

    def full(reports):
        tried.append(reports)
        raise StorageError("the disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(world.store, "accept", full)
        with subscribed(world, mosquitto.url, session) as subscriber:
            patched.setattr(subscriber, "_answer", lambda *told: answered.append(told))
            publish(mosquitto, world.campaign, [message(world.campaign, DEVICES[0])])
            until(lambda: tried)
    assert count(world) == 0 and not answered
    with subscribed(world, mosquitto.url, session):  # the broker still has it
        until(lambda: count(world) == 1)


class Stuck:
    """A service that takes messages and answers none until it is let go."""

    def __init__(self, world):
        self.shuffler, self.taken, self.quiet, self.free = world.shuffler, [], [], False

    def submit(self, wire, quiet):
        told = Future()
        self.taken.append((wire, told))
        self.quiet.append(quiet)
        if self.free:
            told.set_result(Reply("accepted"))
        return told

    def let_go(self):
        self.free = True
        for _, told in list(self.taken):
            told.set_result(Reply("accepted"))


@pytest.mark.exhaust
def test_a_flood_waits_at_the_broker_and_comes_when_there_is_room(mosquitto, session):
    world = World(campaign(id="flood"))
    with subscribed(world, mosquitto.url, session) as subscriber:
        stuck = subscriber._service = Stuck(world)
        publish(mosquitto, world.campaign, [b"%d" % number for number in range(2 * MOST)])
        until(lambda: len(stuck.taken) >= MOST)
        with client(mosquitto) as stranger:  # what asks for no acknowledgement passes nobody, and is kept by nobody
            for _ in range(2000):
                stranger.publish(topic(world.campaign.digest), b"unasked", qos=0)
            stranger.publish(topic(world.campaign.digest), b"last", qos=1).wait_for_publish(PATIENCE)
        assert len(stuck.taken) == MOST
        stuck.let_go()
        until(lambda: stuck.taken[-1][0] == b"last")
        assert len(stuck.taken) == 2 * MOST + 1 and b"unasked" not in {wire for wire, _ in stuck.taken}


def test_a_broker_that_hands_over_more_than_it_may_fills_no_memory_and_loses_nothing(session):
    world = World(campaign(id="liar"))
    stuck = Stuck(world)
    subscriber = MqttSubscriber(stuck, "mqtt://127.0.0.1:1", session=session)

    def hand_over():
        for number in range(10 * ROOM):
            handed = MQTTMessage(mid=1 + number)
            handed.qos, handed.payload = 1, b"%d" % number
            subscriber._on_message(None, None, handed)

    reader = Thread(target=hand_over, daemon=True)
    reader.start()
    until(lambda: len(stuck.taken) >= ROOM)
    assert subscriber._room.acquire(blocking=False) is False and len(stuck.taken) == ROOM
    stuck.let_go()
    reader.join(PATIENCE)
    assert [wire for wire, _ in stuck.taken] == [b"%d" % number for number in range(10 * ROOM)]


def test_of_a_flood_of_junk_a_few_are_answered_and_of_everything_else_all(session, monkeypatch):
    world, told, now = World(campaign(id="junk")), [], [0.0]
    monkeypatch.setattr("dovetail.collect.shuffler.mqtt.monotonic", lambda: now[0])
    subscriber = MqttSubscriber(Stuck(world), "mqtt://127.0.0.1:1", session=session)
    monkeypatch.setattr(subscriber._client, "publish", lambda _, answer: told.append(answer))
    wire = message(world.campaign, DEVICES[0])
    arrived = _Arrived(wire, 1, 1, answer_topic(32 * "a"), 0)

    def answered(kind, times):
        told.clear()
        for _ in range(times):
            subscriber._answer(arrived, Reply(kind))
        return [read_answer(each, wire, world.campaign.shuffler_signing).kind for each in told]

    assert answered("unknown_device", 2 * int(TOLD)) == ["unknown_device"] * int(TOLD)
    assert STATUS.keys() >= JUNK and [kind for kind in JUNK if answered(kind, 1)] == []
    for kind in sorted({TAKEN, *STATUS} - JUNK):
        assert answered(kind, 2 * int(TOLD)) == [kind] * 2 * int(TOLD)
    now[0] += 60.0
    assert answered("seal", 2 * int(TOLD)) == ["seal"] * int(TOLD)


def test_a_message_whose_refusal_is_not_told_is_marked_so_and_its_refusal_is_not_told_later(session, monkeypatch):
    world, told, now = World(campaign(id="quiet")), [], [0.0]
    monkeypatch.setattr("dovetail.collect.shuffler.mqtt.monotonic", lambda: now[0])
    stuck = Stuck(world)
    subscriber = MqttSubscriber(stuck, "mqtt://127.0.0.1:1", session=session)
    monkeypatch.setattr(subscriber._client, "publish", lambda _, answer: told.append(answer))

    def come(*, asks=True):
        handed = MQTTMessage(mid=1)
        handed.qos, handed.payload, handed.properties = (
            1,
            message(world.campaign, DEVICES[0]),
            Properties(PacketTypes.PUBLISH),
        )
        if asks:
            handed.properties.ResponseTopic = answer_topic(32 * "a")
        subscriber._on_message(None, None, handed)
        return stuck.taken.pop()[1], stuck.quiet.pop()

    for _ in range(int(TOLD)):
        refused, quiet = come()
        assert not quiet
        refused.set_result(Reply("unknown_device"))
    assert len(told) == TOLD and come(asks=False)[1]
    late, quiet = come()
    now[0] += 60.0
    late.set_result(Reply("unknown_device"))
    assert quiet and len(told) == TOLD
    taken, quiet = come()
    taken.set_result(Reply(TAKEN))
    assert not quiet and len(told) == TOLD + 1


def test_a_subscriber_stops_while_it_waits_for_room(session):
    world = World(campaign(id="liar"))
    stuck = Stuck(world)
    subscriber = MqttSubscriber(stuck, "mqtt://127.0.0.1:1", session=session)
    handed = MQTTMessage(mid=1)
    handed.qos, handed.payload = 1, b"more"
    for _ in range(ROOM):
        subscriber._on_message(None, None, handed)
    reader = Thread(target=subscriber._on_message, args=(None, None, handed), daemon=True)
    reader.start()
    subscriber.stop()
    reader.join(PATIENCE)
    assert not reader.is_alive() and len(stuck.taken) == ROOM


@pytest.mark.parametrize(
    "url", ["http://broker", "mqtt://", "mqtt://user:secret@broker", "mqtt://broker:x", "broker"]
)
def test_addresses_of_brokers_are_checked_and_never_repeated(url, session):
    world = World(campaign())
    with pytest.raises(ConfigError, match="mqtt://host:port") as refused:
        MqttSubscriber(ShufflerService(world.shuffler, world.clock), url, session=session)
    assert "secret" not in str(refused.value)
