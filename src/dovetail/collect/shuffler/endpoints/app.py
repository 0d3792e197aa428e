"""The shuffler over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dovetail.collect.http.application import strict_app
from dovetail.collect.http.bodies import read_limited
from dovetail.collect.http.problems import TYPE, Refusal
from dovetail.collect.shuffler.close_request import REQUEST, Action
from dovetail.collect.shuffler.endpoints import metrics
from dovetail.collect.shuffler.report_intake import ACCEPTED, Reply, refusal
from dovetail.collect.shuffler.service import ShufflerService
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.wire.answer import HEADER, answer_header
from dovetail_protocol.wire.message import Rejected

MOST_IN_BATCH = 1000  # messages
_LENGTH = 4  # bytes before each message of a batch


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
        Route("/v1/reports/batch", here.batch, methods=["POST"]),
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


def split_messages(body: bytes) -> list[bytes]:
    """The messages of a batch, each behind its length.

    >>> split_messages(bytes([0, 0, 0, 2]) + b"ab" + bytes([0, 0, 0, 1]) + b"c")
    [b'ab', b'c']
    """
    messages, place = list[bytes](), 0
    while place < len(body):
        start = place + _LENGTH
        place = start + int.from_bytes(body[place:start], "big")
        if start > len(body) or place > len(body) or len(messages) == MOST_IN_BATCH:
            raise Rejected("malformed", f"a batch is at most {MOST_IN_BATCH} messages, each behind its length.")
        messages.append(body[start:place])
    return messages


class _Handlers:
    def __init__(self, service: ShufflerService) -> None:
        self._service, self._shuffler = service, service.shuffler
        self._longest = self._shuffler.campaigns.longest

    async def report(self, request: Request) -> Response:
        with self._service.gate.admit(self._longest):
            message = await read_limited(request, self._longest)
            answer = (await self._submit([message]))[0]
        told = Response(status_code=202) if answer.kind == ACCEPTED else refusal(answer)
        told.headers[HEADER] = answer_header(self._shuffler.answer(message, answer))
        return told

    async def batch(self, request: Request) -> Response:
        most = MOST_IN_BATCH * (self._longest + _LENGTH)
        declared = request.headers.get("content-length", "")
        with self._service.gate.admit(min(most, int(declared)) if declared.isdigit() else most):
            messages = split_messages(await read_limited(request, most))
            answers = await self._submit(messages)
        signed = await asyncio.to_thread(lambda: [*map(self._shuffler.answer, messages, answers)])
        rejected = [
            {"index": index, "type": TYPE + answer.kind}
            for index, answer in enumerate(answers)
            if answer.kind != ACCEPTED
        ]
        told = {"accepted": len(answers) - len(rejected), "rejected": rejected}
        return JSONResponse({**told, "answers": [answer_header(answer) for answer in signed]})

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

    async def _submit(self, messages: Sequence[bytes]) -> list[Reply]:
        return await asyncio.wrap_future(self._service.submit(messages))
