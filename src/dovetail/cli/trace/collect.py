"""`dovetail trace collect`: traces of many people, protected one by one and shuffled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import (
    Force,
    Json,
    Seed,
    after_writing,
    entropy_of,
    print_json,
    print_rows,
    write_whole,
)
from dovetail.cli.console.progress import progress_bar
from dovetail.cli.trace.options import TraceOptions
from dovetail.core.errors import OutputError, ParameterError

if TYPE_CHECKING:
    from dovetail.core.entropy import Entropy
    from dovetail.pipeline.trace.shuffled import ShuffledTraces
    from dovetail.pipeline.trace.trace_table import TraceTable
    from dovetail.trace.plan.trace_plan import TracePlan

_FORMATS = (".csv", ".parquet", ".pq")


def register(app: typer.Typer) -> None:
    """Add the verb to the group."""
    app.command("collect")(flatten(_collect))


def _collect(
    traces: Annotated[Path, typer.Argument(help="Traces of many people, with a column `person`: CSV or Parquet.")],
    plan: Annotated[Path, typer.Option(help="Plan as `trace plan` writes it, the same for everybody.")],
    out: Annotated[Path, typer.Option(help="File for the shuffled traces: .csv or .parquet.")],
    columns: TraceOptions,
    relative: Annotated[
        bool, typer.Option("--relative", help="Release seconds from the start of each trace, not its clock.")
    ] = False,
    ledger: Annotated[
        Path | None, typer.Option(help="Private folder of earlier releases; default DOVETAIL_LEDGER.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; 0 for one a processor where it is worth it.", min=0)] = 0,
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Collect traces of many people: each protects its own, whole traces are shuffled, names are dropped.

    Prints what the centre then knows: shuffling hides whose a trace is among those with the same time stamps, and
    adds nothing to the guarantee of each.

    Example: dovetail trace collect many.csv --plan plan.json --relative --out shuffled.csv
    """
    from dovetail.cli.trace.documents import read_plan
    from dovetail.pipeline.trace.trace_table import nameless, write_traces

    if out.suffix.lower() not in _FORMATS:
        raise OutputError(f"{out}: shuffled traces are written as {', '.join(_FORMATS)}.")
    if out.exists() and not force:
        raise OutputError(f"{out}: exists already; use --force to replace it, or name another place.")
    if seed is not None and ledger is not None:
        raise ParameterError("--seed is a simulation, which no ledger keeps; drop --ledger.")
    made, table = read_plan(plan), columns.read(traces)
    mixed = _mixed(made, table, ledger, entropy_of(seed), relative=relative, jobs=jobs, hidden=as_json)
    frame = nameless(mixed.times, mixed.points, table.coordinates, made.prior.plane)
    write_whole(out, lambda scratch: write_traces(frame, scratch, out.suffix), force=force)
    document = _document(mixed, made, out)
    with after_writing(out):
        if as_json:
            print_json(document)
            return
        _show(document)


def _mixed(
    plan: TracePlan,
    table: TraceTable,
    ledger: Path | None,
    rng: Entropy,
    *,
    relative: bool,
    jobs: int,
    hidden: bool,
) -> ShuffledTraces:
    from dovetail.pipeline.trace.protect import Protection
    from dovetail.pipeline.trace.shuffled import shuffle_traces
    from dovetail.pipeline.trace.trace_ledger import TraceLedger

    found = table.traces(plan.prior.plane)
    people = [table.person(trace.name) for trace in found]
    simulated = rng.provenance == "simulation"
    keep = None if simulated else TraceLedger(ledger) if ledger is not None else TraceLedger.default()
    with progress_bar(hidden=hidden) as progress:
        released = Protection(plan, rng, keep, jobs=jobs).protect(found, people, progress=progress)
    return shuffle_traces(found, people, released, relative=relative, rng=rng)


def _document(mixed: ShuffledTraces, plan: TracePlan, out: Path) -> dict[str, Any]:
    central = mixed.central
    return {
        "people": central.people,
        "traces": central.traces,
        "mu": "inf" if central.mu == float("inf") else central.mu,
        "radius": central.radius,
        "error": plan.error,
        "smallest_crowd": central.crowd,
        "traces_with_company": central.alike,
        "central": list(central.lines()),
        "caveats": list(central.caveats),
        "files": {"shuffled": str(out)},
    }


def _show(document: dict[str, Any]) -> None:
    lines = document["central"]
    rows = {
        "people": f"{document['people']:,}, {document['traces']:,} traces",
        "honest shuffler": lines[0],
        "guarantee": lines[1],
        "colluding shuffler": lines[2],
    }
    if document["caveats"]:
        rows["caution"] = "; ".join(document["caveats"])
    print_rows("Collected", rows | document["files"])
