"""`dovetail trace plan`: secret times, a radius, and a budget in metres or a wanted guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.console.output import Force, Json, print_json, print_rows
from dovetail.core.errors import ParameterError

if TYPE_CHECKING:
    from dovetail.trace.guarantee import TraceGuarantee
    from dovetail.trace.kernels.kernel import Floats


def register(app: typer.Typer) -> None:
    """Add the verb to the group."""
    app.command("plan")(_plan)


def _plan(
    prior: Annotated[Path, typer.Argument(help="Prior as `trace fit` writes it.")],
    out: Annotated[Path, typer.Option(help="JSON file for the plan.")],
    radius: Annotated[float, typer.Option(help="Metres within which two places at a secret time look alike.")],
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
        str, typer.Option(help="Mechanism; default robust, all with --all-times, mixed for long traces.")
    ] = "",
    floor: Annotated[float, typer.Option(help="White part of the noise, as a share of the budget.")] = 0.01,
    step: Annotated[float, typer.Option(help="Public grid, metres; 0 for 1e-4 of the white part.")] = 0.0,
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
    from dovetail.trace.loss.gaussian_dp import mu_of
    from dovetail.trace.plan import TracePlan, design_trace
    from dovetail.trace.plan_search import error_for

    probability("delta", delta)
    if sum(each is not None for each in (error, mu, epsilon)) != 1:
        raise ParameterError("give one of --error (a budget), --mu or --epsilon (a guarantee); the other is solved.")
    model, secrets = read_prior(prior), _secrets(secret, all_times, together)
    stamps = _stamps(times, points, gap)
    if error is None:
        wanted = mu_of(epsilon, delta=delta) if epsilon is not None else float(mu or 0.0)
        made = error_for(wanted, model, secrets, stamps, radius=radius, noise=noise, floor=floor, step=step)
    else:
        made = TracePlan(model, secrets, radius, error, noise, floor, step)
    design = design_trace(made, stamps)
    write_json(made.as_dict(), out, force=force)
    document = {
        "radius": radius,
        "error": made.error,
        "points": len(stamps),
        "step": made.grid,
        **describe(design.guarantee, delta),
        "files": {"plan": str(out)},
    }
    if as_json:
        print_json(document)
        return
    show_guarantee("Plan", document)


def _secrets(windows: list[str] | None, all_times: bool, together: bool) -> Any:
    from dovetail.trace.secrets import SecretTimes

    if bool(windows) == all_times:
        raise ParameterError("say which times are secret: --secret START..END, or --all-times.")
    if all_times and together:
        raise ParameterError("--together goes with --secret: a whole trace as one secret leaves nothing to release.")
    return SecretTimes.parse(windows or [], together=together)


def _stamps(times: Path | None, points: int | None, gap: float | None) -> Floats:
    import numpy as np

    from dovetail.core.checks import positive, whole
    from dovetail.pipeline.trace.trace_table import read_traces

    if times is not None:
        if points is not None or gap is not None:
            raise ParameterError("--times goes without --points and --gap.")
        table = read_traces(times)
        return np.asarray(table.part(table.names()[0])["stamp"].to_numpy(), dtype=np.float64)
    if points is None or gap is None:
        raise ParameterError("noise depends on the time stamps: give --times TABLE, or --points and --gap.")
    return np.arange(whole("points", points, least=2), dtype=np.float64) * positive("gap", gap)


def describe(guarantee: TraceGuarantee, delta: float) -> dict[str, Any]:
    """A guarantee for machines."""

    def number(value: float) -> float | str:
        return "inf" if value == float("inf") else value

    finite = guarantee.mu < float("inf")
    return {
        "noise": guarantee.noise,
        "mu": number(guarantee.mu),
        "epsilon": guarantee.epsilon(delta) if finite else "inf",
        "delta": delta,
        "odds": {"1 %": guarantee.odds(0.01), "10 %": guarantee.odds(0.1)}
        if finite
        else {"1 %": "inf", "10 %": "inf"},
        "by_adversary": {name: number(value) for name, value in guarantee.by_adversary.items()},
        "secrets": [
            {
                "points": list(one.places),
                "start": one.start,
                "end": one.end,
                "mu": number(one.mu),
                "width": one.width,
                "other_release": one.other_release,
            }
            for one in guarantee.secrets
        ],
        "releases": guarantee.releases,
        "conditions": list(guarantee.conditions),
        "caveats": list(guarantee.caveats),
        "source": guarantee.source,
    }


def show_guarantee(title: str, document: dict[str, Any]) -> None:
    """The same for people."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else f"{value:.4g}"

    odds = document["odds"]
    rows = {
        "error of a point": f"{document['error']:.4g} m (root mean square), {document['noise']} noise",
        "guarantee": f"mu {text(document['mu'])} within {document['radius']:g} m",
        "releases counted": str(document["releases"]),
        "epsilon": f"{text(document['epsilon'])} at delta {document['delta']:g}",
        "posterior odds": f"{text(odds['10 %'])} with chance 10 %, {text(odds['1 %'])} with chance 1 %",
        **{f"mu, {name}": text(value) for name, value in document["by_adversary"].items()},
        "secrets": f"{len(document['secrets']):,}",
        "conditions": " ".join(f"({i}) {each}" for i, each in enumerate(document["conditions"], start=1)),
    }
    if document["caveats"]:
        rows["caution"] = "; ".join(document["caveats"])
    rows |= document["files"]
    print_rows(title, rows)
