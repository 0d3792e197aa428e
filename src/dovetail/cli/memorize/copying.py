"""`dovetail memorize copying`: is what a model generates nearer to its training data than fresh data are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.console.output import Json
from dovetail.core.errors import UnsupportedError


def register(app: typer.Typer) -> None:
    """Add the verb to the group."""
    app.command("copying")(_copying)


def _copying(
    train: Annotated[Path, typer.Option(help="What the model was trained on: CSV, Parquet, .npy, .npz or a folder.")],
    as_json: Json = False,
) -> None:
    """Test whether generated data repeat the training data."""
    raise UnsupportedError("not built yet.")
