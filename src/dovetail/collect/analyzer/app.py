"""The analyzer over HTTP: batches from shufflers, queries with tokens, and the live page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from dovetail.collect.analyzer import answers as export
from dovetail.collect.analyzer import live_page as page
from dovetail.collect.analyzer.analyzer import Analyzer, AnalyzerConfig, assemble
from dovetail.collect.analyzer.answers import CampaignAnswers
from dovetail.collect.analyzer.batch_intake import MOST_REPORTS, IncomingBatch, Manifest, write_to
from dovetail.collect.analyzer.tokens import Token, TokenSource
from dovetail.collect.batch import IN_PARTS, MOST_MANIFEST
from dovetail.collect.files import tls_files
from dovetail.collect.http import Lifespan, Refusal, run_until_stopped, stream_limited, strict_app
from dovetail.collect.logs import Log

Endpoint = Callable[[Request], Awaitable[Response]]

MOST_BODY = MOST_REPORTS * 4096  # bytes; the signed header of a batch says how many really come
_PURGE_SECONDS = 3600.0
_PART_IN_MEMORY = 1 << 20  # bytes of each upload: there may be many at once
_WIDEST = 100_000  # rounds of a window
_LOG = Log("analyzer")


def analyzer_app(analyzer: Analyzer, *, tokens: TokenSource, public_page: bool = False) -> Starlette:
    """The app around an analyzer; without `public_page` there is none."""
    asked = {
        "status": lambda answers, _: answers.status(),
        "estimates": lambda answers, _: {"estimates": [answers.document(each) for each in answers.rounds()]},
        "estimates/latest": lambda answers, _: answers.document(answers.latest(), detail=True),
        "estimates/{t:number}": lambda answers, request: answers.document(
            answers.at(request.path_params["t"]), detail=True
        ),
        "window": lambda answers, request: answers.window(
            _whole(request, "t"), width=_whole(request, "w", most=_WIDEST)
        ),
        "frequencies": lambda answers, request: answers.frequencies(_maybe(request, "t")),
        "guarantee": lambda answers, request: answers.guarantee(_maybe(request, "t")),
    }
    files = {
        "csv": (export.as_csv, "text/csv; charset=utf-8"),
        "parquet": (export.as_parquet, "application/vnd.apache.parquet"),
    }
    campaign = "/v1/campaigns/{campaign}"

    def guard(endpoint: Endpoint) -> Endpoint:
        return _require_token(tokens, analyzer, endpoint)

    routes = [
        Route("/v1/batches", _batches(analyzer), methods=["POST"]),
        Route("/v1/batches/{batch:batch}", _offer(analyzer), methods=["PUT"]),
        Route("/v1/batches/{batch:batch}/parts/{part:number}", _part(analyzer), methods=["PUT"]),
        Route("/v1/campaigns", guard(_list(analyzer))),
        *(Route(f"{campaign}/{name}", guard(_ask(analyzer, find))) for name, find in asked.items()),
        *(
            Route(f"{campaign}/export.{name}", guard(_file(analyzer, write, kind)))
            for name, (write, kind) in files.items()
        ),
        Route(f"{campaign}/requirement", _ask(analyzer, lambda answers, _: answers.requirement())),
        Route("/metrics", _metrics(analyzer)),
    ]
    if public_page:
        routes += [Route("/", _page(analyzer)), Route("/live", _live(analyzer))]
    return strict_app(routes, ready=analyzer.health, lifespan=_lifespan(analyzer))


def run_analyzer(config: AnalyzerConfig, folder: Path, ready: Callable[[str], None]) -> None:
    """Run the analyzer of a configuration in `folder` until it is told to stop; `ready` gets its URL."""
    analyzer, tokens = assemble(config, folder)
    try:
        app = analyzer_app(analyzer, tokens=tokens, public_page=config.public_page)
        run_until_stopped(app, config.listen, ready=ready, **tls_files(config.tls, folder))
    finally:
        analyzer.store.close()


def _lifespan(analyzer: Analyzer) -> Lifespan:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(_purge_hourly(analyzer))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    return lifespan


async def _purge_hourly(analyzer: Analyzer) -> None:
    """Keeps the retention period; a fault is logged, and the next hour tries again."""
    while True:
        try:
            await asyncio.to_thread(analyzer.purge)
        except Exception as error:
            _LOG.fault("purge failed", error)
        await asyncio.sleep(_PURGE_SECONDS)


def _batches(analyzer: Analyzer) -> Endpoint:
    async def receive(request: Request) -> Response:
        with analyzer.spool() as spool, analyzer.refusals():
            arrival = IncomingBatch(analyzer.campaigns, spool)
            async for piece in stream_limited(request, MOST_BODY):
                arrival.feed(piece)
            arrived = arrival.finish()
            state = await asyncio.to_thread(analyzer.count, arrived)
        return JSONResponse({"batch": arrived.header.batch, "state": state})

    return receive


def _offer(analyzer: Analyzer) -> Endpoint:
    async def offer(request: Request) -> Response:
        with analyzer.spool() as spool, analyzer.refusals():
            arrival = IncomingBatch(analyzer.campaigns, spool, IN_PARTS)
            async for piece in stream_limited(request, MOST_MANIFEST):
                arrival.feed(piece)
            manifest = Manifest.of(arrival)
            if manifest.header.batch != request.path_params["batch"]:
                raise Refusal("malformed", "the manifest is that of another batch.")
            missing = await asyncio.to_thread(analyzer.offer, manifest)
        told = {"state": "incomplete", "missing": missing} if missing else {"state": "counted"}
        return JSONResponse({"batch": manifest.header.batch, **told})

    return offer


def _part(analyzer: Analyzer) -> Endpoint:
    alone = asyncio.Lock()

    async def keep(request: Request) -> Response:
        batch, number = request.path_params["batch"], request.path_params["part"]
        length = await asyncio.to_thread(analyzer.parts.length, batch, number)
        with analyzer.spool(_PART_IN_MEMORY) as spool, analyzer.refusals():
            async for piece in stream_limited(request, length):
                write_to(spool, piece)
            async with alone:  # so that memory holds one part, however many come
                spool.seek(0)
                await asyncio.to_thread(analyzer.parts.keep, batch, number, spool.read())
        return JSONResponse({"batch": batch, "part": number, "state": "kept"})

    return keep


def _list(analyzer: Analyzer) -> Endpoint:
    async def campaigns(request: Request) -> Response:
        token: Token = request.state.token
        found = [answers.heading() for answers in analyzer.all_answers()]
        return JSONResponse({"campaigns": [each for each in found if token.reads(each["campaign"])]})

    return campaigns


def _ask(analyzer: Analyzer, find: Callable[[CampaignAnswers, Request], Any]) -> Endpoint:
    async def ask(request: Request) -> Response:
        answers = analyzer.answers(request.path_params["campaign"])
        return JSONResponse(await asyncio.to_thread(find, answers, request))

    return ask


def _file(analyzer: Analyzer, write: Callable[[Any], bytes], kind: str) -> Endpoint:
    async def download(request: Request) -> Response:
        answers = analyzer.answers(request.path_params["campaign"])
        return Response(await asyncio.to_thread(lambda: write(export.table(answers))), media_type=kind)

    return download


def _metrics(analyzer: Analyzer) -> Endpoint:
    async def metrics(_: Request) -> Response:
        return Response(analyzer.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return metrics


def _page(analyzer: Analyzer) -> Endpoint:
    async def show(_: Request) -> Response:
        html = await asyncio.to_thread(page.render, analyzer.all_answers())
        return HTMLResponse(html, headers={"Content-Security-Policy": page.POLICY})

    return show


def _live(analyzer: Analyzer) -> Endpoint:
    async def refresh(_: Request) -> Response:
        return JSONResponse({"html": await asyncio.to_thread(page.render_body, analyzer.all_answers())})

    return refresh


def _require_token(tokens: TokenSource, analyzer: Analyzer, endpoint: Endpoint) -> Endpoint:
    """The endpoint behind a bearer token that is valid now and reads its campaign."""

    async def guarded(request: Request) -> Response:
        token = tokens.current().find(request.headers.get("authorization"), now=analyzer.clock.now())
        if token is None:
            raise Refusal("unauthorized", "a bearer token of this analyzer is needed, and one that is still valid.")
        if not token.reads(request.path_params.get("campaign", "")) and "campaign" in request.path_params:
            raise Refusal("not_found", "there is no such campaign here, or none that this token may read.")
        request.state.token = token
        return await endpoint(request)

    return guarded


def _maybe(request: Request, name: str) -> int | None:
    return _whole(request, name) if name in request.query_params else None


def _whole(request: Request, name: str, *, most: int = 1 << 31) -> int:
    """A whole number from the query, at least 1."""
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and 1 <= int(text) <= most):
        raise Refusal("malformed", f"`{name}` must be a whole number from 1 to {most}.")
    return int(text)
