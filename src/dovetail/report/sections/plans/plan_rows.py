"""A plan in words, row by row, the same for the command line and the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dovetail.core.display.losses import error_in_words, guess_in_words, upward
from dovetail.core.verdict import numbered

if TYPE_CHECKING:
    from dovetail.plan.planner import CollectionPlan
    from dovetail.plan.recommendation import Recommendation


def plan_rows(plan: CollectionPlan) -> dict[str, str]:
    """What is planned, promised and risked, by name."""
    everybody, some, colluding = plan.central.lines()
    return {
        "protection": plan.verdict.sentence(),
        "randomizer": f"{plan.randomizer.label} ({plan.randomizer.name})",
        "report": f"{plan.report_bits:,} bits",
        "epsilon0": f"{upward(plan.epsilon0)} (one report); to configure a randomizer: {plan.epsilon0!r}",
        "epsilon": f"{upward(plan.epsilon)} (shuffled batch), delta {upward(plan.central.delta)}",
        "shuffle": _shuffle(plan),
        "all honest": everybody,
        "some honest": some,
        "colluding": colluding,
        **_error_rows(plan),
        "best guess": _guess(plan),
        "smallest n": plan.smallest_n_reason if plan.smallest_n is None else f"{plan.smallest_n:,}",
        **numbered(plan.notes),
    }


def _error_rows(plan: CollectionPlan) -> dict[str, str]:
    what = "of one share" if plan.requirements.question == "frequency" else "of the mean"
    held = "whatever people hold" if plan.requirements.shares == "any" else "where every value is equally frequent"
    condition = f", {held}" if plan.requirements.k is not None else ""
    drawn = plan_error(plan, plan.accuracy.population_error95)
    rows = {
        "error": f"{plan_error(plan, plan.error95)} {what} with 95 % probability{condition}",
        "standard error": f"{plan_error(plan, plan.standard_error)}, among exactly these people",
        "with sampling": f"at most {drawn}, for the population behind them",
    }
    if plan.in_smallest_group is not None:
        rows["smallest group"] = f"{plan_error(plan, plan.in_smallest_group.error95)} {what} of that group alone"
    if plan.flat is not None and plan.requirements.shares == "any":
        rows["even shares"] = f"{plan_error(plan, plan.flat.error95)} where every value is equally frequent"
    return rows


def _shuffle(plan: CollectionPlan) -> str:
    people = plan.requirements.smallest_group
    if people is None:
        return f"{plan.shuffler}: everybody with everybody"
    return f"{plan.shuffler}: the smallest group has {people:,} people"


def plan_error(plan: CollectionPlan | Recommendation, value: float) -> str:
    """An error of this plan's estimates with its unit."""
    return error_in_words(value, share=plan.requirements.question == "frequency")


def _guess(plan: CollectionPlan) -> str:
    seen = plan.risk.exact
    if seen is None:
        return f"not known: {plan.risk.reason}"
    guess = guess_in_words(seen.randomized_shuffled, seen.prior)
    return (
        f"who finds all {plan.requirements.k:,} values equally likely guesses one person's in one try with "
        f"probability {guess.best}, {guess.times} times the {guess.blind} without any data; from the report itself, "
        f"if the shuffler colludes: {guess_in_words(seen.randomized, seen.prior).best}"
    )


def plan_objections(plan: CollectionPlan) -> dict[str, list[str]]:
    """What speaks against other randomizers, each reason with those that it holds for."""
    found: dict[str, list[str]] = {}
    for row in plan.alternatives:
        if row.reason:
            found.setdefault(row.reason, []).append(row.randomizer)
    return found
