"""`dovetail collect rotate`: new keys for a server, step by step, each on the machine of its role."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.collect.keys import fingerprint, public_of, read_public, write_keys
from dovetail.cli.collect.operate.audit import AuditFile, log_of
from dovetail.cli.collect.operate.sign import record_signed, write
from dovetail.cli.console.output import Force, Json, print_json, write_whole
from dovetail.collect.audit_log import AuditLog
from dovetail.collect.campaign.draft_campaign import draft_campaign
from dovetail.collect.campaign.versions import require_same_terms
from dovetail.collect.files import load_campaign, load_keys
from dovetail.collect.rotation import (
    UNTIL,
    ServerFile,
    destroy,
    free_name,
    newest_versions,
    next_version,
    opens,
    read_hand_over,
)
from dovetail.core.errors import ConfigError, DovetailError, ParameterError
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.keys import RoleKeys, SuiteName

rotate = typer.Typer(
    name="rotate",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="""New keys for shuffler or analyzer, without a visit to any device.

    In order: keys (on the server's machine), campaign (by the owner), add (on both servers, the analyzer first; then
    restart them), finish (when the overlap is over; restart again). docs/collect.md, "Changing keys", says when.
    """,
)

Config = Annotated[Path, typer.Argument(help="shuffler.toml or analyzer.toml, which is changed in place.")]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.add_typer(rotate)


@rotate.command("keys")
def _keys(config: Config, as_json: Json = False) -> None:
    """Make new keys for a server beside its old ones, and name both in its configuration; nothing changes yet.

    Examples:
    dovetail collect rotate keys shuffler.toml
    """
    server = ServerFile.read(config)
    campaigns, held = server.load()
    suite: SuiteName = "x25519" if campaigns[-1].analyzer.suite == "x25519" else "mlkem768-x25519"
    made, place = RoleKeys.generate(server.role(), suite), free_name(server.keys[-1])
    AuditLog.of(held[-1], server.keys[-1]).append("keys rotated", role=made.role, key=fingerprint(made))
    public = write_keys(made, place)
    server.write(campaigns=server.campaigns, keys=[*server.keys, place])
    if as_json:
        print_json({"secret": str(place), "public": str(public), "keys": public_of(made)})
        return
    typer.echo(f"{place}: new keys, named in {config}; give {public} to the owner of each campaign")


@rotate.command("campaign")
def _campaign(
    campaign: Annotated[Path, typer.Argument(help="The newest signed campaign file; it stays as it is.")],
    keys: Annotated[Path, typer.Option(help="The owner's key file; after a hand-over the next owner's.")],
    out: Annotated[Path, typer.Option("--out", help="The file of the next version.")],
    shuffler: Annotated[Path | None, typer.Option(help="New public keys of the shuffler.")] = None,
    analyzer: Annotated[Path | None, typer.Option(help="New public keys of the analyzer.")] = None,
    hand_over: Annotated[Path | None, typer.Option(help="What `collect hand-over` wrote for this owner.")] = None,
    force: Force = False,
    audit: AuditFile = None,
    as_json: Json = False,
) -> None:
    """Write and sign the next version of a campaign with other keys; everything else stays.

    Examples:
    dovetail collect rotate campaign campaign.toml --keys owner.key --shuffler s-2.key.pub --out campaign-2.toml
    """
    old, owner = load_campaign(campaign), load_keys(keys, "owner")
    new = {} if shuffler is None else read_public(shuffler, "shuffler")
    new |= {} if analyzer is None else read_public(analyzer, "analyzer")
    handed = None if hand_over is None else read_hand_over(hand_over)
    if not new and handed is None:
        raise ParameterError("nothing is changed: give --shuffler, --analyzer or --hand-over.")
    assert owner.signing is not None  # every owner's file holds it
    body = next_version(old, new, hand_over=handed)
    try:
        draft_campaign(body)
        found = Campaign.parse(sign(body, owner.signing), owner.signing.verifying_key())
        require_same_terms(old, found)
    except DovetailError as error:
        raise ConfigError(f"{out}: {error}") from None
    record_signed(log_of(owner, keys, audit), found)
    write_whole(out, lambda scratch: write(found.signed, scratch), force=force)
    if as_json:
        print_json({"campaign": found.id, "version": found.version, "file": str(out), "owner": str(found.owner)})
        return
    typer.echo(f"{out}: {found.id}, version {found.version}, is signed by {found.owner}")


@rotate.command("add")
def _add(
    config: Config,
    campaign: Annotated[Path, typer.Argument(help="The file of the next version.")],
    overlap: Annotated[
        float | None,
        typer.Option(help="Shuffler: seconds for which older versions are taken; 0: none.", min=0),
    ] = None,
    as_json: Json = False,
) -> None:
    """Name the next version of a campaign in a server's configuration; it is served from the next start on.

    Examples:
    dovetail collect rotate add analyzer.toml campaign-2.toml;
    dovetail collect rotate add shuffler.toml campaign-2.toml --overlap 86400
    """
    server, found = ServerFile.read(config), load_campaign(campaign)
    campaigns, held = server.load()
    if overlap is not None and server.role() == "analyzer":
        raise ParameterError("--overlap is for the shuffler; an analyzer counts what the shuffler has taken.")
    older = [each for each in campaigns if each.id == found.id]
    if not older:
        raise ConfigError(f"{config}: serves no older version of {found.id}; name the campaign in it by hand.")
    for each in older:
        if found.version <= each.version:
            raise ConfigError(f"{campaign}: is version {found.version}, and {each.version} is served already.")
        require_same_terms(each, found)
    if not any(opens(each, found) for each in held):
        raise ConfigError(f"{campaign}: names other keys than those of {config}; `rotate keys` makes new ones.")
    until = None if overlap is None else datetime.now(UTC) + timedelta(seconds=overlap)
    AuditLog.of(held[-1], server.keys[-1]).append("versions changed", campaign=found.id, version=found.version)
    server.write(campaigns=[*server.campaigns, campaign.absolute()], keys=server.keys, until=until)
    if as_json:
        print_json({"campaign": found.id, "version": found.version, "until": until and until.isoformat()})
        return
    ends = "" if until is None else f"; older ones are taken until {until:%Y-%m-%d %H:%M:%S} UTC"
    typer.echo(f"{config}: serves version {found.version} of {found.id} from its next start on{ends}")


@rotate.command("finish")
def _finish(
    config: Config,
    destroy_keys: Annotated[
        bool, typer.Option("--destroy", help="Overwrite and delete the key files that are not needed any more.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Take older versions and their keys out of a configuration. Analyzer: only when their last batch is counted.

    Refused while the overlap lasts: devices that have not heard of the new version would have nobody to send to.

    Examples:
    dovetail collect rotate finish shuffler.toml --destroy
    """
    server = ServerFile.read(config)
    if server.until is not None and datetime.now(UTC) < server.until:
        raise ConfigError(
            f"{config}: takes older versions until {server.until:%Y-%m-%d %H:%M:%S} UTC; finish after that, or take "
            f"`{UNTIL}` out of the file to end it now."
        )
    campaigns, held = server.load()
    kept = newest_versions(dict(zip(server.campaigns, campaigns, strict=True)))
    pairs = list(zip(server.keys, held, strict=True))
    stay = [(path, keys) for path, keys in pairs if any(opens(keys, each) for each in kept.values())]
    if not stay:
        raise ConfigError(f"{config}: holds no keys of the newest versions; `rotate keys` makes new ones.")
    gone = [path for path, _ in pairs if path not in dict(stay)]
    place, newest = stay[-1]
    log = AuditLog.of(newest, place)
    for each in kept.values():
        log.append("versions changed", campaign=each.id, version=each.version)
    server.write(campaigns=list(kept), keys=[path for path, _ in stay])
    for path, keys in pairs if destroy_keys else ():
        if path in gone:
            log.append("keys destroyed", role=keys.role, key=fingerprint(keys))
            destroy(path)
    if as_json:
        print_json({"campaigns": [str(path) for path in kept], "unused": [str(path) for path in gone]})
        return
    typer.echo(f"{config}: serves {', '.join(f'{each.id} version {each.version}' for each in kept.values())}")
    for path in gone:
        typer.echo(f"{path}: {'destroyed' if destroy_keys else 'not needed any more; destroy it'}")
