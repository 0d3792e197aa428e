"""`dovetail collect analyzer`: the process that opens batches and answers queries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dovetail.core.extras import require


def register(app: typer.Typer) -> None:
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
    from dovetail.collect import server_log
    from dovetail.collect.analyzer.analyzer_config import load
    from dovetail.collect.analyzer.app import run_analyzer

    settings = load(config)
    server_log.setup(sys.stderr)
    run_analyzer(settings, config.parent, lambda url: typer.echo(f"analyzer at {url}"))
