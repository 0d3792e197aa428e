"""`dovetail collect drop`: the owner gives up a round that cannot be counted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.collect.operate.audit import AuditFile
from dovetail.cli.collect.operate.close import owner_asks
from dovetail.cli.collect.server_client import InsecureHttp
from dovetail.cli.console.output import Json, print_json, print_rows
from dovetail.collect.files import load_campaign


def register(app: typer.Typer) -> None:
    """Add the verb to `dovetail collect`."""
    app.command("drop")(_drop)


def _drop(
    campaign: Annotated[Path, typer.Argument(help="The signed campaign file.")],
    round: Annotated[int, typer.Argument(help="The round.", min=1)],
    keys: Annotated[Path, typer.Option(help="The owner's key file.")],
    shuffler: Annotated[
        str | None, typer.Option(help="The shuffler's URL; default: `endpoints.http` of the campaign.")
    ] = None,
    insecure_http: InsecureHttp = False,
    audit: AuditFile = None,
    as_json: Json = False,
) -> None:
    """Give up a round whose key is lost, whose reports do not open, or whose batch the analyzer refuses.

    Its reports are deleted. Such a round holds up no other one, and goes on when its key is back or the analyzer
    takes its batch, so there is no hurry. Any other round is refused. Dropping a round twice changes nothing. The
    owner signs a fresh challenge of the shuffler, so that nobody can send a drop again.

    Example: dovetail collect drop campaign.toml 3 --keys owner.key
    """
    state = owner_asks("drop", campaign, round, keys, shuffler, audit, insecure_http=insecure_http)
    document = {"campaign": load_campaign(campaign).id, "round": round, "state": state}
    if as_json:
        print_json(document)
    else:
        print_rows("Dropped", {name: str(value) for name, value in document.items()})
