"""`dovetail collect status`: how far an analyzer has come."""

from __future__ import annotations

from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from dovetail.cli.collect.asking import Ask
from dovetail.cli.collect.query import Campaign, TokenFile, Url, token_of
from dovetail.cli.output import Json, print_json


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("status")(_status)


def _status(url: Url, campaign: Campaign = None, token_file: TokenFile = None, as_json: Json = False) -> None:
    """Counted batches of a campaign, what was set aside, and what is promised so far.

    Examples:
    dovetail collect status http://127.0.0.1:8402 --token-file token.txt
    """
    with Ask(url, token=token_of(token_file)) as ask:
        id = ask.campaign(campaign)
        status = ask.document(f"/v1/campaigns/{id}/status")
        promised = ask.document(f"/v1/campaigns/{id}/guarantee")["words"]
    if as_json:
        print_json({**status, "words": promised})
    else:
        _print(id, status, promised)


def _print(id: str, status: Any, promised: Any) -> None:
    rounds = Table(title=f"{id}: {status['question']}", title_justify="left", title_style="bold")
    for name in ("round", "reports", "valid", "set aside", ""):
        rounds.add_column(name, justify="left" if name in ("set aside", "") else "right")
    for batch in status["batches"]:
        aside = ", ".join(f"{count:,} {kind}" for kind, count in batch["rejected"].items()) or "none"
        note = f"below the minimum of {status['minimum']:,} valid ones" if batch["short"] else ""
        rounds.add_row(f"{batch['round']:,}", f"{batch['reports']:,}", f"{batch['n']:,}", aside, note)
    Console().print(rounds)
    words = Table(show_header=False)
    for line in promised:
        words.add_row(line["name"], line["figure"], line["meaning"])
    Console().print(words)
