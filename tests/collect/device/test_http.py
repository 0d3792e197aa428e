"""HTTP against a server that drops, delays, redirects and answers nonsense."""

from __future__ import annotations

import json
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.collect.device.made import PERIOD, SHUFFLER, START, Bench, FakeTransport, campaign, word
from tests.waiting import PATIENCE

from dovetail_device.http import HttpTransport
from dovetail_device.sender import ACCEPTED, FINAL, UNREACHABLE, UNSIGNED, UNTRUSTED, DeliveryEvent, refusal_event
from dovetail_protocol import messages as message
from dovetail_protocol.errors import ConfigError
from dovetail_protocol.keys import RoleKeys, SigningKey

CAMPAIGN = campaign()
DEVICE, STRANGER = SigningKey.generate(), RoleKeys.generate("shuffler")
WIRE, ANOTHER = (message.seal(CAMPAIGN, 1, bytes(message.plain_bytes(CAMPAIGN)), DEVICE) for _ in range(2))
Handler = BaseHTTPRequestHandler
Behaviour = Callable[[Handler], None]


@dataclass
class Shuffler:
    """A server that behaves as the test says; `seen` are requests: method, path, headers, body."""

    behaviour: Behaviour
    seen: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""


def authority() -> tuple[str, str]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem).decode(), secret.decode()


AUTHORITY = authority()


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("".join(AUTHORITY))
        file.flush()
        context.load_cert_chain(file.name)
    return context


@pytest.fixture
def shuffler(request: pytest.FixtureRequest) -> Iterator[Shuffler]:
    made = Shuffler(signed("accepted"))

    class Server(Handler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            made.seen.append((self.command, self.path, dict(self.headers), body))
            self.body = body
            made.behaviour(self)

        do_GET = do_POST = handle_any

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass  # a client that hangs up is what some tests are about

    server = Quiet(("127.0.0.1", 0), Server)
    if certificate := getattr(request, "param", None):
        server.socket = certificate().wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    made.url = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


def reply(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    def behave(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return behave


def refusal(status: int, kind: str, **headers: str) -> Behaviour:
    body = json.dumps({"type": f"urn:dovetail:problem:{kind}", "status": status}).encode()
    return reply(status, body, Content_Type="application/problem+json", **headers)


def raw(data: bytes) -> Behaviour:
    """These bytes, and then the end of the connection."""

    def behave(handler: Handler) -> None:
        handler.wfile.write(data)
        handler.close_connection = True

    return behave


DATED = (
    b"HTTP/1.1 503 Later\r\nDate: Tue, 01 Jan 2030 00:00:00 GMT\r\n"
    b"Retry-After: Tue, 01 Jan 2030 00:01:30 GMT\r\nContent-Length: 0\r\n\r\n"
)


def signed(kind: str, *, by: RoleKeys = SHUFFLER, status: int = 202, after: int = 0, of: bytes = b"") -> Behaviour:
    """What the shuffler, or whoever has these keys, says of the message that came, or of another one."""

    def behave(handler: Handler) -> None:
        reply(status, Dovetail_Answer=word(of or handler.body, kind, after, by))(handler)  # type: ignore[attr-defined]

    return behave


def hang_up(handler: Handler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def trusting(http: HttpTransport) -> HttpTransport:
    """With the campaign's shuffler."""
    http.trust(CAMPAIGN)
    return http


def test_a_message_is_posted_as_it_is_and_tells_devices_not_apart(shuffler: Shuffler) -> None:
    assert trusting(HttpTransport(shuffler.url + "/base/", timeout=PATIENCE)).send(WIRE) == ACCEPTED
    ((method, path, headers, body),) = shuffler.seen
    assert (method, path, body) == ("POST", "/base/v1/reports", WIRE)
    assert headers == {
        "Host": shuffler.url.removeprefix("http://"),
        "Accept-Encoding": "identity",
        "Content-Length": str(len(WIRE)),
        "Content-Type": "application/octet-stream",
        "User-Agent": "dovetail-device",
        "Connection": "close",
    }


def test_cookies_are_not_kept(shuffler: Shuffler) -> None:
    shuffler.behaviour = reply(202, Set_Cookie="who=device-17")
    http = HttpTransport(shuffler.url, timeout=PATIENCE)
    for _ in range(2):
        http.send(WIRE)
    assert all("Cookie" not in headers for _, _, headers, _ in shuffler.seen)


@pytest.mark.parametrize(
    ("behaviour", "event"),
    [
        (signed("late", status=409), refusal_event("late")),
        (refusal(409, "campaign"), refusal_event("campaign")),
        (signed("too_early", status=425), refusal_event("too_early")),
        (signed("rate_limited", status=429, after=17), refusal_event("rate_limited", 17.0)),
        (signed("accepted", status=500), ACCEPTED),
        (signed("unknown_device", status=202), refusal_event("unknown_device")),
        (refusal(429, "rate_limited", Retry_After="17"), refusal_event("rate_limited", 17.0)),
        (reply(429, b"slow down", Retry_After="3"), refusal_event("rate_limited", 3.0)),
        (refusal(503, "unavailable", Retry_After="soon"), refusal_event("unavailable")),
        (raw(DATED), refusal_event("unavailable", 90.0)),
        (refusal(400, "made_up"), refusal_event("unavailable")),
        (reply(200, b"<html>log in to the wireless network</html>"), refusal_event("unavailable")),
        (reply(204), refusal_event("unavailable")),
        (reply(502, b"bad gateway"), refusal_event("unavailable")),
        (
            reply(404, b'{"type": "urn:dovetail:problem:late"}', Content_Type="text/html"),
            refusal_event("unavailable"),
        ),
        (reply(409, b"[" * 100_000, Content_Type="application/problem+json"), refusal_event("unavailable")),
        (reply(409, b'{"type": ["late"]}', Content_Type="application/problem+json"), refusal_event("unavailable")),
        (reply(409, b"\xff", Content_Type="application/problem+json"), refusal_event("unavailable")),
        (hang_up, UNREACHABLE),
        (raw(b""), UNREACHABLE),
        (raw(b"SSH-2.0-server\r\n\r\n"), UNREACHABLE),
        (raw(b"HTTP/1.1 202 Accepted\r\nContent-Length: 10\r\n\r\nhalf"), UNREACHABLE),
        (raw(b"HTTP/1.1 202 Accepted\r\n" + b"X: y\r\n" * 1000 + b"\r\n"), UNREACHABLE),
        (reply(202, bytes(2_000_000)), UNREACHABLE),
    ],
)  # fmt: skip
def test_answers_become_events_and_nonsense_means_try_again(
    shuffler: Shuffler, behaviour: Behaviour, event: DeliveryEvent
) -> None:
    shuffler.behaviour = behaviour
    assert trusting(HttpTransport(shuffler.url, timeout=PATIENCE)).send(WIRE) == event


@pytest.mark.parametrize("kind", ["accepted", "too_early", *FINAL])
def test_what_the_shuffler_has_not_signed_for_this_message_is_not_believed(shuffler: Shuffler, kind: str) -> None:
    """Neither as a status, nor as a problem document, nor signed by somebody else or for another message."""
    http = trusting(HttpTransport(shuffler.url, timeout=PATIENCE))
    bare = reply(202) if kind == "accepted" else refusal(409, kind)
    for behaviour in (
        bare,
        signed(kind, by=STRANGER),
        signed(kind, of=ANOTHER),
        reply(202, Dovetail_Answer="!"),
        reply(202, Dovetail_Answer=word(WIRE, kind)[:-1]),
    ):
        shuffler.behaviour = behaviour
        assert http.send(WIRE) == UNSIGNED, kind
    shuffler.behaviour = signed(kind)
    assert http.send(WIRE) == (ACCEPTED if kind == "accepted" else refusal_event(kind))
    assert HttpTransport(shuffler.url, timeout=PATIENCE).send(WIRE) == UNSIGNED, "of a version that nobody has named"


def test_a_portal_that_accepts_everything_ends_no_report_and_spends_nothing_more(shuffler: Shuffler) -> None:
    made = Bench(CAMPAIGN, FakeTransport())
    made.transport = HttpTransport(shuffler.url, timeout=PATIENCE)  # type: ignore[assignment]
    for behaviour in (reply(202), refusal(409, "late"), refusal(425, "too_early")):
        shuffler.behaviour = behaviour
        receipt = made.restart().submit("red")
        assert (receipt.state, receipt.reason) == ("waiting", "unsigned")
        made.clock.time += PERIOD
    assert made.outbox.spending().spent == 1.0
    shuffler.behaviour = signed("accepted")
    made.clock.time += 10_000.0
    assert [receipt.state for receipt in made.device.flush()] == ["accepted"]


def test_redirects_are_not_followed(shuffler: Shuffler) -> None:
    for status in (301, 302, 307, 308):
        shuffler.behaviour = reply(status, Location=shuffler.url + "/elsewhere")
        assert HttpTransport(shuffler.url, timeout=PATIENCE).send(WIRE) == refusal_event("unavailable")
        assert HttpTransport(shuffler.url, timeout=PATIENCE).fetch("colours") is None
    assert all(path != "/elsewhere" for _, path, _, _ in shuffler.seen)


@contextmanager
def trickling(shuffler: Shuffler, pause: float) -> Iterator[None]:
    """A server that answers for minutes, one byte after the other; the work inside must not wait for its end."""
    stop, ended = threading.Event(), threading.Event()

    def behave(handler: Handler) -> None:
        handler.close_connection = True
        with suppress(OSError):  # the device has hung up
            for byte in b"HTTP/1.1 202 Accepted\r\nX: " + b"y" * int(PATIENCE / pause):
                if stop.wait(pause):
                    return
                handler.wfile.write(bytes([byte]))
            ended.set()

    shuffler.behaviour = behave
    try:
        yield
        assert not ended.is_set(), "the device has waited for the whole answer"
    finally:
        stop.set()


@pytest.mark.parametrize("pause", [0.05, PATIENCE])
def test_a_server_that_trickles_or_sleeps_is_left_in_time(shuffler: Shuffler, pause: float) -> None:
    with trickling(shuffler, pause):
        assert HttpTransport(shuffler.url, timeout=0.3).send(WIRE) == UNREACHABLE


def test_nobody_there_is_an_answer_too() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        http = HttpTransport(f"http://127.0.0.1:{free.getsockname()[1]}", timeout=PATIENCE)
        assert (http.send(WIRE), http.fetch("colours"), http.round("colours")) == (UNREACHABLE, None, None)
    assert HttpTransport("http://no-such-host.invalid", insecure_http=True).send(WIRE) == UNREACHABLE


def test_plain_http_behind_an_https_url_is_unreachable(shuffler: Shuffler) -> None:
    assert HttpTransport(shuffler.url.replace("http", "https"), timeout=PATIENCE).send(WIRE) == UNREACHABLE
    assert shuffler.seen == []


@pytest.mark.parametrize("shuffler", [server_tls], indirect=True)
def test_over_tls_only_a_trusted_certificate_gets_the_message(shuffler: Shuffler) -> None:
    plain = HttpTransport(shuffler.url, timeout=PATIENCE)
    assert plain.send(WIRE) == UNTRUSTED and shuffler.seen == []
    assert plain.round("colours") is None and plain.fetch("colours") is None
    secure = HttpTransport(shuffler.url, timeout=PATIENCE, tls=ssl.create_default_context(cadata=AUTHORITY[0]))
    assert trusting(secure).send(WIRE) == ACCEPTED
    assert secure.send(WIRE) == ACCEPTED and len(shuffler.seen) == 2
    with trickling(shuffler, 0.05):
        assert replace(secure, timeout=0.5).send(WIRE) == UNREACHABLE


@pytest.mark.parametrize(
    "url",
    ["ftp://host", "host:80", "http://", "http://user@host", "http://u:secret-4711@host", "http://host?x=1", "http://h:0",
     "http://h:99999", "http://[::1", "http://host#x", ""],
)  # fmt: skip
def test_an_endpoint_that_is_not_plain_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match="`url` must be http") as caught:
        HttpTransport(url)
    assert "4711" not in str(caught.value)


def test_campaign_files_and_rounds_are_asked(shuffler: Shuffler) -> None:
    http = HttpTransport(shuffler.url, timeout=PATIENCE)
    shuffler.behaviour = reply(200, CAMPAIGN.signed)
    assert http.fetch("colours") == CAMPAIGN.signed
    assert shuffler.seen[-1][:2] == ("GET", "/v1/campaigns/colours")
    answers: list[tuple[Any, int | None]] = [
        ({"round": 3, "state": "open"}, 3), ({"round": 3, "state": "held"}, 0), ({"round": 0}, 0),
        ({"round": "3"}, None), ({"round": True}, None), ({"round": -1}, None), ([3], None), ({}, None),
    ]  # fmt: skip
    for answer, number in answers:
        shuffler.behaviour = reply(200, json.dumps(answer).encode())
        assert http.round("colours") == number, answer
    assert shuffler.seen[-1][:2] == ("GET", "/v1/campaigns/colours/round")


def test_a_report_gets_through_a_server_that_drops_delays_and_refuses(shuffler: Shuffler) -> None:
    """Every fault leaves the same bytes waiting, and the first good answer ends it."""
    newer = campaign(version=2)
    faults = [
        hang_up,
        reply(502),
        refusal(429, "rate_limited"),
        refusal(409, "campaign"),
        refusal(503, "unavailable"),
    ]
    queue = iter([*faults, signed("accepted")])

    def behave(handler: Handler) -> None:
        (reply(200, newer.signed) if handler.command == "GET" else next(queue))(handler)

    shuffler.behaviour = behave
    made = Bench(CAMPAIGN, FakeTransport())
    made.transport = HttpTransport(shuffler.url, timeout=PATIENCE)  # type: ignore[assignment]
    receipt = made.restart().submit("red")
    while receipt.state == "waiting":
        made.clock.time += receipt.wait
        (receipt,) = made.device.flush()
    posted = [body for method, _, _, body in shuffler.seen if method == "POST"]
    assert (receipt.state, receipt.round, len(posted)) == ("accepted", 1, 6)
    assert len(set(posted[:4])) == 1 and len(set(posted[4:])) == 1  # version 1, then version 2
    assert made.clock.time > START
