"""A plan that trusts the shuffler or people together, row by row, the same for the command line and the browser."""

from __future__ import annotations

from decimal import ROUND_CEILING
from typing import TYPE_CHECKING

from dovetail.core.verdict import judge_central, numbered, warnings_of
from dovetail.report.number_format import Unit, upward

if TYPE_CHECKING:
    from dovetail.plan.with_dummies import DummiesPlan, TrustingPlan
    from dovetail.plan.with_user_dummies import UserDummiesPlan

TRUSTED = {
    "shuffler": "the shuffler adds the noise; with the analyst it reads every answer",
    "users": "people add the noise together; shuffler and analyst together read every answer",
}
TITLES = {"shuffler": "trusting the shuffler", "users": "who add the noise together"}


def trusting_rows(plan: TrustingPlan) -> dict[str, str]:
    """What is planned and promised, and who has to be trusted with what, by name."""
    from dovetail.plan.with_dummies import DummiesPlan
    from dovetail.plan.with_user_dummies import UserDummiesPlan

    rows = _rows(plan)
    if isinstance(plan, DummiesPlan):
        return {**rows, **_of_the_shuffler(plan)}
    assert isinstance(plan, UserDummiesPlan)
    return {**rows, **_of_users(plan)}


def _of_the_shuffler(plan: DummiesPlan) -> dict[str, str]:
    extra = plan.dummies.k * plan.dummies.reach
    return {
        "of a count": f"standard deviation {plan.dummies.variance**0.5:.3g}, at most {plan.dummies.reach:,} off",
        "messages": f"1 a person, and {extra:,} dummies ({plan.dummies.reach:,} for each value) on average",
        "bytes": f"{plan.message_bytes:,} a person, sealed for the service",
    }


def _of_users(plan: UserDummiesPlan) -> dict[str, str]:
    every, rate = plan.central.all, upward(plan.dummies.rate)
    return {
        "dropouts": f"who does not send takes noise away: counted on are {plan.central.honest_n:,} people; if all "
        f"{plan.n:,} send, epsilon is {upward(every)}",
        "of a count": f"standard deviation {plan.dummies.variance(plan.n) ** 0.5:.3g}, whatever the count",
        "messages": f"1 a person, and a dummy with probability {rate}: at most 2, {upward(plan.messages)} on average",
        "bytes": f"{plan.message_bytes:,} a person, sealed for the service: room for both, filled or not",
    }


def _rows(plan: TrustingPlan) -> dict[str, str]:
    against, condition, together = plan.trust_statement
    whom = "of one share with 95 % probability, frequent or rare"
    if plan.span is not None:
        whom = f"of the mean with 95 % probability, on a grid of {plan.dummies.k:,} points"
    return {
        "protection": judge_central(plan.central).sentence(),
        "trust": f"{against}, {condition}",
        "but": together,
        "epsilon": f"{upward(plan.central.epsilon)}, delta {plan.central.delta:g}",
        "epsilon0": "infinite: no local promise",
        "error": f"{trusting_error(plan)} {whom}",
        "with sampling": f"at most {_in_its_unit(plan, plan.accuracy.population_error95)}",
        **numbered(warnings_of(plan.central.delta, plan.n)),
    }


def trusting_error(plan: TrustingPlan) -> str:
    """What one share, or the mean, may be off, with its unit."""
    return _in_its_unit(plan, plan.accuracy.error95)


def _in_its_unit(plan: TrustingPlan, error: float) -> str:
    return Unit.of("share" if plan.span is None else "mean")(error, error, ROUND_CEILING)
