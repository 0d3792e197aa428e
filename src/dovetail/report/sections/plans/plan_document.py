"""A plan as a JSON document, the same for the command line and the browser."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dovetail.report.document import Missing, central_document

if TYPE_CHECKING:
    from dovetail.plan.planner import CollectionPlan
    from dovetail.plan.requirements import Requirements


def plan_document(plan: CollectionPlan) -> dict[str, Any]:
    """The plan as a JSON document; what does not apply is null with its reason."""
    unknown = Missing(plan.risk.reason)
    local = plan.randomizer.guarantee
    return {
        "question": {
            name: Missing("not asked") if value is None else value for name, value in _requirements(plan.requirements)
        },
        "n": plan.requirements.n,
        "trust": plan.central.trust,
        "shuffler": plan.shuffler,
        "randomizer": plan.randomizer.name,
        "parameters": vars(plan.randomizer).copy(),
        "report_bits": plan.report_bits,
        "epsilon0": plan.epsilon0,
        "epsilon": plan.epsilon,
        "delta": plan.central.delta,
        "standard_error": plan.standard_error,
        "error95": plan.error95,
        "population_error95": plan.accuracy.population_error95,
        "flat_error95": Missing("a mean has no shares") if plan.flat is None else plan.flat.error95,
        "group_error95": Missing("everybody is shuffled together: no group is estimated by itself")
        if plan.in_smallest_group is None
        else plan.in_smallest_group.error95,
        "vulnerability": unknown if plan.vulnerability is None else plan.vulnerability,
        "gain": unknown if plan.risk.gain is None else plan.risk.gain,
        "leakage": unknown if plan.risk.exact is None else {**asdict(plan.risk.exact), "prior_law": "uniform"},
        "local": {"epsilon": local.epsilon, "delta": local.delta, "source": local.source},
        "central": central_document(plan.central),
        "verdict": plan.verdict.document(),
        "smallest_n": Missing(plan.smallest_n_reason) if plan.smallest_n is None else plan.smallest_n,
        "tradeoff": [_step(asdict(step), unknown) for step in plan.tradeoff],
        "alternatives": [_step(asdict(row), Missing(row.reason)) for row in plan.alternatives],
        "notes": list(plan.notes),
    }


def _requirements(requirements: Requirements) -> list[tuple[str, Any]]:
    return [("kind" if name == "question" else name, value) for name, value in asdict(requirements).items()]


def _step(row: dict[str, Any], unknown: Missing) -> dict[str, Any]:
    return {name: unknown if value is None else value for name, value in row.items()}
