"""What is left of a plan's guarantee when people lie together with the analyst, or do not answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dovetail.account.amplify import central_epsilon
from dovetail.plan.accuracy import predict_accuracy
from dovetail.plan.planner import CollectionPlan
from dovetail.plan.search import SEARCH_POINTS

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
    epsilon = central_epsilon(plan.randomizer, n=trusted, delta=asked.delta, points=SEARCH_POINTS)
    error = predict_accuracy(plan.randomizer, n=answers, shares=asked.shares).error95
    return ParticipationPoint(share, answers, trusted, min(epsilon, plan.epsilon0), error)


def _rest(share: float) -> float:
    """The others' share, as decimals have it: 0.2 besides 0.8."""
    return round(1.0 - share, 12)
