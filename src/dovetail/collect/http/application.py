"""An app as both servers have it: problem documents for whatever goes wrong, health, and strict routes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dovetail.collect.http.middleware import OneLength, SecurityHeaders
from dovetail.collect.http.problems import Refusal, problem
from dovetail.core.errors import StorageError
from dovetail_protocol.wire.message import Rejected

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
