"""The shuffler's subscription to a broker: a message is answered, and acknowledged, once its report is durable.

The broker keeps what comes while the shuffler is away, in a session under a random client id (`broker_session`).
What a device is told comes from the shuffler alone, signed, on the topic that the device's message names. The
broker's word is worth nothing to it, so whatever a broker loses is sent again. A message that is refused is
acknowledged to the broker too: it would not get better.

A flood waits at the broker: it is asked to hand over no more than `_MOST` messages before one of them is
acknowledged. Brokers do not always keep to that, and what is not acknowledged never comes again on the same
connection: beyond `_ROOM` messages nothing more is read from the line until there is room. What asks for no
acknowledgement (QoS 0), as no device does, is dropped. So reports that come over HTTP wait behind `_ROOM` messages of
the broker's at most, and so does the end of the process. Of what no device in order sends, `_TOLD` a minute are
answered: signing and publishing is a quarter or more of what junk costs, and a device without an answer sends again.
Beyond them no signature of an unknown device is verified: where there is no answer, its time tells nothing.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import BoundedSemaphore, Event, Thread, Timer
from time import monotonic
from typing import Any, Self

from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from dovetail.collect.logs import Log
from dovetail.collect.shuffler.intake import PendingReply, RateLimiter, Reply
from dovetail.collect.shuffler.service import ShufflerService
from dovetail.collect.store.engine import FileLock
from dovetail.core.display import mute
from dovetail.core.errors import ConfigError, DovetailError, OutputError, StorageError
from dovetail.ledger.files import replace_durably
from dovetail_protocol.endpoint import MQTT_PORTS, is_answer_topic, place_of, topic

# What a shuffler must remember of its session at a broker: under which client id, and for which topics.
#
# The client id is random and secret: whoever connects under it takes the session over and can empty its queue. So it
# cannot be made from keys, which are public, and it does not change with them. The topics are those that the broker
# may still hold for this session: one that is served no more has to be unsubscribed by name.


_VERSION = 1


@dataclass(frozen=True)
class BrokerSession:
    """The file at `path`, which only its owner can read; see `open` and `remember`."""

    path: Path
    client_id: str = field(repr=False)
    topics: frozenset[str] = frozenset()

    @classmethod
    def open(cls, path: Path) -> Self:
        """The session of the file, or a new one where there is none, durable before it is used."""
        try:
            text, mode = path.read_text(encoding="utf-8"), path.stat().st_mode
        except FileNotFoundError:
            new = cls(path, f"dovetail-{secrets.token_hex(16)}")
            new._save()
            return new
        except (OSError, UnicodeDecodeError):
            raise _unreadable(path) from None
        if mode & 0o077:
            raise ConfigError(f"{path} is open to others than its owner; make it private with chmod 600.")
        return cls(path, *_parse(text, path))

    def remember(self, topics: Iterable[str]) -> Self:
        """The session with these topics, and no others; durable when it returns."""
        session = replace(self, topics=frozenset(topics))
        if session != self:
            session._save()
        return session

    def _save(self) -> None:
        document = {"schema_version": _VERSION, "client_id": self.client_id, "topics": sorted(self.topics)}
        try:
            replace_durably(self.path, json.dumps(document).encode())
        except OutputError as error:
            raise StorageError(f"{error} Name a file in a folder of the shuffler's own as `mqtt.session`.") from None


def session_lock(session: Path) -> FileLock:
    """Who holds it alone has the session; two under one client id would throw each other out for ever."""
    return FileLock(f"{session}-lock", f"the session {session} (`mqtt.session`)")


def _parse(text: str, path: Path) -> tuple[str, frozenset[str]]:
    try:
        found = json.loads(text)
        version, client_id, topics = found["schema_version"], found["client_id"], found["topics"]
    except (ValueError, KeyError, TypeError):
        raise _unreadable(path) from None
    whole = isinstance(topics, list) and all(isinstance(each, str) for each in topics)
    if version != _VERSION or not whole or not re.fullmatch("dovetail-[0-9a-f]{32}", str(client_id)):
        raise _unreadable(path)
    return client_id, frozenset(topics)


def _unreadable(path: Path) -> ConfigError:
    return ConfigError(
        f"{path} is not a session that can be read; move it away, and the shuffler begins a new one: devices send "
        "again what it has not answered."
    )


_LOG = Log("shuffler.mqtt")
_PAUSE = 5.0  # seconds until a store that failed is asked again
_WAIT = 1.0  # seconds between looks whether another process has left the session
_KEPT = 7 * 86_400  # seconds for which a broker keeps the session of a shuffler that is away
_MOST = 100  # messages that the broker hands over before one of them is acknowledged
_ROOM = 2 * _MOST  # of all connections: those of one that has just ended may be under way still
_AROUND = 4096  # bytes of a packet beside the message, at most
_TOLD = 600.0  # refusals of `_JUNK` that are answered in a minute, and at once
_JUNK = frozenset(
    ("malformed", "version", "round", "seal", "signature", "content", "unknown_device", "rate_limited")
)  # what a flood is refused as, and a device in order never; who has an old campaign or a late report is always told


@mute
@dataclass(frozen=True)
class _Arrived:
    """A message, where its answer goes, on which connection it came, and whether a refusal as junk is not told."""

    payload: bytes
    mid: int
    qos: int
    answers: str | None
    connection: int
    quiet: bool = False


class MqttSubscriber:
    """One subscription for all campaigns of the service.

    url : mqtt://host:port or mqtts://host:port
    session : the file that keeps the client id, and the topics that the broker knows of
    """

    def __init__(
        self,
        service: ShufflerService,
        url: str,
        *,
        session: Path,
        user: str | None = None,
        password: str | None = None,
    ) -> None:
        self._service, self._stopped, self._connection = service, Event(), 0
        self._place = place_of("mqtt.url", url, tuple(MQTT_PORTS))
        self._topics = frozenset(topic(digest) for digest in service.shuffler.campaigns.versions)
        self._user, self._password = user, password
        self._session, self._lock = BrokerSession.open(session), session_lock(session)
        self._leaving = dict[int, frozenset[str]]()  # topics, by the packet that unsubscribes them
        self._room, self._told = BoundedSemaphore(_ROOM), RateLimiter(_TOLD)
        self._client = self._make_client()

    def _make_client(self) -> Client:
        client = Client(CallbackAPIVersion.VERSION2, self._session.client_id, protocol=MQTTv5, manual_ack=True)
        if self._user is not None:
            client.username_pw_set(self._user, self._password)
        if self._place.scheme == "mqtts":
            client.tls_set()
        client.reconnect_delay_set(1, 60)
        client.on_connect = self._on_connect
        client.on_connect_fail = lambda *_: _LOG.warning("the broker cannot be reached")
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = self._on_subscribe
        client.on_unsubscribe = self._on_unsubscribe
        client.on_message = self._on_message
        return client

    def start(self) -> None:
        """Connect, now or as soon as the broker is there, and no other process of the shuffler has the session."""
        if self._lock.alone():
            self._connect()
        else:
            _LOG.info("another process is subscribed")
            Thread(target=self._wait, name="session", daemon=True).start()

    def _wait(self) -> None:
        while not self._stopped.wait(_WAIT):
            if self._lock.alone():
                self._connect()
                return

    def _connect(self) -> None:
        before, self._session = self._session, BrokerSession.open(self._session.path)  # as the last one has left it
        if self._session.client_id != before.client_id:  # two processes began it at once
            self._client = self._make_client()
        assert self._place.hostname is not None
        lasting = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        lasting.SessionExpiryInterval, lasting.ReceiveMaximum = _KEPT, _MOST
        lasting.MaximumPacketSize = self._service.shuffler.campaigns.longest + _AROUND
        port = self._place.port or MQTT_PORTS[self._place.scheme]
        self._client.connect_async(self._place.hostname, port, clean_start=False, properties=lasting)
        self._client.loop_start()

    def stop(self) -> None:
        """Take no more; what is not acknowledged comes again at the next start."""
        self._stopped.set()
        self._client.disconnect()
        self._client.loop_stop()
        self._lock.release()

    def _on_connect(self, client: Client, _: Any, __: Any, reason: Any, ___: Any) -> None:
        self._connection += 1
        if reason.is_failure:
            _LOG.warning("the broker refuses the shuffler")
            return
        try:  # durable first: whatever was asked for can be unsubscribed
            self._session = self._session.remember(self._session.topics | self._topics)
        except DovetailError as error:
            _LOG.fault("the session cannot be written, and nothing is subscribed", error)
            return
        client.subscribe([(each, SubscribeOptions(qos=1)) for each in sorted(self._topics)])
        stale = self._session.topics - self._topics
        if stale:  # the queue may hold messages of these; they come, and are answered, all the same
            number = client.unsubscribe(sorted(stale))[1]
            self._leaving = {} if number is None else {number: stale}

    def _on_subscribe(self, _: Client, __: Any, ___: int, reasons: Any, ____: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            _LOG.warning("the broker refuses the subscription")
        else:
            _LOG.info("subscribed at the broker", count=len(self._topics))

    def _on_unsubscribe(self, _: Client, __: Any, number: int, reasons: Any, ___: Any) -> None:
        stale = self._leaving.pop(number, frozenset())
        if not stale or any(reason.is_failure for reason in reasons):
            return
        try:
            self._session = self._session.remember(self._session.topics - stale)
        except DovetailError as error:
            _LOG.fault("the session cannot be written", error)
            return
        _LOG.info("unsubscribed at the broker", count=len(stale))

    def _on_disconnect(self, *_: object) -> None:
        if not self._stopped.is_set():
            _LOG.warning("the broker is gone")

    def _on_message(self, _: Client, __: Any, message: MQTTMessage) -> None:
        answers = getattr(message.properties, "ResponseTopic", None)
        if message.qos != 1:
            return
        while not self._room.acquire(timeout=_WAIT):  # the broker sends no more than the line holds
            if self._stopped.is_set():
                return
        quiet = answers is None or self._told.take(b"", monotonic(), most=0.0) > 0.0
        self._submit(_Arrived(bytes(message.payload), message.mid, message.qos, answers, self._connection, quiet))

    def _submit(self, message: _Arrived) -> None:
        if self._stopped.is_set() or message.connection != self._connection:  # it comes again, on the next one
            self._room.release()
            return
        told = self._service.submit(message.payload, message.quiet)
        told.add_done_callback(partial(self._settle, message))

    def _settle(self, message: _Arrived, told: PendingReply) -> None:
        """Answer and acknowledge what is durable or refused; where the store failed, try again later."""
        error = told.exception()
        if error is None:
            self._room.release()
            self._answer(message, told.result())
            if message.connection == self._connection:  # packets of another connection have the same numbers
                self._client.ack(message.mid, message.qos)
            return
        _LOG.fault("a message is tried again", error)
        again = Timer(_PAUSE, self._submit, (message,))
        again.daemon = True
        again.start()

    def _answer(self, message: _Arrived, reply: Reply) -> None:
        """Tell the device, if it has asked for it; an answer that is lost is asked for again by a retry."""
        if reply.kind in _JUNK and (message.quiet or self._told.take(b"", monotonic()) > 0.0):
            return
        if message.answers is not None and is_answer_topic(message.answers):
            self._client.publish(message.answers, self._service.shuffler.answer(message.payload, reply))
