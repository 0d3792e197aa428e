"""What an (epsilon, delta) promise leaves to guess, given the prior: the best guess against its worst mechanism."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import floats, not_negative_or_infinite, refuse
from dovetail.core.errors import DataError

_SLACK = 1.0 + 1e-12  # above the rounding of a sum of shares, themselves rounded


def guess_bound(prior: ArrayLike, *, epsilon: float, delta: float = 0.0) -> float:
    r"""Largest chance of guessing a value that is drawn from `prior`, whatever else is known.

    .. math:: \max_j \left[ \delta + (1 - \delta) \frac{e^\epsilon}{e^\epsilon - 1 + j}
              (\pi_{(1)} + \dots + \pi_{(j)}) \right], \qquad \pi_{(1)} \ge \pi_{(2)} \ge \dots

    Reached by randomized response among the j likeliest values that fails openly with probability delta. With
    epsilon = delta = 0 it is the blind guess.

    Parameters
    ----------
    prior : float array (k,), at least 0, sum 1
        Belief of somebody who may know everything but this person's report.
    epsilon : float, at least 0, nats
    delta : float in [0, 1]

    Raises
    ------
    ParameterError
        For a promise outside its range.
    DataError
        For a prior that is none.

    Notes
    -----
    *Proof.* Let a_x = Pr[guess x | x]. The promise leaves Pr[guess x | x'] >= m_x = (a_x - delta)_+ e^-epsilon, and
    the guesses at each x' sum to at most 1: a_x' + sum_{x != x'} m_x <= 1. So a_x <= delta + e^epsilon m_x, and with
    M the sum of all m_x every m_x is at most (1 - delta - M) / (e^epsilon - 1). The largest sum of pi_x a_x is that
    of a linear program whose corners give the j likeliest values equal m_x = (1 - delta) / (e^epsilon - 1 + j).
    Rounded up.

    Examples
    --------
    >>> round(guess_bound([0.5, 0.5], epsilon=1.0), 4), round(guess_bound([0.9, 0.1], epsilon=1.0), 4)
    (0.7311, 0.9)

    Source
    ------
    The proof above.
    """
    shares = floats("prior", prior)
    if shares.ndim != 1 or not shares.size or not (shares >= 0.0).all() or abs(shares.sum() - 1.0) > 1e-9:
        raise DataError(f"`prior` must be probabilities (k,) that sum to 1, got {prior!r}.")
    return float(guess_bounds(shares[None], epsilon=epsilon, delta=delta)[0])


def guess_bounds(priors: NDArray[np.float64], *, epsilon: float, delta: float = 0.0) -> NDArray[np.float64]:
    """`guess_bound` of each row of `priors` (m, k)."""
    loss, slack = not_negative_or_infinite("epsilon", epsilon), not_negative_or_infinite("delta", delta)
    if slack > 1.0:
        raise refuse("delta", "in [0, 1]", delta)
    best_first = -np.sort(-priors, axis=1)
    told = np.cumsum(best_first, axis=1) / (1.0 + np.arange(priors.shape[1]) * math.exp(-loss))
    return np.asarray(np.minimum(1.0, (slack + (1.0 - slack) * told.max(axis=1)) * _SLACK))
