"""`dovetail trace fit`, `plan` and `loss`: before anything is released."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from dovetail.cli.options import as_share
from dovetail.cli.output import Facts, Force, Json, show, write_text
from dovetail.cli.progress import progress_bar, tell
from dovetail.core.display import downward, upward
from dovetail.core.errors import DataError, ParameterError
from dovetail.ledger.files import read_json

if TYPE_CHECKING:
    from dovetail.core.certified import Bracket
    from dovetail.core.progress import Progress
    from dovetail.trace.fit import Fit, Goodness
    from dovetail.trace.kernels import Floats, Kernel
    from dovetail.trace.plan import TraceGuarantee, TracePlan, TracePrior
    from dovetail.trace.table import TraceTable
    from dovetail.trace.trace import SecretTimes, TangentPlane, Trace

Made = TypeVar("Made")

# Options that the verbs on traces share: which columns are what, and what to do with points that cannot be read.


@dataclass(frozen=True)
class TraceOptions:
    """How a table of traces is read."""

    trace: Annotated[str | None, typer.Option(help="Column that names the trace; usual names are found.")] = None
    person: Annotated[str | None, typer.Option(help="Column that says whose it is.")] = None
    time: Annotated[str | None, typer.Option(help="Column of times: Unix seconds or ISO text.")] = None
    latitude: Annotated[str | None, typer.Option(help="Column of latitudes, degrees.")] = None
    longitude: Annotated[str | None, typer.Option(help="Column of longitudes, degrees.")] = None
    drop_bad: Annotated[
        bool, typer.Option("--drop-bad", help="Leave out points that cannot be read, and say how many.")
    ] = False

    def read(self, place: Path) -> TraceTable:
        """The traces of a file; what is left out is said beside the result."""
        from dovetail.trace.table import TraceColumns, read_traces

        columns = TraceColumns(self.trace, self.person, self.time, self.latitude, self.longitude)
        table = read_traces(place, columns, drop_bad=self.drop_bad)
        for line in table.left_out:
            typer.echo(f"left out: {line}", err=True)
        return table


# Files that the verbs pass on: a fitted prior and a plan, as JSON.


def read_prior(place: Path) -> TracePrior:
    """A prior as `fit` writes it."""
    from dovetail.trace.plan import TracePrior

    return _read(place, TracePrior.from_dict)


def read_plan(place: Path) -> TracePlan:
    """A plan as `plan` writes it."""
    from dovetail.trace.plan import TracePlan

    return _read(place, TracePlan.from_dict)


def _read(place: Path, make: Callable[[Any], Made]) -> Made:
    document = read_json(place)
    try:
        return make(document)
    except DataError as error:
        raise DataError(f"{place}: {error}") from None


def write_json(document: dict[str, Any], place: Path, *, force: bool) -> None:
    """A document as a file, at once or not at all."""
    write_text(place, json.dumps(document, indent=1, allow_nan=False), force=force)


# `dovetail trace fit`: a kernel from public traces.


def _fit(
    traces: Annotated[Path, typer.Argument(help="Public or other people's traces: CSV, Parquet, GPX or GeoJSON.")],
    out: Annotated[Path, typer.Option(help="JSON file for the prior.")],
    columns: TraceOptions,
    kernel: Annotated[str, typer.Option(help="rbf, matern32, matern52 or periodic, joined by * and +.")] = "matern32",
    period: Annotated[float | None, typer.Option(help="Seconds after which a periodic kernel repeats.")] = None,
    origin: Annotated[
        str | None, typer.Option(help="Public LATITUDE,LONGITUDE of the plane. Default: a rounded middle of TRACES.")
    ] = None,
    isotropic: Annotated[bool, typer.Option("--isotropic", help="One variance for both coordinates.")] = False,
    by: Annotated[str, typer.Option(help="pooled, or also one fit for each trace or person, summarised.")] = "pooled",
    most: Annotated[int, typer.Option(help="Points of a trace at most; longer ones are cut, for speed.")] = 200,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fit a kernel to public traces: scale, length-scale and nugget, and how well it fits traces it has not seen.

    A guarantee rests on this kernel, and no trace that it was fitted on can be protected with it.

    Example: dovetail trace fit public.csv --kernel matern32 --out prior.json
    """
    table = columns.read(traces)
    if by not in ("pooled", "trace", "person"):
        raise ParameterError(f"--by must be pooled, trace or person, got {by!r}.")
    if by == "person" and "person" not in table.rows.columns:
        raise ParameterError("--by person wants a column `person`, which the table lacks.")
    plane = _plane(table, origin)
    whole = table.traces(plane)
    parts = [_cut(trace, most) for trace in whole]
    start = _start(parts, kernel, period)
    with progress_bar(hidden=as_json) as progress:
        fit, quality = _fitted(start, parts, progress, isotropic=isotropic)
    lengths = _missing("pooled fit") if by == "pooled" else _separate(table, parts, start, by, isotropic=isotropic)
    report = _report(fit, quality, lengths, len(whole))
    prior = _prior(fit, plane, whole, report)
    write_json(prior.as_dict(), out, force=force)
    form = {"kernel": fit.kernel.as_dict(), "covariance": fit.covariance.tolist(), "files": {"prior": str(out)}}
    document = {**report, **form}
    show(document, _fit_facts(document), as_json=as_json)


def _plane(table: TraceTable, origin: str | None) -> TangentPlane | None:
    """The plane of a public origin, where coordinates are degrees."""
    from dovetail.trace.trace import TangentPlane

    if table.geographic:
        return TangentPlane(*(_origin(origin) if origin else table.centre()))
    if origin is not None:
        raise ParameterError("--origin goes with latitude and longitude; these coordinates are metres.")
    return None


def _fitted(start: Kernel, parts: list[Trace], progress: Progress, *, isotropic: bool) -> tuple[Fit, Goodness | None]:
    from dovetail.trace.fit import fit_kernel, goodness

    progress("fitting", 0, 2)
    fit = fit_kernel(start, parts, isotropic=isotropic)
    progress("fitting", 1, 2)
    quality = goodness(start, parts, isotropic=isotropic)
    progress("fitting", 2, 2)
    return fit, quality


def _report(fit: Fit, quality: Goodness | None, lengths: dict[str, Any], traces: int) -> dict[str, Any]:
    """How it was fitted and how well it fits."""
    return {
        "traces": traces,
        "values": fit.values,
        "log_likelihood": fit.log_likelihood,
        "length": fit.length,
        "at_bound": fit.at_bound or "no",
        "library": "scipy, L-BFGS-B",
        "goodness": _missing("one trace: nothing was held out") if quality is None else vars(quality),
        "lengths": lengths,
    }


def _prior(fit: Fit, plane: TangentPlane | None, whole: list[Trace], report: dict[str, Any]) -> TracePrior:
    """The prior, which remembers under a salt what it was fitted on."""
    from dovetail.trace.plan import TracePrior

    salt = os.urandom(16).hex()
    blank = TracePrior(fit.kernel, fit.covariance, plane, salt)
    digests = frozenset[str]().union(*(blank.digests(trace) for trace in whole))
    return TracePrior(fit.kernel, fit.covariance, plane, salt, digests, report)


def _missing(reason: str) -> dict[str, Any]:
    return {"value": None, "reason": reason}


def _origin(text: str) -> tuple[float, float]:
    try:
        latitude, longitude = (float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(f"--origin must be LATITUDE,LONGITUDE in degrees, got {text!r}.") from None
    return latitude, longitude


def _cut(trace: Trace, most: int) -> Trace:
    from dovetail.core.checks import whole
    from dovetail.trace.trace import Trace

    keep = whole("most", most, least=5)
    return trace if trace.n <= keep else Trace(trace.name, trace.times[:keep], trace.points[:keep])


def _start(traces: list[Trace], kernel: str, period: float | None) -> Kernel:
    """Where the search begins: a tenth of the typical duration."""
    import numpy as np

    from dovetail.trace.kernels import kernel_of

    duration = float(np.median([trace.times[-1] - trace.times[0] for trace in traces]))
    return kernel_of(kernel, length=duration / 10.0, period=period)


def _separate(table: TraceTable, parts: list[Trace], start: Kernel, by: str, *, isotropic: bool) -> dict[str, Any]:
    """Quantiles of one fit for each trace or person, in seconds and in points; no single length-scale is written."""
    import numpy as np

    from dovetail.core.errors import DataError
    from dovetail.trace.fit import censored_quantiles, fit_kernel

    groups: dict[str, list[Trace]] = {}
    for trace in parts:
        groups.setdefault(trace.name if by == "trace" else str(table.person(trace.name)), []).append(trace)
    fits, gaps, still = [], [], 0
    for group in groups.values():
        try:
            fits.append(fit_kernel(start, group, isotropic=isotropic))
            gaps.append(float(np.median(np.concatenate([np.diff(one.times) for one in group]))))
        except DataError:
            still += 1
    if not fits:
        return _missing("no trace by itself can be fitted")
    return {
        "fits": len(fits),
        "without_a_fit": still,
        "share_at_lower_bound": sum(fit.at_bound == "lower" for fit in fits) / len(fits),
        "share_at_upper_bound": sum(fit.at_bound == "upper" for fit in fits) / len(fits),
        "quantiles": [vars(each) for each in censored_quantiles(fits)],
        "effective_quantiles": [
            {"level": each.level, "points": each.seconds, "censored": each.censored}
            for each in censored_quantiles(fits, periods=gaps)
        ],
    }


def _fit_facts(document: dict[str, Any]) -> Facts:
    quality, rows = document["goodness"], {}
    rows["traces"] = f"{document['traces']:,}, {document['values']:,} numbers"
    rows["length-scale"] = f"{document['length']:.4g} s (at a bound: {document['at_bound']})"
    rows["standard deviations"] = ", ".join(f"{row[i] ** 0.5:.4g} m" for i, row in enumerate(document["covariance"]))
    if "held_out" in quality:
        rows["held-out log likelihood"] = f"{quality['held_out']:.4g} nats per number, {quality['traces']} traces"
        rows["whitened residuals"] = (
            f"variance {quality['variance']:.3g} (1), neighbours {quality['neighbours']:.3g} (0), "
            f"beyond 3: {quality['beyond_three']:.2%} (0.27 %)"
        )
    lengths = document["lengths"]
    if "fits" in lengths:
        ends = [f"{'at least ' if q['censored'] else ''}{q['seconds']:.4g} s" for q in lengths["quantiles"]]
        rows["length-scales, quartiles"] = ", ".join(ends)
        ends = [f"{'at least ' if q['censored'] else ''}{q['points']:.3g}" for q in lengths["effective_quantiles"]]
        rows["effective, in points"] = ", ".join(ends)
        low, high = lengths["share_at_lower_bound"], lengths["share_at_upper_bound"]
        rows["fits at a bound"] = f"{low:.1%} lower, {high:.1%} upper"
    rows["prior"] = document["files"]["prior"]
    return Facts("Kernel fitted", rows)


# A guarantee as the verbs print it: for machines, and for people.


def describe(guarantee: TraceGuarantee, delta: float) -> dict[str, Any]:
    """A guarantee for machines."""
    from dovetail.report.document import to_jsonable
    from dovetail.trace.loss import protection

    finite = guarantee.mu < float("inf")
    document: dict[str, Any] = to_jsonable({
        "noise": guarantee.noise,
        "mu": guarantee.mu,
        "verdict": protection(guarantee.strongest),
        "epsilon": guarantee.epsilon(delta) if finite else "inf",
        "delta": delta,
        "odds": {"1 %": guarantee.odds(0.01), "10 %": guarantee.odds(0.1)}
        if finite
        else {"1 %": "inf", "10 %": "inf"},
        "meaning": _meaning(guarantee),
        "by_adversary": guarantee.by_adversary,
        "secrets": [
            {
                "points": list(one.places),
                "start": one.start,
                "end": one.end,
                "mu": one.mu,
                "width": one.width,
                "other_release": one.other_release,
            }
            for one in guarantee.secrets
        ],
        "releases": guarantee.releases,
        "conditions": list(guarantee.conditions),
        "caveats": list(guarantee.caveats),
        "source": guarantee.source,
    })  # fmt: skip
    return document


def _meaning(guarantee: TraceGuarantee) -> str:
    """mu as a sentence: who holds even odds, and how sure the release makes him in one case of ten."""
    odds = guarantee.odds(0.1) if guarantee.mu < float("inf") else float("inf")
    sure = ceil(100.0 / (1.0 + 1.0 / odds))
    return (
        f"somebody undecided between two places {guarantee.radius:g} m apart is {sure} % sure in one release of ten"
    )


def _beside(document: dict[str, Any]) -> dict[str, str]:
    """Loss of independent noise of the same error, where it was computed."""
    found = document.get("uniform_mu")
    return {} if found is None else {"uniform noise": f"mu {upward(found)} at the same error"}


def guarantee_facts(title: str, document: dict[str, Any]) -> Facts:
    """The same for people."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else upward(value)

    odds = document["odds"]
    rows = {
        "error of a point": _error(document),
        "protection": document["verdict"]["sentence"],
        "guarantee": f"mu {text(document['mu'])} within {document['radius']:g} m",
        "that is": document["meaning"],
        **_beside(document),
        "releases counted": str(document["releases"]),
        "epsilon": f"{text(document['epsilon'])} at delta {upward(document['delta'])}",
        "posterior odds": f"{text(odds['10 %'])} with chance 10 %, {text(odds['1 %'])} with chance 1 %",
        **{f"mu, {name}": text(value) for name, value in document["by_adversary"].items()},
        "secrets": f"{len(document['secrets']):,}",
        "conditions": " ".join(f"({i}) {each}" for i, each in enumerate(document["conditions"], start=1)),
    }
    if document["caveats"]:
        rows["caution"] = "; ".join(document["caveats"])
    rows |= document["files"]
    return Facts(title, rows)


def _error(document: dict[str, Any]) -> str:
    mean = f"{document['error']:.4g} m (root mean square), {document['noise']} noise"
    worst = document.get("worst_point_error")
    return mean if worst is None else f"{mean}; the point that moves most: {worst:.4g} m"


# `dovetail trace plan`: secret times, a radius, and a budget in metres or a wanted guarantee.


USUALLY_TRIED = 12  # budgets until the least one is known within half a percent


def _plan(
    prior: Annotated[Path, typer.Argument(help="Prior as `trace fit` writes it.")],
    out: Annotated[Path, typer.Option(help="JSON file for the plan.")],
    radius: Annotated[float, typer.Option(help="Metres within which two places at a secret time look alike.")],
    columns: TraceOptions,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            help="Secret window START..END, seconds from the start or ISO times; may be repeated. With --together "
            "A..B,C..D is one secret of both windows."
        ),
    ] = None,
    all_times: Annotated[bool, typer.Option("--all-times", help="Every time is a secret by itself.")] = False,
    together: Annotated[bool, typer.Option("--together", help="All times of a window are one secret.")] = False,
    error: Annotated[float | None, typer.Option(help="Budget: root mean squared error of a point, metres.")] = None,
    mu: Annotated[float | None, typer.Option(help="Wanted guarantee instead of --error: mu.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Wanted guarantee instead of --error: epsilon at --delta.")
    ] = None,
    delta: Annotated[float, typer.Option(parser=as_share, help="Delta of --epsilon, and of what is printed.")] = 1e-5,
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
    show(document, guarantee_facts("Plan", document), as_json=as_json)


def _wanted(mu: float | None, epsilon: float | None, delta: float) -> float | None:
    """The wanted mu, from either form of a guarantee."""
    from dovetail.trace.loss import mu_of

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
    from dovetail.trace.plan import TracePlan
    from dovetail.trace.release_design import error_for, plan_for_error

    if error is None:
        wanted = 0.0 if mu is None else mu

        def tried(count: int) -> None:
            progress("trying budgets", min(count, USUALLY_TRIED), USUALLY_TRIED)

        tried(0)
        return error_for(wanted, prior, secrets, stamps, **shape, tried=tried)
    progress("designing noise", 0, 1)
    return plan_for_error(TracePlan(prior, secrets, error=error, **shape), stamps)


def _document(plan: TracePlan, stamps: Floats, delta: float) -> dict[str, Any]:
    from dovetail.trace.release_design import design_release

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
    from dovetail.trace.release_design import design_release

    if name == "uniform":
        return {}
    try:
        return {"uniform_mu": design_release(replace(plan, noise="uniform"), stamps).guarantee.mu}
    except UnsupportedError:
        return {}


def _secrets(windows: list[str] | None, all_times: bool, together: bool) -> SecretTimes:
    from dovetail.trace.trace import SecretTimes

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


# `dovetail trace loss`: the loss of a noise covariance, as numbers alone.


MOST_POINTS = 1000  # as matrices; beyond it products by Fourier transforms, for one secret location
MOST_LONG = 10_000_000


def _loss(
    length: Annotated[float, typer.Option(help="Length-scale of the kernel, in steps between points.")],
    n: Annotated[float, typer.Option(help="Points of the trace, one step apart.")],
    secret: Annotated[str, typer.Option(help="Secret point, from 0; several with commas are secret together.")],
    mse: Annotated[float, typer.Option(help="Budget: mean squared error per point, prior variance 1.")],
    kernel: Annotated[str, typer.Option(help="rbf, periodic, matern32 or matern52; joined by * and +.")] = "rbf",
    period: Annotated[float | None, typer.Option(help="Steps after which a periodic kernel repeats.")] = None,
    nugget: Annotated[float, typer.Option(help="Share of the prior variance that no neighbour tells.")] = 0.0,
    noise: Annotated[
        str | None,
        typer.Option(help="robust, mixed, full, block, all, uniform, concentrated or published. Default: robust."),
    ] = None,
    floor: Annotated[
        float, typer.Option(help="White part of the noise, as a share of --mse; 0 is for numbers alone.")
    ] = 0.01,
    solver: Annotated[
        str | None, typer.Option(help="clarabel or scs: solve `full` as a semidefinite program.")
    ] = None,
    as_json: Json = False,
) -> None:
    """The loss of a trace's noise for one secret: information, posterior width, mu, and each adversary's share.

    Locations have prior variance 1 and secrets move by at most 1. `loss` is the largest eigenvalue of J; the loss of
    order lambda for a radius r is lambda r^2 box_loss / 2.

    Example: dovetail trace loss --kernel rbf --length 6.103 --n 50 --secret 24 --mse 0.02
    """
    import numpy as np

    from dovetail.core.checks import whole
    from dovetail.trace.descent import Budget
    from dovetail.trace.kernels import kernel_of, with_nugget
    from dovetail.trace.mechanisms import default_noise, design_noise

    points = whole("n", n, least=2, most=MOST_LONG)
    if solver is not None and (solver not in ("clarabel", "scs") or noise != "full"):
        raise ParameterError("--solver must be clarabel or scs, and goes with --noise full.")
    model = with_nugget(kernel_of(kernel, length=length, period=period), nugget)
    tell(f"weigh noise for {points:,} points")
    if points > MOST_POINTS:
        document = _long(model, points, _places(secret), mse, noise or default_noise(points), floor)
        show(document, _loss_facts(document), as_json=as_json)
        return
    places, times = _places(secret), np.arange(points, dtype=np.float64)
    budget = Budget(points, mse, floor)
    design = design_noise(noise or default_noise(points), model, times, [places], budget, solver=solver)
    document = {
        "kernel": model.as_dict(),
        "n": points,
        "secret": list(places),
        "mse": mse,
        "noise": design.name,
        "floor": floor,
        **_loss_document(model, times, places, budget, design),
    }
    show(document, _loss_facts(document), as_json=as_json)


def _long(model: Any, n: int, places: tuple[int, ...], mse: float, noise: str, floor: float) -> dict[str, Any]:
    """The loss of one secret location in a trace that is too long for matrices."""
    from dovetail.core.certified import Bracket
    from dovetail.trace.descent import Budget
    from dovetail.trace.loss import adversary_kernels
    from dovetail.trace.regular import RegularPrior, design_regular, regular_loss, regular_sighting

    if len(places) != 1:
        raise ParameterError(
            f"--secret must be one point in a trace of more than {MOST_POINTS:,}, got {len(places)}."
        )
    design = design_regular(RegularPrior.of(model, n), places[0], Budget(n, mse, floor), name=noise)
    rows: dict[str, Any] = {}
    for name, believed in adversary_kernels(model).items() if floor > 0.0 else ():
        rows[name] = _long_row(regular_loss(RegularPrior.of(believed, n), design.noise))
    none = {"value": None, "reason": "wants a white floor"}
    own = design.loss
    mean = Bracket(own.lower, own.upper + 1.0)  # as if it were told
    sighted = regular_sighting(design.noise) if floor > 0.0 else 0.0
    rows["unknown mean"] = _long_row(mean) if floor > 0.0 else none
    rows["one sighting"] = _long_row(Bracket(own.lower, sighted)) if floor > 0.0 else none
    return {
        "kernel": model.as_dict(),
        "n": n,
        "secret": list(places),
        "mse": mse,
        "noise": noise,
        "floor": floor,
        "loss": {"lower": design.loss.lower, "upper": design.loss.upper},
        "box_loss": design.loss.upper,
        "posterior_width": _width(design.loss.upper),
        "mu": sqrt(design.loss.upper),
        "optimum": {"value": None, "reason": f"not computed above {MOST_POINTS:,} points"},
        "by_adversary": rows,
    }


def _long_row(loss: Bracket) -> dict[str, Any]:
    upper = "inf" if loss.upper == float("inf") else loss.upper
    return {"loss": {"lower": loss.lower, "upper": upper}, "posterior_width": _width(loss.upper)}


def _width(loss: float) -> float:
    """Twice the posterior standard deviation of one location of prior variance 1."""
    return 2.0 / sqrt(1.0 + loss)


def _places(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted(int(part) for part in text.split(",")))
    except ValueError:
        raise ParameterError(
            f"--secret must be points separated by commas, such as 24 or 24,25, got {text!r}."
        ) from None


def _loss_document(model: Any, times: Any, places: tuple[int, ...], budget: Any, design: Any) -> dict[str, Any]:
    from dovetail.core.errors import UnsupportedError
    from dovetail.trace.closed_form import information_without_floor
    from dovetail.trace.loss import adversaries, condition, information, losses, posterior_width, worst_move

    prior = model.matrix(times)
    seen = condition(prior, places)
    if budget.floor == 0.0:
        told = information_without_floor(prior, places, design, budget)
    else:
        told = information(seen, design.noise)
    found, move = told.largest, worst_move([told])
    # the optimum of `full` and `block` is known to be no less than the certificate's end
    certain = design.optimum is not None and design.name in ("full", "block")
    lower = min(found.lower, design.optimum.lower) if certain else found.lower
    try:
        rows: Any = {one.name: _row(one) for one in losses(adversaries(model, times), places, design.noise)}
    except UnsupportedError as error:
        rows = {"value": None, "reason": str(error)}
    return {
        "loss": {"lower": float(lower), "upper": float(found.upper)},
        "box_loss": float(move.upper),
        "posterior_width": posterior_width(told.posterior(seen.variance)),
        "mu": sqrt(move.upper),
        "optimum": {
            "lower": float(design.optimum.lower),
            "upper": float(design.optimum.upper),
            "objective": design.objective,
        }
        if design.optimum is not None
        else {"value": None, "reason": f"{design.name} noise solves no program"},
        "by_adversary": rows,
    }


def _row(one: Any) -> dict[str, Any]:
    def finite(value: float) -> float | str:
        return "inf" if value == float("inf") else float(value)

    return {
        "loss": {"lower": finite(one.loss.lower), "upper": finite(one.loss.upper)},
        "posterior_width": one.width
        if one.width is not None
        else {"value": None, "reason": "given for whole priors"},
        **({"known": one.note} if one.note else {}),
    }


def _loss_facts(document: dict[str, Any]) -> Facts:
    rows = {
        "loss, J": f"{downward(document['loss']['lower'])} to {upward(document['loss']['upper'])}",
        "worst move of the secret": upward(document["box_loss"]),
        "mu, radius 1": upward(document["mu"]),
        "posterior width": f"{document['posterior_width']:.4f}",
    }
    for name, row in document["by_adversary"].items():
        if isinstance(row, dict) and "loss" in row:
            shown = row["loss"]["upper"]
            text = shown if isinstance(shown, str) else f"{shown:.5g}"
            rows[f"J, {name}"] = f"{text} ({row['known']})" if "known" in row else text
    return Facts(f"{document['noise']} noise, {document['n']} points, secret {document['secret']}", rows)


VERBS = {"fit": _fit, "plan": _plan, "loss": _loss}
