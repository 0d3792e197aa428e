"""`dovetail collect token`: who may ask the analyzer, what, and until when."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.console.output import Json, print_json
from dovetail.collect.audit_log import Action, AuditLog
from dovetail.collect.files import load_keys, save_secret
from dovetail.core.extras import require

token = typer.Typer(
    name="token",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Who may ask the analyzer: a file of digests; a running analyzer follows its changes at once.",
)

Keys = Annotated[
    Path | None, typer.Option(help="The analyzer's key file, in whose audit log this is written; default: nowhere.")
]
File = Annotated[Path, typer.Argument(help="The analyzer's `tokens` file.")]


def register(app: typer.Typer) -> None:
    """Add the group to `dovetail collect`."""
    app.add_typer(token)


@token.command("add")
def _add(
    file: File,
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
    _show(file, after, as_json)


@token.command("withdraw")
def _withdraw(file: File, label: str, keys: Keys = None, as_json: Json = False) -> None:
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
    _show(file, after, as_json)


@token.command("list")
def _list(file: File, as_json: Json = False) -> None:
    """Every token by its label, never the token itself.

    Example: dovetail collect token list tokens.txt
    """
    require("starlette", extra="serve")
    from dovetail.collect.analyzer.tokens import Tokens

    _show(file, Tokens.load(file), as_json)


def _record(keys: Path | None, action: Action, digest: str) -> None:
    """Write to the audit log what becomes of a token, under the first digits of its digest."""
    if keys is not None:
        AuditLog.of(load_keys(keys, "analyzer"), keys).append(action, role="analyzer", digest=digest[:16])


def _show(file: Path, found: object, as_json: bool) -> None:
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
    if as_json:
        print_json({"tokens": str(file), "valid": rows})
        return
    for row in rows:
        reads = "all campaigns" if row["campaigns"] is None else ", ".join(row["campaigns"])
        typer.echo(f"{row['label'] or 'no label'}: {reads}, until {row['expires'] or 'it is withdrawn'}")
    typer.echo(f"{file}: {len(rows)} tokens")
