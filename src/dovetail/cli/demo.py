"""`dovetail demo`: the main job on a real survey that ships with a dependency."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from dovetail.cli.output import Force, Json, after_writing, print_json, progress_bar, write_whole
from dovetail.datasets.redbook import redbook
from dovetail.pipeline.run import run
from dovetail.report.terminal import print_report


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("demo")(_demo)


def configuration(private: str, *, epsilon: float, seed: int) -> dict[str, Any]:
    """The rehearsal that the demo runs: four shufflers side by side on the same reports."""
    categories = {"affair": ["no", "yes"], "affair_class": ["none", "under 0.5", "0.5 to 2", "2 and more"]}
    return {
        "schema_version": 1,
        "title": "Redbook survey 1974: extramarital affairs",
        "mode": "rehearsal",
        "seed": seed,
        "data": {
            "private": private,
            "public": ["age", "years_married", "education", "occupation"],
            "categories": categories[private],
        },
        "randomize": {"randomizer": "krr", "epsilon": epsilon},
        "shuffle": {
            "shuffler": "best",
            "alpha": 4.0,
            "groups": {"labels": "age", "radius": 1.0},
            "compare": ["identity", "uniform", "mallows"],
        },
        "promise": {"delta": 1e-6, "honest": 6350},
        "estimate": {"by": ["age"], "min_group_size": 50},
        "attack": {"similar": ["years_married", "education", "occupation"]},
    }


def _demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo-report"),
    private: Annotated[
        Literal["affair", "affair_class"],
        typer.Option(help="Private column: yes or no, or how much in four classes."),
    ] = "affair",
    epsilon: Annotated[float, typer.Option(help="Local epsilon of each report, nats.")] = 2.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rehearsal.")] = 1,
    save_table: Annotated[
        Path | None, typer.Option(help="Also write the survey as CSV, to try `dovetail run` on it.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """A rehearsal on the 1974 Redbook survey (6,366 women; private: affairs), with four shufflers side by side.

    Needs the extra `demo` (pip install 'dovetail-privacy[demo]'); nothing is downloaded.
    """
    table = redbook()
    if save_table is not None:
        named = table.with_row_index("id")
        write_whole(save_table, named.write_csv, force=force)
    with progress_bar(hidden=as_json) as progress:
        config = configuration(private, epsilon=epsilon, seed=seed)
        report = run(config, table=table, out=out, force=force, progress=progress)
    document = report.document()
    with after_writing(out):
        if as_json:
            print_json(document)
        else:
            print_report(document, Console())
            typer.echo(f"Report: {out / 'report.html'}")
