"""Sending over HTTP with the standard library: one connection per message, nothing that tells devices apart."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from email.utils import parsedate_to_datetime
from threading import Timer
from typing import Any
from urllib.parse import SplitResult, urlsplit

from dovetail_device.sender import FINAL, UNREACHABLE, UNSIGNED, UNTRUSTED, DeliveryEvent, answer_event, refusal_event
from dovetail_protocol.binary_http import BinaryResponse, padded
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.endpoint import place_of, require_private
from dovetail_protocol.errors import DataError
from dovetail_protocol.keys import VerifyingKey
from dovetail_protocol.messages import (
    HEADER,
    REPORTS,
    campaign_path,
    oblivious_request,
    read_answer_header,
    read_head,
    require_room,
)
from dovetail_protocol.ohttp import REQUEST_TYPE, RESPONSE_TYPE, ObliviousRoute
from dovetail_protocol.tokens import PATH as TOKENS

PROBLEM = "urn:dovetail:problem:"
_CLOSED = ("held", "releasing", "released", "delivered", "dropped", "merged", "over")
_ITS_WORD = (*FINAL, "accepted", "too_early")  # the shuffler's alone: they end the report, or let another be drawn
_MOST_BYTES = 1 << 20  # of an answer that is read


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Message
    body: bytes


@dataclass(frozen=True)
class HttpTransport:
    """The shuffler behind `url` (http or https). Redirects are not followed, cookies not kept, proxies not used.

    A report counts as accepted, or as refused for good, when the shuffler that the campaign names has signed that,
    see `trust`: what else answers there, with whatever status, is a reason to try again.

    `timeout` seconds bound the connection and, once more, the whole exchange after it. The system's certificates are
    trusted, or those of the file that SSL_CERT_FILE names; `tls` replaces both. Plain HTTP leaves the machine only
    with `insecure_http`.
    """

    url: str
    timeout: float = 10.0
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    insecure_http: bool = False
    _shufflers: dict[bytes, VerifyingKey] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        place_of("url", self.url, ("http", "https"))
        require_private("url", self.url, insecure=self.insecure_http)

    def trust(self, campaign: Campaign) -> None:
        """Take answers to messages for this version from the shuffler that it names."""
        self._shufflers[campaign.digest] = campaign.shuffler_signing

    def send(self, wire: bytes) -> DeliveryEvent:
        """Post one message; only what the shuffler has signed says what became of it."""
        answer = self._exchange("POST", REPORTS, wire)
        if isinstance(answer, DeliveryEvent):
            return answer
        signed = read_answer_header(answer.headers.get(HEADER, ""), wire, self._shufflers.get(read_head(wire).digest))
        if signed is not None:
            return answer_event(signed)
        kind = _kind(answer)
        return UNSIGNED if kind in _ITS_WORD else refusal_event(kind, _retry_after(answer.headers))

    def fetch(self, campaign: str) -> bytes | None:
        """The signed campaign file as the shuffler has it now."""
        answer = self._exchange("GET", campaign_path(campaign))
        return answer.body if isinstance(answer, _Answer) and answer.status == 200 else None

    def round(self, campaign: str) -> int | None:
        """The round that takes reports now; 0 if none does, None if nobody says."""
        answer = self._exchange("GET", f"{campaign_path(campaign)}/round")
        found = _json(answer.body) if isinstance(answer, _Answer) and answer.status == 200 else {}
        number = found.get("round")
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            return None
        return 0 if found.get("state") in _CLOSED else number

    def close(self) -> None:
        """Nothing stays open between messages."""

    def _exchange(self, method: str, path: str, body: bytes | None = None) -> _Answer | DeliveryEvent:
        """One request and its answer, or what happened instead of a whole answer in time."""
        return self._connected(method, path, body, "application/octet-stream")

    def _connected(self, method: str, path: str, body: bytes | None, kind: str) -> _Answer | DeliveryEvent:
        headers = {"User-Agent": "dovetail-device", "Connection": "close"}
        if body is not None:
            headers["Content-Type"] = kind
        place = urlsplit(self.url)
        try:
            with _connect(self._connection(place), self.timeout) as connection:
                connection.request(method, place.path.rstrip("/") + path or "/", body, headers)
                response = connection.getresponse()
                content = response.read(_MOST_BYTES + 1)
        except ssl.SSLCertVerificationError:
            return UNTRUSTED
        except (OSError, http.client.HTTPException):
            return UNREACHABLE
        complete = len(content) <= _MOST_BYTES and not response.length  # a cut answer still misses bytes
        return _Answer(response.status, response.headers, content) if complete else UNREACHABLE

    def _connection(self, place: SplitResult) -> http.client.HTTPConnection:
        assert place.hostname is not None
        if place.scheme == "http":
            return http.client.HTTPConnection(place.hostname, place.port, timeout=self.timeout)
        tls = self.tls or ssl.create_default_context()
        return http.client.HTTPSConnection(place.hostname, place.port, timeout=self.timeout, context=tls)


@dataclass(frozen=True)
class ObliviousTransport(HttpTransport):
    """The shuffler behind a relay: `url` is the relay's, and nothing is ever sent to anybody else.

    Requests are sealed to the gateway's key that the campaign names last, see `trust`, and all have one length. What
    the relay says itself is a reason to try again, whatever it says.
    """

    _routes: list[ObliviousRoute] = field(default_factory=list, init=False, repr=False, compare=False)

    def trust(self, campaign: Campaign) -> None:
        """Take answers from the shuffler that this version names, and seal to its gateway from now on.

        Raises
        ------
        ConfigError
            Where a request would not fit into the length that the campaign gives to all.
        """
        require_room(campaign)
        super().trust(campaign)
        if campaign.ohttp is not None:
            self._routes[:] = [campaign.ohttp]

    def _exchange(self, method: str, path: str, body: bytes | None = None) -> _Answer | DeliveryEvent:
        route = self._routes[0]
        request = padded(oblivious_request(method, path, body).encode(), route.pad)
        wire, pending = route.keys[-1].seal(request)
        outer = self._connected("POST", "", wire, REQUEST_TYPE)
        if isinstance(outer, DeliveryEvent):
            return outer
        if outer.status != 200 or outer.headers.get_content_type() != RESPONSE_TYPE:
            return UNREACHABLE
        try:
            found = BinaryResponse.decode(pending.open(outer.body) or b"")
        except DataError:
            return UNREACHABLE  # not the gateway's answer to this request
        headers = Message()
        for name, value in found.fields:
            headers[name] = value
        return _Answer(found.status, headers, found.content)


@dataclass(frozen=True)
class HttpIssuer:
    """The issuer of tokens: its signatures are verified, its refusals are believed unverified.

    Over plain HTTP, which leaves the machine only with `insecure_http`, anybody on the way can end a round for it.
    """

    timeout: float = 10.0
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    insecure_http: bool = False

    def ask(self, url: str, application: bytes) -> bytes | str:
        """The blind signature, or the kind of the refusal; "unavailable" if nobody answers as an issuer.

        Raises
        ------
        ConfigError
            For plain HTTP to another machine: nothing was sent there.
        """
        require_private("tokens.url", url, insecure=self.insecure_http)
        way = HttpTransport(url, self.timeout, self.tls, self.insecure_http)
        answer = way._exchange("POST", TOKENS, application)
        if isinstance(answer, DeliveryEvent):
            return "unavailable"
        return answer.body if answer.status == 200 else _kind(answer)


@contextmanager
def _connect(connection: http.client.HTTPConnection, seconds: float) -> Iterator[http.client.HTTPConnection]:
    """A connection that is cut after `seconds`, whatever trickles in."""
    connection.connect()
    # The plain socket's own shutdown: an SSL socket's would take the session away from the thread that reads.
    timer = Timer(seconds, _cut, [connection.sock])
    timer.start()
    try:
        yield connection
    finally:
        timer.cancel()
        connection.close()


def _cut(sock: socket.socket) -> None:
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        return  # it was closed already


def _kind(answer: _Answer) -> str:
    """The kind that a problem document names, or what its absence means."""
    if answer.headers.get("Content-Type", "").split(";")[0].strip().lower() == "application/problem+json":
        named = _json(answer.body).get("type")
        if isinstance(named, str) and named.startswith(PROBLEM):
            return named.removeprefix(PROBLEM)
    if answer.status == 202:
        return "accepted"
    return "rate_limited" if answer.status == 429 else "unavailable"  # a proxy or a captive portal, not the shuffler


def _retry_after(headers: Message) -> float:
    """Seconds to wait; a date is compared with the service's own clock, not the device's."""
    asked = headers.get("Retry-After", "").strip()
    if asked.isascii() and asked.isdigit():
        return float(asked[:9])
    try:
        return (parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("Date", ""))).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def _json(body: bytes) -> dict[str, Any]:
    """The JSON object, or nothing."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
