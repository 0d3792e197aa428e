"""Verbs of operators and owners while a collection runs: close and drop rounds, clock, roster, tokens."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal
from urllib.parse import quote

import typer

from dovetail.cli.collect.keys import AuditFile, log_of, read_public
from dovetail.cli.collect.new import read_campaign
from dovetail.cli.collect.query import InsecureHttp, ServerClient
from dovetail.cli.options import add_verbs, as_whole, verb_group
from dovetail.cli.output import Facts, Json, Paste, print_json, show
from dovetail.collect.campaign.explain import roster_fact
from dovetail.collect.campaign.issued_counts import IssuedCounts
from dovetail.collect.campaign.roster import MappedRoster, Roster, changes_of, open_roster, write_mapped
from dovetail.collect.files import load_campaign, load_keys, save_secret
from dovetail.collect.logs import Action, AuditLog
from dovetail.core.checks import whole
from dovetail.core.errors import ConfigError, DataError
from dovetail.core.extras import require
from dovetail.ledger.files import replace_durably
from dovetail_protocol.keys import VerifyingKey

SignedCampaign = Annotated[Path, typer.Argument(help="The signed campaign file.")]
OwnerKeys = Annotated[Path, typer.Option(help="The owner's key file.")]
ShufflerUrl = Annotated[
    str | None, typer.Option(help="The shuffler's URL; default: `endpoints.http` of the campaign.")
]

# `dovetail collect close`: the owner ends a round of a manual schedule.


def _close(
    campaign: SignedCampaign,
    round: Annotated[int, typer.Argument(help="The round to close.", min=1)],
    keys: OwnerKeys,
    shuffler: ShufflerUrl = None,
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
    _tell("Closed" if state != "open" else "Not closed", campaign, round, state, as_json=as_json)


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
    from dovetail.collect.shuffler.campaigns import CHALLENGE, owner_request

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


def _tell(title: str, campaign: Path, round: int, state: str, *, as_json: bool) -> None:
    told = {"campaign": load_campaign(campaign).id, "round": round, "state": state}
    show(told, Facts(title, {name: str(each) for name, each in told.items()}), as_json=as_json)


def _challenge(answer: Any, length: int) -> bytes:
    """The challenge of an answer; nothing else is ever signed."""
    try:
        found = bytes.fromhex(answer["challenge"])
    except (KeyError, TypeError, ValueError):
        found = b""
    if len(found) != length:
        raise DataError("the shuffler's answer holds no challenge for the owner to sign; is it of another version?")
    return found


# `dovetail collect drop`: the owner gives up a round that cannot be counted.


def _drop(
    campaign: SignedCampaign,
    round: Annotated[int, typer.Argument(help="The round.", min=1)],
    keys: OwnerKeys,
    shuffler: ShufflerUrl = None,
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
    _tell("Dropped", campaign, round, state, as_json=as_json)


# `dovetail collect invite`: codes for people who ask an issuer for tokens without a roster.


def _invite(
    count: Annotated[float, typer.Option(help="Number of people.")],
    folder: Annotated[Path, typer.Option(help="The issuer's folder of invitations.csv.")],
    as_json: Json = False,
) -> None:
    """Print a code for each of so many people, each good for one token a round; only their hashes are kept.

    Example: dovetail collect invite --count 300 --folder invitations
    """
    from dovetail.collect.survey.invitations import Invitations

    codes = Invitations.load(folder).invite(whole("--count", as_whole(count), least=1))
    show({"codes": codes}, *map(Paste, codes), as_json=as_json)


# `dovetail collect issued`: how many tokens the issuer gave, by its own word.


def _issued(
    campaign: SignedCampaign,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to keep them in, which `issued` of analyzer.toml names.")
    ] = None,
    issuer: Annotated[
        str | None, typer.Option(help="The issuer's URL; default: `tokens.url` of the campaign.")
    ] = None,
    insecure_http: InsecureHttp = False,
    as_json: Json = False,
) -> None:
    """Ask the issuer how many tokens it gave in each round that is over, and verify its signature.

    Run it from a timer on the analyzer's machine. Its page and `guarantee` then say how many tokens and how many
    reports a round had: more reports than tokens is an alarm, as many or fewer prove nothing.

    Example: dovetail collect issued campaign.toml --out issued
    """
    require("httpx", extra="serve")
    found = load_campaign(campaign)
    if found.tokens is None:
        raise ConfigError(f"the campaign {found.id} asks for no tokens.")
    with ServerClient(issuer or found.tokens.url, role="issuer", insecure_http=insecure_http) as ask:
        body = ask.file(f"/v1/issued/{quote(found.id, safe='')}")
    told = IssuedCounts.read(body, found)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        replace_durably(out / f"{found.id}.json", body)
    counts = sorted(told.counts.items())
    rows = {f"round {number:,}": f"{count:,} tokens" for number, count in counts} or {"rounds that are over": "none"}
    facts = Facts(f"{found.id}: issued, as {found.tokens.issuer} signs", rows)
    show({"campaign": found.id, "issued": list(map(list, counts))}, facts, as_json=as_json)


# `dovetail collect clock`: what the shuffler knows about time, and an operator's word that its clock is right.


def _clock(
    config: Annotated[Path, typer.Argument(help="shuffler.toml, on the shuffler's own machine.")],
    confirm: Annotated[
        bool, typer.Option("--confirm", help="This machine's clock is right now: go on by it, also backwards.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the record of time beside this machine's clock; --confirm lets a shuffler that halted go on.

    A shuffler that sees its clock jump takes, closes and releases nothing. Set the clock right: it goes on by itself.
    If the clock is right and the record is not, as after a long outage or the restore of an old backup, confirm it;
    rounds whose time has passed close then. A running shuffler needs no restart.

    Examples:
    dovetail collect clock shuffler.toml;
    dovetail collect clock shuffler.toml --confirm
    """
    for module in ("sqlalchemy", "httpx", "paho.mqtt", "prometheus_client"):
        require(module, extra="serve")
    from dovetail.collect.clock import SystemClock
    from dovetail.collect.shuffler import trusted_clock
    from dovetail.collect.shuffler.shuffler_config import load
    from dovetail.collect.store.shuffler_store import open_shuffler_store

    found = load(config)
    store = open_shuffler_store(found.store_url(config.parent, "shuffler"))
    reading = trusted_clock.read(SystemClock())
    try:
        if confirm:
            trusted_clock.confirm(reading, store)
        record = store.moment()
    finally:
        store.close()
    limits = trusted_clock.ClockLimits(found.clock.largest_step_seconds, found.clock.longest_outage_days)
    agrees = record is None or trusted_clock.agrees(reading, record, limits)
    document = {
        "clock": _minute(reading.wall),
        "record": None if record is None else _minute(record.time),
        "halted": record is not None and record.halted,
        "agrees": agrees,
        "confirmed": 0 if record is None else record.confirmed,
    }
    rows = {name: "none yet" if value is None else str(value) for name, value in document.items()}
    show(document, Facts("Confirmed" if confirm else "Clock", rows), as_json=as_json)


def _minute(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%MZ")


# `dovetail collect roster`: which devices may send.


roster = verb_group(
    "roster",
    "The roster: a CSV file of device keys with their public slots; a running shuffler follows its changes.",
)

AnyRoster = Roster | MappedRoster
RosterFile = Annotated[
    Path, typer.Argument(help="The roster: CSV with the columns device, slot, revoked, or what `index` wrote.")
]
Devices = Annotated[
    list[str], typer.Argument(help="Devices: public keys (ed25519:...) or their .pub files.", metavar="DEVICE...")
]


def _add(
    file: RosterFile,
    devices: Devices,
    campaign: Annotated[
        Path | None,
        typer.Option(help="A campaign file: say how many of these devices in one hand break its promise."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Admit devices, each in the next free slot; the file is made if there is none.

    Examples:
    dovetail collect roster add roster.csv meter-1.key.pub meter-2.key.pub;
    dovetail collect roster add roster.csv meter-3.key.pub --campaign campaign.toml
    """
    asked = None if campaign is None else read_campaign(campaign, None)[0]
    before: AnyRoster = open_roster(file) if file.exists() else Roster([])
    after = _change(file, before.with_devices, devices)
    promise = None if asked is None else roster_fact(asked, after)
    _show(file, after, as_json, {} if asked is None else {"promise": promise})
    if asked is not None and not as_json:
        why = f"too few devices for a batch, or nothing promised of one; see `dovetail collect check {campaign}`"
        typer.echo(f"{promise or why}.")


def _revoke(file: RosterFile, devices: Devices, as_json: Json = False) -> None:
    """Refuse these devices from now on; their slots stay taken.

    Examples:
    dovetail collect roster revoke roster.csv ed25519:...
    """
    after = _change(file, open_roster(file).without_devices, devices)
    _show(file, after, as_json)


def _list(file: RosterFile, as_json: Json = False) -> None:
    """Every device with its slot.

    Examples:
    dovetail collect roster list roster.csv
    """
    found = open_roster(file)
    if not as_json:
        for entry in found:
            typer.echo(f"{entry.slot:>8}  {entry.device}{'  revoked' if entry.revoked else ''}")
    _show(file, found, as_json)


def _index(
    file: RosterFile,
    out: Annotated[Path, typer.Option(help="A new file for the sorted keys; its changes stand beside it.")],
) -> None:
    """Write a roster of millions as a sorted file that all processes of a host share in memory.

    Name it as `roster` in shuffler.toml; `add`, `revoke` and `list` take it like a CSV file, and write a short list
    of changes beside it. Index it again, under a new name, when that has grown long.

    Examples:
    dovetail collect roster index roster.csv --out roster.keys
    """
    found = write_mapped(file, out)
    typer.echo(f"{out}: {len(found)} devices; changes are in {changes_of(out)}")


def _change(file: Path, change: Callable[[list[VerifyingKey]], AnyRoster], devices: list[str]) -> AnyRoster:
    """The roster after a change, which is saved; errors name the file."""
    try:
        after = change([_device(text) for text in devices])
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    after.save(file)
    return after


def _device(text: str) -> VerifyingKey:
    key = text if text.startswith("ed25519:") else read_public(Path(text), "device")["device"]
    return VerifyingKey.parse("device", key)


def _show(file: Path, found: AnyRoster, as_json: bool, more: Mapping[str, str | None] = MappingProxyType({})) -> None:
    revoked = sum(entry.revoked for entry in found)
    if as_json:
        devices = [{"device": str(e.device), "slot": e.slot, "revoked": e.revoked} for e in found]
        print_json({"roster": str(file), "devices": devices, **more})
    else:
        typer.echo(f"{file}: {len(found)} devices, {revoked} of them revoked")


# `dovetail collect token`: who may ask the analyzer, what, and until when.


token = verb_group(
    "token",
    "Who may ask the analyzer: a file of digests; a running analyzer follows its changes at once.",
)

Keys = Annotated[
    Path | None, typer.Option(help="The analyzer's key file, in whose audit log this is written; default: nowhere.")
]
TokenFile = Annotated[Path, typer.Argument(help="The analyzer's `tokens` file.")]


def _add_token(
    file: TokenFile,
    label: Annotated[str, typer.Option(help="Who gets it; withdraw names it.")],
    out: Annotated[Path, typer.Option("--out", help="Where the token goes: a new file that only its owner reads.")],
    days: Annotated[float, typer.Option(help="How long it is valid.", min=0.0)] = 90.0,
    campaign: Annotated[list[str] | None, typer.Option(help="A campaign that it may read; default all.")] = None,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Make a token. Hand on the file --out; the analyzer keeps its digest only.

    Example: dovetail collect token add tokens.txt --label dashboard --campaign commute --days 30 --out token.txt
    """
    require("starlette", extra="serve")
    from dovetail.collect.analyzer.tokens import Token, Tokens

    made = secrets.token_urlsafe()
    digest, expires = sha256(made.encode()).hexdigest(), datetime.now(UTC) + timedelta(days=days)
    new = Token(digest, label, expires.replace(microsecond=0), None if not campaign else frozenset(campaign))
    before = Tokens.load(file) if file.exists() else Tokens(())
    after = before.with_token(new)  # refused before the secret is written
    _record(keys, "token added", digest)
    save_secret(made + "\n", out)
    after.save(file)
    _show_tokens(file, after, as_json)


def _withdraw(file: TokenFile, label: str, keys: Keys = None, as_json: Json = False) -> None:
    """Withdraw every token of a label; the next question that shows one is refused.

    Example: dovetail collect token withdraw tokens.txt dashboard
    """
    require("starlette", extra="serve")
    from dovetail.collect.analyzer.tokens import Tokens

    before = Tokens.load(file)
    after = before.without(label)
    for gone in before.tokens:
        if gone not in after.tokens:
            _record(keys, "token withdrawn", gone.digest)
    after.save(file)
    _show_tokens(file, after, as_json)


def _list_tokens(file: TokenFile, as_json: Json = False) -> None:
    """Every token by its label, never the token itself.

    Example: dovetail collect token list tokens.txt
    """
    require("starlette", extra="serve")
    from dovetail.collect.analyzer.tokens import Tokens

    _show_tokens(file, Tokens.load(file), as_json)


def _record(keys: Path | None, action: Action, digest: str) -> None:
    """Write to the audit log what becomes of a token, under the first digits of its digest."""
    if keys is not None:
        AuditLog.of(load_keys(keys, "analyzer"), keys).append(action, role="analyzer", digest=digest[:16])


def _show_tokens(file: Path, found: object, as_json: bool) -> None:
    from dovetail.collect.analyzer.tokens import Tokens

    assert isinstance(found, Tokens)
    rows = [
        {
            "label": each.label,
            "expires": None if each.expires is None else each.expires.isoformat(),
            "campaigns": None if each.campaigns is None else sorted(each.campaigns),
        }
        for each in found.tokens
    ]
    lines = []
    for row in rows:
        reads = "all campaigns" if row["campaigns"] is None else ", ".join(row["campaigns"])
        lines.append(f"{row['label'] or 'no label'}: {reads}, until {row['expires'] or 'it is withdrawn'}")
    told = map(Paste, [*lines, f"{file}: {len(rows)} tokens"])
    show({"tokens": str(file), "valid": rows}, *told, as_json=as_json)


add_verbs(roster, {"add": _add, "revoke": _revoke, "list": _list, "index": _index})
add_verbs(token, {"add": _add_token, "withdraw": _withdraw, "list": _list_tokens})
VERBS = {
    "close": _close,
    "drop": _drop,
    "invite": _invite,
    "issued": _issued,
    "clock": _clock,
    "roster": roster,
    "token": token,
}
