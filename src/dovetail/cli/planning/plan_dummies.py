"""`dovetail plan --trust shuffler` and `users`: what dummies promise, against whom, and at what price."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dovetail.cli.console.output import print_json, print_rows
from dovetail.core.errors import ParameterError
from dovetail.report.sections.plans.trusting_rows import TITLES, trusting_rows


def plan_dummies(asked: dict[str, Any], *, out: Path | None, as_json: bool) -> None:
    """Plan, print, and write the configuration that was asked for."""
    from dovetail.plan.with_user_dummies import needs, plan_trusting

    trust = asked["trust"]
    of_a_mean = asked["question"] == "mean"
    known = needs(trust, asked["question"])
    for name, value in asked.items():
        if name not in known and value not in (None, "any"):
            raise ParameterError(f"--{name.replace('_', '-')} does not go with --trust {trust}.")
    needed = ("n", "lower", "upper") if of_a_mean else ("n", "k")
    if any(asked[name] is None for name in needed):
        options = " and ".join(f"--{name}" for name in needed)
        what = "a mean" if of_a_mean else "shares"
        raise ParameterError(f"--trust {trust} plans {what} for {options}: give them all.")
    plan = plan_trusting(**{name: asked[name] for name in known})
    document: dict[str, Any] = plan.document() | {"files": {}}
    if out is not None:
        from dovetail.pipeline.config.plan_file import write_dummies_plan

        write_dummies_plan(plan, out)
        document["files"]["config"] = str(out)
    if as_json:
        from dovetail.report.document import to_jsonable

        print_json(to_jsonable(document))
    else:
        print_rows(f"Plan for {plan.n:,} people, {TITLES[trust]}", trusting_rows(plan))
