"""`dovetail plan --trust shuffler`: what dummies of the shuffler promise, against whom, and at what price."""

from __future__ import annotations

from decimal import ROUND_CEILING
from pathlib import Path
from typing import Any

from dovetail.cli.console.output import print_json, print_rows
from dovetail.core.errors import ParameterError
from dovetail.report.number_format import Unit, upward

NEEDS = {"question", "n", "k", "delta", "error", "epsilon", "trust"}


def plan_for_the_shuffler(asked: dict[str, Any], *, out: Path | None, as_json: bool) -> None:
    """Plan, print, and write the configuration that was asked for."""
    from dovetail.plan.with_dummies import plan_with_dummies

    for name, value in asked.items():
        if name not in NEEDS and value not in (None, "any"):
            raise ParameterError(f"--{name.replace('_', '-')} does not go with --trust shuffler.")
    if asked["question"] != "frequency" or asked["k"] is None or asked["n"] is None:
        raise ParameterError("--trust shuffler plans shares: give --question frequency, --k and --n.")
    wanted = {name: asked[name] for name in ("n", "k", "delta", "epsilon", "error")}
    plan = plan_with_dummies(**wanted)
    document: dict[str, Any] = plan.document() | {"files": {}}
    if out is not None:
        from dovetail.pipeline.config.plan_file import write_dummies_plan

        write_dummies_plan(plan, out)
        document["files"]["config"] = str(out)
    if as_json:
        from dovetail.report.document import to_jsonable

        print_json(to_jsonable(document))
    else:
        print_rows(f"Plan for {plan.n:,} people, trusting the shuffler", _rows(plan))


def _rows(plan: Any) -> dict[str, str]:
    against, condition, together = plan.trust_statement
    error, share = plan.accuracy, Unit.of("share")
    extra = plan.dummies.k * plan.dummies.reach
    return {
        "trust": f"{against}, {condition}",
        "but": together,
        "epsilon": f"{upward(plan.central.epsilon)}, delta {plan.central.delta:g}",
        "epsilon0": "infinite: no local promise",
        "error": f"{share(error.error95, error.error95, ROUND_CEILING)} of one share with 95 % probability, "
        "frequent or rare",
        "of a count": f"standard deviation {plan.dummies.variance**0.5:.3g}, at most {plan.dummies.reach:,} off",
        "with sampling": f"at most {share(error.population_error95, error.population_error95, ROUND_CEILING)}",
        "messages": f"1 a person, and {extra:,} dummies ({plan.dummies.reach:,} for each value) on average",
    }
