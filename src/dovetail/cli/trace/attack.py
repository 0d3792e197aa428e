"""`dovetail trace attack`: rehearse the protection of known traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import Force, Json, print_json
from dovetail.cli.trace.options import TraceOptions
from dovetail.core.errors import OutputError


def register(app: typer.Typer) -> None:
    """Add the verb to the group."""
    app.command("attack")(flatten(_attack))


def _attack(
    traces: Annotated[Path, typer.Argument(help="Traces whose true locations may be known: a rehearsal.")],
    plan: Annotated[Path, typer.Option(help="Plan as `trace plan` writes it.")],
    columns: TraceOptions,
    draws: Annotated[int, typer.Option(help="Releases of each trace.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="A rehearsal is a simulation: reproducible draws.", min=0)] = 1,
    report: Annotated[
        Path | None, typer.Option(help="HTML file with a picture, losses, attacks and utility.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Attack simulated releases of known traces: success at finding the secret places, beside what was promised.

    Smoothers that know the kernel, another kernel, or one true location besides; a random walk that knows nothing.
    Each also against independent noise of the same error, and on traces drawn from the prior, for which it is right.

    Example: dovetail trace attack public.csv --plan plan.json --report attack.html
    """
    from dovetail.cli.trace.documents import read_plan
    from dovetail.pipeline.trace.rehearse import rehearse_traces

    if report is not None and report.exists() and not force:
        raise OutputError(f"{report}: exists already; use --force to replace it, or name another place.")
    made, table = read_plan(plan), columns.read(traces)
    found = rehearse_traces(made, table.traces(made.prior.plane), draws=draws, seed=seed)
    document: dict[str, Any] = dict(found.document)
    if report is not None:
        from dovetail.cli.console.output import write_whole
        from dovetail.report.render.trace_html import render_traces

        text = render_traces(found.document, found.picture)
        write_whole(report, lambda scratch: _write(scratch, text), force=force)
        document["files"] = {"report": str(report)}
    if as_json:
        print_json(document)
        return
    _show(document)


def _write(scratch: Path, text: str) -> None:
    scratch.write_text(text, encoding="utf-8")


def _show(document: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    for title, rows in (("These traces", document["attacks"]), ("Traces drawn from the prior", document["model"])):
        table = Table(title=f"{title}: guesses within {document['radius']:g} m", title_justify="left")
        for name in ("noise", "adversary", "success", "predicted", "error, m", "width, measured / predicted"):
            table.add_column(name)
        for row in rows:
            predicted = "" if row["predicted"] is None else f"{row['predicted']:.1%}"
            ratio = "" if row["width_ratio"] is None else f"{row['width_ratio']:.2f}"
            low, high = row["interval"]
            success = f"{row['success']:.1%} ({low:.1%} to {high:.1%})"
            table.add_row(row["mechanism"], row["adversary"], success, predicted, f"{row['error']:.0f}", ratio)
        Console().print(table)
    table = Table(title="Utility", title_justify="left")
    for name in ("noise", "mean error, m", "dwell time, s", "trip length", "heat map 100 m", "heat map 1 km"):
        table.add_column(name)
    for name, row in document["utility"].items():
        heat = [f"{value:.3f}" for value in row["heat"].values()]
        table.add_row(name, f"{row['error']:.1f}", f"{row['dwell']:.1f}", f"{row['length']:+.1%}", *heat)
    Console().print(table)
