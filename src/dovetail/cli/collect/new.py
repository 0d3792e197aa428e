"""`dovetail collect new`: write a campaign."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tomlkit
import typer

from dovetail.cli.collect.campaign_options import (
    BatchOptions,
    EndpointOptions,
    GroupOptions,
    KeyOptions,
    PromiseOptions,
    QuestionOptions,
    RandomizerOptions,
    RoundOptions,
    Section,
)
from dovetail.cli.collect.operate.sign import write
from dovetail.cli.console.mechanism_options import RandomizerSettings
from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import Force, Json, print_json, write_whole
from dovetail.collect.campaign.draft_campaign import draft_campaign

HEAD = (
    "A campaign: one file for all roles. Explain it with `dovetail collect check`, sign it with `sign`.",
    "Whoever changes it later raises `version` and signs again; the id stays.",
)
COMMENTS = {
    "randomizer": "How a device randomizes one answer; epsilon in nats.",
    "classes": "Who chooses which epsilon is public, and must not depend on the answer; reports do not say it.",
    "groups": "Public groups: a report names one of them in the clear for the analyzer.",
    "rounds": "Each device sends at most one report a round.",
    "batch": "What leaves the shuffler: `minimum` signed reports at least; of fewer valid ones nothing is shown.",
    "shuffle": "Who sent which report is forgotten.",
    "dummies": "What the shuffler adds to each batch, of every answer; it and its secrecy are trusted.",
    "promise": "What the promise to people assumes, and what one device spends at most (nats).",
    "keys": "Public keys of the roles; secret ones never leave their machines.",
    "endpoints": "Where devices send.",
}

OF_PEOPLE = {
    "randomizer": "Nothing is randomized: an answer is sent as it is, among dummies of other people.",
    "dummies": "The probability with which each device sends a dummy; epsilon and delta are of one batch.",
}


@dataclass(frozen=True)
class FileOptions:
    """Where the campaign goes."""

    out: Annotated[Path, typer.Option("--out", help="The campaign file to write.")] = Path("campaign.toml")
    force: Force = False
    as_json: Json = False


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("new")(flatten(_new))


def _new(
    *,
    keys: KeyOptions,
    heading: QuestionOptions,
    randomizer: RandomizerOptions,
    settings: RandomizerSettings,
    groups: GroupOptions,
    rounds: RoundOptions,
    batch: BatchOptions,
    promise: PromiseOptions,
    endpoints: EndpointOptions,
    output: FileOptions,
) -> None:
    """Write a campaign with comments, to be read, changed by hand, explained with check and signed with sign.

    On a terminal it asks for what is needed and was not given. Order-private shuffles are added by hand: see
    docs/samples/collect/campaign.toml.

    Examples:
    dovetail collect new --id commute --question "How do you get to work?" --categories walk,bike,car
    --owner owner.key.pub --shuffler shuffler.key.pub --analyzer analyzer.key.pub --http http://127.0.0.1:8401
    """
    top, schedule, rule = heading.section(), rounds.section(), batch.section()
    mechanism = randomizer.section(settings, trust=promise.trusts())
    promised = promise.section(epsilon=randomizer.largest, rounds=schedule["count"], minimum=rule["minimum"])
    sections = {
        "randomizer": mechanism,
        "classes": randomizer.by_class(),
        "groups": groups.section(),
        "rounds": schedule,
        "batch": rule,
        "shuffle": {"shuffler": "uniform"},
        "dummies": promise.dummies_section(mechanism, promised, rounds=schedule["count"], epsilon=randomizer.epsilon),
        "promise": promised,
        "keys": keys.section(),
        "endpoints": endpoints.section(),
    }
    comments = COMMENTS | (OF_PEOPLE if promised.get("trust") == "users" else {})
    body = _annotate(top, sections, comments).encode()
    made = draft_campaign(body)
    write_whole(output.out, lambda scratch: write(body, scratch), force=output.force)
    if output.as_json:
        print_json({"campaign": made.id, "file": str(output.out), "device_budget": made.promise.device_budget})
    else:
        typer.echo(
            f"{output.out}: explain it with `dovetail collect check`, then sign it with `dovetail collect sign`"
        )


def _annotate(top: Section, sections: dict[str, Section], comments: dict[str, str]) -> str:
    """The file, with a comment above each section; empty sections are left out."""
    document = tomlkit.document()
    for line in HEAD:
        document.add(tomlkit.comment(line))
    for key, value in top.items():
        document.add(key, tomlkit.item(value))
    for name, section in sections.items():
        if section:
            document.add(tomlkit.nl())
            document.add(tomlkit.comment(comments[name]))
            document.add(name, tomlkit.item(section))
    return tomlkit.dumps(document)
