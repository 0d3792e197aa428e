"""`dovetail collect submit`: what a device does, from this machine; the same as `dovetail-device submit`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from dovetail.cli.collect.server_client import InsecureHttp
from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import Json, print_json
from dovetail.core.display.display import mute
from dovetail_device.session import (
    VISIBLE,
    TransportName,
    first_use,
    line,
    open_device,
    read_value,
    receipts_document,
    status,
    submit,
)


@dataclass(frozen=True)
class FileOptions:
    """The two files of a device."""

    campaign: Annotated[Path, typer.Option(help="The signed campaign file.")]
    keys: Annotated[Path, typer.Option(help="The device's key file; `dovetail collect keys device` makes one.")]


@mute
@dataclass(frozen=True)
class ReportOptions:
    """What is reported."""

    value: Annotated[
        str, typer.Option(help=f"The value: a category or a number; - (the default) reads one line. Note: {VISIBLE}")
    ] = "-"
    round: Annotated[int | None, typer.Option(help="The round; default the one that runs now.")] = None
    group: Annotated[str | None, typer.Option(help="The public group, if the campaign has groups.")] = None


@dataclass(frozen=True)
class SessionOptions:
    """What the device trusts and keeps, and how it sends; the optional arguments of `session.opened`."""

    outbox: Annotated[
        Path | None, typer.Option(help="The device's ledger; default the key file's name with .outbox.")
    ] = None
    owner: Annotated[
        str | None, typer.Option(help="The owner's public key: consent to answer it. Else the first one met is kept.")
    ] = None
    max_epsilon: Annotated[
        float | None, typer.Option(help="Refuse campaigns whose reports cost more than this, nats.")
    ] = None
    question: Annotated[
        str | None, typer.Option(help="What budgets are counted by; default the words of the question.")
    ] = None
    via: Annotated[TransportName, typer.Option(help="How to send.")] = "http"
    url: Annotated[str | None, typer.Option(help="Where to send; default the campaign's endpoint.")] = None
    user: Annotated[str | None, typer.Option(help="User name for the broker, best the same for all devices.")] = None
    password_file: Annotated[Path | None, typer.Option(help="File with the password for the broker.")] = None
    insecure_http: InsecureHttp = False
    insecure_mqtt: Annotated[
        bool,
        typer.Option("--insecure-mqtt", help="Allow plain MQTT to another machine; anybody reads the login."),
    ] = False
    trust: Annotated[
        Literal["users"] | None,
        typer.Option(help="Answer as it is where only other people's dummies hide the answer."),
    ] = None
    epsilon_class: Annotated[
        str | None,
        typer.Option(
            "--class",
            help="Where people have different epsilons: your class, chosen once and never by the value; default the "
            "one with the smallest epsilon.",
        ),
    ] = None
    hand_over: Annotated[
        bool,
        typer.Option("--hand-over/--no-hand-over", help="Whether an owner's hand-over is followed."),
    ] = True


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("submit")(flatten(_submit))


def _submit(
    files: FileOptions,
    report: ReportOptions,
    session: SessionOptions,
    wait: Annotated[float, typer.Option(help="Try again for so many seconds if it does not arrive.")] = 0.0,
    as_json: Json = False,
) -> int:
    """Randomize one value, once for a round, and send that report; `dovetail-device flush` sends what waits.

    A second value in the same round changes nothing: the first report is sent again, or is there already. Exit status
    1 means refused for good; a report that waits is safe in the outbox.

    Examples:
    echo walk | dovetail collect submit --campaign campaign.toml --keys meter-1.key;
    dovetail collect submit --campaign campaign.toml --keys meter-1.key --round 2 --via mqtt --wait 60
    """
    if report.value != "-":
        typer.echo(f"note: {VISIBLE}", err=True)
    with open_device(files.campaign, files.keys, **vars(session)) as device:
        if note := first_use(device):
            typer.echo(f"note: {note}", err=True)
        value = read_value(report.value, device.campaign)
        receipt = submit(device, value, report.round, group=report.group, patience=wait)
    if as_json:
        print_json(receipts_document([receipt]))
    else:
        typer.echo(line(receipt))
    return status([receipt])
