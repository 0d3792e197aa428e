"""`dovetail collect query`: what subscribers ask an analyzer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dovetail.cli.collect.server_client import InsecureHttp, ServerClient
from dovetail.cli.console.output import Force, Json, foreign, print_json, write_whole
from dovetail.collect.files import secret_line
from dovetail.core.errors import ConfigError, ParameterError
from dovetail.report.number_format import Unit, percent

TOKEN = "DOVETAIL_TOKEN"

Url = Annotated[str, typer.Argument(help="The analyzer, such as http://127.0.0.1:8402.", metavar="URL")]
TokenFile = Annotated[
    Path | None, typer.Option(help=f"File that holds the bearer token; default: the variable {TOKEN}.")
]
Campaign = Annotated[str | None, typer.Option(help="Campaign id; not needed where there is one.")]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("query")(_query)


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
    if as_json:
        print_json(document)
    else:
        _print(id, document)


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


def _print(id: str, document: Any) -> None:
    """A row for each group and component."""
    groups = document["groups"]
    several, projected = len(groups) > 1, "projected" in groups[0]
    window = f"rounds up to {document['t']:,}, {document['width']:,} of them" if "t" in document else None
    title = f"{id}: {window or 'round ' + format(document['round'], ',')}"
    table = Table(title=foreign(title), title_justify="left", title_style="bold")
    for name in (["group"] if several else []) + ["", "estimate", f"{percent(0.95)} interval", "reports"]:
        table.add_column(name, justify="left" if name in ("group", "") else "right")
    if projected:
        table.add_column("nearest share", justify="right")
    for group in groups:
        for row in _rows(group):
            named = [group["group"] or "everybody"] if several else []
            table.add_row(*map(foreign, (*named, *row)))
    Console().print(table)
    for said in (document.get("weighted", ""), *document.get("warnings", ())):
        if said:
            typer.echo(foreign(said))
    missing = sorted({t for group in groups for t in group.get("missing", ())})
    if missing:
        typer.echo(f"without an estimate: round {', '.join(f'{t:,}' for t in missing)}")


def _rows(group: Any) -> list[list[str]]:
    unit = Unit.of("mean" if group["labels"] == ["mean"] else "share")
    columns = [group[name] for name in ("labels", "value", "standard_error", "interval")]
    rows = [
        [label, unit(value, error), unit.interval([float(end) for end in interval], error), f"{group['n']:,}"]
        for label, value, error, interval in zip(*columns, strict=True)
    ]
    for row, share in zip(rows, group.get("projected", ()), strict=False):
        row.append(percent(share))
    return rows
