"""A relay of oblivious HTTP: it forwards sealed requests to one gateway, without a header, and keeps nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dovetail.collect.http import Health, Refusal, read_limited, strict_app
from dovetail_protocol.endpoint import place_of, require_private
from dovetail_protocol.ohttp import MOST_SEALED, REQUEST_TYPE

SECONDS = 30.0  # for the gateway's answer


def relay_app(
    gateway: str, *, insecure_http: bool = False, transport: httpx.AsyncBaseTransport | None = None
) -> Starlette:
    """The app of a relay to this gateway; `transport` replaces the network in tests.

    Raises
    ------
    ConfigError
        For a `gateway` that is no address, or plain HTTP to another machine without `insecure_http`.
    """
    place_of("gateway", gateway, ("http", "https"))
    require_private("gateway", gateway, insecure=insecure_http)
    client = httpx.AsyncClient(transport=transport, timeout=SECONDS, trust_env=False, follow_redirects=False)
    client.headers.clear()

    async def forward(request: Request) -> Response:
        if request.headers.get("content-type") != REQUEST_TYPE:
            raise Refusal("malformed", f"a request of {REQUEST_TYPE} is taken here.")
        sealed = await read_limited(request, MOST_SEALED)
        try:
            found = await client.post(gateway, content=sealed, headers={"Content-Type": REQUEST_TYPE})
        except httpx.HTTPError:
            raise Refusal("unavailable", "the gateway does not answer; come back later.", retry_after=5.0) from None
        return Response(found.content, found.status_code, media_type=found.headers.get("content-type"))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    app = strict_app([Route("/", forward, methods=["POST"])], ready=Health, lifespan=lifespan)
    app.add_middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["POST"], allow_headers=["content-type"])
    return app
