"""What a guess gains over the blind guess, for the shares at hand instead of equally likely values."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dovetail.core.channel import Channel
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer
from dovetail.leak.vulnerability import vulnerability
from dovetail.report.document import GuessAtHand, Missing

Shares = NDArray[np.float64]  # (k,), at least 0, sum 1


def guess_at_hand(
    randomizer: FrequencyRandomizer,
    channel: Channel | None,
    shares: Shares,
    *,
    law: Literal["empirical", "estimated"],
    m: int | Missing,
    exact: bool,
) -> GuessAtHand:
    r"""Bayes vulnerability where values are drawn from `shares` pi, before and after one report through channel W.

    .. math:: V = \max_x \pi_x, \qquad V_N = \sum_y \max_x \pi_x W(x, y)

    Parameters
    ----------
    channel : Channel or None
        None where reports are too many kinds to be listed; then for every epsilon-LDP randomizer a posterior is at
        most pi e^eps / (pi e^eps + 1 - pi), largest for the commonest value.
    m : int or Missing
        People over whose reports can be summed; fewer than there are give an upper bound. Missing without a uniform
        shuffle.
    exact : bool
        Whether m are all of them.
    """
    blind = float(shares.max())
    own = _own_report(randomizer, channel, shares, blind)
    if isinstance(m, Missing):
        return GuessAtHand(law, blind, own, m, "one report")
    together, method = own, "bracket"  # a shuffled batch tells no more than the report itself
    if channel is not None:
        try:
            seen = vulnerability(channel, n=m, prior=shares)
        except UnsupportedError:
            pass
        else:
            together, method = min(own, seen.randomized_shuffled_bracket.upper), seen.method if exact else "bracket"
    return GuessAtHand(law, blind, own, max(blind, together), method)


def _own_report(randomizer: FrequencyRandomizer, channel: Channel | None, shares: Shares, blind: float) -> float:
    """The chance from one person's own report, or its upper bound; rounded up."""
    if channel is not None:
        joint = shares[:, None] * np.asarray(channel.matrix())
        return min(1.0, math.fsum(joint.max(axis=0)) * (1.0 + 1e-12))
    odds = math.exp(min(700.0, randomizer.guarantee.epsilon)) * blind
    return min(1.0, odds / (odds + 1.0 - blind) * (1.0 + 1e-12))
