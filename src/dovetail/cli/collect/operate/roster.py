"""`dovetail collect roster`: which devices may send."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.collect.keys import read_public
from dovetail.cli.console.output import Json, print_json
from dovetail.collect.campaign.mapped_roster import MappedRoster, changes_of, open_roster, write_mapped
from dovetail.collect.campaign.roster import Roster
from dovetail.core.errors import DataError
from dovetail_protocol.keys import VerifyingKey

roster = typer.Typer(
    name="roster",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="The roster: a CSV file of device keys with their public slots; a running shuffler follows its changes.",
)

AnyRoster = Roster | MappedRoster
File = Annotated[
    Path, typer.Argument(help="The roster: CSV with the columns device, slot, revoked, or what `index` wrote.")
]
Devices = Annotated[
    list[str], typer.Argument(help="Devices: public keys (ed25519:...) or their .pub files.", metavar="DEVICE...")
]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.add_typer(roster)


@roster.command("add")
def _add(file: File, devices: Devices, as_json: Json = False) -> None:
    """Admit devices, each in the next free slot; the file is made if there is none.

    Examples:
    dovetail collect roster add roster.csv meter-1.key.pub meter-2.key.pub
    """
    before: AnyRoster = open_roster(file) if file.exists() else Roster([])
    after = _change(file, before.with_devices, devices)
    _show(file, after, as_json)


@roster.command("revoke")
def _revoke(file: File, devices: Devices, as_json: Json = False) -> None:
    """Refuse these devices from now on; their slots stay taken.

    Examples:
    dovetail collect roster revoke roster.csv ed25519:...
    """
    after = _change(file, open_roster(file).without_devices, devices)
    _show(file, after, as_json)


@roster.command("list")
def _list(file: File, as_json: Json = False) -> None:
    """Every device with its slot.

    Examples:
    dovetail collect roster list roster.csv
    """
    found = open_roster(file)
    if not as_json:
        for entry in found:
            typer.echo(f"{entry.slot:>8}  {entry.device}{'  revoked' if entry.revoked else ''}")
    _show(file, found, as_json)


@roster.command("index")
def _index(
    file: File,
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


def _show(file: Path, found: AnyRoster, as_json: bool) -> None:
    revoked = sum(entry.revoked for entry in found)
    if as_json:
        devices = [{"device": str(e.device), "slot": e.slot, "revoked": e.revoked} for e in found]
        print_json({"roster": str(file), "devices": devices})
    else:
        typer.echo(f"{file}: {len(found)} devices, {revoked} of them revoked")
