"""Sending over MQTT 5 with QoS 1: a random client id for every session, nothing retained, no user properties.

The broker's acknowledgement says nothing: a report counts as accepted, or as refused for good, when the shuffler's
signed answer arrives on the topic of this session, whose name is the session's client id. Campaigns and rounds are
asked over HTTP where there is `questions`.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, final

from dovetail_device.http import HttpTransport
from dovetail_device.sender import (
    UNANSWERED,
    UNAUTHORIZED,
    UNREACHABLE,
    UNSUBSCRIBED,
    UNTRUSTED,
    DeliveryEvent,
    answer_event,
    refusal_event,
)
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.endpoint import MQTT_PORTS, answer_topic, place_of, require_private, topic
from dovetail_protocol.errors import MissingExtraError
from dovetail_protocol.keys import VerifyingKey
from dovetail_protocol.messages import Answer, read_answer, read_head

if TYPE_CHECKING:
    from paho.mqtt.client import Client

_REFUSALS = {
    16: UNSUBSCRIBED,  # PUBACK: nobody has subscribed, and the broker keeps nothing
    134: UNAUTHORIZED,  # CONNACK of MQTT 5: bad user name or password
    135: UNAUTHORIZED,  # CONNACK, SUBACK and PUBACK: not authorized
}
"""The meaning of a broker's reason codes; any other than 0 is `unavailable`."""


@final
class MqttTransport:
    """The broker behind `url` (mqtt or mqtts). A lost connection is a lost session: the next message opens a new one.

    Answers are those of the shuffler that `campaign`, or a version that the device trusts later, names. `timeout`
    seconds bound each of connecting and being answered; certificates are trusted as over HTTP. `login` is a user and
    a password: best the same for all devices, because the user tells the broker who sends. mqtt://
    beyond this machine takes `insecure_mqtt`: on the way anybody reads the login, and when this device sends.
    """

    def __init__(
        self,
        url: str,
        campaign: Campaign,
        *,
        timeout: float = 10.0,
        tls: ssl.SSLContext | None = None,
        login: tuple[str, str] | None = None,
        questions: HttpTransport | None = None,
        insecure_mqtt: bool = False,
    ) -> None:
        self._place = place_of("url", url, ("mqtt", "mqtts"))
        require_private("url", url, insecure=insecure_mqtt)
        self._timeout, self._tls, self._login, self._questions = timeout, tls, login, questions
        self._paho = _paho()
        self._session: _Session | None = None
        self._shufflers = dict[bytes, VerifyingKey]()  # by digest of the campaign file
        self.trust(campaign)

    def trust(self, campaign: Campaign) -> None:
        """Take answers to messages for this version from the shuffler that it names."""
        self._shufflers[campaign.digest] = campaign.shuffler_signing

    def send(self, wire: bytes) -> DeliveryEvent:
        """Publish one message and wait until the shuffler answers it."""
        digest = read_head(wire).digest
        try:
            if self._session is None:
                self._session = self._connect()
            answer = self._session.ask(topic(digest), wire, self._shufflers.get(digest))
        except _Refused as error:
            return _REFUSALS.get(error.reason, refusal_event("unavailable"))
        except ssl.SSLCertVerificationError:
            return UNTRUSTED
        except OSError:
            self.close()
            return UNREACHABLE
        if answer is None:
            return UNANSWERED
        return answer_event(answer)

    def fetch(self, campaign: str) -> bytes | None:
        """The signed campaign file as the shuffler has it now."""
        return self._questions.fetch(campaign) if self._questions else None

    def round(self, campaign: str) -> int | None:
        """The round that takes reports now; 0 if none does, None if nobody says."""
        return self._questions.round(campaign) if self._questions else None

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _connect(self) -> _Session:
        name = os.urandom(16).hex()
        client: Client = self._paho.Client(
            self._paho.CallbackAPIVersion.VERSION2,
            client_id=name,
            protocol=self._paho.MQTTv5,
            reconnect_on_failure=False,
        )
        if self._login is not None:
            client.username_pw_set(*self._login)
        if self._place.scheme == "mqtts":
            client.tls_set_context(self._tls or ssl.create_default_context())
        return _Session(client, self._place, self._timeout, answers=answer_topic(name))


def _paho() -> Any:
    try:
        import paho.mqtt.client
    except ImportError:
        raise MissingExtraError("MQTT needs paho-mqtt: pip install 'dovetail-device[mqtt]'") from None
    return paho.mqtt.client


class _Refused(Exception):
    """The broker refuses the connection, the subscription or the message."""

    def __init__(self, reason: int) -> None:
        super().__init__("the broker refuses")
        self.reason = reason


@dataclass(frozen=True)
class _Happened:
    """Event of the network thread; `number` is that of the packet, `reason` the broker's code."""

    what: Literal["connected", "subscribed", "published", "answered", "lost"]
    number: int = 0
    reason: int = 0
    content: bytes = b""


class _Session:
    """One connection and its subscription to `answers`; the network thread of paho only fills a queue."""

    def __init__(self, client: Client, place: Any, timeout: float, *, answers: str) -> None:
        self._client, self._timeout, self._answers = client, timeout, answers
        self._happened: SimpleQueue[_Happened] = SimpleQueue()
        happened = self._happened.put
        client.connect_timeout = timeout
        client.on_connect = lambda _c, _u, _f, reason, _p: happened(_Happened("connected", 0, reason.value))
        client.on_subscribe = lambda _c, _u, number, reasons, _p: happened(
            _Happened("subscribed", number or 0, max(reason.value for reason in reasons))
        )
        client.on_publish = lambda _c, _u, number, reason, _p: happened(_Happened("published", number, reason.value))
        client.on_message = lambda _c, _u, message: happened(_Happened("answered", content=bytes(message.payload)))
        client.on_disconnect = lambda _c, _u, _f, reason, _p: happened(_Happened("lost", 0, reason.value))
        client.connect(place.hostname, place.port or MQTT_PORTS[place.scheme], clean_start=True)
        client.loop_start()
        try:
            end = time.monotonic() + timeout
            self._wait(lambda seen: seen.what == "connected" and self._check(seen, granted=0), end)
            number = client.subscribe(answers, qos=1)[1]
            self._wait(lambda seen: _is(seen, "subscribed", number) and self._check(seen, granted=1), end)
        except (OSError, _Refused):
            self.close()
            raise

    def ask(self, where: str, wire: bytes, shuffler: VerifyingKey | None) -> Answer | None:
        """The shuffler's answer to a message; None if the broker has taken it over and nobody answers in time.

        Raises
        ------
        OSError
            When the connection is lost, or the broker does not acknowledge.
        """
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.ResponseTopic = self._answers
        number = self._client.publish(where, wire, qos=1, retain=False, properties=properties).mid
        taken, found = False, list[Answer]()

        def answered(seen: _Happened) -> bool:
            nonlocal taken
            taken = taken or (_is(seen, "published", number) and self._check(seen, granted=0))
            answer = read_answer(seen.content, wire, shuffler) if seen.what == "answered" else None
            found.extend([] if answer is None else [answer])
            return bool(found)

        try:
            self._wait(answered, time.monotonic() + self._timeout)
        except TimeoutError:
            if not taken:
                raise
        return found[0] if found else None

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    @staticmethod
    def _check(seen: _Happened, *, granted: int) -> bool:
        """Refuse every reason code above the one that grants what was asked for."""
        if seen.reason > granted:
            raise _Refused(seen.reason)
        return True

    def _wait(self, until: Callable[[_Happened], bool], end: float) -> None:
        """Look at what happens until it is what was waited for."""
        while True:
            try:
                seen = self._happened.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                raise TimeoutError("nobody answers") from None
            if seen.what == "lost":
                raise ConnectionError("the broker closed the connection")
            if until(seen):
                return


def _is(seen: _Happened, what: str, number: int | None) -> bool:
    return (seen.what, seen.number) == (what, number)
