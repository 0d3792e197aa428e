"""Pages of reports: one as it was made, and two side by side."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from contextlib import suppress
from hashlib import sha256
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from dovetail.core.errors import DovetailError, StorageError
from dovetail.report.render.html import render_html
from dovetail.report.sections.verdict import verdict
from dovetail.web.pages import Pages
from dovetail.web.reader.changes import compare, read_report
from dovetail.web.reader.jobs import Job, Jobs
from dovetail.web.reader.shelf import MOST_REPORTS, OpenedReport, Shelf, new_id
from dovetail.web.reader.upload import MOST_REPORT, read

_LONGEST_NAME = 80
_NOTHING_BUT = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"


class ReportPages:
    """Reports that were opened or made in this session."""

    def __init__(self, pages: Pages, jobs: Jobs) -> None:
        self._pages, self._jobs = pages, jobs
        self._reports: Shelf[OpenedReport] = Shelf(MOST_REPORTS)
        self._adopted: dict[str, tuple[Any, ...]] = {}

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/compare", self._compare),
            Route("/compare/open", self._open, methods=["POST"]),
            Route("/reports/{id}", self._report),
            Route("/reports/{id}/report.json", self._json),
            Route("/reports/{id}/report.html", self._html),
        ]

    def adopt(self, job: Job) -> tuple[Any, ...]:
        """Put the report of a rehearsal on the shelf, once, under the id of its job; its verdict."""
        if job.id not in self._adopted:
            try:
                text = (job.report / "report.json").read_bytes()
            except OSError as error:
                raise StorageError(f"the report is gone ({error.strerror}).") from None
            document = read_report(text, job.name)
            self._reports.put(job.id, OpenedReport(job.name, document, job.id))
            self._adopted[job.id] = verdict(document)
        return self._adopted[job.id]

    def _adopt_all(self) -> None:
        """Rehearsals that have ended while nobody looked."""
        for job in self._jobs.all():
            if job.state == "done":
                with suppress(DovetailError):  # the page of the rehearsal says what is wrong
                    self.adopt(job)

    async def _open(self, request: Request) -> Response:
        """Take a report.json and say where it is shown."""
        name = _name(request.query_params.get("name", ""))
        document = await asyncio.to_thread(read_report, await read(request, MOST_REPORT), name)
        opened = OpenedReport(name, document, new_id())
        others = self._reports.all()
        self._reports.put(opened.id, opened)
        first = others[-1].id if others else opened.id
        return JSONResponse({"next": f"/compare?a={first}&b={opened.id}" if others else f"/compare?a={opened.id}"})

    async def _compare(self, request: Request) -> Response:
        await asyncio.to_thread(self._adopt_all)
        reports, chosen = self._reports.all(), request.query_params
        a, b = (self._reports[chosen[side]] if chosen.get(side) else None for side in ("a", "b"))
        both = a is not None and b is not None and a is not b
        changes = await asyncio.to_thread(compare, a.document, b.document) if both and a and b else None
        return self._pages(
            "compare", reports=reports, a=a, b=b, changes=changes, most=MOST_REPORT, megabytes=MOST_REPORT >> 20
        )

    async def _report(self, request: Request) -> Response:
        """The report as `run` writes it, with a way back; its one style sheet is allowed by its hash."""
        opened = self._reports[request.path_params["id"]]
        page = await asyncio.to_thread(render_html, opened.document)
        style = page[page.index("<style>") + len("<style>") : page.index("</style>")]
        allowed = b64encode(sha256(style.encode()).digest()).decode()
        policy = f"{_NOTHING_BUT} style-src 'sha256-{allowed}'"
        way_back = bytes(self._pages("report_nav", id=opened.id).body).decode()
        return HTMLResponse(page.replace("<main>", way_back, 1), headers={"Content-Security-Policy": policy})

    async def _json(self, request: Request) -> Response:
        opened = self._reports[request.path_params["id"]]
        text = json.dumps(opened.document, indent=1, ensure_ascii=False) + "\n"
        return Response(text, media_type="application/json", headers=_attached("report.json"))

    async def _html(self, request: Request) -> Response:
        page = await asyncio.to_thread(render_html, self._reports[request.path_params["id"]].document)
        return HTMLResponse(page, headers=_attached("report.html"))


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _name(given: str) -> str:
    """The name of a file as it is shown."""
    last = given.replace("\\", "/").rpartition("/")[2]
    return "".join(letter for letter in last if letter.isprintable())[:_LONGEST_NAME] or "report.json"
