"""An app as both servers have it: problem documents for whatever goes wrong, health, and strict routes."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import signal
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from dovetail import __version__
from dovetail.collect.clock import minute
from dovetail.core.errors import ConfigError, DovetailError, OutputError, StorageError
from dovetail_protocol.messages import Rejected

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

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
    "unentitled": 403,
    "not_found": 404,
    "method": 405,
    "timeout": 408,
    "campaign": 409,  # another version of the campaign: the device fetches it again and tries once more
    "round": 409,
    "late": 409,
    "second_report": 409,
    "issued": 409,
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
_RAW = tuple((name.lower().encode(), value.encode()) for name, value in HEADERS.items())
_STRICT = (b"strict-transport-security", b"max-age=31536000")


class SecurityHeaders:
    """Adds `HEADERS` to every response that does not set them itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                added = _RAW if scope["scheme"] != "https" else (*_RAW, _STRICT)
                message["headers"] = [*message["headers"], *(pair for pair in added if pair[0] not in own)]
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
    routes: Sequence[BaseRoute],
    *,
    ready: Callable[[], Health],
    lifespan: Lifespan | None = None,
    middleware: Sequence[Middleware] = (),
) -> Starlette:
    """An app of these routes and `/healthz`, `/readyz`; `Refusal`, `Rejected` and faults become problem documents."""
    handlers: dict[Any, Any] = {
        **dict.fromkeys((Refusal, Rejected, StorageError, Exception), _answer_error),
        HTTPException: _answer_http,
        ClientDisconnect: _answer_disconnect,
    }
    app = Starlette(
        routes=[*routes, *health(ready)],
        middleware=[Middleware(SecurityHeaders), Middleware(OneLength), *middleware],
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


def tell_build(registry: CollectorRegistry) -> None:
    """Tell the version that runs in a server's metrics: the label of a 1, by Prometheus' convention."""
    from prometheus_client import Info  # owners' verbs import this module, and need no server's libraries

    Info("dovetail_build", "1, with the version that runs.", registry=registry).info({"version": __version__})


def tell_start(registry: CollectorRegistry) -> None:
    """Tell when the process began, and no more of it: processor time, memory and connections show single requests."""
    from prometheus_client import Gauge, ProcessCollector

    for family in ProcessCollector(registry=None).collect():
        if family.name == "process_start_time_seconds":
            began = Gauge(family.name, "Start of the process, in whole minutes.", registry=registry)
            began.set(minute(family.samples[0].value))


def problem_of(error: BaseException) -> Response:
    """The problem document of whatever went wrong in a request; a stranger learns nothing of a fault."""
    match error:
        case Refusal():
            return problem(error.kind, error.detail, retry_after=error.retry_after)
        case Rejected():
            return problem(error.kind, str(error))
        case StorageError():  # nothing was stored: the sender comes back later
            return problem("unavailable", "nothing can be stored or read; come back later.", retry_after=PAUSE)
    return problem("fault", "a fault inside the server; its log names the place.")


async def _answer_error(_: Request, error: Exception) -> Response:
    return problem_of(error)


async def _answer_http(_: Request, error: HTTPException) -> Response:
    if error.status_code == 405:
        return problem("method", "this place takes other methods.")
    return problem("not_found" if error.status_code == 404 else "malformed", "there is nothing here.")


async def _answer_disconnect(_: Request, __: ClientDisconnect) -> Response:
    return problem("malformed", "the client left before its request had arrived.")


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
    _refuse_declared(request, most)
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
    _refuse_declared(request, most)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                body += piece
                if len(body) > most:
                    raise _too_large(most)
            return bytes(body)
    except TimeoutError:
        raise Refusal("timeout", _slow(seconds)) from None


def _refuse_declared(request: Request, most: int) -> None:
    declared = request.headers.get("content-length", "0")
    if not declared.isdigit() or int(declared) > most:
        raise _too_large(most)


def _slow(seconds: float) -> str:
    return f"the body did not arrive within {seconds:g} seconds."


def _too_large(most: int) -> Refusal:
    return Refusal("too_large", f"a body of at most {most} bytes is taken here.")


# The one place that reaches into uvicorn: a deadline for request heads, problem documents for what is no HTTP, and
# answers for whoever has closed her half of the connection.
#
# No setting of uvicorn does any of it. `timeout_keep_alive` starts anew with every byte: a client that sends one
# now and then is never cut off; what cannot be read is answered in plain text. `tests/collect/test_uvicorn.py` fails
# when one of the parts used here changes: `H11Protocol.conn`, `.cycle`, `.shutdown`, and `.send_400_response`.


class RequestDeadline(H11Protocol):
    """Closes connections whose request head, or unwanted rest of a body, takes longer than `SECONDS`."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection for the answer to a request that is whole, and no longer; TLS cannot be half closed."""
        waits = self.scheme == "http" and self._answering and self.conn.their_state is not h11.SEND_BODY
        if waits:
            self.shutdown()
        return waits

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel()

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be read as HTTP with a problem document, unless it has been answered."""
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
        """True if a request has been read and its response is not complete."""
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


# Doors: posts of one form, which need no parser for all of HTTP and no framework for all routes.
#
# A device's request has one form; read as that it costs a tenth of what uvicorn's parser and the app take. Whatever
# is not exactly of this form goes to them, with everything that follows on its connection, as if there were no door.


@dataclass(frozen=True)
class Door:
    """A path that is posted to, and where the bodies go; an app has its doors in `app.state.doors`.

    most : bytes of a body.
    admit : holds that many bytes until the answer is sent; Refusal where there is no room.
    ask : gets a body, and whom to tell the answer, once, in the loop's thread.
    must : fields that a request has, names in small letters; headers : of every answer, beside `HEADERS`.
    """

    path: str
    most: int
    admit: Callable[[int], AbstractContextManager[None]]
    ask: Callable[[bytes, Callable[[Response], None]], None]
    must: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)
    headers: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)

    @cached_property
    def line(self) -> bytes:
        """First line of a request."""
        return f"POST {self.path} HTTP/1.1\r\n".encode()


class Handover:
    """Calls that threads leave for the running loop, which makes all that are there whenever it is woken."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls, self._woken = deque[Callable[[], None]](), False

    def put(self, call: Callable[[], None]) -> None:
        """Have the loop make this call."""
        self._calls.append(call)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        self._woken = False  # first: whoever puts a call from now on wakes the loop again
        for _ in range(
            len(self._calls)
        ):  # and no more: those that these lead to wait for what else the loop has to do
            self._calls.popleft()()


# possessive throughout: a field is read once, whatever stands in it, and blanks without end cost nobody any time
_FIELDS = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[ \t]*+(?:[!-~]++[ \t]*+)*+\r\n)++")
_UNUSUAL = frozenset((b"transfer-encoding", b"expect", b"upgrade", b"te", b"trailer", b"connection"))
_LINES = {
    status: f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode() for status in (200, 202, *STATUS.values())
}


def _plain_length(head: bytes, must: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The length of the body after these header fields; None where uvicorn's parser must read them."""
    if not _FIELDS.fullmatch(head):
        return None
    lines = [line.partition(b":") for line in head[:-2].split(b"\r\n")]
    fields = {name.lower(): value.strip() for name, _, value in lines}
    size = fields.get(b"content-length", b"")
    if len(fields) < len(lines) or not _UNUSUAL.isdisjoint(fields) or not fields.get(b"host"):
        return None
    if not size.isdigit() or len(size) > 9 or any(fields.get(name) != value for name, value in must):
        return None
    return int(size)


class PlainPosts(RequestDeadline):
    """Takes plain posts through the app's doors, one at a time, and leaves every other connection to uvicorn."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._doors: Sequence[Door] = getattr(getattr(self.config.app, "state", None), "doors", ())
        self._door = next(iter(self._doors), None)  # None from when on the connection is uvicorn's
        self._came, self._body = bytearray(), slice(0)  # of what came, once the head has been read
        self._held, self._asked, self._last = ExitStack(), False, False
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._door is None:
            return super().data_received(data)
        self._came += data
        if self._asked:
            self.transport.pause_reading()  # the next request waits for the answer to this one
        else:
            self._read(self._door)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self._asked:
            self._held.close()

    def shutdown(self) -> None:
        """Close the connection, after the answer that is under way."""
        self._last = True
        if not self._asked:
            super().shutdown()

    @property
    def _answering(self) -> bool:
        return self._asked or super()._answering

    def _read(self, door: Door) -> None:
        """Ask with a request that is there to its end; else wait for the rest of it, unless it is no plain one."""
        if not self._body.stop:
            found = self._enter()
            if found is None:
                return self._leave()
            self._door = door = found
        if self._body.stop and len(self._came) >= self._body.stop:
            self._cancel()
            body = bytes(self._came[self._body])
            del self._came[: self._body.stop]
            self._body, self._asked = slice(0), True
            door.ask(body, self._tell)
        else:
            self._watch()

    def _enter(self) -> Door | None:
        """The door of the request that begins, which is held open once the head is there; None without one."""
        came = self._came
        door = next((each for each in self._doors if came.startswith(each.line) or each.line.startswith(came)), None)
        end = came.find(b"\r\n\r\n") + 2
        if door is None or max(end, len(came) if end < 2 else 0) > MOST_HEAD:
            return None
        if end < 2 or end == len(door.line):
            return door if end < 2 else None
        length = _plain_length(bytes(came[len(door.line) : end]), door.must)
        crowded = self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency
        if length is None or length > door.most or crowded:
            return None
        try:
            self._held.enter_context(door.admit(length))
        except Refusal:
            return None
        self._body = slice(end + 2, end + 2 + length)
        return door

    def _leave(self) -> None:
        self._door, came = None, bytes(self._came)
        self._came.clear()
        super().data_received(came)

    def _expire(self) -> None:
        if self._body.stop:
            self._deadline = None
            self._tell(problem("timeout", _slow(SECONDS)))
        else:
            super()._expire()

    def _tell(self, answer: Response) -> None:
        self._held.close()
        self._asked, self._body = False, slice(0)
        if self._door is None or self.transport.is_closing():  # nobody waits
            return
        secured = (*_RAW, _STRICT) if self.scheme == "https" else _RAW
        fields = (*self.server_state.default_headers, *answer.raw_headers, *self._door.headers, *secured)
        head = b"".join([b"%b: %b\r\n" % pair for pair in fields])
        self.transport.write(_LINES[answer.status_code] + head + b"\r\n" + bytes(answer.body))
        if self._last or "connection" in answer.headers:
            self.transport.close()
        elif self.flow.write_paused:  # a client that reads no answers
            self.transport.abort()
        else:
            self.transport.resume_reading()
            self._read(self._door) if self._came else self._watch()


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
            http=PlainPosts,
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
