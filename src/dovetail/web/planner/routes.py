"""The planner's pages: the question is the address, so that a link holds the whole state.

What is asked while fields change is answered in three parts, in the order in which they are known: what is
recommended, the plan, and what it costs to be more accurate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dovetail.core.errors import DovetailError, ParameterError
from dovetail.plan.planner import CollectionPlan
from dovetail.plan.recommendation import Recommendation
from dovetail.web.pages import Pages
from dovetail.web.planner import export
from dovetail.web.planner.ahead import Ahead
from dovetail.web.planner.answers import Kept, Planned, Plans, Refused
from dovetail.web.planner.question import Question
from dovetail.web.planner.views import curves_view, first_view, form_view, more_view, refusal_view, view_of

Found = TypeVar("Found")

_FILES: dict[str, tuple[str, Callable[[Planned, dict[str, Any]], str]]] = {
    "survey.toml": ("application/toml", export.toml_of),
    "plan.py": ("text/x-python", export.python_of),
    "plan.json": ("application/json", export.json_of),
}
_NOTHING: dict[str, Any] = {"first": None, "answer": None, "more": None, "refusal": None}
_GONE = DovetailError("nobody waits for this any more.")


class Planner:
    """The routes of the planner around one store of answers."""

    def __init__(self, pages: Pages, plans: Plans, ahead: Ahead) -> None:
        self._pages, self._plans, self._ahead = pages, plans, ahead
        self._curves = Kept(lambda **asked: curves_view(_local(plans.plan(**asked))))
        self._first, self._rest = asyncio.Semaphore(2), asyncio.Semaphore(2)  # worked out at once

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/", self._page),
            Route("/plan/answer", self._answer),
            Route("/plan/exact", self._exact),
            Route("/plan/more", self._more),
            Route("/plan/sheet", self._sheet),
            Route("/participation", self._participation),
            *(Route(f"/plan/{name}", self._file(name)) for name in _FILES),
        ]

    async def _work(
        self, request: Request, ask: Callable[..., Found], few: asyncio.Semaphore
    ) -> tuple[Question, Found | DovetailError]:
        """The question of the address, and what is found or what is wrong with it."""
        question = Question.of(request.query_params)

        def work() -> Found | DovetailError:
            try:
                with self._ahead.while_asking(question):
                    return ask(**question.arguments())
            except DovetailError as error:
                return error

        async with few:
            if await request.is_disconnected():  # the next change came before this one was begun
                return question, _GONE
            return question, await asyncio.to_thread(work)

    async def _planned(self, request: Request) -> tuple[Question, Planned | DovetailError]:
        return await self._work(request, self._plans.plan, self._rest)

    async def _whole(self, request: Request) -> tuple[Question, Planned | DovetailError]:
        return await self._work(request, self._plans.whole, self._rest)

    async def _page(self, request: Request) -> Response:
        full = "full" in request.query_params
        question, found = await (self._whole(request) if full else self._planned(request))
        form = form_view(question, found if isinstance(found, DovetailError) else None)
        return self._pages("planner", form=form, **_shown(question, found, full=full))

    async def _answer(self, request: Request) -> Response:
        """At once: the plan where it is known, or what is recommended."""
        question, found = await self._work(request, self._known_or_first, self._first)
        page = self._pages("answer", **_shown(question, found))
        page.headers["HX-Replace-Url"] = f"/?{question.query}"
        return page

    def _known_or_first(self, **asked: Any) -> Planned | Recommendation | Refused:
        return self._plans.plan(**asked) if self._plans.knows(**asked) else self._plans.first(**asked)

    async def _exact(self, request: Request) -> Response:
        return self._pages("answer", **_shown(*await self._planned(request)))

    async def _more(self, request: Request) -> Response:
        _, found = await self._whole(request)
        return self._pages("more", more=more_view(found) if isinstance(found, CollectionPlan) else None)

    async def _sheet(self, request: Request) -> Response:
        question, found = await self._whole(request)
        if isinstance(found, DovetailError):
            return self._refuse(question, found)
        return self._pages("sheet", **_shown(question, found, full=True))

    async def _participation(self, request: Request) -> Response:
        question, found = await self._planned(request)
        if isinstance(found, DovetailError):
            return self._refuse(question, found)
        try:
            curves = await asyncio.to_thread(self._curves, **question.arguments())
        except DovetailError as error:
            return self._refuse(question, error)
        return self._pages("participation", answer=view_of(question, found), curves=curves)

    def _refuse(self, question: Question, error: DovetailError) -> Response:
        return self._pages("refused", status=400, refusal=refusal_view(question, error))

    def _file(self, name: str) -> Callable[[Request], Any]:
        kind, make = _FILES[name]

        async def answer(request: Request) -> Response:
            question, found = await self._whole(request)
            if isinstance(found, DovetailError):
                return PlainTextResponse(f"{found}\n", 400)
            text = make(found, question.arguments())
            return Response(text, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})

        return answer


def _shown(
    question: Question, found: Planned | Recommendation | Refused | DovetailError, *, full: bool = False
) -> dict[str, Any]:
    """What the template `answer` shows, whichever of them is known."""
    if isinstance(found, DovetailError):
        return {**_NOTHING, "refusal": refusal_view(question, found)}
    if isinstance(found, Refused):
        return {**_NOTHING, "first": {"query": question.query, "label": ""}}
    if isinstance(found, Recommendation):
        return {**_NOTHING, "first": first_view(question, found)}
    more = more_view(found) if full and isinstance(found, CollectionPlan) else None
    shown = {**view_of(question, found), "local": isinstance(found, CollectionPlan)}
    return {**_NOTHING, "answer": shown, "more": more}


def _local(plan: Planned) -> CollectionPlan:
    if not isinstance(plan, CollectionPlan):
        raise ParameterError(f'`trust` must be "local" for these curves, got "{plan.central.trust}".')
    return plan
