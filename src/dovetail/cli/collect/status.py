"""`dovetail collect status`: how far an analyzer or a shuffler has come."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dovetail.cli.collect.query import Campaign, TokenFile, token_of
from dovetail.cli.collect.server_client import InsecureHttp, NoSuchDocument, ServerClient
from dovetail.cli.console.output import Json, foreign, print_json

Url = Annotated[
    str, typer.Argument(help="The analyzer or the shuffler, such as http://127.0.0.1:8402.", metavar="URL")
]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("status")(_status)


def _status(
    url: Url,
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
        print_json(found) if as_json else _print_rounds(found)
        return
    with ServerClient(url, token=token_of(token_file), insecure_http=insecure_http) as ask:
        id = ask.campaign(campaign)
        status = ask.document(f"/v1/campaigns/{id}/status")
        promised = ask.document(f"/v1/campaigns/{id}/guarantee")["words"]
    if as_json:
        print_json({**status, "words": promised})
    else:
        _print(id, status, promised)


def _shuffler(url: str, *, insecure_http: bool) -> Any:
    """What a shuffler says of itself; None of a server that is none."""
    with ServerClient(url, role="shuffler or analyzer", insecure_http=insecure_http) as ask:
        try:
            return ask.document("/v1/status")
        except NoSuchDocument:
            return None


def _print_rounds(found: Any) -> None:
    table = Table(title="shuffler", title_justify="left", title_style="bold")
    for name in ("campaign", "round", "state", "minimum", "too small, waiting", "lost", "dropped", "refused"):
        table.add_column(name, justify="right" if name in ("round", "minimum") else "left")
    for each in found["campaigns"]:
        waiting, lost, dropped = (
            ", ".join(f"round {entry['round']:,}: {entry['reports']:,}" for entry in each[name]) or "none"
            for name in ("waiting", "lost", "dropped")
        )
        refused = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in each["refused"].items())
        numbers = (f"{each['round']:,}", each["state"], f"{each['minimum']:,}")
        table.add_row(*map(foreign, (each["id"], *numbers, waiting, lost, dropped, refused or "none")))
    Console().print(table)
    typer.echo(f"batches that the analyzer has not counted yet: {found['batches_waiting']:,}; reports in tens")
    if found["clock"] == "halted":
        typer.echo("the shuffler does not believe its clock and releases nothing: see `dovetail collect clock`")
    if (roster := found.get("roster", "read")) != "read":  # an older shuffler says nothing of it
        typer.echo(foreign(f"the roster is broken, and revocations since do not count: {roster} Mend that line."))
    for each in found["campaigns"]:
        for number in each["faulty"]:
            typer.echo(f"round {number:,} of {each['id']} cannot go on; the shuffler's log says why")
        for number in each.get("ended_before_restore", ()):  # an older shuffler says nothing of it
            typer.echo(
                f"round {number:,} of {each['id']} ended after the backup that was restored; nothing is to be done"
            )
        for batch in each["refused_batches"]:
            what = foreign(f"round {batch['round']:,} of {each['id']}: {batch['kind']}")
            typer.echo(f"the analyzer refuses the batch of {what}; it is sent again, or its owner drops the round")


def _print(id: str, status: Any, promised: Any) -> None:
    rounds = Table(title=foreign(f"{id}: {status['question']}"), title_justify="left", title_style="bold")
    for name in ("round", "reports", "valid", "set aside", ""):
        rounds.add_column(name, justify="left" if name in ("set aside", "") else "right")
    for batch in status["batches"]:
        aside = ", ".join(f"{count:,} {kind}" for kind, count in batch["rejected"].items()) or "none"
        note = f"withheld: below the minimum of {status['minimum']:,} valid ones" if batch["short"] else ""
        if batch.get("followers") is not None:  # an older analyzer says nothing of it
            note = "; ".join(filter(None, (note, f"at most {batch['followers']:,} people sent dummies by the rule")))
        cells = (f"{batch['round']:,}", f"{batch['reports']:,}", f"{batch['n']:,}", aside, note)
        rounds.add_row(*map(foreign, cells))
    Console().print(rounds)
    words = Table(show_header=False)
    for line in promised:
        words.add_row(*map(foreign, (line["name"], line["figure"], line["meaning"])))
    Console().print(words)
