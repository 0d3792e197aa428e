"""`dovetail collect close`: the owner ends a round of a manual schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dovetail.cli.collect.operate.audit import AuditFile, log_of
from dovetail.cli.collect.server_client import InsecureHttp, ServerClient
from dovetail.cli.console.output import Json, print_json, print_rows
from dovetail.collect.files import load_campaign, load_keys
from dovetail.core.errors import ConfigError, DataError
from dovetail.core.extras import require


def register(app: typer.Typer) -> None:
    """Add the verb to `dovetail collect`."""
    app.command("close")(_close)


def _close(
    campaign: Annotated[Path, typer.Argument(help="The signed campaign file.")],
    round: Annotated[int, typer.Argument(help="The round to close.", min=1)],
    keys: Annotated[Path, typer.Option(help="The owner's key file.")],
    shuffler: Annotated[
        str | None, typer.Option(help="The shuffler's URL; default: `endpoints.http` of the campaign.")
    ] = None,
    insecure_http: InsecureHttp = False,
    audit: AuditFile = None,
    as_json: Json = False,
) -> None:
    """Close a round of a manual schedule: it takes no more reports and is released by the campaign's rule.

    With too few reports and small = "wait" the round stays open; close it again when more have come. Closing a round
    twice changes nothing. The owner signs a fresh challenge of the shuffler, so that nobody can send a close again.

    Example: dovetail collect close campaign.toml 3 --keys owner.key
    """
    state = owner_asks("close", campaign, round, keys, shuffler, audit, insecure_http=insecure_http)
    told = {"campaign": load_campaign(campaign).id, "round": round, "state": state}
    if as_json:
        print_json(told)
    else:
        print_rows("Closed" if state != "open" else "Not closed", {name: str(each) for name, each in told.items()})


def owner_asks(
    action: Literal["close", "drop"],
    campaign: Path,
    round: int,
    keys: Path,
    shuffler: str | None,
    audit: Path | None,
    *,
    insecure_http: bool,
) -> str:
    """Close or drop a round with a challenge that the shuffler has just drawn; the state of the round then."""
    require("httpx", extra="serve")
    from dovetail.collect.shuffler.close_request import CHALLENGE, owner_request

    found = load_campaign(campaign)
    held = load_keys(keys, "owner")
    signing = held.signing
    place = shuffler or found.endpoints.get("http")
    if signing is None or signing.verifying_key() != found.owner:
        raise ConfigError(f"{keys} does not hold the key of the owner of {found.id}.")
    if place is None:
        raise ConfigError(f"{found.id} names no `endpoints.http`; give the shuffler's URL as --shuffler.")
    done: Literal["round closed", "round dropped"] = "round closed" if action == "close" else "round dropped"
    path = f"/v1/campaigns/{found.id}/rounds/{round}/{action}"
    with ServerClient(place, role="shuffler", insecure_http=insecure_http) as ask:
        challenge = _challenge(ask.document(path), CHALLENGE)
        log_of(held, keys, audit).append(done, campaign=found.id, version=found.version, round=round)
        word = owner_request(action, signing, found.digest, round, challenge)
        return str(ask.document(path, content=word)["state"])


def _challenge(answer: Any, length: int) -> bytes:
    """The challenge of an answer; nothing else is ever signed."""
    try:
        found = bytes.fromhex(answer["challenge"])
    except (KeyError, TypeError, ValueError):
        found = b""
    if len(found) != length:
        raise DataError("the shuffler's answer holds no challenge for the owner to sign; is it of another version?")
    return found
