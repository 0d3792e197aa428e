"""What batches promise to which the shuffler adds dummies: one of them, and all that a device takes part in."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from dovetail.account.closed_form.dummies import dummies_guarantee
from dovetail.collect.campaign.added_dummies import added_dummies
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.numeric.rounding import round_up_to_double
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.from_device import from_device
from dovetail.report.document import Missing
from dovetail.shuffle.dummies.dummies import Dummies
from dovetail_protocol.budget import cost
from dovetail_protocol.campaign import Campaign


def guarantee_with_dummies(campaign: Campaign, *, n: int, honest: int) -> CentralDP | Missing:
    """Of one batch of n people: the smaller promise of the dummies, and of the local noise under them."""
    dummies = added_dummies(campaign)
    randomizer: Any = from_device(campaign.mechanism)
    assert dummies is not None and isinstance(randomizer, KRR)
    try:
        return _one(dummies, randomizer, max(1, n), min(max(1, honest), max(1, n)), campaign.promise.delta)
    except UnsupportedError as error:
        return Missing(str(error).rstrip("."))


def guarantee_of_rounds(campaign: Campaign, *, n: int, rounds: int) -> CentralDP | Missing:
    """Of so many batches about the same people: of the dummies alone, which local noise can only help."""
    dummies = added_dummies(campaign)
    assert dummies is not None
    try:
        found = _several(dummies, max(1, n), rounds, campaign.promise.delta)
    except UnsupportedError as error:
        return Missing(str(error).rstrip("."))
    return replace(found, colluding=round_up_to_double(cost(rounds, campaign.mechanism.epsilon)))


@lru_cache(maxsize=4096)
def _one(dummies: Dummies, randomizer: KRR, n: int, honest: int, delta: float) -> CentralDP:
    return dummies_guarantee(dummies, n=n, delta=delta, randomizer=randomizer, honest=honest)


@lru_cache(maxsize=256)
def _several(dummies: Dummies, n: int, rounds: int, delta: float) -> CentralDP:
    return dummies_guarantee(dummies, n=n, delta=delta, rounds=rounds)
