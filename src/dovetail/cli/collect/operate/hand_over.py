"""`dovetail collect hand-over`: the owner of a campaign names another key, which everybody then follows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.collect.keys import read_public
from dovetail.cli.collect.operate.audit import AuditFile, log_of
from dovetail.cli.collect.operate.sign import write
from dovetail.cli.console.output import Force, Json, print_json, write_whole
from dovetail.collect.files import load_campaign, load_keys
from dovetail.core.errors import ConfigError
from dovetail_protocol.keys import VerifyingKey
from dovetail_protocol.succession import HandOver, require_new_owner


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("hand-over")(_hand_over)


def _hand_over(
    campaign: Annotated[Path, typer.Argument(help="The newest signed campaign file.")],
    keys: Annotated[Path, typer.Option(help="The key file of the owner that hands over.")],
    to: Annotated[Path, typer.Option(help="Public key of the next owner (new-owner.key.pub).")],
    out: Annotated[Path, typer.Option("--out", help="The file to write, for the next owner.")] = Path(
        "hand-over.txt"
    ),
    force: Force = False,
    audit: AuditFile = None,
    as_json: Json = False,
) -> None:
    """Sign that a campaign has another owner from now on. It cannot be taken back.

    The next owner puts it into a new version with `dovetail collect rotate campaign`; devices and servers that trust
    this owner then trust the next one, for this campaign. Until that version is served nothing changes.

    Example: dovetail collect hand-over campaign.toml --keys owner.key --to new-owner.key.pub
    """
    found, held = load_campaign(campaign), load_keys(keys, "owner")
    if held.signing is None or held.signing.verifying_key() != found.owner:
        raise ConfigError(f"{keys} does not hold the key of the owner of {found.id}.")
    new = VerifyingKey.parse("owner", read_public(to, "owner")["owner"])
    require_new_owner(new, found.handed_over)
    made = HandOver.make(found.id, held.signing, new)
    log_of(held, keys, audit).append("campaign handed over", campaign=found.id, key=str(new)[8:24])
    write_whole(out, lambda scratch: write(made.line(), scratch), force=force)
    if as_json:
        print_json({"campaign": found.id, "from": str(made.old), "to": str(made.new), "file": str(out)})
        return
    typer.echo(f"{out}: {found.id} is handed over to {made.new}")
