"""The proxies' configuration as it is shipped, really running: what a stranger reaches, and what operators keep."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import create_connection
from threading import Thread

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from tests.collect import servers
from tests.collect.deploy.certificates import make_certificates
from tests.collect.deploy.tls_devices import PRIVATE, PUBLIC, check, secured
from tests.waiting import PATIENCE

SHIPPED = Path(__file__).parents[3] / "deploy" / "proxy"
ROUND = "/v1/campaigns/commute/rounds/1"
FOR_OPERATORS = ("/metrics", "/%6detrics", "/readyz", "/x/../metrics")


class Anything(BaseHTTPRequestHandler):
    """A server that answers whatever reaches it."""

    def answer(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def proxying(name: str, folder: Path, behind: int) -> Iterator[tuple[servers.Process, ssl.SSLContext]]:
    """The shipped proxy of one server that listens on the port `behind`, and what trusts it."""
    nginx = servers.program("nginx", "/usr/sbin")
    make_certificates(folder / "tls", ["localhost"])
    port = servers.free_port()
    rules, main = (SHIPPED / f"{name}.conf").read_text(), (SHIPPED / "nginx.conf").read_text()
    (listen,) = {"8401", "8402", "8404"} & {word for word in rules.replace(";", " ").split() if word.isdigit()}
    (upstream,) = {"127.0.0.1:8411", "127.0.0.1:8412", "127.0.0.1:8414"} & set(
        rules.replace(";", " ").replace("http://", " ").split()
    )
    inner, _, _ = rules.partition("\nserver {\n  listen 127.0.0.1:")  # without the health check of the container
    inner = inner.replace(f"listen {listen}", f"listen 127.0.0.1:{port}")
    (folder / "server.conf").write_text(inner.replace(upstream, f"127.0.0.1:{behind}"))
    for shipped, here in (
        ("/tmp/", f"{folder}/"),
        ("/tls/", f"{folder}/tls/"),
        ("/etc/nginx/server.conf", f"{folder}/server.conf"),
    ):
        assert shipped in main
        main = main.replace(shipped, here)
    (folder / "nginx.conf").write_text(("user root;\n" if os.geteuid() == 0 else "") + main)
    command = [nginx, "-e", "stderr", "-g", "daemon off;", "-c", str(folder / "nginx.conf")]
    process = servers.Process(command, port, folder / "log")
    try:
        process.start()
        yield process, ssl.create_default_context(cafile=str(folder / "tls" / "authority.pem"))
    finally:
        process.stop()


@contextmanager
def proxied(name: str, folder: Path) -> Iterator[httpx.Client]:
    """A client of the shipped proxy of one server, in front of something that answers everything."""
    behind = ThreadingHTTPServer(("127.0.0.1", 0), Anything)
    Thread(target=behind.serve_forever, daemon=True).start()
    try:
        with (
            proxying(name, folder, behind.server_port) as (proxy, trusted),
            httpx.Client(
                base_url=f"https://localhost:{proxy.port}", verify=trusted, timeout=PATIENCE, trust_env=False
            ) as client,
        ):
            yield client
    except servers.Absent as absent:
        pytest.skip(str(absent))
    finally:
        behind.shutdown()
        behind.server_close()


def test_devices_and_owners_reach_the_shuffler_and_nobody_its_status_or_metrics(tmp_path: Path) -> None:
    with proxied("shuffler", tmp_path) as client:
        assert client.post("/v1/reports", content=b"report").status_code == 200
        assert client.post("/ohttp", content=b"sealed").status_code == 200 == client.get("/ohttp-keys").status_code
        for place in ("/v1/campaigns/commute", "/v1/campaigns/commute/round", f"{ROUND}/close", f"{ROUND}/drop"):
            assert client.get(place).status_code == 200, place
        for place in (*FOR_OPERATORS, "/v1/status", "/v1/campaigns/../status", "/", "/v1/reports/x"):
            assert client.get(place).status_code == 404, place


def test_queries_and_batches_reach_the_analyzer_and_nobody_its_metrics(tmp_path: Path) -> None:
    with proxied("analyzer", tmp_path) as client:
        assert client.post("/v1/batches", content=b"batch").status_code == 200
        for place in ("/", "/live", "/v1/campaigns", "/v1/campaigns/commute/estimates"):
            assert client.get(place).status_code == 200, place
        for place in FOR_OPERATORS:
            assert client.get(place).status_code == 404, place


def test_requests_for_tokens_reach_the_issuer_and_nobody_its_metrics(tmp_path: Path) -> None:
    with proxied("issuer", tmp_path) as client:
        assert client.post("/v1/tokens", content=b"request").status_code == 200
        assert client.post("/v1/tokens", content=bytes(5000)).status_code == 413
        assert client.get("/v1/issued/commute").status_code == 200
        for place in (*FOR_OPERATORS, "/", "/v1/tokens/x"):
            assert client.get(place).status_code == 404, place


def test_clients_get_no_tickets_that_no_later_connection_could_use(tmp_path: Path) -> None:
    with proxied("shuffler", tmp_path) as client:
        trusted = ssl.create_default_context(cafile=str(tmp_path / "tls" / "authority.pem"))
        with (
            create_connection(("localhost", client.base_url.port or 0), timeout=PATIENCE) as link,
            trusted.wrap_socket(link, server_hostname="localhost") as tls,
        ):
            tls.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while tls.recv(1 << 16):
                pass
            assert tls.version() == "TLSv1.3" and tls.session is not None and not tls.session.has_ticket


def test_the_devices_of_benchmarks_are_answered_as_those_of_ssl_are(tmp_path: Path) -> None:
    with proxied("shuffler", tmp_path) as client:
        port = client.base_url.port or 0
        check(port, ssl.create_default_context(cafile=str(tmp_path / "tls" / "authority.pem")))
        for place, status in (("/v1/campaigns/commute", 200), ("/metrics", 404)):
            answer = talked(port, f"GET {place} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert answer.startswith(f"HTTP/1.1 {status} ".encode())


def talked(port: int, request: bytes) -> bytes:
    """What a server answers to one request of a device of the benchmarks."""
    talk, came = secured(request, lambda answer: b"\r\n\r\n" in answer), None
    with create_connection(("127.0.0.1", port), timeout=PATIENCE) as link:
        try:
            while True:
                said = next(talk) if came is None else talk.send(came)
                link.sendall(said)
                came = None if said else link.recv(1 << 16)
        except StopIteration as end:
            return bytes(end.value)


def test_the_key_of_devices_of_benchmarks_leaves_every_share_as_it_is() -> None:
    key = X25519PrivateKey.from_private_bytes(PRIVATE.to_bytes(32, "little"))
    assert key.public_key().public_bytes_raw() == PUBLIC
    for _ in range(10):
        share = X25519PrivateKey.generate().public_key()
        assert key.exchange(share) == share.public_bytes_raw()
