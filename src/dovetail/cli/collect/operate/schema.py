"""`dovetail collect schema`: which schema a server's database has, and the way back to an older one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.console.output import Json, print_json, print_rows
from dovetail.core.extras import require


def register(app: typer.Typer) -> None:
    """Add the verb to `dovetail collect`."""
    app.command("schema")(_schema)


def _schema(
    config: Annotated[Path, typer.Argument(help="shuffler.toml or analyzer.toml.")],
    to: Annotated[str | None, typer.Option(help="Go back to this older schema, such as shuffler_1.")] = None,
    as_json: Json = False,
) -> None:
    """Show the schema of a server's database; --to rolls it back for an older version of this package.

    Servers bring their database to the newest schema when they start. Stop them and back the database up first; with
    this version still installed, go back; then install the older one. No report, count or batch is lost on the way.

    Examples:
    dovetail collect schema shuffler.toml;
    dovetail collect schema shuffler.toml --to shuffler_1
    """
    for module in ("sqlalchemy", "alembic"):
        require(module, extra="serve")
    from dovetail.collect.server_config import database_of
    from dovetail.collect.store.migrations import roll_back, schema_of

    url, role = database_of(config)
    left = [] if to is None else roll_back(url, role, to)
    current, newest = schema_of(url, role)
    if as_json:
        print_json({"role": role, "schema": current, "newest": newest, "left": left})
        return
    rows = {"role": role, "schema": current or "none yet", "newest known here": newest}
    print_rows("Rolled back" if left else "Schema", rows | ({"left": ", ".join(left)} if left else {}))
