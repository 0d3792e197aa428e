"""The app: the planner and the reader behind one guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from dovetail.collect.http.middleware import OneLength, SecurityHeaders
from dovetail.collect.http.problems import STATUS, Refusal
from dovetail.core.errors import DovetailError
from dovetail.web.access.guard import ENTRY, HEADERS, Guard, let_in
from dovetail.web.access.session import Session
from dovetail.web.pages import Pages, static_routes
from dovetail.web.planner.ahead import Ahead
from dovetail.web.planner.answers import Plans
from dovetail.web.planner.routes import Planner
from dovetail.web.reader.routes import Reader


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
