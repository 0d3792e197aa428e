"""`dovetail collect submit`: what a device does, from this machine; the same as `dovetail-device submit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dovetail.cli.console.output import Json, print_json
from dovetail_device.session import VISIBLE, Via, line, opened, read_value, receipts_document, status, submit


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("submit")(_submit)


def _submit(
    campaign: Annotated[Path, typer.Option(help="The signed campaign file.")],
    keys: Annotated[Path, typer.Option(help="The device's key file; `dovetail collect keys device` makes one.")],
    value: Annotated[
        str, typer.Option(help=f"The value: a category or a number; - (the default) reads one line. Note: {VISIBLE}")
    ] = "-",
    round: Annotated[int | None, typer.Option(help="The round; default the one that runs now.")] = None,
    group: Annotated[str | None, typer.Option(help="The public group, if the campaign has groups.")] = None,
    outbox: Annotated[
        Path | None, typer.Option(help="The device's ledger; default the key file's name with .outbox.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option(help="The owner's public key, if you know it; else the first one seen is kept.")
    ] = None,
    max_epsilon: Annotated[
        float | None, typer.Option(help="Refuse campaigns whose reports cost more than this, nats.")
    ] = None,
    via: Annotated[Via, typer.Option(help="How to send.")] = "http",
    url: Annotated[str | None, typer.Option(help="Where to send; default the campaign's endpoint.")] = None,
    user: Annotated[str | None, typer.Option(help="User name for the broker, best the same for all devices.")] = None,
    password_file: Annotated[Path | None, typer.Option(help="File with the password for the broker.")] = None,
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
    if value != "-":
        typer.echo(f"note: {VISIBLE}", err=True)
    place: dict[str, Any] = {"outbox": outbox, "via": via, "url": url, "user": user, "password_file": password_file}
    with opened(campaign, keys, owner=owner, max_epsilon=max_epsilon, **place) as device:
        receipt = submit(device, read_value(value, device.campaign), round, group=group, patience=wait)
    if as_json:
        print_json(receipts_document([receipt]))
    else:
        typer.echo(line(receipt))
    return status([receipt])
