"""Charts of a plan: the price of accuracy, and what is left when people lie or stay away."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from dovetail.core.display.losses import upward
from dovetail.plan.explain.participation import ParticipationPoint
from dovetail.plan.planner import CollectionPlan
from dovetail.report.charts.axes import TickFormat
from dovetail.report.charts.curve_chart import NamedCurve
from dovetail.report.charts.line_chart import line_chart
from dovetail.report.charts.reference_line import ReferenceLine
from dovetail.report.number_format import percent
from dovetail.report.sections.plans.plan_rows import plan_error


def price_chart(plan: CollectionPlan) -> Markup:
    """Central epsilon over the error that it buys."""
    steps = sorted(plan.tradeoff, key=lambda step: step.error95)
    return line_chart(
        [
            NamedCurve(
                "shuffled batch (central ε)", "curve-main", [s.error95 for s in steps], [s.epsilon for s in steps]
            )
        ],
        title="Price of accuracy",
        description=f"Epsilon falls from {upward(steps[0].epsilon)} to {upward(steps[-1].epsilon)} as the error "
        f"grows from {plan_error(plan, steps[0].error95)} to {plan_error(plan, steps[-1].error95)}.",
        axis="95 % error of the estimate",
        tick=_plain,
        across=percent if plan.requirements.question == "frequency" else _plain,
        mark=ReferenceLine(f"this plan: {plan_error(plan, plan.error95)}", "mark", plan.error95),
    )


def share_chart(points: Sequence[ParticipationPoint], *, title: str, axis: str, mark: float | None) -> Markup:
    """Central epsilon over a share of people."""
    first, last = points[0], points[-1]
    return line_chart(
        [NamedCurve("central ε, at most", "curve-main", [p.share for p in points], [p.epsilon for p in points])],
        title=title,
        description=f"Central epsilon rises from {upward(first.epsilon)} at {percent(first.share)} to "
        f"{upward(last.epsilon)} at {percent(last.share)}.",
        axis=axis,
        tick=_plain,
        across=percent,
        mark=None if mark is None else ReferenceLine("this plan", "mark", mark),
    )


def error_chart(points: Sequence[ParticipationPoint], plan: CollectionPlan, *, title: str, axis: str) -> Markup:
    """The error over a share of people."""
    tick: TickFormat = percent if plan.requirements.question == "frequency" else _plain
    return line_chart(
        [NamedCurve("95 % error", "curve-other", [p.share for p in points], [p.error95 for p in points])],
        title=title,
        description=f"The error grows from {plan_error(plan, points[0].error95)} to "
        f"{plan_error(plan, points[-1].error95)}.",
        axis=axis,
        tick=tick,
        across=percent,
    )


def _plain(value: float) -> str:
    return f"{value:,.6g}"
