"""What batches promise to which the shuffler adds dummies, or people: one, and all that a device takes part in."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

from dovetail.account.closed_form.dummies import dummies_guarantee
from dovetail.account.closed_form.user_dummies import UserDummiesLaw, user_dummies_guarantee
from dovetail.collect.campaign.added_dummies import added_dummies
from dovetail.collect.campaign.people_dummies import people_dummies
from dovetail.core.bracket import Bracket
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.numeric.rounding import round_up_to_double
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.from_device import from_device
from dovetail.report.document import Missing
from dovetail.shuffle.dummies.dummies import Dummies
from dovetail.shuffle.dummies.user_dummies import UserDummies
from dovetail_protocol.budget import cost
from dovetail_protocol.campaign import Campaign

UP = 1.0 + 1e-12  # far beyond the rounding of a handful of operations


def guarantee_with_dummies(campaign: Campaign, *, n: int, honest: int) -> CentralDP | Missing:
    """Of one batch of n people: the smaller promise of the dummies, and of the local noise under them.

    Where people send the dummies: of those of the honest ones.
    """
    sent = people_dummies(campaign)
    if sent is not None:
        return _of_people(sent, n=n, honest=honest, rounds=1, delta=campaign.promise.delta)
    dummies = added_dummies(campaign)
    randomizer: Any = from_device(campaign.mechanism)
    assert dummies is not None and isinstance(randomizer, KRR)
    try:
        return _one(dummies, randomizer, max(1, n), min(max(1, honest), max(1, n)), campaign.promise.delta)
    except UnsupportedError as error:
        return Missing(str(error).rstrip("."))


def guarantee_of_rounds(campaign: Campaign, *, n: int, rounds: int, honest: int = 1) -> CentralDP | Missing:
    """Of so many batches about the same people: of the dummies alone, which local noise can only help.

    honest : people in the weakest batch whose own dummies arrive, where people send them.
    """
    sent = people_dummies(campaign)
    if sent is not None:
        return _of_people(sent, n=n, honest=honest, rounds=rounds, delta=campaign.promise.delta)
    dummies = added_dummies(campaign)
    assert dummies is not None
    try:
        found = _several(dummies, max(1, n), rounds, campaign.promise.delta)
    except UnsupportedError as error:
        return Missing(str(error).rstrip("."))
    return replace(found, colluding=round_up_to_double(cost(rounds, campaign.mechanism.epsilon)))


def _of_people(sent: UserDummies, *, n: int, honest: int, rounds: int, delta: float) -> CentralDP | Missing:
    if honest < 1:
        return Missing("nobody in it is assumed honest, and only the dummies of honest people hide anybody")
    try:
        return _together(sent, max(n, honest), honest, rounds, delta)
    except UnsupportedError as error:
        return Missing(str(error).rstrip("."))


@lru_cache(maxsize=4096)
def _together(sent: UserDummies, n: int, honest: int, rounds: int, delta: float) -> CentralDP:
    r"""So many batches, each with the dummies of as many honest people: the smaller of two compositions.

    .. math:: T \epsilon(\delta / T), \qquad
              T \epsilon \tanh\frac{\epsilon}{2} + \epsilon \sqrt{2 T \log\frac{2}{\delta}},
              \quad \epsilon = \epsilon\Bigl(\frac{\delta}{2 T}\Bigr)

    Source: Dwork et al. (2006), Theorem 1; Kairouz, Oh, Viswanath (2015), Theorem 3.5.
    """
    one = user_dummies_guarantee(sent, n=n, delta=delta, honest=honest)
    if rounds == 1:
        return one
    some = _composed(UserDummiesLaw(sent.k, honest, sent.rate), rounds, delta)
    every = _composed(UserDummiesLaw(sent.k, n, sent.rate), rounds, delta)
    if math.isinf(some):
        raise UnsupportedError(f"the dummies of {honest:,} honest people keep no epsilon over {rounds:,} batches.")
    lower = min(one.numeric.lower, some)
    return replace(
        one, all=min(some, every), honest=some, numeric=Bracket(lower, some),
        method=f"composition of {rounds:,} batches with {one.method}",
        source=f"Dwork et al. (2006), Theorem 1; Kairouz, Oh, Viswanath (2015), Theorem 3.5; of [{one.source}]",
    )  # fmt: skip


def _composed(law: UserDummiesLaw, rounds: int, delta: float) -> float:
    basic, one = rounds * law.epsilon(delta / rounds), law.epsilon(0.5 * delta / rounds)
    if math.isinf(one):
        return basic * UP
    advanced = rounds * one * math.tanh(0.5 * one) + one * math.sqrt(2.0 * rounds * math.log(2.0 / delta))
    return min(basic, advanced) * UP


@lru_cache(maxsize=4096)
def _one(dummies: Dummies, randomizer: KRR, n: int, honest: int, delta: float) -> CentralDP:
    return dummies_guarantee(dummies, n=n, delta=delta, randomizer=randomizer, honest=honest)


@lru_cache(maxsize=256)
def _several(dummies: Dummies, n: int, rounds: int, delta: float) -> CentralDP:
    return dummies_guarantee(dummies, n=n, delta=delta, rounds=rounds)
