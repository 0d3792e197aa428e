"""The planner's pages: the question is the address, so that a link holds the whole state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dovetail.core.errors import DovetailError
from dovetail.plan.planner import CollectionPlan
from dovetail.web.pages import Pages
from dovetail.web.planner import export
from dovetail.web.planner.ahead import Ahead
from dovetail.web.planner.answers import Kept
from dovetail.web.planner.question import Question
from dovetail.web.planner.views import answer_view, curves_view, form_view, more_view, refusal_view

_FILES: dict[str, tuple[str, Callable[[CollectionPlan, dict[str, Any]], str]]] = {
    "survey.toml": ("application/toml", export.toml_of),
    "plan.py": ("text/x-python", export.python_of),
    "plan.json": ("application/json", export.json_of),
}


class Planner:
    """The routes of the planner around one store of answers."""

    def __init__(self, pages: Pages, plans: Kept[CollectionPlan], ahead: Ahead) -> None:
        self._pages, self._plans, self._ahead = pages, plans, ahead
        self._curves = Kept(lambda **asked: curves_view(plans(**asked)))
        self._few = asyncio.Semaphore(2)  # plans that are worked out at once

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/", self._page),
            Route("/plan/answer", self._answer),
            Route("/plan/more", self._more),
            Route("/plan/sheet", self._sheet),
            Route("/participation", self._participation),
            *(Route(f"/plan/{name}", self._file(name)) for name in _FILES),
        ]

    async def _planned(self, request: Request) -> tuple[Question, CollectionPlan | DovetailError]:
        """The question of the address, and its plan or what is wrong with it."""
        question = Question.of(request.query_params)

        def work() -> CollectionPlan | DovetailError:
            try:
                with self._ahead.while_asking(question):
                    return self._plans(**question.arguments())
            except DovetailError as error:
                return error

        async with self._few:
            if await request.is_disconnected():  # the next change came before this one was begun
                return question, DovetailError("nobody waits for this any more.")
            return question, await asyncio.to_thread(work)

    async def _page(self, request: Request) -> Response:
        question, found = await self._planned(request)
        form = form_view(question, found if isinstance(found, DovetailError) else None)
        if isinstance(found, DovetailError):
            return self._pages(
                "planner", status=200, form=form, answer=None, more=None, refusal=refusal_view(question, found)
            )
        more = await asyncio.to_thread(more_view, found) if "full" in request.query_params else None
        return self._pages("planner", form=form, answer=answer_view(question, found), more=more, refusal=None)

    async def _answer(self, request: Request) -> Response:
        question, found = await self._planned(request)
        if isinstance(found, DovetailError):
            page = self._pages("answer", answer=None, more=None, refusal=refusal_view(question, found))
        else:
            page = self._pages("answer", answer=answer_view(question, found), more=None, refusal=None)
        page.headers["HX-Replace-Url"] = f"/?{question.query}"
        return page

    async def _more(self, request: Request) -> Response:
        _, found = await self._planned(request)
        if isinstance(found, DovetailError):
            return self._pages("more", more=None)
        return self._pages("more", more=await asyncio.to_thread(more_view, found))

    async def _sheet(self, request: Request) -> Response:
        question, found = await self._planned(request)
        if isinstance(found, DovetailError):
            return self._pages("refused", status=400, refusal=refusal_view(question, found))
        more = await asyncio.to_thread(more_view, found)
        return self._pages("sheet", answer=answer_view(question, found), more=more)

    async def _participation(self, request: Request) -> Response:
        question, found = await self._planned(request)
        if isinstance(found, DovetailError):
            return self._pages("refused", status=400, refusal=refusal_view(question, found))
        curves = await asyncio.to_thread(self._curves, **question.arguments())
        return self._pages("participation", answer=answer_view(question, found), curves=curves)

    def _file(self, name: str) -> Callable[[Request], Any]:
        kind, make = _FILES[name]

        async def answer(request: Request) -> Response:
            question, found = await self._planned(request)
            if isinstance(found, DovetailError):
                return PlainTextResponse(f"{found}\n", 400)
            text = await asyncio.to_thread(make, found, question.arguments())
            return Response(text, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})

        return answer
