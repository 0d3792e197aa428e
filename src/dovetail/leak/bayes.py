"""What a Bayesian adversary earns before and after she looks: vulnerability, leakage, risk, best actions.

Every function takes the prior, the channel (a `Channel`, or an array (secrets, outputs)) and what a guess earns (an
array (actions, secrets); none means "name the secret in one try", which is Bayes vulnerability). All of them work on
floats and on Fractions; see `dovetail.leak.arithmetic`.

Gains may be negative for vulnerabilities and additive leakage. Ratios need gains of at least 0: otherwise the ratio
means nothing, and the capacity does not bound it.
"""

from __future__ import annotations

from math import log1p

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.leak.arithmetic import Number, numbers, total
from dovetail.leak.setting import ChannelLike, earned, joint, law


def prior_vulnerability(prior: ArrayLike, *, gain: ArrayLike | None = None) -> Number:
    r"""Expected gain of the best action of somebody who sees nothing.

    .. math:: V_g(\pi) = \max_w \sum_x \pi_x \, g[w, x]

    >>> prior_vulnerability([0.5, 0.25, 0.25])
    0.5

    Source: Jurado, Gonze, Alvim, Palamidessi (2023), CSF, Definition 1.
    """
    checked = law("prior", prior)
    return posterior_vulnerability(checked, np.ones((checked.size, 1), dtype=np.int64), gain=gain)


def posterior_vulnerability(prior: ArrayLike, channel: ChannelLike, *, gain: ArrayLike | None = None) -> Number:
    r"""Expected gain of the best action of somebody who sees the output.

    .. math:: V_g[\pi \triangleright C] = \sum_y \max_w \sum_x \pi_x \, C[x, y] \, g[w, x]

    Examples
    --------
    >>> posterior_vulnerability([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    0.75
    >>> from dovetail.leak.arithmetic import laws
    >>> posterior_vulnerability(laws([1, 1]), laws([[3, 1], [1, 3]]))
    Fraction(3, 4)

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), Analyzing the Shuffle Model Through the Lens of Quantitative
    Information Flow, CSF, Definition 2.
    """
    return total(earned("gain", gain, prior, channel).max(axis=0))


def additive_leakage(prior: ArrayLike, channel: ChannelLike, *, gain: ArrayLike | None = None) -> Number:
    r"""Posterior minus prior vulnerability, never below 0.

    .. math:: \sum_y \max_w \sum_x \pi_x \, C[x, y] \, (g[w, x] - g[w_0, x]), \qquad w_0 \text{ the best blind action}

    Summed output by output, without subtracting two vulnerabilities: small leakage keeps its digits.

    >>> additive_leakage([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    0.25
    """
    gains = earned("gain", gain, prior, channel)
    blind = int(np.argmax(gains.sum(axis=1)))
    return total((gains - gains[blind]).max(axis=0))


def multiplicative_leakage(prior: ArrayLike, channel: ChannelLike, *, gain: ArrayLike | None = None) -> Number:
    """Posterior over prior vulnerability, at least 1; for gains of at least 0.

    >>> multiplicative_leakage([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    1.5

    Raises
    ------
    ParameterError
        For negative gains: add a constant, or use `additive_leakage`.
    UnsupportedError
        When the prior vulnerability is 0: no action can earn anything.
    """
    return posterior_vulnerability(prior, channel, gain=gain) / _blind_gain(prior, gain)


def min_entropy_leakage(prior: ArrayLike, channel: ChannelLike) -> float:
    r"""Log of the multiplicative Bayes leakage; nats (divide by log 2 for bits), a float also for Fractions.

    >>> round(min_entropy_leakage([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]), 12)  # log 1.5
    0.405465108108
    """
    return log1p(additive_leakage(prior, channel) / prior_vulnerability(prior))


def bayes_risk(prior: ArrayLike, channel: ChannelLike) -> Number:
    """Chance that the best guess of the secret is wrong: 1 - V, summed without that subtraction.

    >>> bayes_risk([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    0.25
    """
    return total(np.sort(joint(prior, channel), axis=0)[:-1])


def prior_risk(prior: ArrayLike, *, loss: ArrayLike) -> Number:
    """Expected loss of the best action of somebody who sees nothing; `loss` is an array (actions, secrets)."""
    checked = law("prior", prior)
    return posterior_risk(checked, np.ones((checked.size, 1), dtype=np.int64), loss=loss)


def posterior_risk(prior: ArrayLike, channel: ChannelLike, *, loss: ArrayLike) -> Number:
    r"""Expected loss of the best action of somebody who sees the output.

    .. math:: U_\ell[\pi \triangleright C] = \sum_y \min_w \sum_x \pi_x \, C[x, y] \, \ell[w, x]

    >>> posterior_risk([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], loss=[[0, 1], [1, 0]])
    0.25
    """
    return total(earned("loss", loss, prior, channel).min(axis=0))


def strategy(prior: ArrayLike, channel: ChannelLike, *, gain: ArrayLike | None = None) -> NDArray[np.int64]:
    """The best action for each output, the first of several; (outputs,). Any is best where an output never occurs.

    >>> print(strategy([0.9, 0.1], [[0.75, 0.25], [0.25, 0.75]]))
    [0 0]
    """
    gains = earned("gain", gain, prior, channel)
    return np.asarray(np.argmax(gains, axis=0), dtype=np.int64)


def _blind_gain(prior: ArrayLike, gain: ArrayLike | None) -> Number:
    if gain is not None and (numbers("gain", gain) < 0).any():
        raise ParameterError("`gain` must be at least 0 for a ratio; add a constant to it, or use additive_leakage.")
    value = prior_vulnerability(prior, gain=gain)
    if value == 0:
        raise UnsupportedError("The prior vulnerability is 0, so there is no ratio; additive_leakage is defined.")
    return value
