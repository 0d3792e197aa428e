"""`dovetail trace protect`: release traces under a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import (
    Force,
    Json,
    Seed,
    after_writing,
    entropy_of,
    print_json,
    write_whole,
)
from dovetail.cli.console.progress import progress_bar
from dovetail.cli.trace.options import TraceOptions
from dovetail.core.errors import OutputError, ParameterError

_FORMATS = (".csv", ".parquet", ".pq", ".gpx", ".geojson")


def register(app: typer.Typer) -> None:
    """Add the verb to the group."""
    app.command("protect")(flatten(_protect))


def _protect(
    traces: Annotated[Path, typer.Argument(help="Traces: CSV, Parquet, GPX or GeoJSON; one point a row.")],
    plan: Annotated[Path, typer.Option(help="Plan as `trace plan` writes it.")],
    out: Annotated[Path, typer.Option(help="File for the released traces: .csv, .parquet, .gpx or .geojson.")],
    columns: TraceOptions,
    ledger: Annotated[
        Path | None, typer.Option(help="Private folder of earlier releases; default DOVETAIL_LEDGER.")
    ] = None,
    new_release: Annotated[
        bool, typer.Option("--new-release", help="Release again; the losses of all releases are counted together.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Processes; 0 for one a processor where it is worth it.", min=0)] = 0,
    delta: Annotated[float, typer.Option(help="Delta of the epsilon that is printed.")] = 1e-5,
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Release traces: noise along the whole trace that hides the plan's secret times.

    Only names, time stamps and coordinates are written. The same trace under the same plan is the same release again.

    Example: dovetail trace protect mine.gpx --plan plan.json --out released.gpx
    """
    from dovetail.cli.trace.documents import read_plan
    from dovetail.cli.trace.guarantees import describe, show_guarantee
    from dovetail.core.checks import probability
    from dovetail.pipeline.trace.protect import Protection
    from dovetail.pipeline.trace.trace_ledger import TraceLedger
    from dovetail.pipeline.trace.trace_table import write_traces

    probability("delta", delta)
    if out.suffix.lower() not in _FORMATS:
        raise OutputError(f"{out}: released traces are written as {', '.join(_FORMATS)}.")
    if out.exists() and not force:
        raise OutputError(f"{out}: exists already; use --force to replace it, or name another place.")
    if seed is not None and (ledger is not None or new_release):
        raise ParameterError("--seed is a simulation, which no ledger keeps; drop --ledger and --new-release.")
    made, table = read_plan(plan), columns.read(traces)
    if out.suffix.lower() in (".gpx", ".geojson") and not table.geographic:
        raise OutputError(f"{out}: holds latitude and longitude; write metres as .csv or .parquet.")
    found = table.traces(made.prior.plane)
    keep = None if seed is not None else TraceLedger(ledger) if ledger is not None else TraceLedger.default()
    with progress_bar(hidden=as_json) as progress:
        job = Protection(made, entropy_of(seed), keep, new_release, jobs)
        done = job.protect(found, [table.person(trace.name) for trace in found], progress=progress)
    frame = table.with_points([each.points for each in done], made.prior.plane)
    write_whole(out, lambda scratch: write_traces(frame, scratch, out.suffix), force=force)
    worst = max(done, key=lambda each: each.guarantee.mu)
    document: dict[str, Any] = {
        "traces": len(done),
        "reproduced": sum(each.reproduced for each in done),
        "radius": made.radius,
        "error": made.error,
        "worst_trace": worst.name,
        **describe(worst.guarantee, delta),
        "files": {"released": str(out)},
    }
    with after_writing(out):
        if as_json:
            print_json(document)
            return
        released = f"{len(done):,} trace{'s' * (len(done) != 1)}"
        show_guarantee(f"Released {released}; the worst is {worst.name!r}", document)
