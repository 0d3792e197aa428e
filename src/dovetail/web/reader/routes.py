"""The reader's pages: a table to its problems, to a rehearsal, to a report; and two reports side by side."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dovetail.collect.http.problems import Refusal
from dovetail.core.errors import DovetailError
from dovetail.web.pages import Pages
from dovetail.web.reader.bounds import refuse_too_large
from dovetail.web.reader.configure import checked_config, written_config
from dovetail.web.reader.declare import declared_of
from dovetail.web.reader.jobs import Job, Jobs
from dovetail.web.reader.report_routes import ReportPages
from dovetail.web.reader.shelf import MOST_TABLES, OpenedTable, Shelf, discard, new_table
from dovetail.web.reader.tables import TableChecks, check_view
from dovetail.web.reader.upload import MOST_FORM, MOST_TABLE, read, save


class Reader:
    """The routes of the reader around what one person has opened."""

    def __init__(self, pages: Pages, folder: Path) -> None:
        self._pages, self._folder = pages, folder
        self._tables: Shelf[OpenedTable] = Shelf(MOST_TABLES)
        self._jobs, self._checks = Jobs(folder), TableChecks()
        self._reports = ReportPages(pages, self._jobs)

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/read", self._start),
            Route("/read/open", self._open, methods=["POST"]),
            Route("/read/{id}", self._table),
            Route("/read/{id}/survey.toml", self._config),
            Route("/read/{id}/rehearse", self._rehearse, methods=["POST"]),
            Route("/read/{id}/close", self._close, methods=["POST"]),
            Route("/jobs/{id}", self._job),
            Route("/jobs/{id}/state", self._state),
            Route("/jobs/{id}/cancel", self._cancel, methods=["POST"]),
            *self._reports.routes(),
        ]

    async def stop(self) -> None:
        """End what is running."""
        await self._jobs.stop()

    async def _start(self, _: Request) -> Response:
        tables, jobs = self._tables.all(), self._jobs.all()
        return self._pages("read", tables=tables, jobs=jobs, most=MOST_TABLE, megabytes=MOST_TABLE >> 20)

    async def _open(self, request: Request) -> Response:
        """Take a table, look at it, and say where to go on."""
        table = new_table(request.query_params.get("name", ""), self._folder)
        try:
            await save(request, table.path)
            await asyncio.to_thread(refuse_too_large, table.path)
            await asyncio.to_thread(self._checks, table, declared_of(request.query_params))
        except BaseException as error:
            discard(table)
            if isinstance(error, DovetailError) and not isinstance(error, Refusal):
                raise _plain(error, table) from None
            raise
        for old in self._tables.put(table.id, table):
            await self._forget(old)
        return JSONResponse({"next": f"/read/{table.id}"})

    async def _table(self, request: Request) -> Response:
        table, query = self._tables[request.path_params["id"]], request.query_params
        said = ""
        try:
            found = await asyncio.to_thread(self._checks, table, declared_of(query))
        except DovetailError as error:
            said = str(_plain(error, table))
            found = await asyncio.to_thread(self._checks, table, declared_of(type(query)("")))
        view = check_view(table, found, query, written_config(found, table) if found.asked.private else "")
        return self._pages("table", status=400 if said else 200, table=table, view=view, said=said)

    async def _config(self, request: Request) -> Response:
        table = self._tables[request.path_params["id"]]
        found = await asyncio.to_thread(self._checks, table, declared_of(request.query_params))
        name = f"{table.path.stem}.toml"
        return Response(
            written_config(found, table),
            media_type="application/toml",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    async def _rehearse(self, request: Request) -> Response:
        """Rehearse with the configuration as it stands on the page."""
        table = self._tables[request.path_params["id"]]
        try:
            config = checked_config(await read(request, MOST_FORM), table)
            job = self._jobs.start(table.name, table.folder, config)
        except DovetailError as error:
            return self._pages("message", said=str(_plain(error, table)))
        return Response(headers={"HX-Redirect": f"/jobs/{job.id}"})

    async def _close(self, request: Request) -> Response:
        """Delete a table and what was made of it."""
        table = self._tables[request.path_params["id"]]
        self._tables.remove(table.id)
        await self._forget(table)
        return Response(headers={"HX-Redirect": "/read"})

    async def _forget(self, table: OpenedTable) -> None:
        await self._jobs.of_folder(table.folder)
        self._checks.forget(table)
        await asyncio.to_thread(discard, table)

    async def _job(self, request: Request) -> Response:
        job = self._jobs[request.path_params["id"]]
        return self._pages("job", **await self._job_view(job))

    async def _state(self, request: Request) -> Response:
        job = self._jobs[request.path_params["id"]]
        return self._pages("job_state", **await self._job_view(job))

    async def _job_view(self, job: Job) -> dict[str, Any]:
        lines: tuple[Any, ...] = ()
        if job.state == "done":
            try:
                lines = await asyncio.to_thread(self._reports.adopt, job)
            except DovetailError as error:
                job.state, job.said = "failed", str(error)
        return {"job": job, "verdict": lines, "table": job.folder.name}

    async def _cancel(self, request: Request) -> Response:
        await self._jobs.cancel(job := self._jobs[request.path_params["id"]])
        return self._pages("job_state", **await self._job_view(job))


def _plain(error: DovetailError, table: OpenedTable) -> DovetailError:
    """The same sentence with the file's name alone."""
    return DovetailError(str(error).replace(f"{table.folder}/", ""))
