"""The most that a channel can leak: over every prior and gain, over every gain, over every pair of secrets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.errors import ParameterError
from dovetail.leak.qif.arithmetic import Number, Numbers, numbers, total
from dovetail.leak.qif.inputs import ChannelLike, channel_matrix, joint


def multiplicative_capacity(channel: ChannelLike) -> Number:
    r"""Largest V_g posterior over V_g prior, over all priors and all gains of at least 0.

    .. math:: \sum_y \max_x C[x, y]

    Bayes leakage at the uniform prior reaches it. Its log is min-capacity, in nats.

    >>> multiplicative_capacity([[0.75, 0.25], [0.25, 0.75]])
    1.5

    Source: Alvim et al. (2020), The Science of Quantitative Information Flow, chapter 7, Miracle theorem.
    """
    return total(channel_matrix("channel", channel).max(axis=0))


@dataclass(frozen=True, eq=False)
class AdditiveCapacity:
    """The most additive leakage at one prior, and a gain that reaches it.

    Parameters
    ----------
    value : float or Fraction
    gain : array (outputs, secrets)
        Entries at least 0; each action's entries differ by at most 1; prior vulnerability 1.
    """

    value: Number
    gain: Numbers


def additive_capacity(prior: ArrayLike, channel: ChannelLike) -> AdditiveCapacity:
    r"""Largest additive leakage at a prior, over gains whose actions each span at most 1.

    .. math:: \frac12 \sum_{x, y} \pi_x \left| C[x, y] - p_y \right|, \qquad p = \pi C

    .. math:: g[y, x] = 1[x \in A_y] + \pi(\text{not } A_y), \qquad A_y = \{ x : C[x, y] > p_y \}

    V_g is 1-Lipschitz in total variation, which bounds the leakage; the gain above reaches the bound.

    >>> found = additive_capacity([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    >>> found.value
    0.25
    >>> print(found.gain)
    [[1.5 0.5]
     [0.5 1.5]]
    """
    weights = joint(prior, channel)
    pi = weights.sum(axis=1)
    surplus = weights - pi[:, None] * weights.sum(axis=0)
    inside = (surplus > 0).T.astype(np.int64)  # (outputs, secrets)
    outside = ((1 - inside) * pi).sum(axis=1)
    return AdditiveCapacity(total(surplus[surplus > 0]), np.asarray(inside + outside[:, None]))


def metric_privacy(channel: ChannelLike, *, distance: ArrayLike) -> float:
    r"""Smallest epsilon with C[x, y] <= exp(epsilon d(x, x')) C[x', y] for all x, x', y; nats per unit of distance.

    .. math:: \max_{x, x', y} \frac{\left| \log C[x, y] - \log C[x', y] \right|}{d(x, x')}

    The discrete metric gives local differential privacy. Infinite where one of two secrets excludes an output, or
    where secrets at distance 0 differ.

    Parameters
    ----------
    channel : Channel or array (secrets, outputs)
    distance : array (secrets, secrets), symmetric, at least 0, 0 on the diagonal

    Examples
    --------
    >>> round(metric_privacy([[0.75, 0.25], [0.25, 0.75]], distance=[[0, 2], [2, 0]]), 12)  # log(3) / 2
    0.549306144334

    Source
    ------
    Chatzikokolakis, Andres, Bordenabe, Palamidessi (2013), Broadening the Scope of Differential Privacy Using
    Metrics, PETS, definition of d-privacy.
    """
    cells, apart = (
        channel_matrix("channel", channel).astype(np.float64),
        numbers("distance", distance).astype(np.float64),
    )
    if apart.shape != (len(cells),) * 2 or (apart != apart.T).any() or (apart < 0).any() or np.diag(apart).any():
        raise ParameterError(
            f"`distance` must be a symmetric matrix ({len(cells)}, {len(cells)}), at least 0, with 0 on the diagonal."
        )
    worst = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(cells)
        for x, away in enumerate(apart):
            gaps = np.where(cells == cells[x], 0.0, np.abs(logs - logs[x])).max(axis=1)
            worst = max(worst, float(np.where(gaps == 0.0, 0.0, gaps / away).max()))
    return worst
