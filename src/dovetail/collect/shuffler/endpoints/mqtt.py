"""The shuffler's subscription to a broker: a message is acknowledged to the broker once its report is durable.

The session is persistent under a client id of this shuffler, so that the broker keeps what comes while it is away. A
message that is refused is acknowledged too: it would not get better. The broker has promised the device to deliver,
and no device can be told to come back later: nothing is limited by device here, brokers have limits of their own.
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from threading import Event, Timer
from typing import Any

from paho.mqtt.client import Client, MQTTMessage, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion

from dovetail.collect.logs import Log
from dovetail.collect.shuffler.group_commit import PendingReplies
from dovetail.collect.shuffler.service import ShufflerService
from dovetail_protocol.endpoint import MQTT_PORTS, place_of, topic

_LOG = Log("shuffler.mqtt")
_QOS = 1
_PAUSE = 5.0  # seconds until a store that failed is asked again


class MqttSubscriber:
    """One subscription for all campaigns of the service; `url` is mqtt://host:port or mqtts://host:port."""

    def __init__(
        self, service: ShufflerService, url: str, *, user: str | None = None, password: str | None = None
    ) -> None:
        self._service, self._stopped = service, Event()
        self._place = place_of("mqtt.url", url, tuple(MQTT_PORTS))
        self._topics = [topic(digest) for digest in sorted(service.shuffler.campaigns.versions)]
        self._client = Client(
            CallbackAPIVersion.VERSION2, _client_id(service), clean_session=False, protocol=MQTTv311, manual_ack=True
        )
        if user is not None:
            self._client.username_pw_set(user, password)
        if self._place.scheme == "mqtts":
            self._client.tls_set()
        self._client.reconnect_delay_set(1, 60)
        self._client.on_connect = self._on_connect
        self._client.on_connect_fail = lambda *_: _LOG.warning("the broker cannot be reached")
        self._client.on_disconnect = self._on_disconnect
        self._client.on_message = self._on_message

    def start(self) -> None:
        """Connect, now or as soon as the broker is there."""
        assert self._place.hostname is not None
        self._client.connect_async(self._place.hostname, self._place.port or MQTT_PORTS[self._place.scheme])
        self._client.loop_start()

    def stop(self) -> None:
        """Take no more; what is not acknowledged comes again at the next start."""
        self._stopped.set()
        self._client.disconnect()
        self._client.loop_stop()

    def _on_connect(self, client: Client, _: Any, __: Any, reason: Any, ___: Any) -> None:
        if reason.is_failure:
            _LOG.warning("the broker refuses the shuffler")
            return
        client.subscribe([(topic, _QOS) for topic in self._topics])
        _LOG.info("subscribed at the broker", count=len(self._topics))

    def _on_disconnect(self, *_: object) -> None:
        if not self._stopped.is_set():
            _LOG.warning("the broker is gone")

    def _on_message(self, _: Client, __: Any, message: MQTTMessage) -> None:
        self._submit(bytes(message.payload), message.mid, message.qos)

    def _submit(self, payload: bytes, mid: int, qos: int) -> None:
        if not self._stopped.is_set():
            told = self._service.submit([payload], limited=False)
            told.add_done_callback(partial(self._acknowledge, payload, mid, qos))

    def _acknowledge(self, payload: bytes, mid: int, qos: int, told: PendingReplies) -> None:
        """Acknowledge what is durable or refused; where the store failed, try again while the broker waits."""
        error = told.exception()
        if error is None:
            self._client.ack(mid, qos)
            return
        _LOG.fault("a message is tried again", error)
        again = Timer(_PAUSE, self._submit, (payload, mid, qos))
        again.daemon = True
        again.start()


def _client_id(service: ShufflerService) -> str:
    """The same at each start, and different for shufflers with other keys."""
    names = {version.campaign.shuffler_signing.public for version in service.shuffler.campaigns.newest.values()}
    return f"dovetail-{sha256(b''.join(sorted(names))).hexdigest()[:12]}"
