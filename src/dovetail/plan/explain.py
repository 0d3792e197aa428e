"""Explanations of a plan: why it recommends what it does, and what is left when people lie or stay away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dovetail.account.accountant import Accountant
from dovetail.core.display import error_in_words, upward
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.plan.planner import CollectionPlan
from dovetail.plan.search import NEAR_BEST, SEARCH_POINTS, Alternative

# What is left of a plan's guarantee when people lie together with the analyst, or do not answer.


SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class ParticipationPoint:
    """One share of people, and what is left.

    Parameters
    ----------
    share : float
        Of people who tell the analyst what they sent, or who do not answer.
    answers : int
        Reports that are estimated from.
    honest : int
        The fewest honest people whose reports are shuffled with one person's own.
    epsilon : float
        Central epsilon, an upper bound at the plan's delta.
    error95 : float
        Predicted error of the estimate from these answers.
    """

    share: float
    answers: int
    honest: int
    epsilon: float
    error95: float


def dishonest_curve(plan: CollectionPlan, shares: Iterable[float] = SHARES) -> tuple[ParticipationPoint, ...]:
    r"""The central epsilon when a share of the people is dishonest: their reports hide nobody.

    .. math:: \varepsilon(s) = \varepsilon_\delta(\lfloor (1 - s)\, n \rfloor)

    with the plan's randomizer and delta; whatever share the plan assumes itself is replaced.

    Parameters
    ----------
    plan : CollectionPlan
    shares : numbers from 0 to below 1

    Source
    ------
    The central guarantee: `amplify`, with so many honest people.
    """
    asked = plan.requirements
    return tuple(_point(plan, share, asked.n, max(1, int(asked.n * _rest(share)))) for share in shares)


def absent_curve(plan: CollectionPlan, shares: Iterable[float] = SHARES) -> tuple[ParticipationPoint, ...]:
    r"""The central epsilon and the error when a share of the people does not answer.

    .. math:: n(s) = \lfloor (1 - s)\, n \rfloor, \quad \varepsilon(s) = \varepsilon_\delta(n(s)),
        \quad \mathrm{error}(s) = \mathrm{error}(n(s))

    Those who answer are honest in the same proportion, and groups shrink alike. Where people stay away because of
    what they would answer, the estimate is biased, and nothing here bounds that.

    Parameters
    ----------
    plan : CollectionPlan
    shares : numbers from 0 to below 1

    Source
    ------
    The central guarantee: `amplify`, with so many honest people; the error: `predict_accuracy`.
    """
    asked = plan.requirements
    return tuple(
        _point(plan, share, answers, max(1, answers * asked.honest // asked.n))
        for share in shares
        for answers in [max(1, int(asked.n * _rest(share)))]
    )


def _point(plan: CollectionPlan, share: float, answers: int, honest: int) -> ParticipationPoint:
    asked = plan.requirements
    mixed = answers if asked.smallest_group is None else answers * asked.smallest_group // asked.n
    trusted = max(1, mixed - answers + honest)
    epsilon = Accountant(plan.randomizer, n=trusted).epsilon(asked.delta, points=SEARCH_POINTS)
    error = predict_accuracy(plan.randomizer, n=answers, shares=asked.shares).error95
    return ParticipationPoint(share, answers, trusted, min(epsilon, plan.epsilon0), error)


def _rest(share: float) -> float:
    """The others' share, as decimals have it: 0.2 besides 0.8."""
    return round(1.0 - share, 12)


# Why a plan recommends what it recommends, in a sentence or two.


def why_recommended(plan: CollectionPlan, *, forced: str | None = None, least_n: bool = False) -> str:
    """Say what speaks for the recommended randomizer, beside the best of the others.

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
