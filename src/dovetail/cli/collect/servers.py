"""`dovetail collect shuffler` and `analyzer`: the two servers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dovetail.core.extras import require

# `dovetail collect shuffler`: take sealed reports, break the link to people, hand batches to the analyzer.


def _register_shuffler(app: typer.Typer) -> None:
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
    from dovetail.collect import logs as server_log
    from dovetail.collect.files import tls_files
    from dovetail.collect.http import run_until_stopped
    from dovetail.collect.shuffler.app import shuffler_app
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


# `dovetail collect analyzer`: the process that opens batches and answers queries.


def _register_analyzer(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("analyzer")(_analyzer)


def _analyzer(
    config: Annotated[Path, typer.Argument(help="analyzer.toml; paths in it are relative to it.", metavar="CONFIG")],
) -> None:
    """Run the analyzer: it takes batches from the shuffler, counts them, answers queries and shows the live page.

    Prints its URL once it listens. SIGTERM or Ctrl-C stops it after the requests under way. Queries need bearer
    tokens, whose SHA-256 digests stand in the file `tokens`; `dovetail collect token` makes and withdraws them.

    Examples:
    dovetail collect analyzer analyzer.toml
    """
    for module in ("starlette", "uvicorn", "sqlalchemy", "prometheus_client"):
        require(module, extra="serve")
    from dovetail.collect import logs as server_log
    from dovetail.collect.analyzer.analyzer import load
    from dovetail.collect.analyzer.app import run_analyzer

    settings = load(config)
    server_log.setup(sys.stderr)
    run_analyzer(settings, config.parent, lambda url: typer.echo(f"analyzer at {url}"))


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    _register_shuffler(app)
    _register_analyzer(app)
