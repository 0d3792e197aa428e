"""`dovetail collect query` and `status`: what subscribers and operators ask of the two servers."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

import typer

from dovetail.cli.output import Facts, Force, Grid, Json, Paste, show, write_whole
from dovetail.collect.files import secret_line
from dovetail.core.errors import ConfigError, DataError, ParameterError, UnreachableError
from dovetail.core.extras import require
from dovetail.report.number_format import Unit, percent
from dovetail.report.tables import vector_sentences
from dovetail_protocol.endpoint import place_of, require_private

# A client of the two servers: documents by HTTP, and one line for whatever goes wrong.


SECONDS = 60.0
_AWAY = (502, 503, 504)  # says a proxy of a server that it cannot reach

InsecureHttp = Annotated[
    bool, typer.Option("--insecure-http", help="Allow plain HTTP to another machine, where anybody on the way reads.")
]


class NoSuchDocument(DataError):
    """A server of ours answers, and knows no such document."""


class ServerClient:
    """Questions to one server; no redirect is followed, so that the token goes nowhere else.

    Trusted are the system's certificates, or those of the file that SSL_CERT_FILE names.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        role: Literal["analyzer", "shuffler", "issuer", "shuffler or analyzer"] = "analyzer",
        insecure_http: bool = False,
    ) -> None:
        self._httpx: Any = require("httpx", extra="serve")
        place_of("URL", url, ("http", "https"))
        require_private("URL", url, insecure=insecure_http)
        self._place, self._role = url.rstrip("/"), role
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._client = self._httpx.Client(
            headers=headers, timeout=SECONDS, trust_env=False, verify=ssl.create_default_context()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def file(self, path: str, *, content: bytes | None = None) -> bytes:
        """The body of an answer to GET, or to POST of `content`."""
        method = "GET" if content is None else "POST"
        try:
            answer = self._client.request(method, self._place + path, content=content)
        except (self._httpx.HTTPError, self._httpx.InvalidURL) as error:
            raise self._silent(error) from None
        if answer.status_code != 200:
            raise self._refusal(answer)
        return bytes(answer.content)

    def document(self, path: str, *, content: bytes | None = None) -> Any:
        """The JSON of an answer."""
        body = self.file(path, content=content)
        try:
            return json.loads(body)
        except ValueError:
            raise DataError(f"{self._place}: what answers there is no {self._role}.") from None

    def campaign(self, wanted: str | None) -> str:
        """The campaign to ask about: the one named, or the only one."""
        if wanted is not None:
            return quote(wanted, safe="")
        known = [each["campaign"] for each in self.document("/v1/campaigns")["campaigns"]]
        if len(known) != 1:
            raise ConfigError(f"there are several campaigns: name one of {', '.join(known)} with --campaign.")
        return str(known[0])

    def _silent(self, error: Exception) -> UnreachableError:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            said = "its certificate is not trusted here; SSL_CERT_FILE names a file of those that are."
        elif isinstance(error, self._httpx.ReadTimeout):
            said = f"something listens there, and has not answered in {SECONDS:g} seconds; does it start still?"
        else:
            said = f"no {self._role} answers there ({type(error).__name__}); is the URL right, and does it run?"
        return UnreachableError(f"{self._place}: {said}")

    def _refusal(self, answer: Any) -> DataError:
        from dovetail.collect.http import read_problem

        problem = read_problem(answer.content)
        if problem is not None:
            refused = NoSuchDocument if problem.kind == "not_found" else DataError
            return refused(f"the {self._role} refuses, {problem.kind.replace('_', ' ')}: {problem.detail}")
        if answer.status_code in _AWAY:
            return DataError(
                f"{self._place}: the {self._role} behind the proxy there does not answer (status "
                f"{answer.status_code}); does it start still?"
            )
        return DataError(f"{self._place}: what answers there is no {self._role} (status {answer.status_code}).")


# `dovetail collect query`: what subscribers ask an analyzer.


TOKEN = "DOVETAIL_TOKEN"

Url = Annotated[str, typer.Argument(help="The analyzer, such as http://127.0.0.1:8402.", metavar="URL")]
TokenFile = Annotated[
    Path | None, typer.Option(help=f"File that holds the bearer token; default: the variable {TOKEN}.")
]
Campaign = Annotated[str | None, typer.Option(help="Campaign id; not needed where there is one.")]


def _query(
    url: Url,
    campaign: Campaign = None,
    round: Annotated[int | None, typer.Option(min=1, help="The round to answer for; default: the latest.")] = None,
    window: Annotated[
        int | None, typer.Option(min=1, help="The mean of so many rounds, up to --round or the latest.")
    ] = None,
    frequencies: Annotated[
        bool, typer.Option("--frequencies", help="Also the nearest shares that sum to 1.")
    ] = False,
    csv: Annotated[Path | None, typer.Option(help="Write all estimates as CSV to this file.")] = None,
    parquet: Annotated[Path | None, typer.Option(help="Write all estimates as Parquet to this file.")] = None,
    token_file: TokenFile = None,
    insecure_http: InsecureHttp = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Ask an analyzer for estimates: the latest, those of a round, a window, or all of them as a file.

    The token is never an argument, where others could read it: it comes from a file or from DOVETAIL_TOKEN.

    Examples:
    dovetail collect query http://127.0.0.1:8402;
    dovetail collect query http://127.0.0.1:8402 --round 7 --window 5 --json;
    dovetail collect query http://127.0.0.1:8402 --csv estimates.csv
    """
    if frequencies and window is not None:
        raise ParameterError("--frequencies are of one round: no --window.")
    with ServerClient(url, token=token_of(token_file), insecure_http=insecure_http) as ask:
        id = ask.campaign(campaign)
        for kind, place in (("csv", csv), ("parquet", parquet)):
            if place is not None:
                body = ask.file(f"/v1/campaigns/{id}/export.{kind}")
                write_whole(place, lambda scratch, body=body: scratch.write_bytes(body), force=force)  # type: ignore[misc]
        if csv is not None or parquet is not None:
            return
        document = ask.document(f"/v1/campaigns/{id}/{_place(ask, id, round, window, frequencies=frequencies)}")
    show(document, *_estimates(id, document), as_json=as_json)


def token_of(path: Path | None) -> str:
    """The bearer token."""
    found = os.environ.get(TOKEN, "").strip() if path is None else secret_line(path, "a token")
    if not found:
        raise ConfigError(f"an analyzer answers to bearer tokens: name a --token-file, or set {TOKEN}.")
    if not all("!" <= letter <= "~" for letter in found):
        raise ConfigError(f"{TOKEN if path is None else path}: a token has no blanks and only letters of ASCII.")
    return found


def _place(ask: ServerClient, id: str, round: int | None, window: int | None, *, frequencies: bool) -> str:
    if window is not None:
        t = round or ask.document(f"/v1/campaigns/{id}/estimates/latest")["round"]
        return f"window?t={t}&w={window}"
    if frequencies:
        return "frequencies" if round is None else f"frequencies?t={round}"
    return f"estimates/{round or 'latest'}"


def _estimates(id: str, document: Any) -> Iterator[Grid | Paste]:
    """A table for each question, with a row for each group and component; what is to be doubted stands below."""
    for one in document.get("questions", ()):
        yield from _estimates(f"{id}, {one['name']}", {**one, "warnings": ()})
    if "questions" in document:
        yield from map(Paste, document["warnings"])
        return
    groups = document["groups"]
    several, projected = len(groups) > 1, any("projected" in group for group in groups)
    window = f"rounds up to {document['t']:,}, {document['width']:,} of them" if "t" in document else None
    title = f"{id}: {window or 'round ' + format(document['round'], ',')}"
    columns = ["group"] * several + ["", "estimate", f"{percent(0.95)} interval", "reports"]
    rows = [
        (*([group["group"] or "everybody"] if several else []), *row)
        for group in groups
        for row in _rows(group, document.get("measure"), projected=projected)
    ]
    if groups:
        yield Grid(title, (*columns, *["nearest share"] * projected), rows)
    whole = vector_sentences({"estimates": document})
    yield from map(Paste, filter(None, (*whole, document.get("weighted", ""), *document.get("warnings", ()))))
    missing = sorted({t for group in groups for t in group.get("missing", ())})
    if missing:
        yield Paste(f"without an estimate: round {', '.join(f'{t:,}' for t in missing)}")


def _rows(group: Any, measure: str | None, *, projected: bool = False) -> list[list[str]]:
    unit = Unit.of(measure or ("mean" if group["labels"] == ["mean"] else "share"))  # earlier analyzers do not say it
    columns = [group[name] for name in ("labels", "value", "standard_error", "interval")]
    rows = [
        [label, unit(value, error), unit.interval([float(end) for end in interval], error), f"{group['n']:,}"]
        for label, value, error, interval in zip(*columns, strict=True)
    ]
    if projected:
        for row, share in zip_longest(rows, group.get("projected", ())):
            row.append("" if share is None else percent(share))
    return rows


# `dovetail collect status`: how far an analyzer or a shuffler has come.


AnyUrl = Annotated[
    str, typer.Argument(help="The analyzer or the shuffler, such as http://127.0.0.1:8402.", metavar="URL")
]


def _status(
    url: AnyUrl,
    campaign: Campaign = None,
    token_file: TokenFile = None,
    insecure_http: InsecureHttp = False,
    as_json: Json = False,
) -> None:
    """How far a server has come. Analyzer: batches counted, set aside, promised. Shuffler: rounds, and what waits.

    A shuffler answers everybody, with counts in tens, and is shown no token; an analyzer asks for one.

    Examples:
    dovetail collect status http://127.0.0.1:8402 --token-file token.txt;
    dovetail collect status http://127.0.0.1:8401
    """
    found = _shuffler(url, insecure_http=insecure_http)
    if found is not None:
        show(found, *_rounds(found), as_json=as_json)
        return
    with ServerClient(url, token=token_of(token_file), insecure_http=insecure_http) as ask:
        id = ask.campaign(campaign)
        status = ask.document(f"/v1/campaigns/{id}/status")
        promised = ask.document(f"/v1/campaigns/{id}/guarantee")["words"]
    words = Facts(
        "What is promised", {line["name"]: f"{line['figure']}  {line['meaning']}".strip() for line in promised}
    )
    show({**status, "words": promised}, _batches(id, status), words, as_json=as_json)


def _shuffler(url: str, *, insecure_http: bool) -> Any:
    """Status document of a shuffler; None of a server that is none."""
    with ServerClient(url, role="shuffler or analyzer", insecure_http=insecure_http) as ask:
        try:
            return ask.document("/v1/status")
        except NoSuchDocument:
            return None


def _rounds(found: Any) -> Iterator[Grid | Paste]:
    """Campaigns of a shuffler, and what holds them up."""
    rows = []
    for each in found["campaigns"]:
        waiting, lost, dropped = (
            ", ".join(f"round {entry['round']:,}: {entry['reports']:,}" for entry in each[name]) or "none"
            for name in ("waiting", "lost", "dropped")
        )
        refused = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in each["refused"].items())
        numbers = (f"{each['round']:,}", each["state"], f"{each['minimum']:,}")
        rows.append((each["id"], *numbers, waiting, lost, dropped, refused or "none"))
    columns = ("campaign", "round", "state", "minimum", "too small, waiting", "lost", "dropped", "refused")
    yield Grid("shuffler", columns, rows)
    yield Paste(f"batches that the analyzer has not counted yet: {found['batches_waiting']:,}; reports in tens")
    if found["clock"] == "halted":
        yield Paste("the shuffler does not believe its clock and releases nothing: see `dovetail collect clock`")
    if (roster := found.get("roster", "read")) != "read":  # an older shuffler says nothing of it
        yield Paste(f"the roster is broken, and revocations since do not count: {roster} Mend that line.")
    for each in found["campaigns"]:
        for number in each["faulty"]:
            yield Paste(f"round {number:,} of {each['id']} cannot go on; the shuffler's log says why")
        for number in each.get("ended_before_restore", ()):  # an older shuffler says nothing of it
            yield Paste(
                f"round {number:,} of {each['id']} ended after the backup that was restored; nothing is to be done"
            )
        for batch in each["refused_batches"]:
            what = f"round {batch['round']:,} of {each['id']}: {batch['kind']}"
            yield Paste(f"the analyzer refuses the batch of {what}; it is sent again, or its owner drops the round")


def _batches(id: str, status: Any) -> Grid:
    """Batches that an analyzer has counted."""
    rows = []
    for batch in status["batches"]:
        aside = ", ".join(f"{count:,} {kind}" for kind, count in batch["rejected"].items()) or "none"
        note = f"withheld: below the minimum of {status['minimum']:,} valid ones" if batch["short"] else ""
        if batch.get("followers") is not None:  # an older analyzer says nothing of it
            note = "; ".join(filter(None, (note, f"at most {batch['followers']:,} people sent dummies by the rule")))
        rows.append((f"{batch['round']:,}", f"{batch['reports']:,}", f"{batch['n']:,}", aside, note))
    return Grid(f"{id}: {status['question']}", ("round", "reports", "valid", "set aside", ""), rows)


VERBS = {"query": _query, "status": _status}
