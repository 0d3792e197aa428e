"""An app as both servers have it: problem documents for whatever goes wrong, health, and strict routes."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from dovetail.core.errors import ConfigError, DovetailError, OutputError, StorageError
from dovetail_protocol.messages import Rejected

# What a server refuses, and how it says so: problem documents (RFC 9457) of a few kinds, the same for both servers.
#
# A detail names the rule that was broken; never a payload, a value, a token or an address.


TYPE = "urn:dovetail:problem:"
MEDIA_TYPE = "application/problem+json"
STATUS: dict[str, int] = {
    "malformed": 400,
    "version": 400,
    "seal": 400,
    "content": 400,
    "unauthorized": 401,
    "signature": 403,
    "unknown_device": 403,
    "revoked_device": 403,
    "not_found": 404,
    "method": 405,
    "timeout": 408,
    "campaign": 409,  # another version of the campaign: the device fetches it again and tries once more
    "round": 409,
    "late": 409,
    "second_report": 409,
    "lost": 410,
    "too_large": 413,
    "too_early": 425,
    "rate_limited": 429,
    "fault": 500,
    "unavailable": 503,
}


class Refusal(DovetailError):
    """Raised while a request is handled: it is answered with the problem document of `kind`."""

    def __init__(self, kind: str, detail: str, *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.retry_after = kind, detail, retry_after


@dataclass(frozen=True)
class Problem:
    """A problem document as a client reads it."""

    kind: str
    status: int
    detail: str


def problem(kind: str, detail: str, *, retry_after: float | None = None) -> Response:
    """The response that refuses a request; `retry_after` seconds, rounded up, where waiting helps."""
    status = STATUS[kind]
    document = {"type": TYPE + kind, "title": kind.replace("_", " "), "status": status, "detail": detail}
    headers = {} if retry_after is None else {"Retry-After": str(max(1, -int(-retry_after // 1)))}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 408:
        headers["Connection"] = "close"  # whoever is too slow begins anew
    return Response(json.dumps(document), status, headers, MEDIA_TYPE)


def read_problem(body: bytes) -> Problem | None:
    """The problem document in the body of a response; None for anything else, whatever a stranger answered."""
    try:
        found = json.loads(body)
        kind, status, detail = str(found["type"]), int(found["status"]), str(found["detail"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return Problem(kind.removeprefix(TYPE), status, detail) if kind.startswith(TYPE) else None


# What every request is checked for, and every response carries.


HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class SecurityHeaders:
    """Adds `HEADERS` to every response that does not set them itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if scope["scheme"] == "https":
                    headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class OneLength:
    """Refuses a request that declares a length and chunks: a proxy may read it as two (RFC 9112, section 6.1)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self._app
        if scope["type"] == "http" and {b"content-length", b"transfer-encoding"} <= {k for k, _ in scope["headers"]}:
            refused = problem("malformed", "a body has a length or comes in chunks, never both.")
            refused.headers["Connection"] = "close"
            answer = refused
        await answer(scope, receive, send)


PAUSE = 5.0  # seconds until a store that failed is asked again


class _Number(Convertor[int]):
    """`{name:number}` in a route: a whole number of at most ten digits; Starlette's `int` breaks on thousands."""

    regex = "[0-9]{1,10}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


class _Batch(Convertor[str]):
    """`{name:batch}` in a route: the id of a batch, as shufflers draw them."""

    regex = "[0-9a-f]{32}"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("number", _Number())
register_url_convertor("batch", _Batch())


@dataclass(frozen=True)
class Health:
    """Why nothing can be done now, or empty; and what needs an operator although work goes on."""

    fault: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]


def strict_app(
    routes: Sequence[BaseRoute], *, ready: Callable[[], Health], lifespan: Lifespan | None = None
) -> Starlette:
    """An app of these routes and `/healthz`, `/readyz`; `Refusal`, `Rejected` and faults become problem documents."""
    handlers: dict[Any, Any] = {
        Refusal: _answer_refusal,
        Rejected: _answer_rejected,
        HTTPException: _answer_http,
        ClientDisconnect: _answer_disconnect,
        StorageError: _answer_storage_error,
        Exception: _answer_fault,
    }
    app = Starlette(
        routes=[*routes, *health(ready)],
        middleware=[Middleware(SecurityHeaders), Middleware(OneLength)],
        exception_handlers=handlers,
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a path is right or unknown; nobody is sent elsewhere
    return app


def health(ready: Callable[[], Health]) -> list[Route]:
    """`/healthz`: the process answers; `/readyz`: it can do its work, as `ready` says (called in a thread)."""

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> Response:
        found = await asyncio.to_thread(ready)
        if found.fault:
            return problem("unavailable", found.fault, retry_after=PAUSE)
        facts = {name: what for name, what in found.facts.items() if what}
        return JSONResponse({"status": "degraded" if facts else "ready", **facts})

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


async def _answer_refusal(_: Request, error: Refusal) -> Response:
    return problem(error.kind, error.detail, retry_after=error.retry_after)


async def _answer_rejected(_: Request, error: Rejected) -> Response:
    return problem(error.kind, str(error))


async def _answer_http(_: Request, error: HTTPException) -> Response:
    if error.status_code == 405:
        return problem("method", "this place takes other methods.")
    return problem("not_found" if error.status_code == 404 else "malformed", "there is nothing here.")


async def _answer_storage_error(_: Request, __: StorageError) -> Response:
    """A store that fails has stored nothing: the sender comes back later."""
    return problem("unavailable", "nothing can be stored or read; come back later.", retry_after=PAUSE)


async def _answer_disconnect(_: Request, __: ClientDisconnect) -> Response:
    return problem("malformed", "the client left before its request had arrived.")


async def _answer_fault(_: Request, __: Exception) -> Response:
    return problem("fault", "a fault inside the server; its log names the place.")


# What one request, and all of them together, may take of a server.


SECONDS = 10.0  # within which a request has arrived, head and body alike
SLOWEST = 1 << 14  # bytes a second of long bodies, on average
MOST_HEAD = 1 << 14  # bytes
MOST_CONNECTIONS = 1000
STOP_SECONDS = 10  # for requests under way when the server is stopped


# Bodies of requests: at most so many bytes, and never slower than a deadline allows.


async def stream_limited(request: Request, most: int, *, seconds: float = SECONDS) -> AsyncIterator[bytes]:
    """The body piece by piece; refused beyond `most` bytes, or when no piece comes for `seconds`.

    Use it for long bodies that must not lie in memory, and `read_limited` for the others. A body that has taken
    longer than `seconds` comes with at least `SLOWEST` bytes a second, so that nobody holds a connection for ever.
    """
    declared = request.headers.get("content-length", "0")
    if not declared.isdigit() or int(declared) > most:
        raise _too_large(most)
    clock = asyncio.get_running_loop().time
    pieces, size, began = request.stream(), 0, clock()
    while True:
        left = began + seconds + size / SLOWEST - clock()
        try:
            async with asyncio.timeout(min(seconds, left)):
                piece = await anext(pieces)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise Refusal(
                "timeout", f"the body came too slowly; {seconds:g} seconds without any are too long."
            ) from None
        size += len(piece)
        if size > most:
            raise _too_large(most)
        yield piece


async def read_limited(request: Request, most: int, *, seconds: float = SECONDS) -> bytes:
    """The whole body; refused beyond `most` bytes, or when it has not arrived within `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return b"".join([piece async for piece in stream_limited(request, most, seconds=seconds)])
    except TimeoutError:
        raise Refusal("timeout", f"the body did not arrive within {seconds:g} seconds.") from None


def _too_large(most: int) -> Refusal:
    return Refusal("too_large", f"a body of at most {most} bytes is taken here.")


# The one place that reaches into uvicorn: a deadline for request heads, and problem documents for what is no HTTP.
#
# No setting of uvicorn does either. `timeout_keep_alive` starts anew with every byte, so that a client that sends one
# now and then is never cut off; what cannot be read is answered in plain text. `tests/collect/test_uvicorn.py` fails
# when one of the parts used here changes: `H11Protocol.conn`, `.cycle`, and `.send_400_response`.


class RequestDeadline(H11Protocol):
    """Closes connections whose request head, or unwanted rest of a body, takes longer than `SECONDS`."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel()

    def send_400_response(self, msg: str) -> None:
        """What cannot be read as HTTP gets a problem document too, unless its request has been answered."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            refused = problem("malformed", "this is no request that can be read.")
            head = h11.Response(status_code=400, headers=[*refused.raw_headers, (b"connection", b"close")])
            for event in (head, h11.Data(data=bytes(refused.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:  # an app that has begun answers nobody
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    @property
    def _answering(self) -> bool:
        """Whether a request has been read and its response is not complete."""
        return self.conn.our_state in (h11.SEND_RESPONSE, h11.SEND_BODY)

    def _watch(self) -> None:
        if self._answering:
            self._cancel()
        elif self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(SECONDS, self._expire)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        if not self._answering:
            self.transport.abort()


# Where a server listens.


def bind(listen: str) -> socket.socket:
    """A listening socket for `host:port`; port 0 takes a free one."""
    host, port = host_of(listen), int(listen.rpartition(":")[2])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        said = str(error.strerror).partition(" (")[0]  # Python appends the address again
        raise OutputError(f"{listen}: cannot listen there ({said}).") from None


def host_of(listen: str) -> str:
    """The host of `host:port`, or of `[host]:port`."""
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ConfigError(f"`listen` must be host:port, such as 127.0.0.1:8401, got {listen!r}.")
    return host.strip("[]")


def url_of(bound: socket.socket, *, tls: bool = False) -> str:
    """Where a bound socket is reached."""
    host, port = bound.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


# Running an app on uvicorn: no access log, no belief in proxy headers, no name of the software, a clean stop.


def uvicorn_server(app: ASGIApp, *, certificate: Path | None = None, key: Path | None = None) -> uvicorn.Server:
    """A server of `app`, with TLS if there are both files; `run` runs it, tests may serve it in their own loop."""
    if (certificate is None) != (key is None):
        raise ConfigError("`tls.certificate` and `tls.key` must be given together, or neither.")
    if certificate is not None and key is not None:
        _check_pair(certificate, key)
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=RequestDeadline,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=int(SECONDS),
            timeout_graceful_shutdown=STOP_SECONDS,
            h11_max_incomplete_event_size=MOST_HEAD,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
    )


def run_until_stopped(
    app: ASGIApp,
    listen: str,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or SIGINT; requests under way are finished first, then the app's lifespan ends.

    `ready` gets the URL once the address is bound.
    """
    made, bound = uvicorn_server(app, certificate=certificate, key=key), bind(listen)
    ready(url_of(bound, tls=certificate is not None))
    gc.freeze()  # what is loaded stays: a full collection that walks it, and the roster, stops everything for 0.3 s
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        made.run(sockets=[bound])
    except KeyboardInterrupt:  # uvicorn raises the signal again, after everything has ended in order
        return
    if not made.started:
        raise OutputError("the server could not start; its log says why.")


def _check_pair(certificate: Path, key: Path) -> None:
    for name, path in (("certificate", certificate), ("key", key)):
        if not path.is_file():
            raise ConfigError(f"`tls.{name}`: {path} is no file.")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except OSError:  # OpenSSL's words for this tell nobody anything
        raise ConfigError(
            f"`tls`: {certificate} and {key} must be a certificate chain and its key in PEM, without a pass phrase."
        ) from None
