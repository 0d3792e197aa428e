"""The shuffler over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dovetail.collect.http import (
    STATUS,
    Door,
    Handover,
    Health,
    Refusal,
    problem_of,
    read_limited,
    strict_app,
    tell_build,
    tell_start,
)
from dovetail.collect.logs import Log, coarse
from dovetail.collect.shuffler import rounds as round_schedule
from dovetail.collect.shuffler.campaigns import REQUEST, Action
from dovetail.collect.shuffler.gateway import GatewayDoor
from dovetail.collect.shuffler.intake import ACCEPTED, PendingReply, Reply, refusal
from dovetail.collect.shuffler.service import ShufflerService
from dovetail.collect.shuffler.shuffler import ShufflerRole
from dovetail.collect.store.interfaces import RoundRecord
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.messages import CAMPAIGNS, HEADER, REPORTS, answer_header

# Metrics for Prometheus and the public status: counts in steps, so that nobody can watch one report arrive.


_LOG = Log("shuffler.app")

Label = TypeVar("Label")


def scrape(service: ShufflerService) -> bytes:
    """The metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    tell_build(registry)
    tell_start(registry)
    registry.register(_Metrics(service))
    return generate_latest(registry)


def status(service: ShufflerService) -> dict[str, Any]:
    """Rounds and coarse counts of every campaign, by the last time that the clock was believed."""
    shuffler, now = service.shuffler, service.clock.last()
    return {
        "campaigns": [_campaign(shuffler, version.campaign, now) for version in shuffler.campaigns.newest.values()],
        "batches_waiting": len(shuffler.rounds.store.outgoing()),
        "clock": "halted" if service.clock.halted else "believed",
        "roster": shuffler.roster_fault() or "read",
    }


def round_now(shuffler: ShufflerRole, campaign: Campaign, now: float) -> dict[str, Any]:
    """The round that devices report for, and its state."""
    rounds = shuffler.rounds.of(campaign.id)
    number = round_schedule.current_round(campaign, rounds, now)
    if number > campaign.schedule.count or number in shuffler.rounds.ended_before(campaign.id):
        return {"round": number, "state": "over"}
    return {"round": number, "state": rounds[number].state if number in rounds else "open" if number else "unopened"}


def _campaign(shuffler: ShufflerRole, campaign: Campaign, now: float) -> dict[str, Any]:
    rounds = shuffler.rounds.of(campaign.id).values()
    over = [round for round in rounds if round.state == "held" or _is_over(campaign, round, now)]
    dropped = [round for round in rounds if round.state == "dropped"]
    lost, ended = (set(find(campaign.id)) for find in (shuffler.rounds.lost, shuffler.rounds.ended_before))
    return {
        "id": campaign.id,
        **round_now(shuffler, campaign, now),
        "minimum": campaign.batch.minimum,
        "waiting": [{"round": round.number, "reports": coarse(round.count)} for round in over],
        "dropped": [{"round": round.number, "reports": coarse(round.count)} for round in dropped],
        "lost": [{"round": round.number, "reports": coarse(round.count)} for round in rounds if round.number in lost],
        "ended_before_restore": sorted(ended),
        "faulty": shuffler.faults.rounds().get(campaign.id, []),
        "refused_batches": [
            {"round": number, "kind": kind}
            for number, kind in sorted(shuffler.refused_batches().get(campaign.id, {}).items())
        ],
        "refused": _coarse(shuffler.rounds.store.faults(campaign.id)),
    }


def _is_over(campaign: Campaign, round: RoundRecord, now: float) -> bool:
    return round.state == "open" and round_schedule.is_over(campaign, round, now)


def _coarse(counts: dict[Label, int]) -> dict[Label, int]:
    """Counts in tens; what has not come ten times is not there at all."""
    return {label: coarse(count) for label, count in sorted(counts.items()) if coarse(count)}


class _Metrics(Collector):
    def __init__(self, service: ShufflerService) -> None:
        self._service, self._shuffler = service, service.shuffler

    def collect(self) -> Iterator[Metric]:
        messages = CounterMetricFamily(
            "dovetail_messages",
            "Messages by what became of them, in tens; accepted ones move when a round closes.",
            labels=["campaign", "kind"],
        )
        for labels, count in self._shuffler.counters.published().items():
            messages.add_metric(labels, count)
        yield messages
        rounds = GaugeMetricFamily("dovetail_rounds", "Rounds by state.", labels=["campaign", "state"])
        for id in self._shuffler.campaigns.newest:
            ended = self._shuffler.rounds.ended_before(id)
            states = Counter(
                "ended_before_restore" if round.number in ended else round.state
                for round in self._shuffler.rounds.of(id).values()
            )
            for state, count in sorted(states.items()):
                rounds.add_metric([id, state], count)
        yield rounds
        waiting = GaugeMetricFamily("dovetail_batches_waiting", "Batches that the analyzer has not counted yet.")
        waiting.add_metric([], len(self._shuffler.rounds.store.outgoing()))
        yield waiting
        refused = GaugeMetricFamily(
            "dovetail_batches_refused", "Batches that the analyzer refuses; they are sent again.", labels=["campaign"]
        )
        for id in self._shuffler.campaigns.newest:
            refused.add_metric([id], len(self._shuffler.refused_batches().get(id, ())))
        yield refused
        faulty = GaugeMetricFamily("dovetail_rounds_faulty", "Rounds that cannot go on.", labels=["campaign"])
        for id, numbers in self._shuffler.faults.rounds().items():
            faulty.add_metric([id], len(numbers))
        yield faulty
        roster = GaugeMetricFamily(
            "dovetail_roster_broken",
            "1 while the roster's file cannot be used: changes and revocations do not count.",
        )
        roster.add_metric([], int(bool(self._shuffler.roster_fault())))
        yield roster
        self._service.clock.last()
        halted = GaugeMetricFamily("dovetail_clock_halted", "1 while the clock is not believed.")
        halted.add_metric([], int(self._service.clock.halted))
        yield halted
        ready = GaugeMetricFamily("dovetail_ready", "1 while reports can be stored and rounds released.")
        ready.add_metric([], int(not self._service.health().fault))
        yield ready


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
    of_devices = [
        Route(REPORTS, here.report, methods=["POST"]),
        Route(f"{CAMPAIGNS}/{{id}}", here.campaign, methods=["GET"]),
        Route(f"{CAMPAIGNS}/{{id}}/round", here.round, methods=["GET"]),
    ]
    to_pages = tuple((name.lower().encode(), value.encode()) for name, value in _ANY_PAGE.items())
    doors = [Door(REPORTS, service.shuffler.campaigns.longest, service.gate.admit, here.ask, headers=to_pages)]
    routes = [
        *of_devices,
        Route("/v1/campaigns/{id}/rounds/{number:number}/close", here.may_close, methods=["GET"]),
        Route("/v1/campaigns/{id}/rounds/{number:number}/close", here.close, methods=["POST"]),
        Route("/v1/campaigns/{id}/rounds/{number:number}/drop", here.may_drop, methods=["GET"]),
        Route("/v1/campaigns/{id}/rounds/{number:number}/drop", here.drop, methods=["POST"]),
        Route("/v1/status", here.status),
        Route("/metrics", here.metrics),
    ]
    if service.gateway is not None:
        pad, devices = service.shuffler.campaigns.pad, strict_app(of_devices, ready=Health)
        gateway = GatewayDoor(service.gateway, doors[0], devices, pad=pad)
        routes += gateway.routes
        doors.append(gateway.door)
    app = strict_app(routes, ready=service.health, lifespan=lifespan, middleware=[Middleware(OpenToPages)])
    app.state.doors = tuple(doors)
    return app


class OpenToPages:
    """Lets pages of any origin use the routes of devices, and read what the shuffler has signed.

    These routes know no cookie and no password, so that a page can do no more than any other device; credentials
    are never allowed.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = _PAGES.get(_DEVICES.sub("", scope["path"])) if scope["type"] == "http" else None
        if method is None:
            return await self._app(scope, receive, send)
        asked = Headers(scope=scope)
        if scope["method"] == "OPTIONS" and asked.get("access-control-request-method") == method:
            allowed = {"Access-Control-Allow-Methods": method, "Access-Control-Allow-Headers": "Content-Type"}
            return await Response(status_code=204, headers=_ANY_PAGE | allowed | _ONE_DAY)(scope, receive, send)

        async def send_to_pages(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_ANY_PAGE)
            await send(message)

        return await self._app(scope, receive, send_to_pages)


_DEVICES = re.compile(r"(?<=^/v1/campaigns/)[^/]+")  # the id of a campaign
_PAGES = {"/v1/reports": "POST", "/v1/campaigns/": "GET", "/v1/campaigns//round": "GET"}
_ANY_PAGE = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": f"{HEADER}, Retry-After"}
_ONE_DAY = {"Access-Control-Max-Age": "86400"}


class _Handlers:
    def __init__(self, service: ShufflerService) -> None:
        self._service, self._shuffler = service, service.shuffler
        self._longest = self._shuffler.campaigns.longest
        self._back: Handover | None = None  # to the loop, once there is one

    async def report(self, request: Request) -> Response:
        with self._service.gate.admit(self._longest):
            message = await read_limited(request, self._longest)
            answer = await asyncio.wrap_future(self._service.submit(message))
        return self._told(message, answer)

    def ask(self, message: bytes, tell: Callable[[Response], None]) -> None:
        """As `report`, for a message that has come through the door."""
        if self._back is None:
            self._back = Handover()
        back = self._back
        self._service.submit(message).add_done_callback(
            lambda found: back.put(lambda: tell(self._found(message, found)))
        )

    def _found(self, message: bytes, found: PendingReply) -> Response:
        error = found.exception()
        if error is None:
            return self._told(message, found.result())
        refused = problem_of(error)
        if refused.status_code == STATUS["fault"]:
            _LOG.fault("a report could not be taken", error)
        return refused

    def _told(self, message: bytes, answer: Reply) -> Response:
        told = Response(status_code=202) if answer.kind == ACCEPTED else refusal(answer)
        told.headers[HEADER] = answer_header(self._shuffler.answer(message, answer))
        return told

    async def campaign(self, request: Request) -> Response:
        return Response(self._campaign(request).signed, media_type="text/plain")

    async def round(self, request: Request) -> Response:
        found = round_now(self._shuffler, self._campaign(request), self._service.clock.last())
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
        return JSONResponse(await asyncio.to_thread(lambda: status(self._service)))

    async def metrics(self, _: Request) -> Response:
        return Response(await asyncio.to_thread(lambda: scrape(self._service)), media_type=CONTENT_TYPE_LATEST)

    def _campaign(self, request: Request) -> Campaign:
        version = self._shuffler.campaigns.newest.get(request.path_params["id"])
        if version is None:
            raise Refusal("not_found", "no such campaign is served here.")
        return version.campaign
