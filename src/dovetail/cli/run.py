"""`dovetail run`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.console.output import Force, Json, after_writing, print_json, print_summary
from dovetail.cli.console.progress import progress_bar


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("run")(_run)


def _run(
    config: Annotated[Path, typer.Argument(help="TOML file; docs/samples has an annotated one for each job.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; default: CONFIG-report beside you.")
    ] = None,
    force: Force = False,
    new_release: Annotated[
        bool, typer.Option("--new-release", help="Draw afresh although the table was released before; budgets add.")
    ] = False,
    ledger: Annotated[
        Path | None, typer.Option(help="Private release ledger; default: DOVETAIL_LEDGER or your application folder.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="processes or spark: a table in many files, drawn by several tasks at once.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="With --engine processes; default: all cores.")] = None,
    master: Annotated[
        str | None,
        typer.Option(help="With --engine spark: local[4], spark://host:7077 or sc://host; default: local[*]."),
    ] = None,
    as_json: Json = False,
) -> None:
    """A table goes in; a sanitized table, estimates with errors and a privacy report come out.

    With [data] time the table is a stream of rounds: a series of estimates, window queries and the budget spent.

    mode = "rehearsal" knows the truth and is for planning: report.html and report.json, marked as such. mode =
    "release" draws from the operating system and writes sanitized.parquet besides; asked again, it reproduces the
    first release. With --engine, [data] path is a folder of Parquet files or a glob, and the release is one, too.
    """
    from dovetail import scale
    from dovetail.core.errors import UnsupportedError
    from dovetail.pipeline.run import run

    if engine is None and (workers is not None or master is not None):
        raise UnsupportedError("--workers goes with --engine processes, and --master with --engine spark.")
    if engine is not None and force:
        raise UnsupportedError("--engine never replaces a release: name another place with --out.")
    target = out if out is not None else Path(f"{config.stem}-report")
    with progress_bar(hidden=as_json) as progress:
        if engine is None:
            report = run(config, out=target, force=force, new_release=new_release, ledger=ledger, progress=progress)
        else:
            report = scale.run(
                config, out=target, engine=engine, workers=workers, master=master, new_release=new_release,
                ledger=ledger, progress=progress,
            )  # fmt: skip
    document = report.document()
    with after_writing(target):
        print_json(document) if as_json else print_summary(document, target)
