"""`dovetail trace loss`: the loss of a noise covariance, as numbers alone."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.console.output import Json, print_json, print_rows
from dovetail.core.display.losses import upward
from dovetail.core.errors import ParameterError

if TYPE_CHECKING:
    from dovetail.core.bracket import Bracket

MOST_POINTS = 1000  # as matrices; beyond it products by Fourier transforms, for one secret location
MOST_LONG = 10_000_000


def register(app: typer.Typer) -> None:
    """Add the verb to the group."""
    app.command("loss")(_loss)


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
    from dovetail.trace.kernels.combined import with_nugget
    from dovetail.trace.kernels.named import kernel_of
    from dovetail.trace.mechanisms.choose import default_noise, design_noise
    from dovetail.trace.mechanisms.design import Budget

    points = whole("n", n, least=2, most=MOST_LONG)
    if solver is not None and (solver not in ("clarabel", "scs") or noise != "full"):
        raise ParameterError("--solver must be clarabel or scs, and goes with --noise full.")
    model = with_nugget(kernel_of(kernel, length=length, period=period), nugget)
    if points > MOST_POINTS:
        document = _long(model, points, _places(secret), mse, noise or default_noise(points), floor)
        print_json(document) if as_json else _show(document)
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
        **_document(model, times, places, budget, design),
    }
    if as_json:
        print_json(document)
        return
    _show(document)


def _long(model: Any, n: int, places: tuple[int, ...], mse: float, noise: str, floor: float) -> dict[str, Any]:
    """The loss of one secret location in a trace that is too long for matrices."""
    from dovetail.core.bracket import Bracket
    from dovetail.trace.loss.adversaries import adversary_kernels
    from dovetail.trace.mechanisms.design import Budget
    from dovetail.trace.mechanisms.regular_design import design_regular
    from dovetail.trace.mechanisms.regular_noise import regular_loss, regular_sighting
    from dovetail.trace.mechanisms.regular_prior import RegularPrior

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


def _document(model: Any, times: Any, places: tuple[int, ...], budget: Any, design: Any) -> dict[str, Any]:
    from dovetail.core.errors import UnsupportedError
    from dovetail.trace.loss.adversaries import adversaries
    from dovetail.trace.loss.conditional import condition
    from dovetail.trace.loss.evaluate import losses
    from dovetail.trace.loss.information import information, posterior_width
    from dovetail.trace.loss.moves import worst_move
    from dovetail.trace.mechanisms.without_floor import information_without_floor

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


def _show(document: dict[str, Any]) -> None:
    rows = {
        "loss, J": f"{document['loss']['lower']:.5g} to {document['loss']['upper']:.5g}",
        "worst move of the secret": f"{document['box_loss']:.5g}",
        "mu, radius 1": upward(document["mu"]),
        "posterior width": f"{document['posterior_width']:.4f}",
    }
    for name, row in document["by_adversary"].items():
        if isinstance(row, dict) and "loss" in row:
            shown = row["loss"]["upper"]
            text = shown if isinstance(shown, str) else f"{shown:.5g}"
            rows[f"J, {name}"] = f"{text} ({row['known']})" if "known" in row else text
    print_rows(f"{document['noise']} noise, {document['n']} points, secret {document['secret']}", rows)
