"""`dovetail trace`: releases of traces, the rehearsal of attacks on them, and the group of all its verbs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import trace_design
from dovetail.cli.options import add_verbs, as_share, verb_group
from dovetail.cli.output import (
    Facts,
    Force,
    Grid,
    Json,
    Seed,
    after_writing,
    check_free,
    entropy_of,
    show,
    write_text,
    write_whole,
)
from dovetail.cli.progress import progress_bar, tell
from dovetail.cli.trace_design import TraceOptions
from dovetail.core.errors import OutputError, ParameterError

if TYPE_CHECKING:
    from dovetail.core.entropy import Entropy
    from dovetail.trace.plan import TracePlan
    from dovetail.trace.protect import ShuffledTraces
    from dovetail.trace.table import TraceTable


# `dovetail trace protect`: release traces under a plan.


_FORMATS = (".csv", ".parquet", ".pq", ".gpx", ".geojson")


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
    delta: Annotated[float, typer.Option(parser=as_share, help="Delta of the epsilon that is printed.")] = 1e-5,
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Release traces: noise along the whole trace that hides the plan's secret times.

    Only names, time stamps and coordinates are written. The same trace under the same plan is the same release again.

    Example: dovetail trace protect mine.gpx --plan plan.json --out released.gpx
    """
    from dovetail.cli.trace_design import describe, guarantee_facts, read_plan
    from dovetail.core.checks import probability
    from dovetail.trace.ledger import TraceLedger
    from dovetail.trace.protect import Protection
    from dovetail.trace.table import write_traces

    probability("delta", delta)
    if out.suffix.lower() not in _FORMATS:
        raise OutputError(f"{out}: released traces are written as {', '.join(_FORMATS)}.")
    check_free(out, force=force)
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
        released = f"{len(done):,} trace{'s' * (len(done) != 1)}"
        title = f"Released {released}; the worst is {worst.name!r}"
        show(document, guarantee_facts(title, document), as_json=as_json)


# `dovetail trace collect`: traces of many people, protected one by one and shuffled.


_COLLECTED_FORMATS = (".csv", ".parquet", ".pq")


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
    from dovetail.cli.trace_design import read_plan
    from dovetail.trace.table import nameless, write_traces

    if out.suffix.lower() not in _COLLECTED_FORMATS:
        raise OutputError(f"{out}: shuffled traces are written as {', '.join(_COLLECTED_FORMATS)}.")
    check_free(out, force=force)
    if seed is not None and ledger is not None:
        raise ParameterError("--seed is a simulation, which no ledger keeps; drop --ledger.")
    made, table = read_plan(plan), columns.read(traces)
    mixed = _mixed(made, table, ledger, entropy_of(seed), relative=relative, jobs=jobs, hidden=as_json)
    frame = nameless(mixed.times, mixed.points, table.coordinates, made.prior.plane)
    write_whole(out, lambda scratch: write_traces(frame, scratch, out.suffix), force=force)
    document = _document(mixed, made, out)
    with after_writing(out):
        show(document, _facts(document), as_json=as_json)


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
    from dovetail.trace.ledger import TraceLedger
    from dovetail.trace.protect import Protection, shuffle_traces

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


def _facts(document: dict[str, Any]) -> Facts:
    lines = document["central"]
    rows = {
        "people": f"{document['people']:,}, {document['traces']:,} traces",
        "honest shuffler": lines[0],
        "guarantee": lines[1],
        "colluding shuffler": lines[2],
    }
    if document["caveats"]:
        rows["caution"] = "; ".join(document["caveats"])
    return Facts("Collected", rows | document["files"])


# `dovetail trace attack`: rehearse the protection of known traces.


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
    from dovetail.cli.trace_design import read_plan
    from dovetail.trace.protect import rehearse_traces

    check_free(report, force=force)
    made, table = read_plan(plan), columns.read(traces)
    tell("draw and attack traces")
    found = rehearse_traces(made, table.traces(made.prior.plane), draws=draws, seed=seed)
    document: dict[str, Any] = dict(found.document)
    if report is not None:
        from dovetail.report.html import render_traces

        write_text(report, render_traces(found.document, found.picture), force=force)
        document["files"] = {"report": str(report)}
    show(document, *_attack_blocks(document), as_json=as_json)


def _attack_blocks(document: dict[str, Any]) -> Iterator[Grid]:
    for title, rows in (("These traces", document["attacks"]), ("Traces drawn from the prior", document["model"])):
        heads = ("noise", "adversary", "success", "predicted", "error, m", "width, measured / predicted")
        yield Grid(f"{title}: guesses within {document['radius']:g} m", heads, [_attack_row(row) for row in rows])
    heads = ("noise", "mean error, m", "dwell time, s", "trip length", "heat map 100 m", "heat map 1 km")
    cells = []
    for name, row in document["utility"].items():
        heat = (f"{value:.3f}" for value in row["heat"].values())
        cells.append((name, f"{row['error']:.1f}", f"{row['dwell']:.1f}", f"{row['length']:+.1%}", *heat))
    yield Grid("Utility", heads, cells)


def _attack_row(row: dict[str, Any]) -> tuple[str, ...]:
    predicted = "" if row["predicted"] is None else f"{row['predicted']:.1%}"
    ratio = "" if row["width_ratio"] is None else f"{row['width_ratio']:.2f}"
    low, high = row["interval"]
    success = f"{row['success']:.1%} ({low:.1%} to {high:.1%})"
    return row["mechanism"], row["adversary"], success, predicted, f"{row['error']:.0f}", ratio


app = verb_group(
    "trace",
    """Location traces: noise for a whole trace that hides secret times although the times around them tell much.

    In order: fit (a kernel, to public or other people's traces), plan (which times are secret, at which budget or
    guarantee), protect (release traces), collect (of many people, shuffled), attack (rehearse: measured success of
    smoothers beside the guarantee), loss (numbers alone). Verbs that print facts take --json.
    """,
)
add_verbs(app, {**trace_design.VERBS, "protect": _protect, "collect": _collect, "attack": _attack})

VERBS = {"trace": app}
