"""The gateway of oblivious HTTP: opens what a relay passed on, asks the shuffler in this process, seals the answer.

It goes to the routes of devices and nowhere else, whatever name a request bears: nobody reaches another server by it.
What is refused inside is answered inside, at the length of every other answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message

from dovetail.collect.http import MEDIA_TYPE, Door, Refusal, problem_of, read_limited
from dovetail.collect.logs import Log
from dovetail.core.errors import DataError
from dovetail_protocol.binary_http import BinaryRequest, BinaryResponse, header, padded
from dovetail_protocol.messages import KEPT, answer_length
from dovetail_protocol.ohttp import KEYS_TYPE, OVERHEAD, REQUEST_TYPE, RESPONSE_TYPE, Gateway, UnknownKey

_LOG = Log("shuffler.gateway")

PATH, KEYS_PATH = "/ohttp", "/ohttp-keys"
UNKNOWN_KEY = "https://iana.org/assignments/http-problem-types#ohttp-key"
_LEAST = 1 << 14  # bytes before sealing that are always taken: a device that has slept knows an older length


class GatewayDoor:
    """Opens what comes by a relay: a report goes on through the door of reports, all else to an app.

    reports : the door of reports, which a plain request would come through.
    devices : an app that has the routes of devices alone.
    pad : the longest request of any campaign. No more is taken: what strangers announce is held until it has come.
    """

    def __init__(self, gateway: Gateway, reports: Door, devices: ASGIApp, *, pad: int) -> None:
        self._gateway, self._reports, self._devices = gateway, reports, devices
        self._under_way = set[asyncio.Task[None]]()
        kind = ((b"content-type", REQUEST_TYPE.encode()),)
        self.door = Door(PATH, max(_LEAST, pad) + OVERHEAD, reports.admit, self.ask, must=kind)
        self.routes = [Route(PATH, self._oblivious, methods=["POST"]), Route(KEYS_PATH, self._keys, methods=["GET"])]

    def ask(self, wire: bytes, tell: Callable[[Response], None]) -> None:
        """Answer one sealed request, once and later, in the loop that calls."""
        loop = asyncio.get_running_loop()
        try:
            opened, pending = self._gateway.open(wire)
            asked = BinaryRequest.decode(opened)
        except UnknownKey as error:
            loop.call_soon(tell, _unknown_key(str(error)))
            return
        except DataError:
            refused = Refusal("malformed", "this is no request sealed to this gateway.")
            loop.call_soon(tell, problem_of(refused))
            return

        def seal(found: BinaryResponse) -> None:
            answer = found.encode()
            tell(Response(pending.seal(padded(answer, answer_length(len(answer)))), media_type=RESPONSE_TYPE))

        if (asked.method, asked.path) == ("POST", self._reports.path) and len(asked.content) <= self._reports.most:
            self._reports.ask(asked.content, lambda answer: seal(_kept(answer)))
            return
        task = loop.create_task(self._elsewhere(asked, seal))
        self._under_way.add(task)  # else nobody holds it
        task.add_done_callback(self._under_way.discard)

    async def _elsewhere(self, asked: BinaryRequest, seal: Callable[[BinaryResponse], None]) -> None:
        seal(await _ask(self._devices, asked))

    async def _oblivious(self, request: Request) -> Response:
        """As the door, for a request that is no plain post."""
        if request.headers.get("content-type") != REQUEST_TYPE:
            raise Refusal("malformed", f"a request of {REQUEST_TYPE} is taken here.")
        declared, most = request.headers.get("content-length", ""), self.door.most
        size = min(int(declared), most) if declared.isdecimal() else most  # of which no more is read
        told = asyncio.Queue[Response]()
        with self.door.admit(size):
            self.ask(await read_limited(request, most), told.put_nowait)
            return await told.get()

    async def _keys(self, _: Request) -> Response:
        return Response(self._gateway.configurations(), media_type=KEYS_TYPE)


def _kept(answer: Response) -> BinaryResponse:
    """The part of an answer that a device reads."""
    fields = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.raw_headers)
    return BinaryResponse(answer.status_code, tuple(pair for pair in fields if pair[0] in KEPT), bytes(answer.body))


def _unknown_key(detail: str) -> Response:
    """The problem that RFC 9458, section 5.3, has for a key that the gateway does not know."""
    document = {"type": UNKNOWN_KEY, "title": "ohttp key", "status": 400, "detail": detail}
    return Response(json.dumps(document), 400, media_type=MEDIA_TYPE)


async def _ask(app: ASGIApp, asked: BinaryRequest) -> BinaryResponse:
    """The app's answer to a request that nobody sent over a socket: no address, no header but two."""
    path, _, query = asked.path.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": asked.method,
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [
            (b"content-type", header(asked.fields, "content-type").encode("latin-1")),
            (b"content-length", str(len(asked.content)).encode()),
        ],
    }
    status, fields, content = 500, list[tuple[str, str]](), bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": asked.content, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            fields.extend((name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"])
        elif message["type"] == "http.response.body":
            content.extend(message.get("body", b""))

    try:
        await app(scope, receive, send)
    except Exception as error:  # answered already, by the app, which raises it again for a server's log
        _LOG.fault("a request of the relay's failed", error)
    return BinaryResponse(status, tuple(pair for pair in fields if pair[0] in KEPT), bytes(content))
