"""The app: the planner, the reader and the card of claims behind one guard."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from dovetail.audit.claim import NOISES, AuditedClaim, audit_claim
from dovetail.collect.http import STATUS, OneLength, Refusal, SecurityHeaders, run_until_stopped
from dovetail.core.display import downward
from dovetail.core.errors import DovetailError, ParameterError
from dovetail.report.number_format import ABSENT, upward
from dovetail.web.access import ENTRY, HEADERS, Guard, Session, let_in
from dovetail.web.pages import Pages, static_routes
from dovetail.web.planner import Planner
from dovetail.web.questions import Ahead, Plans, number_of, whole_of
from dovetail.web.reader import Reader


def web_app(session: Session, *, ahead: bool = True) -> Starlette:
    """The app of one session; `ahead` works out neighbouring plans while nobody waits."""
    pages, kept = Pages(session), Plans()
    beside, reader = Ahead(kept), Reader(pages, session.folder)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if ahead:
            beside.start()
        try:
            yield
        finally:
            beside.stop()
            await reader.stop()

    app = Starlette(
        routes=[
            Route(ENTRY, _entry(session)),
            *static_routes(),
            *Planner(pages, kept, beside).routes(),
            *Claims(pages).routes(),
            *reader.routes(),
        ],
        middleware=[Middleware(SecurityHeaders), Middleware(OneLength), Middleware(Guard, session=session)],
        exception_handlers={
            Refusal: _refuse,
            DovetailError: _say,
            HTTPException: _nothing_here,
            Exception: _fault,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


def _entry(session: Session) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        if request.method != "GET":  # a preview of a link asks with HEAD: it must not use the link up
            return Response(status_code=405, headers={"Allow": "GET"})
        if let_in(session, request.headers):  # opened again: its tables are still here
            return RedirectResponse("/", 303)
        if not session.enter(request.query_params.get("token", "")):
            return PlainTextResponse("This link was used before. Stop `dovetail web` and start it again.\n", 403)
        response = RedirectResponse("/", 303)
        response.set_cookie(session.cookie_name, session.cookie, httponly=True, samesite="lax", path="/")
        return response

    return answer


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _sentence(request, error.detail, STATUS[error.kind])


async def _say(request: Request, error: Exception) -> Response:
    return _sentence(request, str(error), 400)


def _sentence(request: Request, said: str, status: int) -> Response:
    """One line, for a person who opened an address or for the script of a page."""
    if "text/html" in request.headers.get("accept", ""):
        return PlainTextResponse(f"{said}\n", status)
    return JSONResponse({"detail": said}, status)


async def _nothing_here(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse("There is nothing here.\n", error.status_code)


async def _fault(_: Request, __: Exception) -> Response:
    """Answered outside of all middleware: it brings its headers itself."""
    return PlainTextResponse("A fault inside the program; its terminal says where.\n", 500, HEADERS)


# `dovetail web`: a server for one browser, on loopback, with a folder that goes when it ends.


LOOPBACK = "127.0.0.1"


def serve(*, host: str, port: int, browse: bool, tell: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `tell` gets the lines for the terminal.

    Raises
    ------
    ParameterError
        For an address that browsers cannot ask for by name.
    OutputError
        When the port is taken.
    """
    numeric = _address(host)
    logging.getLogger("uvicorn.error").addFilter(_one_line)
    with tempfile.TemporaryDirectory(prefix="dovetail-web-") as name:
        folder = Path(name)
        shown = f"[{host}]" if numeric.version == 6 else host
        session = Session(f"{shown}:{port}", folder)

        def ready(url: str) -> None:
            session.authority = url.removeprefix("http://")
            if numeric.is_loopback:
                session.also = (f"localhost:{session.authority.rpartition(':')[2]}",)
            tell(f"Open once, in one browser: {session.link}")
            if not numeric.is_loopback:
                tell("Others can reach this address and read what is sent: use it in a network you trust.")
            tell("Ctrl-C ends it and deletes what was opened.")
            if browse:
                open_browser(session)

        run_until_stopped(web_app(session), f"{shown}:{port}", ready=ready)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        found = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        found = None
    if found is None or found.is_unspecified:
        raise ParameterError(f"`host` must be one address of this machine, such as {LOOPBACK}, got {host}.")
    return found


def _one_line(record: logging.LogRecord) -> bool:
    """A fault in one line of the terminal, unless somebody looks for it."""
    if record.exc_info and not os.environ.get("DOVETAIL_DEBUG"):
        kind = record.exc_info[0]
        record.msg, record.args = (
            "internal fault, %s; run again with DOVETAIL_DEBUG=1.",
            (getattr(kind, "__name__", ""),),
        )
        record.exc_info = None
    return record.levelno >= logging.ERROR


def open_browser(session: Session) -> None:
    """Open the link by a file of our own: other users can read the arguments of a browser, not this file."""
    page = session.folder / "open.html"
    page.touch(mode=0o600)
    link = escape(session.link, quote=True)
    page.write_text(f'<!doctype html><title>Dovetail</title><meta http-equiv="refresh" content="0; url={link}">\n')
    webbrowser.open(page.as_uri())


# The card that judges a privacy claim: the claim is the address, the verdict that of `dovetail audit claim`.

NUMBERS = ("epsilon", "delta", "epsilon0", "scale", "sensitivity", "rate")
WHOLE = ("n", "honest", "rounds")
START = {"epsilon": ".86", "delta": "1e-5", "epsilon0": "8", "n": "1000"}  # what a public calculator says


class Claims:
    """The page of claims; one is judged at a time."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._one = asyncio.Semaphore(1)

    def routes(self) -> list[Route]:
        """The only one."""
        return [Route("/claim", self._page)]

    async def _page(self, request: Request) -> Response:
        texts = {name: text.strip() for name, text in request.query_params.items() if text.strip()} or START
        form = SimpleNamespace(texts=texts, sliders={}, wrong=None)
        try:
            async with self._one:
                found = await asyncio.to_thread(judged, texts)
        except DovetailError as error:
            return self._pages("claim", status=400, form=form, noises=[*NOISES], said=str(error), found=None)
        return self._pages("claim", form=form, noises=[*NOISES], said=None, found=_view(found))


def judged(texts: Mapping[str, str]) -> AuditedClaim:
    """The verdict on the claim that these fields hold; unknown fields are left out, as bookmarks of later pages."""
    given: dict[str, Any] = {name: number_of(name, texts[name]) for name in NUMBERS if name in texts}
    given |= {name: whole_of(name, texts[name]) for name in WHOLE if name in texts}
    given |= {name: texts[name] for name in ("noise", "randomizer") if name in texts}
    return audit_claim(**{"epsilon": 0.0, **given})


def _view(found: AuditedClaim) -> dict[str, Any]:
    return {
        "verdict": found.verdict,
        "sentence": found.sentence,
        "lower": ABSENT if found.lower is None else downward(found.lower),
        "upper": ABSENT if found.upper is None else upward(found.upper),
        "source": found.source,
        "notes": found.notes,
    }
