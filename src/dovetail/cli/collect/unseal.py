"""`dovetail collect unseal`: sealed reports in files, opened by many processes or on Spark."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dovetail.cli.output import Json, print_json
from dovetail.cli.progress import progress_bar


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("unseal")(_unseal)


def _unseal(
    parts: Annotated[
        Path, typer.Argument(help="A Parquet file, or a folder of them, with the column `sealed`.", metavar="PARTS")
    ],
    config: Annotated[Path, typer.Option(help="analyzer.toml; every worker reads it and the keys that it names.")],
    campaign: Annotated[str, typer.Option(help="Campaign id.")],
    round: Annotated[int, typer.Option(min=1, help="The round that the reports are of.")],
    engine: Annotated[str, typer.Option(help="processes or spark.")] = "processes",
    workers: Annotated[int | None, typer.Option(min=1, help="With --engine processes; default: all cores.")] = None,
    master: Annotated[str | None, typer.Option(help="With --engine spark: local[4] or spark://host:7077.")] = None,
    as_json: Json = False,
) -> None:
    """Open and count the sealed reports of a round that lie in files, as the analyzer counts them in a batch.

    Nothing is recorded: batches that their shuffler signed are counted by the analyzer alone. Keys do not travel:
    every worker reads the files of analyzer.toml itself, so all machines see them under the same path.

    Examples:
    dovetail collect unseal parts --config analyzer.toml --campaign commute --round 1;
    dovetail collect unseal parts --config analyzer.toml --campaign commute --round 1 --engine spark --master local[4]
    """
    from dovetail.collect.analyzer.sealed_parts import count_parts
    from dovetail.engine.run import make_engine

    with progress_bar(hidden=as_json) as progress, closing(make_engine(engine, workers, master, None)) as runs:
        found = count_parts(runs, parts, config=config, campaign=campaign, round=round, progress=progress)
    document = found.document()
    if as_json:
        print_json(document)
        return
    aside = ", ".join(f"{count:,} {kind}" for kind, count in found.rejected.items()) or "none"
    typer.echo(f"{campaign}, round {round}: {found.n:,} valid reports; set aside: {aside}.")
    table = Table("group", "reports", "estimate", "standard error")
    for name, one in document["estimates"].items():
        cells = (" ".join(f"{number:.4g}" for number in one[key]) for key in ("value", "standard_error"))
        table.add_row(name or "everybody", f"{one['n']:,}", *cells)
    Console().print(table if document["estimates"] else "Too few reports are valid for an estimate.")
