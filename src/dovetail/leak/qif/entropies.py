"""Entropies: what remains to be learned, in nats and in numbers of guesses.

Shannon quantities are floats; numbers of guesses are exact on Fractions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, xlog1py

from dovetail.leak.qif.arithmetic import Number, Numbers, total
from dovetail.leak.qif.inputs import ChannelLike, distribution, joint


def shannon_entropy(prior: ArrayLike) -> float:
    r"""-sum_x pi_x log pi_x; nats.

    >>> round(shannon_entropy([0.5, 0.5]), 12)
    0.69314718056
    """
    return float(entr(distribution("prior", prior).astype(np.float64)).sum())


def conditional_entropy(prior: ArrayLike, channel: ChannelLike) -> float:
    """Shannon entropy of the secret that is left after seeing the output, on average; nats."""
    weights = joint(prior, channel).astype(np.float64)
    return float(entr(weights).sum() - entr(weights.sum(axis=0)).sum())


def shannon_leakage(prior: ArrayLike, channel: ChannelLike) -> float:
    r"""Mutual information of secret and output; nats.

    .. math:: I = \sum_{x, y} \pi_x p_y \left( (1 + t) \log(1 + t) - t \right), \qquad t = C[x, y] / p_y - 1

    Every term is at least 0, so that small leakage is not lost in the difference of two entropies.

    >>> round(shannon_leakage([0.5, 0.5], [[1, 0], [0, 1]]), 12)  # log 2
    0.69314718056
    """
    weights = joint(prior, channel).astype(np.float64)
    apart = weights.sum(axis=1, keepdims=True) * weights.sum(axis=0)
    t = (weights - apart)[apart > 0.0] / apart[apart > 0.0]
    return float((apart[apart > 0.0] * (xlog1py(1.0 + t, t) - t)).sum())


def guessing_entropy(prior: ArrayLike) -> Number:
    """Expected number of guesses, best first, until the secret is named.

    >>> guessing_entropy([0.5, 0.25, 0.25])
    1.75
    """
    return _expected_guesses(distribution("prior", prior)[:, None])


def conditional_guessing_entropy(prior: ArrayLike, channel: ChannelLike) -> Number:
    """Expected number of guesses after seeing the output."""
    return _expected_guesses(joint(prior, channel))


def _expected_guesses(weights: Numbers) -> Number:
    falling = np.sort(weights, axis=0)[::-1]
    return total(falling * np.arange(1, weights.shape[0] + 1)[:, None])
