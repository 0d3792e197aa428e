"""The HTTP side that both servers share, on a real socket: limits, slow clients, problem documents, a clean stop."""

import asyncio
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message
from tests.collect.servers import serving
from tests.waiting import PATIENCE, LoopClock, until

from dovetail.collect import http as limits
from dovetail.collect.http import (
    HEADERS,
    Health,
    Refusal,
    bind,
    read_limited,
    read_problem,
    run_until_stopped,
    stream_limited,
    strict_app,
    uvicorn_server,
)
from dovetail.core.errors import ConfigError, OutputError, StorageError
from dovetail_protocol.messages import Rejected

MOST = 1000


async def _echo(request: Request) -> Response:
    return Response(await read_limited(request, MOST, seconds=limits.SECONDS))


async def _rejects(_: Request) -> Response:
    raise Rejected("seal", "the report is not sealed to this shuffler.")


async def _refuses(_: Request) -> Response:
    raise Refusal("rate_limited", "too many reports of one device.", retry_after=7.5)


async def _stores(_: Request) -> Response:
    raise StorageError("the database canary cannot be reached.")


async def _breaks(_: Request) -> Response:
    raise RuntimeError("canary")


async def _page(_: Request) -> Response:
    return PlainTextResponse("page", headers={"Content-Security-Policy": "default-src 'self'"})


Serve = Callable[..., str]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LoopClock:
    """A clock of servers that is put forward: by itself it reaches no limit."""
    return LoopClock(monkeypatch)


@pytest.fixture
def serve(clock: LoopClock) -> Iterator[Serve]:
    """Serves the app above on a free port; stopped at the end."""
    started = ExitStack()

    def start(*, ready: bool = True, certificate: tuple[Path | None, Path | None] = (None, None)) -> str:
        app = strict_app(
            [
                Route("/echo", _echo, methods=["POST"]),
                Route("/rejects", _rejects),
                Route("/refuses", _refuses),
                Route("/breaks", _breaks),
                Route("/stores", _stores),
                Route("/page", _page),
            ],
            ready=lambda: Health("" if ready else "the store cannot be written."),
        )
        return started.enter_context(serving(app, certificate=certificate[0], key=certificate[1]))

    with started:
        yield start


def kind_of(response: httpx.Response) -> str:
    """The kind of a problem document, whose status is that of the response."""
    found = read_problem(response.content)
    assert found is not None and found.status == response.status_code
    assert response.headers["content-type"] == "application/problem+json"
    return found.kind


def test_every_refusal_is_a_problem_document(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    url = serve()
    with httpx.Client(base_url=url, timeout=PATIENCE) as client:
        assert kind_of(client.get("/rejects")) == "seal"
        limited = client.get("/refuses")
        assert kind_of(limited) == "rate_limited" and limited.headers["retry-after"] == "8"
        failing = client.get("/stores")
        assert kind_of(failing) == "unavailable" and failing.headers["retry-after"] == "5"
        assert "canary" not in failing.text
        assert kind_of(client.get("/nowhere")) == "not_found"
        assert kind_of(client.get("/echo")) == "method"
        with caplog.at_level(logging.CRITICAL, "uvicorn.error"):
            broken = client.get("/breaks")
        assert kind_of(broken) == "fault" and "canary" not in broken.text


def test_every_answer_carries_the_security_headers_and_no_name_of_the_software(serve: Serve) -> None:
    with httpx.Client(base_url=serve(), timeout=PATIENCE) as client:
        for path in ("/healthz", "/nowhere", "/refuses"):
            headers = client.get(path).headers
            assert {name: headers[name] for name in HEADERS} == HEADERS
            assert "server" not in headers and "strict-transport-security" not in headers
        assert client.get("/page").headers.get_list("content-security-policy") == ["default-src 'self'"]


@pytest.mark.parametrize("ready", [True, False])
def test_readiness_is_asked_and_health_is_not(ready: bool, serve: Serve) -> None:
    with httpx.Client(base_url=serve(ready=ready), timeout=PATIENCE) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == (200 if ready else 503)


def test_a_body_is_taken_up_to_the_limit_and_not_beyond(serve: Serve) -> None:
    with httpx.Client(base_url=serve(), timeout=PATIENCE) as client:
        assert client.post("/echo", content=b"x" * MOST).content == b"x" * MOST
        assert kind_of(client.post("/echo", content=b"x" * (MOST + 1))) == "too_large"
        pieces = iter([b"x" * MOST, b"x"])  # chunked: no length is declared
        assert kind_of(client.post("/echo", content=pieces)) == "too_large"


def test_a_body_that_declares_too_much_is_refused_before_any_of_it_is_read() -> None:
    async def receive() -> Message:
        raise AssertionError("nothing is read")

    request = Request({"type": "http", "headers": [(b"content-length", b"%d" % (MOST + 1))]}, receive)
    with pytest.raises(Refusal, match=f"at most {MOST} bytes"):
        asyncio.run(read_limited(request, MOST))


def test_a_streamed_body_is_taken_up_to_the_limit_and_not_beyond() -> None:
    async def taken(*pieces: bytes) -> bytes:
        left = list(pieces)

        async def receive() -> Message:
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

        request = Request({"type": "http", "headers": []}, receive)
        return b"".join([piece async for piece in stream_limited(request, MOST)])

    assert asyncio.run(taken(b"x" * (MOST - 1), b"y")) == b"x" * (MOST - 1) + b"y"
    with pytest.raises(Refusal, match=f"at most {MOST} bytes"):
        asyncio.run(taken(b"x" * MOST, b"y"))


def test_a_long_body_is_given_up_when_it_comes_slower_than_it_may_although_it_keeps_coming(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, seconds = LoopClock(monkeypatch), 2 * PATIENCE

    async def pieces_taken(piece: bytes, *, most: int) -> int:
        async def receive() -> Message:
            clock.pass_time(seconds / 2)  # a single piece is never late
            turn = asyncio.Event()  # the loop looks at its timers once
            asyncio.get_running_loop().call_soon(turn.set)
            await turn.wait()
            return {"type": "http.request", "body": piece, "more_body": True}

        taken, request = 0, Request({"type": "http", "headers": []}, receive)
        with suppress(Refusal):
            async for _ in stream_limited(request, 1 << 40, seconds=seconds):
                taken += 1
                if taken == most:
                    break
        return taken

    assert 1 <= asyncio.run(pieces_taken(b"x", most=9)) <= 3
    assert asyncio.run(pieces_taken(bytes(int(limits.SLOWEST * seconds)), most=9)) == 9


def raw_connection(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def until_closed(connection: socket.socket) -> bytes:
    """Everything that the server sends until it closes."""
    received = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(4096):
            received += piece
    return received


def later(url: str, clock: LoopClock, seconds: float) -> None:
    """The server has read what was sent to it, and then so much time passes."""
    assert httpx.get(f"{url}/healthz", timeout=PATIENCE).status_code == 200
    clock.pass_time(seconds)
    assert httpx.get(f"{url}/healthz", timeout=PATIENCE).status_code == 200


def test_a_body_that_does_not_come_is_answered_and_the_connection_is_closed(serve: Serve, clock: LoopClock) -> None:
    url = serve()
    with raw_connection(url) as connection:
        connection.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        later(url, clock, limits.SECONDS)
        answer = until_closed(connection)
    assert answer.startswith(b"HTTP/1.1 408 ") and b"urn:dovetail:problem:timeout" in answer


@pytest.mark.exhaust
def test_a_client_that_sends_its_head_byte_by_byte_is_cut_off(serve: Serve, clock: LoopClock) -> None:
    url = serve()
    with raw_connection(url) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        for _ in range(4):
            later(url, clock, limits.SECONDS / 5)
            connection.sendall(b"x")
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):  # open until the time is over
            connection.recv(1)
        connection.settimeout(PATIENCE)
        later(url, clock, limits.SECONDS / 5)
        assert until_closed(connection) == b""


@pytest.mark.exhaust
def test_a_silent_client_is_cut_off_before_and_after_a_request(serve: Serve, clock: LoopClock) -> None:
    url = serve()
    with raw_connection(url) as connection:
        later(url, clock, limits.SECONDS)
        assert until_closed(connection) == b""
    with raw_connection(url) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET")
        answer = connection.recv(1)
        later(url, clock, limits.SECONDS)  # the second head never comes
        assert (answer + until_closed(connection)).startswith(b"HTTP/1.1 200")


def test_a_head_without_end_is_refused(serve: Serve) -> None:
    with raw_connection(serve()) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * (2 * limits.MOST_HEAD))
        assert connection.recv(100).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("listen", ["", "8401", ":8401", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000"])
def test_a_bad_address_is_refused(listen: str) -> None:
    with pytest.raises(ConfigError, match="host:port"):
        bind(listen)


def test_an_address_in_use_is_refused() -> None:
    with bind("127.0.0.1:0") as bound, pytest.raises(OutputError, match=r"cannot listen there \([^()]*\)\.$"):
        bind(f"127.0.0.1:{bound.getsockname()[1]}")


def test_tls_takes_both_files_or_none(tmp_path: Path) -> None:
    app = strict_app([], ready=Health)
    with pytest.raises(ConfigError, match="together"):
        uvicorn_server(app, certificate=tmp_path / "c.pem")
    with pytest.raises(ConfigError, match="no file"):
        uvicorn_server(app, certificate=tmp_path / "c.pem", key=tmp_path / "k.pem")


def test_tls_files_that_do_not_fit_are_one_line_before_anybody_is_told_the_url(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    app, (pem, key) = strict_app([], ready=Health), certificate
    locked, told = tmp_path / "locked.key", list[str]()
    secret = Ed25519PrivateKey.generate()
    locked.write_bytes(secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))
    for wrong in ((pem, pem), (key, key), (pem, locked)):
        with pytest.raises(ConfigError, match="must be a certificate chain and its key"):
            run_until_stopped(app, "127.0.0.1:0", certificate=wrong[0], key=wrong[1], ready=told.append)
    assert told == []


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of its own for 127.0.0.1, and its key."""
    secret = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, secret.public_key(), x509.random_serial_number(), now, now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(secret, None)
    )
    pem, key = tmp_path / "server.pem", tmp_path / "server.key"
    pem.write_bytes(made.public_bytes(Encoding.PEM))
    key.write_bytes(secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return pem, key


def test_over_tls_browsers_are_told_to_stay_there(serve: Serve, certificate: tuple[Path, Path]) -> None:
    url = serve(certificate=certificate)
    trust = ssl.create_default_context(cafile=certificate[0])
    with httpx.Client(base_url=url, verify=trust, timeout=PATIENCE) as client:
        assert url.startswith("https://")
        assert "max-age" in client.get("/healthz").headers["strict-transport-security"]


SERVER = """
import asyncio, sys
from contextlib import asynccontextmanager
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from dovetail.collect import logs as server_log
import dovetail.collect.http as limits
from dovetail.collect.http import Health, strict_app
from dovetail.collect.http import run_until_stopped

server_log.setup(sys.stderr)
limits.STOP_SECONDS = 600

async def slow(request):
    print("working", flush=True)
    return PlainTextResponse(await asyncio.to_thread(sys.stdin.readline))

@asynccontextmanager
async def life(app):
    yield
    print("ended", flush=True)

app = strict_app([Route("/slow", slow)], ready=Health, lifespan=life)
run_until_stopped(app, "127.0.0.1:0", ready=lambda url: print(url, flush=True))
print("clean", flush=True)
"""


def listens(url: str) -> bool:
    try:
        raw_connection(url).close()
    except OSError:
        return False
    return True


@pytest.mark.exhaust
def test_a_server_that_is_stopped_finishes_what_it_does_and_logs_no_address() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    url, answers = process.stdout.readline().strip(), list[str]()
    asking = threading.Thread(target=lambda: answers.append(httpx.get(f"{url}/slow", timeout=PATIENCE).text))
    asking.start()
    assert process.stdout.readline() == "working\n"
    os.kill(process.pid, signal.SIGTERM)
    until(lambda: not listens(url))
    out, err = process.communicate("done", timeout=PATIENCE)
    asking.join()
    assert answers == ["done"]
    assert (out, process.returncode) == ("ended\nclean\n", 0)
    assert "127.0.0.1" not in err and "slow" not in err
