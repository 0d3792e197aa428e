"""`dovetail plan --question vector-mean`: how many people, which epsilon, and how far off the mean of vectors is."""

from __future__ import annotations

from decimal import ROUND_CEILING
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dovetail.cli.console.output import print_json, print_rows, write_whole
from dovetail.cli.console.progress import progress_bar
from dovetail.core.errors import ParameterError
from dovetail.report.number_format import Unit, upward

if TYPE_CHECKING:
    from dovetail.pipeline.evaluate.vectors.vector_plan import VectorPlan

NEEDS = {"n", "error", "epsilon", "epsilon0", "delta", "honest", "dimension", "clip", "randomizer"}
NO_GUESS = "vectors have no list of values that could be guessed"
_CONFIG = """\
# A plan. Replace what says FILL IN, then: dovetail run THIS_FILE
schema_version = 1
mode = "rehearsal" # "rehearsal" knows the truth and is for trying; "release" is what leaves the house

[data]
path = "FILL IN.parquet" # beside this file: a column of arrays in Parquet, or .npy, or .npz
private = "FILL IN" # the column of arrays

[vector]
dimension = {dimension}
clip = {clip!r} # Euclidean length to which vectors are shortened
randomizer = "{randomizer}"
epsilon = {epsilon0!r} # of one report
delta = {delta!r} # planned for {n:,} people: central epsilon {epsilon!r}
{more}"""


def plan_vectors_verb(asked: dict[str, Any], *, out: Path | None, force: bool, as_json: bool) -> None:
    """Plan, print, and write the configuration that was asked for."""
    usual = {"question": "vector-mean", "trust": "local", "shares": "any"}
    for name, value in asked.items():
        if name not in NEEDS and value not in (None, usual.get(name)):
            raise ParameterError(f"--{name.replace('_', '-')} does not go with --question vector-mean.")
    for name in ("dimension", "clip"):
        if asked[name] is None:
            raise ParameterError(f"--question vector-mean needs --{name}.")
    from dovetail.pipeline.evaluate.vectors.vector_plan import plan_vectors

    with progress_bar(hidden=as_json) as progress:
        plan = plan_vectors(**{name: asked[name] for name in NEEDS}, progress=progress)
    document = _document(plan)
    if out is not None:
        text = _config(plan)
        write_whole(out, lambda place: _write(place, text), force=force)
        document["files"] = {"config": str(out)}
    if as_json:
        from dovetail.report.document import to_jsonable

        print_json(to_jsonable(document))
        return
    print_rows(f"Plan for {plan.n:,} people", _rows(plan))


def _write(place: Path, text: str) -> None:
    place.write_text(text, encoding="utf-8")


def _config(plan: VectorPlan) -> str:
    mechanism, honest = plan.mechanism, plan.central.honest_n
    chosen = {one.name: getattr(mechanism, one.name) for one in mechanism.settings()}
    more = "".join(f"{name} = {value!r}\n" for name, value in chosen.items() if value is not None)
    more += f"honest = {honest}\n" if honest < plan.n else ""
    return _CONFIG.format(
        dimension=mechanism.d, clip=float(mechanism.radius), randomizer=mechanism.name, epsilon0=plan.epsilon0,
        delta=plan.central.delta, n=plan.n, epsilon=plan.central.epsilon, more=more,
    )  # fmt: skip


def _document(plan: VectorPlan) -> dict[str, Any]:
    from dovetail.core.verdict import judge_central
    from dovetail.pipeline.evaluate.vectors.vector_plan import VectorPlan
    from dovetail.report.document import Missing, central_document

    return {
        **_numbers(plan),
        "n": plan.n,
        "dimension": plan.mechanism.d,
        "clip": plan.mechanism.radius,
        "local": {"epsilon": plan.mechanism.guarantee.epsilon, "delta": plan.mechanism.guarantee.delta},
        "central": central_document(plan.central),
        "verdict": judge_central(plan.central, local_delta=plan.mechanism.guarantee.delta).document(),
        "vulnerability": Missing(NO_GUESS),
        "alternatives": [
            {"randomizer": name, **(_numbers(one) if isinstance(one, VectorPlan) else {"reason": one})}
            for name, one in plan.others.items()
        ],
        "files": {},
    }


def _numbers(plan: VectorPlan) -> dict[str, Any]:
    mechanism = plan.mechanism
    return {
        "randomizer": mechanism.name,
        "epsilon0": plan.epsilon0,
        "epsilon": plan.central.epsilon,
        "delta": plan.central.delta,
        "error95": plan.error95,
        "standard_error": mechanism.error(plan.n),
        "coordinate_error": mechanism.coordinate_error(plan.n),
        "bias": mechanism.bias,
        "report_bits": mechanism.report_bits,
    }


def _rows(plan: VectorPlan) -> dict[str, str]:
    from dovetail.core.verdict import judge_central, numbered, warnings_of
    from dovetail.pipeline.evaluate.vectors.vector_plan import VectorPlan

    unit, mechanism, central = Unit.of("mean"), plan.mechanism, plan.central
    error, coordinate = plan.error95, mechanism.coordinate_error(plan.n)
    slack = "" if mechanism.guarantee.delta == 0.0 else f", delta {upward(mechanism.guarantee.delta)}"
    rows = {
        "protection": judge_central(central, local_delta=mechanism.guarantee.delta).sentence(),
        "question": f"mean of vectors of {mechanism.d:,} numbers, each shortened to length {mechanism.radius:g}",
        "randomizer": f"{mechanism.name} ({mechanism.label}), {mechanism.report_bits:,} bits a report",
        "epsilon0": f"{upward(plan.epsilon0)}{slack}: one report, whoever reads it",
        "epsilon": f"{upward(central.epsilon)} with delta {upward(central.delta)}: the shuffled batch, "
        f"{central.honest_n:,} of {plan.n:,} people honest",
        "error": f"{unit(error, error, ROUND_CEILING)} in Euclidean length, with 95 % probability",
        "one coordinate": f"standard error {unit(coordinate, coordinate, ROUND_CEILING)}",
    }
    rows |= numbered(warnings_of(central.delta, plan.n, honest=central.honest_n, epsilon0=plan.epsilon0))
    for name, one in plan.others.items():
        rows[f"or {name}"] = (
            f"epsilon0 {upward(one.epsilon0)}, epsilon {upward(one.central.epsilon)}, error "
            f"{unit(one.error95, one.error95, ROUND_CEILING)}, {one.mechanism.report_bits:,} bits"
            if isinstance(one, VectorPlan)
            else one
        )
    return rows
