"""The gateway of oblivious HTTP: opens what a relay passed on, asks the shuffler in this process, seals the answer.

It goes to the routes of devices and nowhere else, whatever name a request bears: nobody reaches another server by it.
What is refused inside is answered inside, at the length of every other answer.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message

from dovetail.collect.http import MEDIA_TYPE, Refusal, read_limited
from dovetail.collect.logs import Log
from dovetail.collect.shuffler.intake import AdmissionControl
from dovetail.core.errors import DataError
from dovetail_protocol.binary_http import BinaryRequest, BinaryResponse, header, padded
from dovetail_protocol.messages import KEPT, answer_length
from dovetail_protocol.ohttp import KEYS_TYPE, MOST_SEALED, REQUEST_TYPE, RESPONSE_TYPE, Gateway, UnknownKey

_LOG = Log("shuffler.gateway")

PATH, KEYS_PATH = "/ohttp", "/ohttp-keys"
UNKNOWN_KEY = "https://iana.org/assignments/http-problem-types#ohttp-key"


def gateway_routes(gateway: Gateway, devices: ASGIApp, gate: AdmissionControl) -> list[Route]:
    """The gateway's two routes, in front of an app that has the routes of devices alone; `gate` bounds what opens."""

    async def oblivious(request: Request) -> Response:
        if request.headers.get("content-type") != REQUEST_TYPE:
            raise Refusal("malformed", f"a request of {REQUEST_TYPE} is taken here.")
        declared = request.headers.get("content-length", "")
        size = min(int(declared), MOST_SEALED) if declared.isdecimal() else MOST_SEALED  # of which no more is read
        try:
            with gate.admit(size):
                wire = await read_limited(request, MOST_SEALED)
                opened, pending = await asyncio.to_thread(gateway.open, wire)
            asked = BinaryRequest.decode(opened)
        except UnknownKey as error:
            return _unknown_key(str(error))
        except DataError:
            raise Refusal("malformed", "this is no request sealed to this gateway.") from None
        answer = (await _ask(devices, asked)).encode()
        sealed = pending.seal(padded(answer, answer_length(len(answer))))
        return Response(sealed, media_type=RESPONSE_TYPE)

    async def keys(_: Request) -> Response:
        return Response(gateway.configurations(), media_type=KEYS_TYPE)

    return [Route(PATH, oblivious, methods=["POST"]), Route(KEYS_PATH, keys, methods=["GET"])]


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
