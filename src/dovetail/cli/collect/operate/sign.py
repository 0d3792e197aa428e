"""`dovetail collect sign`: the owner's signature under a campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.collect.operate.audit import AuditFile, log_of
from dovetail.cli.console.output import Json, print_json, write_whole
from dovetail.collect.audit_log import AuditLog
from dovetail.collect.campaign.draft_campaign import draft_campaign
from dovetail.collect.files import load_keys
from dovetail.core.errors import ConfigError, DovetailError
from dovetail_protocol.campaign import Campaign, sign


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("sign")(_sign)


def _sign(
    campaign: Annotated[Path, typer.Argument(help="The campaign file; it is signed in place.")],
    key: Annotated[Path, typer.Option("--keys", help="The owner's secret key file.")],
    audit: AuditFile = None,
    as_json: Json = False,
) -> None:
    """Sign a campaign, after it was explained with check: from then on no byte of it may change.

    A changed campaign needs a higher `version` and a new signature. An older signature is replaced.

    Examples:
    dovetail collect sign campaign.toml --keys owner.key
    """
    owner = load_keys(key, "owner")
    assert owner.signing is not None  # every owner's file holds it
    try:
        body = campaign.read_bytes()
        draft_campaign(body)  # what servers would refuse is not signed
        signed = sign(body, owner.signing)
    except OSError:
        raise ConfigError(f"{campaign}: no such campaign file.") from None
    except DovetailError as error:
        raise ConfigError(f"{campaign}: {error}") from None
    found = Campaign.parse(signed, owner.signing.verifying_key())
    record_signed(log_of(owner, key, audit), found)
    write_whole(campaign, lambda scratch: write(signed, scratch), force=True)
    if as_json:
        print_json(
            {"campaign": found.id, "version": found.version, "digest": found.digest.hex(), "owner": str(found.owner)}
        )
        return
    typer.echo(f"{campaign}: {found.id}, version {found.version}, is signed by {found.owner}")
    typer.echo(f"digest {found.digest.hex()}")


def record_signed(log: AuditLog, campaign: Campaign) -> None:
    """Write to the log that this version of a campaign is signed."""
    log.append("campaign signed", campaign=campaign.id, version=campaign.version, digest=campaign.digest.hex())


def write(data: bytes, place: Path) -> None:
    """Write a file that every role may read."""
    place.write_bytes(data)
    place.chmod(0o644)
