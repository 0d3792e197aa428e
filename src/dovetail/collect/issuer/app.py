"""The issuer over HTTP: one route of devices, signed counts for analysts, and metrics."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dovetail.collect.clock import Clock
from dovetail.collect.http import Health, Refusal, read_limited, strict_app, tell_build, tell_start
from dovetail.collect.issuer.issuer import IssuerRole
from dovetail.collect.issuer.signing import SigningFault
from dovetail.collect.logs import Log, coarse
from dovetail_protocol.tokens import LONGEST, PATH

_LOG = Log("issuer")
_MOST_WAITING = 256  # requests; an entitled person who asks again and again starves nobody for long
_BUSY_SECONDS = 2.0


def issuer_app(issuer: IssuerRole, clock: Clock) -> Starlette:
    """The issuer's app; its lifespan ends with the store closed."""
    workers = ThreadPoolExecutor(min(4, os.cpu_count() or 1), thread_name_prefix="signer")
    waiting = 0

    async def tokens(request: Request) -> Response:
        nonlocal waiting
        body = await read_limited(request, LONGEST)  # first: nobody keeps a place by sending nothing
        if waiting >= _MOST_WAITING:
            raise Refusal("unavailable", "too much work is under way; come back later.", retry_after=_BUSY_SECONDS)
        waiting += 1
        try:
            loop = asyncio.get_running_loop()
            signed = await loop.run_in_executor(workers, issuer.issue, body, clock.now())
        except SigningFault as error:
            _LOG.fault("no signature", error)
            raise Refusal("unavailable", "no token can be made now; come back later.", retry_after=60.0) from None
        finally:
            waiting -= 1
        return Response(signed, media_type="application/octet-stream")

    async def issued(request: Request) -> Response:
        id = request.path_params["campaign"]
        return JSONResponse(await asyncio.to_thread(issuer.issued, id, clock.now()))

    async def metrics(_: Request) -> Response:
        return Response(await asyncio.to_thread(lambda: scrape(issuer, clock.now())), media_type=CONTENT_TYPE_LATEST)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        workers.shutdown(wait=True)
        issuer.store.close()

    routes = [
        Route(PATH, tokens, methods=["POST"]),
        Route("/v1/issued/{campaign}", issued),
        Route("/metrics", metrics),
    ]
    return strict_app(routes, ready=_health(issuer), lifespan=lifespan, middleware=[Middleware(_TokensToPages)])


class _TokensToPages:
    """Lets pages of any origin ask for tokens, and see nothing else of the issuer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open = CORSMiddleware(app, allow_origins=["*"], allow_methods=["POST"], allow_headers=["content-type"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._open if scope["type"] == "http" and scope["path"] == PATH else self._app
        await app(scope, receive, send)


def _health(issuer: IssuerRole) -> Callable[[], Health]:
    def health() -> Health:
        if not issuer.store.ready():
            return Health("the store cannot be written.")
        without_keys = [id for id, rounds in issuer.keys_here().items() if not rounds]
        return Health(facts={"without_keys": without_keys, "roster": issuer.entitled.fault()})

    return health


def scrape(issuer: IssuerRole, now: float) -> bytes:
    """The metrics in Prometheus' text format; nobody who watches them sees one person ask."""
    registry = CollectorRegistry(auto_describe=False)
    tell_build(registry)
    tell_start(registry)
    registry.register(_Metrics(issuer, now))
    return generate_latest(registry)


class _Metrics(Collector):
    def __init__(self, issuer: IssuerRole, now: float) -> None:
        self._issuer, self._now = issuer, now

    def collect(self) -> Iterator[Metric]:
        issued = GaugeMetricFamily(
            "dovetail_tokens_issued",
            "People who have the token of a round that sells no more, in tens.",
            labels=["campaign", "round"],
        )
        for (campaign, number), count in sorted(self._issuer.sold_out(self._now).items()):
            issued.add_metric([campaign, str(number)], coarse(count))
        yield issued
        refused = CounterMetricFamily(
            "dovetail_tokens_refused", "Requests that were refused, by kind, in tens.", labels=["campaign", "kind"]
        )
        for labels, count in sorted(self._issuer.refused().items()):
            refused.add_metric(list(labels), coarse(count))
        yield refused
        here = GaugeMetricFamily("dovetail_round_keys", "Rounds whose keys are here.", labels=["campaign"])
        for campaign, rounds in self._issuer.keys_here().items():
            here.add_metric([campaign], len(rounds))
        yield here
        roster = GaugeMetricFamily("dovetail_roster_broken", "1 while revocations do not count: see /readyz.")
        roster.add_metric([], int(bool(self._issuer.entitled.fault())))
        yield roster
        ready = GaugeMetricFamily("dovetail_ready", "1 while tokens can be issued.")
        ready.add_metric([], int(self._issuer.store.ready()))
        yield ready
