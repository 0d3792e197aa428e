"""Why a plan recommends what it recommends, in a sentence or two."""

from __future__ import annotations

from dovetail.core.display.losses import error_in_words, upward
from dovetail.plan.calibrated_randomizer import NEAR_BEST, Alternative
from dovetail.plan.planner import CollectionPlan


def why_recommended(plan: CollectionPlan, *, forced: str | None = None, least_n: bool = False) -> str:
    """What speaks for the recommended randomizer, beside the best of the others.

    Parameters
    ----------
    forced : str, optional
        The randomizer that was asked for by name.
    least_n : bool
        Whether the number of people was asked for.
    """
    if forced is not None:
        return f"You asked for {plan.randomizer.label}."
    if least_n:
        return f"Of all kinds it needs the fewest people for these wishes: {plan.requirements.n:,}."
    others = [one for one in plan.alternatives if not one.reason and _objective(plan, one) is not None]
    if not others:
        return "No other kind meets these requirements."
    best = min(others, key=lambda one: _objective(plan, one) or 0.0)
    own, rival = _own(plan), _objective(plan, best) or 0.0
    measure = "central ε" if plan.requirements.error is not None else "error"
    count = f"Of the {len(others) + 1} kinds that meet the requirements"
    shown, beside = _say(plan, own), f"{_say(plan, rival)} ({best.randomizer.replace('_', ' ')})"
    if own <= rival and shown == _say(plan, rival):
        return (
            f"{count} none has a smaller {measure} than {shown}; {best.randomizer.replace('_', ' ')} comes closest."
        )
    if own < rival:
        return f"{count} it has the smallest {measure}: {shown}; the next has {beside}."
    if own <= NEAR_BEST * rival:
        return (
            f"{count} its {measure}, {shown}, is within a twentieth of the smallest, {beside}, and its report is "
            f"short: {plan.report_bits:,} bits, against {best.report_bits:,}."
        )
    return f"{count} it keeps the ceiling on epsilon with {measure} {shown}."


def _objective(plan: CollectionPlan, one: Alternative) -> float | None:
    return one.epsilon if plan.requirements.error is not None else one.error95


def _own(plan: CollectionPlan) -> float:
    return plan.epsilon if plan.requirements.error is not None else plan.error95


def _say(plan: CollectionPlan, value: float) -> str:
    if plan.requirements.error is not None:
        return upward(value)
    return error_in_words(value, share=plan.requirements.question == "frequency")
