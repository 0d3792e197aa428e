"""`dovetail trace plan`: secret times, a radius, and a budget in metres or a wanted guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import Force, Json, print_json
from dovetail.cli.console.progress import progress_bar
from dovetail.cli.trace.guarantees import describe, show_guarantee
from dovetail.cli.trace.options import TraceOptions
from dovetail.core.errors import ParameterError

if TYPE_CHECKING:
    from dovetail.pipeline.progress import Progress
    from dovetail.trace.kernels.kernel import Floats
    from dovetail.trace.plan.trace_plan import TracePlan
    from dovetail.trace.prior import TracePrior
    from dovetail.trace.secrets import SecretTimes


USUALLY_TRIED = 12  # budgets until the least one is known within half a percent


def register(app: typer.Typer) -> None:
    """Add the verb to the group."""
    app.command("plan")(flatten(_plan))


def _plan(
    prior: Annotated[Path, typer.Argument(help="Prior as `trace fit` writes it.")],
    out: Annotated[Path, typer.Option(help="JSON file for the plan.")],
    radius: Annotated[float, typer.Option(help="Metres within which two places at a secret time look alike.")],
    columns: TraceOptions,
    secret: Annotated[
        list[str] | None,
        typer.Option(help="Secret window START..END, seconds from the start or ISO times; may be repeated."),
    ] = None,
    all_times: Annotated[bool, typer.Option("--all-times", help="Every time is a secret by itself.")] = False,
    together: Annotated[bool, typer.Option("--together", help="All times of a window are one secret.")] = False,
    error: Annotated[float | None, typer.Option(help="Budget: root mean squared error of a point, metres.")] = None,
    mu: Annotated[float | None, typer.Option(help="Wanted guarantee instead of --error: mu.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Wanted guarantee instead of --error: epsilon at --delta.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Delta of --epsilon, and of what is printed.")] = 1e-5,
    times: Annotated[Path | None, typer.Option(help="A table whose first trace gives the time stamps.")] = None,
    points: Annotated[int | None, typer.Option(help="Points of a typical trace, instead of --times.")] = None,
    gap: Annotated[float | None, typer.Option(help="Seconds between points, with --points.")] = None,
    noise: Annotated[
        str, typer.Option(help="Mechanism. Default: robust; all with --all-times; for long traces the best of some.")
    ] = "",
    floor: Annotated[float, typer.Option(help="White part of the noise, as a share of the budget.")] = 0.01,
    step: Annotated[
        float, typer.Option(help="Public grid, metres; 0 for 1e-4 of the white part, finer for long traces.")
    ] = 0.0,
    window: Annotated[
        int,
        typer.Option(
            help="Cut traces into windows of at most so many points; 0 only where they are too long.", min=0
        ),
    ] = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Plan a protection before looking at the trace: from a budget to the guarantee, or the other way.

    "Every stop" is no option: which times are stops depends on the trace, and noise that is made for them tells. Use
    --all-times instead.

    Example: dovetail trace plan prior.json --secret 300..315 --radius 100 --error 50 --times mine.csv --out plan.json
    """
    from dovetail.cli.trace.documents import read_prior, write_json
    from dovetail.core.checks import probability

    probability("delta", delta)
    if sum(each is not None for each in (error, mu, epsilon)) != 1:
        raise ParameterError("give one of --error (a budget), --mu or --epsilon (a guarantee); the other is solved.")
    model, secrets = read_prior(prior), _secrets(secret, all_times, together)
    stamps = _stamps(times, points, gap, columns)
    shape = {"radius": radius, "noise": noise, "floor": floor, "step": step, "window": window}
    with progress_bar(hidden=as_json) as progress:
        made = _made(model, secrets, stamps, shape, error=error, mu=_wanted(mu, epsilon, delta), progress=progress)
        document = _document(made, stamps, delta)
    write_json(made.as_dict(), out, force=force)
    document["files"] = {"plan": str(out)}
    if as_json:
        print_json(document)
        return
    show_guarantee("Plan", document)


def _wanted(mu: float | None, epsilon: float | None, delta: float) -> float | None:
    """The wanted mu, from either form of a guarantee."""
    from dovetail.trace.loss.gaussian_dp import mu_of

    return mu if epsilon is None else mu_of(epsilon, delta=delta)


def _made(
    prior: TracePrior,
    secrets: SecretTimes,
    stamps: Floats,
    shape: dict[str, Any],
    *,
    error: float | None,
    mu: float | None,
    progress: Progress,
) -> TracePlan:
    """The plan of a budget, or of the least budget that reaches a guarantee."""
    from dovetail.trace.plan.search import error_for, plan_for_error
    from dovetail.trace.plan.trace_plan import TracePlan

    if error is None:
        wanted = 0.0 if mu is None else mu

        def tried(count: int) -> None:
            progress("trying budgets", min(count, USUALLY_TRIED), USUALLY_TRIED)

        tried(0)
        return error_for(wanted, prior, secrets, stamps, **shape, tried=tried)
    progress("designing noise", 0, 1)
    return plan_for_error(TracePlan(prior, secrets, error=error, **shape), stamps)


def _document(plan: TracePlan, stamps: Floats, delta: float) -> dict[str, Any]:
    from dovetail.trace.plan.release_design import design_release

    design = design_release(plan, stamps)
    return {
        "radius": plan.radius,
        "error": plan.error,
        "worst_point_error": design.worst_error(),
        "points": len(stamps),
        "step": plan.grid,
        **describe(design.guarantee, delta),
        **_uniform(plan, design.guarantee.noise, stamps),
    }


def _uniform(plan: TracePlan, name: str, stamps: Floats) -> dict[str, float]:
    """mu of independent noise of the same error, where the plan has other noise and its step allows it."""
    from dataclasses import replace

    from dovetail.core.errors import UnsupportedError
    from dovetail.trace.plan.release_design import design_release

    if name == "uniform":
        return {}
    try:
        return {"uniform_mu": design_release(replace(plan, noise="uniform"), stamps).guarantee.mu}
    except UnsupportedError:
        return {}


def _secrets(windows: list[str] | None, all_times: bool, together: bool) -> SecretTimes:
    from dovetail.trace.secrets import SecretTimes

    if bool(windows) == all_times:
        raise ParameterError("say which times are secret: --secret START..END, or --all-times.")
    if all_times and together:
        raise ParameterError("--together goes with --secret: a whole trace as one secret leaves nothing to release.")
    return SecretTimes.parse(windows or [], together=together)


def _stamps(times: Path | None, points: int | None, gap: float | None, columns: TraceOptions) -> Floats:
    import numpy as np

    from dovetail.core.checks import positive, whole

    if times is not None:
        if points is not None or gap is not None:
            raise ParameterError("--times goes without --points and --gap.")
        table = columns.read(times)
        return np.asarray(table.part(table.names()[0])["stamp"].to_numpy(), dtype=np.float64)
    if points is None or gap is None:
        raise ParameterError("noise depends on the time stamps: give --times TABLE, or --points and --gap.")
    return np.arange(whole("points", points, least=2), dtype=np.float64) * positive("gap", gap)
