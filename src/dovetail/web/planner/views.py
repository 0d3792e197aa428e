"""What the planner's pages show, as values for their templates; every number has passed the display rules."""

from __future__ import annotations

import re
from typing import Any

from dovetail.core.display.losses import upward
from dovetail.core.errors import DovetailError
from dovetail.core.registries import RANDOMIZERS
from dovetail.core.verdict import Promise, Verdict, judge, judge_central, warnings_of
from dovetail.plan.explain.infeasible import InfeasibleError, round_up_to_three_digits
from dovetail.plan.explain.participation import ParticipationPoint, absent_curve, dishonest_curve
from dovetail.plan.explain.why import why_recommended
from dovetail.plan.planner import CollectionPlan
from dovetail.plan.recommendation import Recommendation
from dovetail.plan.requirements import Requirements
from dovetail.plan.with_dummies import DummiesPlan
from dovetail.plan.with_user_dummies import UserDummiesPlan
from dovetail.report.number_format import ABSENT, percent, percent_up
from dovetail.report.sections.plans.plan_rows import plan_error, plan_objections, plan_rows
from dovetail.report.sections.plans.trusting_rows import TRUSTED, trusting_error, trusting_rows
from dovetail.web.planner.answers import Planned
from dovetail.web.planner.export import command_of
from dovetail.web.planner.figures import error_chart, price_chart, share_chart
from dovetail.web.planner.question import Question
from dovetail.web.planner.sliders import SLIDERS

_GUARANTEE = ("all honest", "some honest", "colluding")
_SAID_ABOVE = ("protection", "trust", "but")
_SHOWN = ("protection", "randomizer", *_GUARANTEE, "best guess")  # rows that have places of their own
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
        **_verdict(plan.verdict),
        "error": plan_error(plan, plan.error95),
        "kind": _kind(plan.requirements),
        "guarantee": [rows[name] for name in _GUARANTEE],
        "guess": rows["best guess"][0].upper() + rows["best guess"][1:],
        "rows": [(name, text) for name, text in rows.items() if name not in _SHOWN and not name.startswith("note")],
        "notes": plan.notes,
        "source": plan.central.source,
        "method": plan.central.method,
        "command": command_of(asked),
    }


def first_view(question: Question, found: Recommendation) -> dict[str, Any]:
    """What is known first; its epsilon is an upper bound and says so."""
    return {
        "query": question.query,
        "n": f"{found.requirements.n:,}",
        "solved": found.least is not None,
        "label": found.randomizer.label,
        "epsilon": upward(found.epsilon),
        "epsilon0": upward(found.epsilon0),
        "error": plan_error(found, found.error95),
        **_verdict(_judged(found)),
        "kind": _kind(found.requirements),
    }


def trusting_view(question: Question, plan: DummiesPlan | UserDummiesPlan) -> dict[str, Any]:
    """The same as `answer_view` of a plan whose noise is made by the shuffler, or by people together."""
    asked, trust, error = question.arguments(), plan.central.trust, trusting_error(plan)
    words = TRUSTED[trust]
    return {
        "query": question.query,
        "n": f"{plan.n:,}",
        "solved": False,
        "label": f"Dummies of {'the shuffler' if trust == 'shuffler' else 'people'}",
        "why": words[0].upper() + words[1:] + ".",
        "epsilon": upward(plan.central.epsilon),
        "epsilon0": "none",
        "delta": upward(plan.central.delta),
        **_verdict(judge_central(plan.central)),
        "error": error,
        "kind": f"the shares of {plan.dummies.k:,} answers" if plan.span is None else _mean_of(*plan.span),
        "guarantee": list(plan.trust_statement),
        "guess": "",
        "rows": [
            (name, text)
            for name, text in trusting_rows(plan).items()
            if name not in _SAID_ABOVE and not name.startswith("note")
        ],
        "notes": tuple(warnings_of(plan.central.delta, plan.n)),
        "source": plan.central.source,
        "method": plan.central.method,
        "command": command_of(asked),
    }


def view_of(question: Question, plan: Planned) -> dict[str, Any]:
    """Either of the two."""
    return answer_view(question, plan) if isinstance(plan, CollectionPlan) else trusting_view(question, plan)


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


def _verdict(found: Verdict) -> dict[str, str]:
    return {"grade": found.word, "verdict": found.sentence()}


def _judged(found: Recommendation) -> Verdict:
    asked = found.requirements
    mixed = asked.n if asked.smallest_group is None else asked.smallest_group
    return judge(
        Promise(found.epsilon0, found.randomizer.guarantee.delta),
        people=Promise(found.epsilon, asked.delta),
        n=mixed,
        honest=asked.honest_with_anyone(asked.n),
    )


def _kind(asked: Requirements) -> str:
    if asked.question == "frequency":
        return f"the shares of {asked.k:,} answers"
    assert asked.lower is not None and asked.upper is not None
    return _mean_of(asked.lower, asked.upper)


def _mean_of(lower: float, upper: float) -> str:
    return f"the mean of a number from {lower:g} to {upper:g}"


def _free(kind: Any) -> bool:
    return not any(one.required for one in kind.settings())


def _field_of(error: DovetailError | None) -> str:
    """The field that an error is about: the first that it names."""
    found = re.match(r"`(\w+)`", "" if error is None else str(error))
    return found[1] if found else ""
