"""The desk of a survey: serves the page, and takes each invitation once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from dovetail.collect.http import Health, Refusal, read_limited, run_until_stopped, strict_app
from dovetail.collect.simulate.deployment import ServerProcess
from dovetail.collect.survey.folder import Survey, listen, sent_to
from dovetail.collect.survey.invitations import Invitations, read_enrolment
from dovetail.collect.survey.page import build_page
from dovetail.core.errors import ConfigError

Role = Literal["page", "shuffler", "analyzer", "issuer"]
_MOST = 4096  # bytes of an enrolment


def desk_app(survey: Survey) -> Starlette:
    """The page at /, and the route that takes an invitation."""
    page, invitations = build_page(survey), Invitations.load(survey.folder)
    policy = page.partition('Content-Security-Policy" content="')[2].partition('"')[0] + "; frame-ancestors 'none'"

    async def show(_: Request) -> Response:
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    async def enrol(request: Request) -> Response:
        found = read_enrolment(await read_limited(request, _MOST))
        state = "unknown" if found is None else await asyncio.to_thread(invitations.enrol, *found)
        status = {"enrolled": 204, "unknown": 403, "used": 409}[state]
        return Response(status_code=status, headers={"Access-Control-Allow-Origin": "*"})

    async def absent(_: Request) -> Response:
        raise Refusal("not_found", "no invitation is taken here.")

    route = enrol if survey.access == "invitations" else absent
    return strict_app([Route("/", show), Route("/v1/enrol", route, methods=["POST"])], ready=Health)


def run_survey(folder: Path, only: Role | None, tell: Callable[[str], None]) -> None:
    """Run the page and all servers until told to stop, or one of them."""
    survey = Survey.load(folder)

    def server(role: str) -> ServerProcess:
        command = [sys.executable, "-m", "dovetail", "collect", role, str(folder / f"{role}.toml")]
        return ServerProcess(role, command, folder / f"{role}.log")

    asked = survey.campaigns[0]
    behind = "" if asked.ohttp is None else "behind "
    places = {"analyzer": survey.analyzer, "shuffler": behind + sent_to(asked)}
    if asked.tokens is not None:
        places["issuer"] = asked.tokens.url
    if only not in (None, "page", *places):
        raise ConfigError(f"{folder} has no {only}: its invitations buy no tokens.")
    roles = list(places) if only is None else [only] if only != "page" else []
    with ExitStack() as stack:
        for role in roles:
            started = server(role)
            stack.callback(started.stop)
            started.start()
            started.ready()
            tell(f"{role}: {places[role]}")
        if only in (None, "page"):
            if survey.operators == "one":
                tell("One operator runs everything: what protects an answer is its own noise, and nothing else.")
            run_until_stopped(desk_app(survey), listen(survey.page), ready=lambda _: tell(f"page: {survey.page}"))
        else:
            assert started.running is not None
            started.running.wait()
