"""`dovetail collect keys`, `sign`, `hand-over`, `rotate`, `audit`: keys of each role and what was done with them."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.options import add_verbs, as_whole, verb_group
from dovetail.cli.output import Force, Grid, Json, Paste, show, write_whole
from dovetail.cli.progress import tell
from dovetail.collect.campaign.terms import draft_campaign, require_same_terms
from dovetail.collect.files import (
    UNTIL,
    ServerFile,
    destroy,
    free_name,
    load_campaign,
    load_keys,
    make_round_keys,
    newest_versions,
    next_version,
    opens,
    read_hand_over,
    save_keys,
)
from dovetail.collect.logs import AuditLog, audit_key, verify_log
from dovetail.core.checks import whole
from dovetail.core.display import counted
from dovetail.core.errors import ConfigError, DataError, DovetailError, OutputError, ParameterError
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.keys import Role, RoleKeys, SuiteName, VerifyingKey
from dovetail_protocol.ohttp import GatewayKey
from dovetail_protocol.succession import HandOver, require_new_owner
from dovetail_protocol.tokens import MOST_ROUNDS, TokenKey

# `dovetail collect keys`: the keys of one role.


def _keys(
    role: Annotated[Role, typer.Argument(help="Whose keys: owner, device, shuffler, analyzer, gateway or issuer.")],
    out: Annotated[
        Path, typer.Option("--out", help="The secret file; the public half goes to the same name + .pub.")
    ],
    suite: Annotated[
        SuiteName,
        typer.Option(
            help="Of shuffler and analyzer, the same for both; mlkem768-x25519 also resists quantum computers."
        ),
    ] = "x25519",
    as_json: Json = False,
) -> None:
    """Make the keys of one role; run it on that role's own machine, and hand on only the .pub file.

    Examples:
    dovetail collect keys owner --out owner.key;
    dovetail collect keys shuffler --out shuffler.key --suite mlkem768-x25519
    """
    if role == "gateway" and suite != "x25519":
        raise ParameterError("a gateway's key is of x25519, as oblivious HTTP has it: leave --suite out.")
    made = RoleKeys.generate(role, suite)
    place = write_keys(made, out)
    public, by = public_of(made), str(audit_key(made).verifying_key())
    log = [] if role == "device" else [f"audit log: {AuditLog.of(made, out).path}, signed by {by}"]
    show(
        {"role": role, "secret": str(out), "public": str(place), "keys": public, "audit": by},
        Paste(f"secret keys: {out} (stays on this machine)"),
        Paste(f"public keys: {place}"),
        *map(Paste, log),
        *(Paste(f'{name} = "{key}"') for name, key in public.items()),
        as_json=as_json,
    )


def write_keys(made: RoleKeys, out: Path) -> Path:
    """Write the secret file, the audit log's first line, and the public file, whose place is returned."""
    if out.is_dir():
        raise OutputError(f"{out}: is a folder; name a file in it with --out.")
    log = AuditLog.of(made, out)
    if log.path.exists() and not out.exists():
        raise OutputError(f"{log.path} exists, of other keys that had this name; choose another name.")
    save_keys(made, out)
    if made.role != "device":  # a device is no operator
        log.append("keys made", role=made.role, key=fingerprint(made))
    place = out.with_name(out.name + ".pub")
    place.write_text("".join(f'{name} = "{key}"\n' for name, key in public_of(made).items()))
    return place


def fingerprint(keys: RoleKeys) -> str:
    """A short name of these keys: the first digits of the SHA-256 of the public ones."""
    return sha256(repr(sorted(public_of(keys).items())).encode()).hexdigest()[:16]


def public_of(keys: RoleKeys) -> dict[str, str]:
    """The public halves under their names in [keys] of a campaign; a gateway's as [ohttp] takes it."""
    if keys.role == "gateway" and keys.opening is not None:
        return {keys.role: str(GatewayKey.of(keys.opening))}
    signing = {"shuffler": "shuffler_signing"}.get(keys.role, keys.role)
    found = {signing: str(keys.signing.verifying_key())} if keys.signing else {}
    return found | ({keys.role: str(keys.opening.sealing_key())} if keys.opening else {})


def read_public(path: Path, role: Role) -> dict[str, str]:
    """The public keys of `role`, from a .pub file or a key file of that role."""
    try:
        found = tomllib.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        raise ConfigError(f"{path}: no file of public keys that can be read.") from None
    if "role" in found:
        return public_of(load_keys(path, role))
    if found.keys() != public_of(RoleKeys.generate(role)).keys():
        raise ConfigError(f"{path} does not hold the public keys of the {role}, and nothing else.")
    return found


# `dovetail collect token-keys`: the keys of an issuer's rounds.


def _token_keys(
    rounds: Annotated[float, typer.Option(help="Number of rounds; each has a key of its own.")],
    out: Annotated[Path, typer.Option("--out", help="A new folder for the secret keys; their public file: + .pub.")],
    as_json: Json = False,
) -> None:
    """Make the issuer's keys of all rounds of one campaign; run it on the issuer's machine and hand on the .pub file.

    Keys of later rounds may lie elsewhere until they are needed: the issuer sells tokens of the rounds whose keys it
    has. A lost key ends its round, and is never replaced: the signed campaign names it.

    Example: dovetail collect token-keys --rounds 12 --out issuer-keys
    """
    count = whole("--rounds", as_whole(rounds), least=1, most=MOST_ROUNDS)
    place = out.with_name(out.name + ".pub")
    if place.exists():
        raise OutputError(f"{place} exists; keys are never overwritten, choose another name.")
    tell(f"make {count:,} keys")
    made = [str(key) for key in make_round_keys(out, count)]
    place.write_text("keys = [\n" + "".join(f'  "{key}",\n' for key in made) + "]\n")
    show(
        {"secret": str(out), "public": str(place), "rounds": count},
        Paste(f"secret keys: {out} (stays on this machine)"),
        Paste(f"public keys: {place} (for `dovetail collect new --token-keys`)"),
        as_json=as_json,
    )


def read_token_keys(path: Path) -> list[str]:
    """The public keys of an issuer's rounds."""
    try:
        found = tomllib.loads(path.read_text())["keys"]
    except (OSError, ValueError, KeyError, RecursionError):
        raise ConfigError(f"{path}: no public keys of rounds; `dovetail collect token-keys` makes them.") from None
    if not isinstance(found, list):
        raise ConfigError(f"{path}: `keys` must be a list.")
    return [str(TokenKey.parse(f"{path}: keys", key)) for key in found]


# `dovetail collect audit`: what operators did with a key file, and whether the log of it is whole.


AuditFile = Annotated[
    Path | None, typer.Option("--audit", help="The audit log to write to; default the key file's name with .audit.")
]


def log_of(keys: RoleKeys, place: Path, named: Path | None) -> AuditLog:
    """The audit log that an action with these keys is written to."""
    beside = AuditLog.of(keys, place)
    return beside if named is None else AuditLog(named, beside.key)


def _audit(
    log: Annotated[Path, typer.Argument(help="The audit log, such as owner.key.audit.")],
    key: Annotated[str | None, typer.Option(help="The key that signs the log, as `keys` printed it.")] = None,
    keys: Annotated[Path | None, typer.Option(help="Instead of --key: the key file that the log belongs to.")] = None,
    role: Annotated[Role, typer.Option(help="With --keys: whose keys they are.")] = "owner",
    head: Annotated[str | None, typer.Option(help="A digest noted earlier, whose line must still be there.")] = None,
    as_json: Json = False,
) -> None:
    """Verify an audit log and show it. Status 2 names the first line that was changed, moved or taken out.

    Lines that were cut off the end leave no trace in the log: note the head that is printed here somewhere else, and
    give it later as --head. `dovetail audit` is another verb: it judges privacy claims.

    Examples:
    dovetail collect audit owner.key.audit --keys owner.key;
    dovetail collect audit shuffler.key.audit --key ed25519:... --head 5d41...
    """
    if (key is None) == (keys is None):
        raise ConfigError("give the key that signs the log, either as --key or with its file as --keys.")
    by = VerifyingKey.parse("--key", key) if keys is None else audit_key(load_keys(keys, role)).verifying_key()
    entries = verify_log(log, by)
    if head is not None and head not in {entry.digest for entry in entries}:
        raise DataError(f"{log}: the line of the head {head[:16]} is gone; the log was cut off or written anew.")
    facts = [", ".join(f"{name} {fact}" for name, fact in sorted(entry.facts.items())) for entry in entries]
    rows = [(str(one.number), one.time, one.action, told) for one, told in zip(entries, facts, strict=True)]
    show(
        {"log": str(log), "by": str(by), "entries": [vars(entry) for entry in entries]},
        Grid(str(log), ("", "time", "action", ""), rows),
        Paste(
            f"verified: {counted(len(entries), 'line', 'lines')}; head {entries[-1].digest if entries else 'none'}"
        ),
        as_json=as_json,
    )


# `dovetail collect sign`: the owner's signature under a campaign.


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
    show(
        {"campaign": found.id, "version": found.version, "digest": found.digest.hex(), "owner": str(found.owner)},
        Paste(f"{campaign}: {found.id}, version {found.version}, is signed by {found.owner}"),
        Paste(f"digest {found.digest.hex()}"),
        as_json=as_json,
    )


def record_signed(log: AuditLog, campaign: Campaign) -> None:
    """Write to the log that this version of a campaign is signed."""
    log.append("campaign signed", campaign=campaign.id, version=campaign.version, digest=campaign.digest.hex())


def write(data: bytes, place: Path) -> None:
    """Write a file that every role may read."""
    place.write_bytes(data)
    place.chmod(0o644)


# `dovetail collect hand-over`: the owner of a campaign names another key, which everybody then follows.


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
    document = {"campaign": found.id, "from": str(made.old), "to": str(made.new), "file": str(out)}
    show(document, Paste(f"{out}: {found.id} is handed over to {made.new}"), as_json=as_json)


# `dovetail collect rotate`: new keys for a server, step by step, each on the machine of its role.


rotate = verb_group(
    "rotate",
    """New keys for shuffler or analyzer, without a visit to any device.

    In order: keys (on the server's machine), campaign (by the owner), add (on both servers, the analyzer first; then
    restart them), finish (when the overlap is over; restart again). docs/collect.md, "Changing keys", says when.
    """,
)

Config = Annotated[Path, typer.Argument(help="shuffler.toml or analyzer.toml, which is changed in place.")]


def _keys_of_config(config: Config, as_json: Json = False) -> None:
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
    told = Paste(f"{place}: new keys, named in {config}; give {public} to the owner of each campaign")
    show({"secret": str(place), "public": str(public), "keys": public_of(made)}, told, as_json=as_json)


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
    document = {"campaign": found.id, "version": found.version, "file": str(out), "owner": str(found.owner)}
    told = Paste(f"{out}: {found.id}, version {found.version}, is signed by {found.owner}")
    show(document, told, as_json=as_json)


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
    document = {"campaign": found.id, "version": found.version, "until": until and until.isoformat()}
    ends = "" if until is None else f"; older ones are taken until {until:%Y-%m-%d %H:%M:%S} UTC"
    told = Paste(f"{config}: serves version {found.version} of {found.id} from its next start on{ends}")
    show(document, told, as_json=as_json)


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
    fate = "destroyed" if destroy_keys else "not needed any more; destroy it"
    show(
        {"campaigns": [str(path) for path in kept], "unused": [str(path) for path in gone]},
        Paste(f"{config}: serves {', '.join(f'{each.id} version {each.version}' for each in kept.values())}"),
        *(Paste(f"{path}: {fate}") for path in gone),
        as_json=as_json,
    )


add_verbs(rotate, {"keys": _keys_of_config, "campaign": _campaign, "add": _add, "finish": _finish})
VERBS = {
    "keys": _keys,
    "token-keys": _token_keys,
    "sign": _sign,
    "hand-over": _hand_over,
    "audit": _audit,
    "rotate": rotate,
}
