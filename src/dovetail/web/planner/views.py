"""What the planner's pages show, as values for their templates; every number has passed the display rules."""

from __future__ import annotations

import re
from typing import Any

from dovetail.core.display.losses import upward
from dovetail.core.errors import DovetailError
from dovetail.core.registries import RANDOMIZERS
from dovetail.plan.explain.participation import ParticipationPoint, absent_curve, dishonest_curve
from dovetail.plan.explain.why import why_recommended
from dovetail.plan.explain.infeasible import InfeasibleError, round_up_to_three_digits
from dovetail.plan.planner import CollectionPlan
from dovetail.report.number_format import ABSENT, percent, percent_up
from dovetail.report.sections.plan_rows import plan_error, plan_objections, plan_rows
from dovetail.report.sections.verdict import grade
from dovetail.web.planner.export import command_of
from dovetail.web.planner.figures import error_chart, price_chart, share_chart
from dovetail.web.planner.question import Question
from dovetail.web.planner.sliders import SLIDERS

_GUARANTEE = ("all honest", "some honest", "colluding")
_SHOWN = ("randomizer", *_GUARANTEE, "best guess")  # rows that have places of their own
_WAYS = {"n": "Collect {} people", "error": "Allow an error of {}", "epsilon": "Allow a central epsilon of {}"}


def form_view(question: Question, error: DovetailError | None) -> dict[str, Any]:
    """The fields as they were filled in, and which of them is wrong."""
    return {
        "texts": question.texts,
        "query": question.query,
        "sliders": SLIDERS,
        "kinds": [(kind.name, kind.name.replace("_", " "), kind.question) for kind in RANDOMIZERS if _free(kind)],
        "wrong": _field_of(error),
        "said": "" if error is None else str(error),
    }


def answer_view(question: Question, plan: CollectionPlan) -> dict[str, Any]:
    """The plan: recommendation, guarantee, risk, numbers, and where it can be taken."""
    asked, rows = question.arguments(), plan_rows(plan)
    return {
        "query": question.query,
        "n": f"{plan.requirements.n:,}",
        "solved": "n" not in asked,
        "label": plan.randomizer.label,
        "name": plan.randomizer.name,
        "why": why_recommended(plan, forced=asked.get("randomizer"), least_n="n" not in asked),
        "epsilon": upward(plan.epsilon),
        "epsilon0": upward(plan.epsilon0),
        "delta": upward(plan.central.delta),
        "grade": grade(plan.epsilon) if plan.central.delta * plan.requirements.n < 1.0 else "weak",
        "error": plan_error(plan, plan.error95),
        "what": "one share" if plan.requirements.question == "frequency" else "the mean",
        "kind": _kind(plan),
        "guarantee": [rows[name] for name in _GUARANTEE],
        "guess": rows["best guess"][0].upper() + rows["best guess"][1:],
        "rows": [(name, text) for name, text in rows.items() if name not in _SHOWN and not name.startswith("note")],
        "notes": plan.notes,
        "source": plan.central.source,
        "method": plan.central.method,
        "command": command_of(asked),
    }


def more_view(plan: CollectionPlan) -> dict[str, Any]:
    """What takes longer: the trade-off, and the other kinds."""
    return {
        "chart": price_chart(plan),
        "steps": [
            (
                upward(step.epsilon0),
                upward(step.epsilon),
                plan_error(plan, step.error95),
                ABSENT if step.vulnerability is None else percent_up(step.vulnerability),
            )
            for step in plan.tradeoff
        ],
        "chosen": [step.epsilon0 for step in plan.tradeoff].index(plan.epsilon0),
        "alternatives": [
            (
                row.randomizer.replace("_", " "),
                *_numbers(plan, row.epsilon0, row.epsilon, row.error95, row.report_bits),
            )
            for row in plan.alternatives
        ],
        "objections": [(", ".join(names), why) for why, names in plan_objections(plan).items()],
    }


def curves_view(plan: CollectionPlan) -> dict[str, Any]:
    """What is left when a share of the people is dishonest, or does not answer."""
    dishonest, absent = dishonest_curve(plan), absent_curve(plan)
    assumed = 1.0 - plan.requirements.honest / plan.requirements.n
    return {
        "dishonest_chart": share_chart(
            dishonest,
            title="Central epsilon by share of dishonest people",
            axis="share of people who are dishonest",
            mark=assumed,
        ),
        "absent_chart": share_chart(
            absent,
            title="Central epsilon by share of people who do not answer",
            axis="share of people who do not answer",
            mark=None,
        ),
        "error_chart": error_chart(
            absent, plan, title="Error by share of people who do not answer", axis="share of people who do not answer"
        ),
        "dishonest": [_point(plan, point) for point in dishonest],
        "absent": [_point(plan, point) for point in absent],
        "assumed": percent(assumed),
    }


def refusal_view(question: Question, error: DovetailError) -> dict[str, Any]:
    """What is wrong with a question, and what would do instead."""
    ways = error.ways if isinstance(error, InfeasibleError) else ()
    return {
        "said": str(error),
        "query": question.query,
        "wrong": _field_of(error),
        "ways": [
            (_WAYS[name].format(_value(name, value)), question.with_value(name, value).query) for name, value in ways
        ],
    }


def _value(name: str, value: float) -> str:
    return f"{value:,.0f}" if name == "n" else round_up_to_three_digits(value)


def _numbers(plan: CollectionPlan, epsilon0: Any, epsilon: Any, error: Any, bits: Any) -> tuple[str, ...]:
    if None in (epsilon0, epsilon, error, bits):
        return (ABSENT,) * 4
    return upward(epsilon0), upward(epsilon), plan_error(plan, error), f"{bits:,}"


def _point(plan: CollectionPlan, point: ParticipationPoint) -> tuple[str, ...]:
    return (
        percent(point.share), f"{point.answers:,}", f"{point.honest:,}", upward(point.epsilon),
        plan_error(plan, point.error95),
    )  # fmt: skip


def _kind(plan: CollectionPlan) -> str:
    asked = plan.requirements
    if asked.question == "frequency":
        return f"the shares of {asked.k:,} answers"
    return f"the mean of a number from {asked.lower:g} to {asked.upper:g}"


def _free(kind: Any) -> bool:
    return not any(one.required for one in kind.settings())


def _field_of(error: DovetailError | None) -> str:
    """The field that an error is about: the first that it names."""
    found = re.match(r"`(\w+)`", "" if error is None else str(error))
    return found[1] if found else ""
