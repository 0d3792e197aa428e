"""`dovetail collect drop`: the owner gives up a round that cannot be counted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.collect.operate.audit import AuditFile, log_of
from dovetail.cli.collect.server_client import InsecureHttp, ServerClient
from dovetail.cli.console.output import Json, print_json, print_rows
from dovetail.collect.files import load_campaign, load_keys
from dovetail.core.errors import ConfigError
from dovetail.core.extras import require


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
    takes its batch, so there is no hurry. Any other round is refused. Dropping a round twice changes nothing.

    Example: dovetail collect drop campaign.toml 3 --keys owner.key
    """
    require("httpx", extra="serve")
    from dovetail.collect.shuffler.close_request import drop_statement

    found = load_campaign(campaign)
    held = load_keys(keys, "owner")
    signing = held.signing
    place = shuffler or found.endpoints.get("http")
    if signing is None or signing.verifying_key() != found.owner:
        raise ConfigError(f"{keys} does not hold the key of the owner of {found.id}.")
    if place is None:
        raise ConfigError(f"{found.id} names no `endpoints.http`; give the shuffler's URL as --shuffler.")
    log_of(held, keys, audit).append("round dropped", campaign=found.id, version=found.version, round=round)
    word = signing.sign(drop_statement(found.digest, round))
    with ServerClient(place, role="shuffler", insecure_http=insecure_http) as ask:
        state = str(ask.document(f"/v1/campaigns/{found.id}/rounds/{round}/drop", content=word)["state"])
    document = {"campaign": found.id, "round": round, "state": state}
    if as_json:
        print_json(document)
    else:
        print_rows("Dropped", {name: str(value) for name, value in document.items()})
