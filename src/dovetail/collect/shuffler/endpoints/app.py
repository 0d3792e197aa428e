"""The shuffler over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dovetail.collect.http.application import strict_app
from dovetail.collect.http.bodies import read_limited
from dovetail.collect.http.problems import Refusal
from dovetail.collect.shuffler.close_request import REQUEST, Action
from dovetail.collect.shuffler.endpoints import metrics
from dovetail.collect.shuffler.report_intake import ACCEPTED, refusal
from dovetail.collect.shuffler.service import ShufflerService
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.wire.answer import HEADER, answer_header


class MessageSource(Protocol):
    """Another way in, such as MQTT, that lives as long as the server."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


def shuffler_app(service: ShufflerService, *sources: MessageSource) -> Starlette:
    """The shuffler's app; its lifespan starts and stops the service and the other ways in."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await asyncio.to_thread(service.start)
        for source in sources:
            await asyncio.to_thread(source.start)
        yield
        for source in sources:
            await asyncio.to_thread(source.stop)
        await asyncio.to_thread(service.stop)

    here = _Handlers(service)
    routes = [
        Route("/v1/reports", here.report, methods=["POST"]),
        Route("/v1/campaigns/{id}", here.campaign),
        Route("/v1/campaigns/{id}/round", here.round),
        Route("/v1/campaigns/{id}/rounds/{number:number}/close", here.may_close, methods=["GET"]),
        Route("/v1/campaigns/{id}/rounds/{number:number}/close", here.close, methods=["POST"]),
        Route("/v1/campaigns/{id}/rounds/{number:number}/drop", here.may_drop, methods=["GET"]),
        Route("/v1/campaigns/{id}/rounds/{number:number}/drop", here.drop, methods=["POST"]),
        Route("/v1/status", here.status),
        Route("/metrics", here.metrics),
    ]
    return strict_app(routes, ready=service.health, lifespan=lifespan)


class _Handlers:
    def __init__(self, service: ShufflerService) -> None:
        self._service, self._shuffler = service, service.shuffler
        self._longest = self._shuffler.campaigns.longest

    async def report(self, request: Request) -> Response:
        with self._service.gate.admit(self._longest):
            message = await read_limited(request, self._longest)
            answer = await asyncio.wrap_future(self._service.submit(message))
        told = Response(status_code=202) if answer.kind == ACCEPTED else refusal(answer)
        told.headers[HEADER] = answer_header(self._shuffler.answer(message, answer))
        return told

    async def campaign(self, request: Request) -> Response:
        return Response(self._campaign(request).signed, media_type="text/plain")

    async def round(self, request: Request) -> Response:
        found = metrics.round_now(self._shuffler, self._campaign(request), self._service.clock.last())
        return JSONResponse(found)

    async def may_close(self, request: Request) -> Response:
        return self._challenge("close", request)

    async def close(self, request: Request) -> Response:
        return await self._settle(request, self._shuffler.close_round)

    async def may_drop(self, request: Request) -> Response:
        return self._challenge("drop", request)

    async def drop(self, request: Request) -> Response:
        return await self._settle(request, self._shuffler.drop_round)

    def _challenge(self, action: Action, request: Request) -> Response:
        id, number = self._campaign(request).id, request.path_params["number"]
        found = self._shuffler.challenge(action, id, number, self._service.clock.now())
        return JSONResponse({"round": number, "challenge": found.hex()})

    async def _settle(self, request: Request, act: Callable[[str, int, bytes, float], str]) -> Response:
        id, number = self._campaign(request).id, request.path_params["number"]
        signed = await read_limited(request, REQUEST)
        now = self._service.clock.now()
        state = await asyncio.to_thread(lambda: act(id, number, signed, now))
        return JSONResponse({"round": number, "state": state})

    async def status(self, _: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(lambda: metrics.status(self._service)))

    async def metrics(self, _: Request) -> Response:
        return Response(
            await asyncio.to_thread(lambda: metrics.scrape(self._service)), media_type=CONTENT_TYPE_LATEST
        )

    def _campaign(self, request: Request) -> Campaign:
        version = self._shuffler.campaigns.newest.get(request.path_params["id"])
        if version is None:
            raise Refusal("not_found", "no such campaign is served here.")
        return version.campaign
