"""`dovetail collect keys`: the keys of one role."""

from __future__ import annotations

import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.console.output import Json, print_json
from dovetail.collect.audit_log import AuditLog, audit_key
from dovetail.collect.files import load_keys, save_keys
from dovetail.core.errors import ConfigError, OutputError
from dovetail_protocol.keys import Role, RoleKeys, SuiteName


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("keys")(_keys)


def _keys(
    role: Annotated[Role, typer.Argument(help="Whose keys: owner, device, shuffler or analyzer.")],
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
    made = RoleKeys.generate(role, suite)
    place = write_keys(made, out)
    public, by = public_of(made), str(audit_key(made).verifying_key())
    if as_json:
        print_json({"role": role, "secret": str(out), "public": str(place), "keys": public, "audit": by})
        return
    typer.echo(f"secret keys: {out} (stays on this machine)")
    typer.echo(f"public keys: {place}")
    if role != "device":
        typer.echo(f"audit log: {AuditLog.of(made, out).path}, signed by {by}")
    for name, key in public.items():
        typer.echo(f'{name} = "{key}"')


def write_keys(made: RoleKeys, out: Path) -> Path:
    """Write the secret file, the audit log's first line, and the public file, whose place is returned."""
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
    """The public halves under their names in [keys] of a campaign."""
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
