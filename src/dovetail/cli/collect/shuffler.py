"""`dovetail collect shuffler`: take sealed reports, break the link to people, hand batches to the analyzer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dovetail.core.extras import require


def register(app: typer.Typer) -> None:
    """Add the verb to `dovetail collect`."""
    app.command("shuffler")(_shuffler)


def _shuffler(
    config: Annotated[Path, typer.Argument(help="shuffler.toml; paths in it are relative to it.")],
    listen: Annotated[
        str | None, typer.Option(help="host:port instead of that of the file: for one of several processes.")
    ] = None,
) -> None:
    """Run the shuffler until SIGTERM or Ctrl-C; what it has acknowledged is durable, whatever stops it.

    It needs its own keys and never the analyzer's: it cannot read a report, and refuses a key file of another role.
    Prints its URL once it listens; logs are JSON lines on standard error.

    Several processes may run with one file where `store` is PostgreSQL, each with a --listen of its own: all take
    reports, one at a time turns rounds and delivers, and any of them may be killed or restarted.

    Example: dovetail collect shuffler shuffler.toml

    Example: dovetail collect shuffler shuffler.toml --listen 127.0.0.1:8411
    """
    for module in ("uvicorn", "starlette", "sqlalchemy", "prometheus_client", "httpx", "paho.mqtt"):
        require(module, extra="serve")
    from dovetail.collect import server_log
    from dovetail.collect.http.server import run_until_stopped
    from dovetail.collect.server_config import tls_files
    from dovetail.collect.shuffler.endpoints.app import shuffler_app
    from dovetail.collect.shuffler.shuffler_config import assemble, load

    found = load(config)
    if listen is not None:
        found = found.model_copy(update={"listen": listen})
    server_log.setup(sys.stderr)
    service, subscribers = assemble(found, config.parent)
    tls = tls_files(found.tls, config.parent)
    run_until_stopped(
        shuffler_app(service, *subscribers), found.listen, ready=lambda url: typer.echo(f"shuffler at {url}"), **tls
    )
