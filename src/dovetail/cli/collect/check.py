"""`dovetail collect check`: a campaign in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dovetail.account.compose import Composition
from dovetail.cli.console.output import Json, foreign, print_json, print_rows
from dovetail.collect.campaign.class_guarantees import ClassGuarantee
from dovetail.collect.campaign.draft_campaign import draft_campaign
from dovetail.collect.campaign.explain import CampaignExplanation, explain
from dovetail.collect.campaign.mapped_roster import open_roster
from dovetail.collect.campaign.shuffle_schema import shuffle_section
from dovetail.core.errors import ConfigError, DovetailError
from dovetail.core.guarantee import CentralDP
from dovetail.report.document import Missing, to_jsonable
from dovetail_protocol.campaign import SIGNED, Campaign
from dovetail_protocol.keys import VerifyingKey
from dovetail_protocol.terminal_text import printable


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("check")(_check)


def _check(
    campaign: Annotated[Path, typer.Argument(help="The campaign file, signed or not yet.")],
    roster: Annotated[
        Path | None, typer.Option(help="The roster, to say what share of it in one hand breaks the promise.")
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Require the signature of this key, ed25519:...")] = None,
    as_json: Json = False,
) -> None:
    """Explain a campaign: what is asked, what it reveals at most, and who may read what. Status 2 if it is invalid.

    Examples:
    dovetail collect check campaign.toml;
    dovetail collect check campaign.toml --roster roster.csv --json
    """
    found, signed = _read(campaign, owner)
    devices = None if roster is None else open_roster(roster)
    explained = explain(found, roster=devices, folder=campaign.parent)
    if as_json:
        print_json(_document(explained, signed=signed))
        return
    state = f"signed by {found.owner}" if signed else "not signed yet: no role takes it"
    print_rows(f"{campaign}: {state}", {line.name: foreign(line.words) for line in explained.lines})
    for warning in explained.warnings:
        typer.echo(f"warning: {printable(warning)}.")


def _read(path: Path, owner: str | None) -> tuple[Campaign, bool]:
    """The campaign, and whether it is signed; a wrong signature is an error."""
    try:
        data = path.read_bytes()
        if owner is None and not data.rstrip().rpartition(b"\n")[2].startswith(SIGNED):
            return draft_campaign(data), False
        found = Campaign.parse(data, None if owner is None else VerifyingKey.parse("--owner", owner))
        shuffle_section(found)
        return found, True
    except OSError as error:
        if isinstance(error, DovetailError):
            raise
        raise ConfigError(f"{path}: no such campaign file.") from None
    except DovetailError as error:
        raise ConfigError(f"{path}: {error}") from None


def _document(found: CampaignExplanation, *, signed: bool) -> dict[str, Any]:
    campaign = found.campaign
    return {
        "campaign": campaign.id,
        "version": campaign.version,
        "digest": campaign.digest.hex(),
        "signed": signed,
        "owner": str(campaign.owner),
        "trust": campaign.promise.trust,
        "epsilon": to_jsonable(found.epsilon),
        "reports": found.reports,
        "all_epsilon": to_jsonable(found.all_epsilon),
        "central": _central(found.central),
        "together": _central(found.together),
        **({"by_class": [_class(each) for each in found.classes]} if found.classes else {}),
        "delta": campaign.promise.delta,
        "minimum": campaign.batch.minimum,
        "message_bytes": found.message_bytes,
        "words": {line.name: line.words for line in found.lines},
        "warnings": list(found.warnings),
    }


def _class(each: ClassGuarantee) -> dict[str, Any]:
    return {
        "class": each.name,
        "epsilon": each.local,
        "reports": each.most_reports,
        "all_epsilon": each.all_local,
        "central": _central(each.latest or Missing("no batch yet")),
        "together": _central(each.composed),
    }


def _central(found: CentralDP | Composition | Missing) -> Any:
    if isinstance(found, Missing) or found.epsilon is None:
        return {"value": None, "reason": getattr(found, "reason", "not stated")}
    return found.epsilon
