"""Sending over MQTT 5 with QoS 1: a random client id for every session, nothing retained, no user properties.

The broker acknowledges, not the shuffler: `accepted` means that the broker has taken the report over. It says nothing
about refusals, so campaigns and rounds are asked over HTTP where there is `questions`.
"""

from __future__ import annotations

import os
import ssl
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, final

from dovetail_device.http import HttpTransport
from dovetail_device.sender import ACCEPTED, UNAUTHORIZED, UNREACHABLE, UNTRUSTED, DeliveryEvent, refusal_event
from dovetail_protocol.endpoint import MQTT_PORTS, place_of, topic
from dovetail_protocol.errors import MissingExtraError
from dovetail_protocol.message import read_head

if TYPE_CHECKING:
    from paho.mqtt.client import Client

_ANSWERS = {
    0: ACCEPTED,
    134: UNAUTHORIZED,  # CONNACK of MQTT 5: bad user name or password
    135: UNAUTHORIZED,  # CONNACK and PUBACK: not authorized
}
"""What reason codes mean; with any other the broker keeps nothing, as with 16: nobody has subscribed."""


@final
class MqttTransport:
    """The broker behind `url` (mqtt or mqtts). A lost connection is a lost session: the next message opens a new one.

    `timeout` seconds bound each of connecting and being acknowledged; certificates are trusted as over HTTP. `login`
    is a user and a password: best the same for all devices, because the user tells the broker who sends.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 10.0,
        tls: ssl.SSLContext | None = None,
        login: tuple[str, str] | None = None,
        questions: HttpTransport | None = None,
    ) -> None:
        self._place = place_of("url", url, ("mqtt", "mqtts"))
        self._timeout, self._tls, self._login, self._questions = timeout, tls, login, questions
        self._paho = _paho()
        self._session: _Session | None = None

    def send(self, wire: bytes) -> DeliveryEvent:
        """Publish one message and wait until the broker acknowledges it."""
        try:
            if self._session is None:
                self._session = _Session(self._client(), self._place, self._timeout)
            reason = self._session.publish(topic(read_head(wire).digest), wire)
        except _Refused as error:
            reason = error.reason
        except ssl.SSLCertVerificationError:
            return UNTRUSTED
        except OSError:
            self.close()
            return UNREACHABLE
        return _ANSWERS.get(reason, refusal_event("unavailable"))

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

    def _client(self) -> Client:
        client: Client = self._paho.Client(
            self._paho.CallbackAPIVersion.VERSION2,
            client_id=os.urandom(16).hex(),
            protocol=self._paho.MQTTv5,
            reconnect_on_failure=False,
        )
        if self._login is not None:
            client.username_pw_set(*self._login)
        if self._place.scheme == "mqtts":
            client.tls_set_context(self._tls or ssl.create_default_context())
        return client


def _paho() -> Any:
    try:
        import paho.mqtt.client
    except ImportError:
        raise MissingExtraError("MQTT needs paho-mqtt: pip install 'dovetail-device[mqtt]'") from None
    return paho.mqtt.client


class _Refused(Exception):
    """The broker refuses the connection."""

    def __init__(self, reason: int) -> None:
        super().__init__("the broker refuses the connection")
        self.reason = reason


class _Session:
    """One connection; the network thread of paho only puts what happened into a queue."""

    def __init__(self, client: Client, place: Any, timeout: float) -> None:
        self._client, self._timeout = client, timeout
        self._happened: SimpleQueue[tuple[str, int, int]] = SimpleQueue()
        client.connect_timeout = timeout
        client.on_connect = lambda _c, _u, _f, reason, _p: self._happened.put(("connected", 0, reason.value))
        client.on_publish = lambda _c, _u, message, reason, _p: self._happened.put(
            ("published", message, reason.value)
        )
        client.on_disconnect = lambda _c, _u, _f, reason, _p: self._happened.put(("lost", 0, reason.value))
        client.connect(place.hostname, place.port or MQTT_PORTS[place.scheme], clean_start=True)
        client.loop_start()
        try:
            reason = self._wait("connected", 0)
        except OSError:
            self.close()
            raise
        if reason != 0:
            self.close()
            raise _Refused(reason)

    def publish(self, where: str, wire: bytes) -> int:
        """The broker's reason code of the acknowledgement; OSError if none came."""
        return self._wait("published", self._client.publish(where, wire, qos=1, retain=False).mid)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _wait(self, what: str, message: int) -> int:
        """The reason code of what is waited for."""
        end = time.monotonic() + self._timeout
        while True:
            try:
                happened, number, reason = self._happened.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                raise TimeoutError("the broker did not answer") from None
            if happened == "lost":
                raise ConnectionError("the broker closed the connection")
            if (happened, number) == (what, message):
                return reason
