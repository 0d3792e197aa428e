"""`dovetail trace fit`: a kernel from public traces."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import Force, Json, print_json, print_rows
from dovetail.cli.console.progress import progress_bar
from dovetail.cli.trace.options import TraceOptions
from dovetail.core.errors import ParameterError

if TYPE_CHECKING:
    from dovetail.pipeline.progress import Progress
    from dovetail.pipeline.trace.trace_table import TraceTable
    from dovetail.trace.fit.goodness import Goodness
    from dovetail.trace.fit.maximum_likelihood import Fit
    from dovetail.trace.kernels.kernel import Kernel
    from dovetail.trace.plane import TangentPlane
    from dovetail.trace.prior import TracePrior
    from dovetail.trace.trace import Trace


def register(app: typer.Typer) -> None:
    """Add the verb to the group."""
    app.command("fit")(flatten(_fit))


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
    from dovetail.cli.trace.documents import write_json

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
    if as_json:
        print_json({**report, **form})
        return
    _show({**report, **form})


def _plane(table: TraceTable, origin: str | None) -> TangentPlane | None:
    """The plane of a public origin, where coordinates are degrees."""
    from dovetail.trace.plane import TangentPlane

    if table.geographic:
        return TangentPlane(*(_origin(origin) if origin else table.centre()))
    if origin is not None:
        raise ParameterError("--origin goes with latitude and longitude; these coordinates are metres.")
    return None


def _fitted(start: Kernel, parts: list[Trace], progress: Progress, *, isotropic: bool) -> tuple[Fit, Goodness | None]:
    from dovetail.trace.fit.goodness import goodness
    from dovetail.trace.fit.maximum_likelihood import fit_kernel

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
    from dovetail.trace.prior import TracePrior

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

    from dovetail.trace.kernels.named import kernel_of

    duration = float(np.median([trace.times[-1] - trace.times[0] for trace in traces]))
    return kernel_of(kernel, length=duration / 10.0, period=period)


def _separate(table: TraceTable, parts: list[Trace], start: Kernel, by: str, *, isotropic: bool) -> dict[str, Any]:
    """Quantiles of one fit for each trace or person; single length-scales are not written."""
    from dovetail.core.errors import DataError
    from dovetail.trace.fit.goodness import censored_quantiles
    from dovetail.trace.fit.maximum_likelihood import fit_kernel

    groups: dict[str, list[Trace]] = {}
    for trace in parts:
        groups.setdefault(trace.name if by == "trace" else str(table.person(trace.name)), []).append(trace)
    fits, still = [], 0
    for group in groups.values():
        try:
            fits.append(fit_kernel(start, group, isotropic=isotropic))
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
    }


def _show(document: dict[str, Any]) -> None:
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
        low, high = lengths["share_at_lower_bound"], lengths["share_at_upper_bound"]
        rows["fits at a bound"] = f"{low:.1%} lower, {high:.1%} upper"
    rows["prior"] = document["files"]["prior"]
    print_rows("Kernel fitted", rows)
