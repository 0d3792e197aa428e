"""The reader's pages: a table to its problems, to a rehearsal, to a report; and two reports side by side."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from dovetail.collect.http import Refusal
from dovetail.core.checks import privacy_budget
from dovetail.core.display import counted
from dovetail.core.errors import ConfigError, DataError, DovetailError, ParameterError, StorageError
from dovetail.core.settings import split_names
from dovetail.job.config import files_of, parse_config
from dovetail.job.questions import QuestionsConfig, questions_of
from dovetail.report.html import render_html
from dovetail.report.number_format import ABSENT, Document, Unit, display_name, missing_reason, percent, upward
from dovetail.report.sentences import summarize_metrics
from dovetail.report.tables import question_documents
from dovetail.report.verdict import verdict
from dovetail.table.check import TableCheck, check_table, write_configuration
from dovetail.table.columns import Declared, Fix, Kind
from dovetail.web.jobs import Job, Jobs
from dovetail.web.pages import Pages
from dovetail.web.questions import Kept, number_of
from dovetail.web.uploads import (
    MOST_FORM,
    MOST_REPORT,
    MOST_REPORTS,
    MOST_TABLE,
    MOST_TABLES,
    OpenedReport,
    OpenedTable,
    Shelf,
    discard,
    new_id,
    new_table,
    read,
    refuse_too_large,
    save,
)

# Two reports side by side: every fact of both, and which of them changed.


MOST_ESTIMATES = 60
_NOISE = {"local": "every person alone", "shuffler": "the shuffler", "users": "people together"}


class Fact(NamedTuple):
    """One line of a comparison; texts are empty where a report has no such line.

    `bars` are both shares as numbers from 0 to 1, where a line is about shares.
    """

    name: str
    before: str
    after: str
    bars: tuple[float, float] | None = None

    @property
    def changed(self) -> bool:
        """True if the two differ."""
        return self.before != self.after


class Changes(NamedTuple):
    """Comparison of two reports, line by line, and the settings that differ."""

    facts: tuple[Fact, ...]
    estimates: tuple[Fact, ...]
    settings: tuple[Fact, ...]


def read_report(text: bytes, name: str) -> Document:
    """The document of a report.json that this version can render.

    Raises
    ------
    DataError
        For anything else.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(f"{name}: is no JSON that can be read.") from None
    if not isinstance(document, dict) or document.get("mode") not in ("rehearsal", "release"):
        raise DataError(f"{name}: is no report.json of `dovetail run`.")
    try:
        render_html(document)
        compare(document, document)
    except Exception:  # whatever a stranger's file lacks, or holds instead
        raise DataError(f"{name}: is damaged, or a report of another version of dovetail.") from None
    return document


def compare(before: Document, after: Document) -> Changes:
    """Compare two reports."""
    shares = _shares(before), _shares(after)
    estimates = _beside(dict(_estimates(before)), dict(_estimates(after)))
    return Changes(
        _beside(dict(_facts(before)), dict(_facts(after))),
        tuple(
            one._replace(bars=(shares[0][one.name], shares[1][one.name]))
            if one.name in shares[0] and one.name in shares[1]
            else one
            for one in estimates
        ),
        tuple(
            fact._replace(name=in_words(fact.name))
            for fact in _beside(dict(_settings(before.get("config"))), dict(_settings(after.get("config"))))
            if fact.changed
        ),
    )


def _beside(before: dict[str, str], after: dict[str, str]) -> tuple[Fact, ...]:
    return tuple(Fact(name, before.get(name, ""), after.get(name, "")) for name in {**before, **after})


def _facts(document: Document) -> Iterator[tuple[str, str]]:
    """Name and text of each fact of a report: people, mechanism, guarantee, leakage."""
    collection, randomizer, central = document["collection"], document["randomizer"], document["central"]
    yield "mode", str(document["mode"])
    yield "people", f"{collection['n']:,}"
    yield "private column", str(collection["private"])
    yield "randomizer", display_name(str(randomizer["name"]))
    yield "shuffler", display_name(str(document["shuffler"]))
    local = document["local"]
    yield "local ε", ABSENT if missing_reason(local) is not None else upward(local["epsilon"])
    known = missing_reason(central) is None
    yield "central ε", upward(central["epsilon"]) if known else f"{ABSENT} ({missing_reason(central)})"
    yield "noise made by", _NOISE.get(str(central.get("trust")), ABSENT) if known else ABSENT
    yield "δ", upward(central["delta"]) if known else ABSENT
    yield "honest people", f"{central['honest_n']:,}" if known else ABSENT
    order = document["order"]
    yield "order privacy α", ABSENT if missing_reason(order) is not None else upward(order["alpha"])
    leakage = document["leakage"]
    guess = None if missing_reason(leakage) is not None else leakage["randomized_shuffled"]
    yield "best guess, uniform prior", ABSENT if guess is None else percent(guess, "ROUND_CEILING")
    attack = document["attack"]
    yield "strongest attack", ABSENT if missing_reason(attack) is not None else percent(attack["success"])
    for line in verdict(document):
        yield line.name, line.words
    for metric in summarize_metrics(document):
        yield metric.name, metric.headline or ABSENT


def _estimates(document: Document) -> Iterator[tuple[str, str]]:
    """The estimates for everybody, of several questions by question."""
    for one in question_documents(document):
        if missing_reason(one["estimates"]) is None:
            yield from (
                (f"{one['column']}: {label}", value) for label, value in _estimates({**one, "questions": None})
            )
    overall, unit = document["estimates"]["overall"], Unit.of(document["estimates"]["measure"])
    if missing_reason(overall) is not None:
        return
    for place, label in enumerate(overall["labels"][:MOST_ESTIMATES]):
        interval = overall["interval"][place]
        error = (float(interval[1]) - float(interval[0])) / 4.0
        yield str(label), f"{unit(overall['possible'][place], error)} ({unit.interval(interval, error)})"


def _shares(document: Document) -> dict[str, float]:
    """The estimated shares, by their labels; none where something else is estimated."""
    estimates = document["estimates"]
    overall = estimates.get("overall")
    if missing_reason(overall) is not None or estimates.get("measure") != "share":
        return {}
    return {str(label): float(value) for label, value in zip(overall["labels"], overall["possible"], strict=True)}


SETTINGS = {
    "title": "the title",
    "mode": "rehearsal or release",
    "seed": "the seed",
    "data.private": "the private column",
    "data.person": "the column that names people",
    "data.public": "the public columns",
    "data.categories": "the answers that the question offers",
    "data.missing": "what becomes of people without an answer",
    "data.clip": "whether numbers outside the bounds are clipped",
    "data.lower": "the least number",
    "data.upper": "the largest number",
    "data.grid": "the step of the grid of numbers",
    "randomize.randomizer": "the randomizer",
    "randomize.epsilon": "the local epsilon of a report",
    "shuffle.shuffler": "the shuffler",
    "shuffle.alpha": "alpha of the order privacy",
    "shuffle.groups": "the groups that are shuffled",
    "promise.delta": "delta of the central guarantee",
    "promise.honest": "how many people are assumed honest",
    "promise.trust": "who makes the noise",
    "promise.epsilon": "the central epsilon that was asked for",
    "estimate.by": "the columns that estimates are made by",
    "estimate.min_group_size": "the fewest people of a group with an estimate",
}


def in_words(key: str) -> str:
    """A setting as a person says it, from its dotted name.

    >>> in_words("randomize.epsilon"), in_words("attack.trials")
    ('the local epsilon of a report', 'trials, of attack')
    """
    section, _, name = key.rpartition(".")
    plain = name.replace("_", " ")
    return SETTINGS.get(key, f"{plain}, of {section.replace('.', ', ')}" if section else plain)


def _settings(config: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of the configuration, by their dotted names."""
    if isinstance(config, dict):
        for key, value in config.items():
            yield from _settings(value, f"{name}.{key}" if name else str(key))
    else:
        yield name or "configuration", json.dumps(config, ensure_ascii=False, default=str)


# Pages of reports: one as it was made, and two side by side.


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


# What a person says about a table on the page, checked.


EPSILON = "2"
LABELS = {  # fields of the page, by what they are called in a configuration
    "lower": "“Least number”", "upper": "“Largest number”", "epsilon": "“Local epsilon”",
    "categories": "“Answers that the question offers”", "person": "“Column that names people”",
}  # fmt: skip


def declared_of(query: QueryParams) -> Declared:
    """Roles of columns, categories, bounds and epsilon from an address; what is both private and public is private.

    Raises
    ------
    ParameterError
        In one line, for what does not go together.
    """
    private, person = query.get("private") or None, query.get("person") or None
    if private is not None and private == person:
        raise ParameterError(f"{private!r} cannot both be private and name people.")
    public = tuple(name for name in dict.fromkeys(query.getlist("public")) if name not in (private, person))
    categories = _categories(query.get("categories", ""))
    lower, upper = (
        number_of(name, text) if (text := query.get(name, "").strip()) else None for name in ("lower", "upper")
    )
    if (lower is None) != (upper is None):
        raise ParameterError("`lower` and `upper` are declared together or not at all.")
    if lower is not None and categories is not None:
        raise ParameterError("declare either `categories` or `lower` and `upper`, not both.")
    if lower is not None and upper is not None and not lower < upper:
        raise ParameterError(f"`lower` must be below `upper`, got {lower:g} and {upper:g}.")
    epsilon = privacy_budget("epsilon", number_of("epsilon", query.get("epsilon", "").strip() or EPSILON))
    decided = tuple(line for text in query.getlist("set") for line in text.splitlines() if line.strip())
    return Declared(private, person, public, categories, lower, upper, epsilon, decided=decided)


def _categories(text: str) -> tuple[str, ...] | None:
    names = tuple(split_names(text))
    if not names:
        return None
    if len(set(names)) < max(2, len(names)):
        raise ParameterError("`categories` must name at least two different answers.")
    return names


# What the page of a table shows: its columns, its problems with their remedies, and what may be chosen.


TITLES = {
    "stops": "Decide before you run",
    "confirm": "Assumed; confirm before a release",
    "settled": "Settled by the configuration",
    "note": "Good to know",
}
_MOST_CHECKS = 12
MOST_SPELLINGS = 200


class TableChecks:
    """Checks of opened tables, each made once for what was declared."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept[TableCheck]] = {}

    def __call__(self, table: OpenedTable, asked: Declared) -> TableCheck:
        """Read the table, and say what is wrong with it."""
        kept = self._kept.setdefault(
            table.id, Kept(lambda declared: check_table(table.path, declared), most=_MOST_CHECKS)
        )
        return kept(declared=asked)

    def forget(self, table: OpenedTable) -> None:
        """Drop what is known of a table."""
        self._kept.pop(table.id, None)


def check_view(found: TableCheck, query: QueryParams, config: str) -> dict[str, Any]:
    """Values for the template; the texts of a table are escaped there."""
    asked = found.asked
    problems = [problem.document() for problem in found.problems]
    return {
        "rows": counted(found.n, "row"),
        "columns": [
            {
                "name": name,
                "kind": str(column.kind),
                "distinct": f"{column.distinct:,}",
                "missing": f"{column.missing:,}",
                "private": name == asked.private,
                "public": name in asked.public,
                "fit": column.kind in (Kind.CATEGORY, Kind.NUMBER),
            }
            for name, column in found.columns.items()
        ],
        "problems": [(status, title, mine) for status, title in TITLES.items() if (mine := _of(problems, status))],
        "private": asked.private,
        "person": asked.person or "",
        "stops": found.stops,
        "categories": query.get("categories", "") or ", ".join(asked.categories or ()),
        "lower": query.get("lower", ""),
        "upper": query.get("upper", ""),
        "epsilon": query.get("epsilon", "") or EPSILON,
        "query": str(query),
        "config": config,
        "decided": asked.decided,
        "spellings": _spellings(found),
    }


def _spellings(found: TableCheck) -> list[tuple[str, int, list[tuple[str, str]]]]:
    """Each text that is no declared answer, its count, and what it may mean with the line that says so."""
    asked = found.asked
    answers = [*(asked.categories or ()), ""]
    return [
        (text, count, [(answer or "no answer", _means(str(asked.private), text, answer)) for answer in answers])
        for text, count in list(found.unmatched.items())[:MOST_SPELLINGS]
    ]


def _means(column: str, text: str, answer: str) -> str:
    (line,) = Fix("", (), column, ((text, answer),)).lines
    return line


def _of(problems: list[dict[str, Any]], status: str) -> list[dict[str, Any]]:
    return [problem for problem in problems if problem["status"] == status]


# The configuration of a rehearsal: as `dovetail check` writes it, and as it comes back from the page.


def written_config(found: TableCheck, table: OpenedTable) -> str:
    """The text of the configuration beside the table."""
    return write_configuration(found, table.folder / "survey.toml")


def checked_config(body: bytes, table: OpenedTable) -> str:
    """The configuration in a form's body, if it is a rehearsal of this table and of no other file.

    Raises
    ------
    ConfigError
        In one line; nothing is run.
    """
    try:
        (text,) = parse_qs(body.decode(), strict_parsing=True, max_num_fields=4)["config"]
        raw = tomllib.loads(text)
    except (KeyError, UnicodeDecodeError) as error:
        raise ConfigError("there is no configuration in this form.") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the configuration is no TOML: {error}.") from None
    except (ValueError, RecursionError):
        raise ConfigError("the configuration cannot be read.") from None
    config = questions_of(raw) or parse_config(raw)
    if config.mode != "rehearsal":
        raise ConfigError(
            "this page rehearses only. To release, save the configuration beside your table, and there: "
            f"dovetail run {table.path.stem}.toml"
        )
    if config.data.path != table.name:
        raise ConfigError(f"[data] path must be {table.name!r}, the table that was opened, got {config.data.path!r}.")
    if isinstance(config, QuestionsConfig):  # which names no other file
        return text
    others = [name for name, path in files_of(config.shuffle).items() if path is not None]
    if others:
        raise ConfigError(f"[shuffle] {others[0]} names another file: use `dovetail run` for that.")
    return text


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
        view = check_view(found, query, written_config(found, table) if found.asked.private else "")
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
    """The same sentence with the file's name alone, and fields by their labels."""
    text = str(error).replace(f"{table.folder}/", "")
    return DovetailError(re.sub(r"`(\w+)`", lambda name: LABELS.get(name[1], name[0]), text))
