"""`dovetail collect audit`: what operators did with a key file, and whether the log of it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.console.output import Json, foreign, print_json
from dovetail.collect.audit_log import AuditEntry, AuditLog, audit_key, verify_log
from dovetail.collect.files import load_keys
from dovetail.core.errors import ConfigError, DataError
from dovetail_protocol.keys import Role, RoleKeys, VerifyingKey

AuditFile = Annotated[
    Path | None, typer.Option("--audit", help="The audit log to write to; default the key file's name with .audit.")
]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("audit")(_audit)


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
    give it later as --head.

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
    if as_json:
        print_json({"log": str(log), "by": str(by), "entries": [vars(entry) for entry in entries]})
        return
    _print(log, entries)


def _print(log: Path, entries: list[AuditEntry]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=foreign(str(log)), title_justify="left")
    for name in ("", "time", "action", ""):
        table.add_column(name)
    for entry in entries:
        facts = ", ".join(f"{name} {fact}" for name, fact in sorted(entry.facts.items()))
        table.add_row(*map(foreign, (str(entry.number), entry.time, entry.action, facts)))
    Console().print(table)
    typer.echo(f"verified: {len(entries):,} lines; head {entries[-1].digest if entries else 'none'}")
