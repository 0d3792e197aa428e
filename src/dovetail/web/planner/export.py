"""A plan to take away: the configuration for `run`, Python that makes it again, and the document of `--json`."""

from __future__ import annotations

import json
from typing import Any

from dovetail.pipeline.config.plan_file import dummies_toml, plan_toml
from dovetail.plan.planner import CollectionPlan
from dovetail.report.document import to_jsonable
from dovetail.report.sections.plans.plan_document import plan_document
from dovetail.web.planner.answers import Planned


def toml_of(plan: Planned, asked: dict[str, Any]) -> str:
    """What `dovetail plan --out` writes."""
    return plan_toml(plan) if isinstance(plan, CollectionPlan) else dummies_toml(plan)


def json_of(plan: Planned, asked: dict[str, Any]) -> str:
    """What `dovetail plan --json` prints, less the list of files."""
    document = plan_document(plan) if isinstance(plan, CollectionPlan) else plan.document()
    document = {"schema_version": 1, **document}
    return json.dumps(to_jsonable(document), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def python_of(plan: Planned, asked: dict[str, Any]) -> str:
    """A program that plans the same and makes the randomizer."""
    if not isinstance(plan, CollectionPlan):
        return _python_with_dummies(asked)
    given = "".join(f"    {name}={value!r},\n" for name, value in asked.items())
    kind = type(plan.randomizer).__name__
    settings = ", ".join(f"{name}={value!r}" for name, value in vars(plan.randomizer).items() if value is not None)
    return (
        f"import dovetail as dt\n\nplan = dt.plan_collection(\n{given})\n"
        f"randomizer = plan.randomizer  # dt.{kind}({settings})\n"
        "print(plan.randomizer.name, plan.epsilon0, plan.epsilon, plan.error95)\n"
        "for line in plan.central.lines():\n    print(line)\n"
    )


def _python_with_dummies(asked: dict[str, Any]) -> str:
    given = "".join(f"    {name}={value!r},\n" for name, value in asked.items())
    return (
        f"from dovetail.plan.with_user_dummies import plan_trusting\n\nplan = plan_trusting(\n{given})\n"
        "print(plan.dummies, plan.central.epsilon, plan.accuracy.error95)\n"
        "for line in plan.trust_statement:\n    print(line)\n"
    )


def command_of(asked: dict[str, Any]) -> str:
    """The command line that plans the same."""
    words = [f"--{name.replace('_', '-')} {str(value).removesuffix('.0')}" for name, value in asked.items()]
    return " ".join(["dovetail plan", *words])
