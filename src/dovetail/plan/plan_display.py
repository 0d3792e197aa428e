"""What a plan shows of itself in a notebook: what to collect with, what is promised, and the price of accuracy."""

from __future__ import annotations

from typing import Any

from dovetail.core.display.display import Display, Grid
from dovetail.core.display.losses import error_in_words, upward


def show_plan(plan: Any) -> Display:
    """A `CollectionPlan` in words."""
    name, people = plan.randomizer.name, f"{plan.requirements.n:,} people"
    error = _error(plan, plan.error95)
    what = "one share" if plan.requirements.question == "frequency" else "the mean"
    promised = f"epsilon {upward(plan.epsilon)} at delta {upward(plan.central.delta)}"
    return Display(
        brief=f"CollectionPlan for {people}: {name}, epsilon0 {upward(plan.epsilon0)}\n"
        f"{promised}; {what} to within {error} with 95 % probability",
        title=f"Plan for {people}: {plan.randomizer.label}",
        facts=(
            ("one report promises", f"epsilon0 {upward(plan.epsilon0)}, whatever the shuffler does"),
            ("the shuffled batch promises", promised),
            ("protection of one person", plan.verdict.sentence()),
            ("who has to be honest", plan.central.lines()[1].rpartition(": ")[0]),
            ("error", f"{what} is within {error} of the truth with 95 % probability"),
        ),
        grid=Grid(
            ("epsilon0", "epsilon", "95 % error"),
            [(upward(one.epsilon0), upward(one.epsilon), _error(plan, one.error95)) for one in plan.tradeoff],
        ),
        notes=("The table is the trade-off: the same randomizer with more and with less noise.", *plan.notes),
    )


def _error(plan: Any, value: float) -> str:
    return error_in_words(value, share=plan.requirements.question == "frequency")
