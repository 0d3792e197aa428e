"""`dovetail plan --trust shuffler` and `users`: what dummies promise, against whom, and at what price."""

from __future__ import annotations

from decimal import ROUND_CEILING
from pathlib import Path
from typing import Any

from dovetail.cli.console.output import print_json, print_rows
from dovetail.core.errors import ParameterError
from dovetail.report.number_format import Unit, upward

NEEDS = {
    "shuffler": {"question", "n", "k", "delta", "error", "epsilon", "trust"},
    "users": {"question", "n", "k", "delta", "error", "epsilon", "trust", "honest"},
}


def plan_dummies(asked: dict[str, Any], *, out: Path | None, as_json: bool) -> None:
    """Plan, print, and write the configuration that was asked for."""
    trust = asked["trust"]
    for name, value in asked.items():
        if name not in NEEDS[trust] and value not in (None, "any"):
            raise ParameterError(f"--{name.replace('_', '-')} does not go with --trust {trust}.")
    if asked["question"] != "frequency" or asked["k"] is None or asked["n"] is None:
        raise ParameterError(f"--trust {trust} plans shares: give --question frequency, --k and --n.")
    wanted = {name: asked[name] for name in NEEDS[trust] - {"question", "trust"}}
    plan, title, rows = _by_users(wanted) if trust == "users" else _by_the_shuffler(wanted)
    document: dict[str, Any] = plan.document() | {"files": {}}
    if out is not None:
        from dovetail.pipeline.config.plan_file import write_dummies_plan

        write_dummies_plan(plan, out)
        document["files"]["config"] = str(out)
    if as_json:
        from dovetail.report.document import to_jsonable

        print_json(to_jsonable(document))
    else:
        print_rows(title, rows)


def _by_the_shuffler(wanted: dict[str, Any]) -> tuple[Any, str, dict[str, str]]:
    from dovetail.plan.with_dummies import plan_with_dummies

    plan = plan_with_dummies(**wanted)
    extra = plan.dummies.k * plan.dummies.reach
    rows = {
        **_rows(plan),
        "of a count": f"standard deviation {plan.dummies.variance**0.5:.3g}, at most {plan.dummies.reach:,} off",
        "messages": f"1 a person, and {extra:,} dummies ({plan.dummies.reach:,} for each value) on average",
        "bytes": f"{plan.message_bytes:,} a person, sealed for the service",
    }
    return plan, f"Plan for {plan.n:,} people, trusting the shuffler", rows


def _by_users(wanted: dict[str, Any]) -> tuple[Any, str, dict[str, str]]:
    from dovetail.plan.with_user_dummies import plan_with_user_dummies

    plan = plan_with_user_dummies(**wanted)
    every, rate = plan.central.all, upward(plan.dummies.rate)
    rows = {
        **_rows(plan),
        "dropouts": f"who does not send takes noise away: counted on are {plan.central.honest_n:,} people; if all "
        f"{plan.n:,} send, epsilon is {upward(every)}",
        "of a count": f"standard deviation {plan.dummies.variance(plan.n) ** 0.5:.3g}, whatever the count",
        "messages": f"1 a person, and a dummy with probability {rate}: at most 2, {upward(plan.messages)} on average",
        "bytes": f"{plan.message_bytes:,} a person, sealed for the service: room for both, filled or not",
    }
    return plan, f"Plan for {plan.n:,} people, who add the noise together", rows


def _rows(plan: Any) -> dict[str, str]:
    against, condition, together = plan.trust_statement
    error, share = plan.accuracy, Unit.of("share")
    return {
        "trust": f"{against}, {condition}",
        "but": together,
        "epsilon": f"{upward(plan.central.epsilon)}, delta {plan.central.delta:g}",
        "epsilon0": "infinite: no local promise",
        "error": f"{share(error.error95, error.error95, ROUND_CEILING)} of one share with 95 % probability, "
        "frequent or rare",
        "with sampling": f"at most {share(error.population_error95, error.population_error95, ROUND_CEILING)}",
    }
