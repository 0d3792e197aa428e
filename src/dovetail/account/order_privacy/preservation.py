r"""(eta, delta)-preservation: how much of a set of people stays at the places of the set.

.. math:: \Pr\bigl[\, |\sigma(S) \cap S| \ge \eta |S| \,\bigr] \ge 1 - \delta

With l = |S| (here `size`) the event is that at most k = floor((1 - eta) l) members are replaced. Everything here is
a public computation about the law of the shuffler; no report is touched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from dovetail.account.order_privacy.replacement_counts import max_replacements
from dovetail.core.bracket import Bracket
from dovetail.core.checks import probability, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.stages import Shuffler

CONFIDENCE = 0.99
_ROUNDING = 1e-9  # allowance for the inverse incomplete beta function


@dataclass(frozen=True)
class Preservation:
    """Whether a set keeps a share eta of its members, from draws.

    Parameters
    ----------
    eta : float in [0, 1]
    failures, draws : int
        In how many of the draws more than (1 - eta) of the members were replaced.
    delta : Bracket
        Clopper-Pearson interval for the probability of a failure.
    confidence : float
        With which the interval holds.
    """

    eta: float
    failures: int
    draws: int
    delta: Bracket
    confidence: float


def expected_block_retention(n: int, size: int, theta: float) -> float:
    r"""About the expected share of an interior block of l places that stays, under Mallows' Kendall law.

    .. math:: \eta \approx \max\left(1 - \frac{2 \ln 2}{\theta l}, \frac{l}{n}\right)

    Each of the two edges loses ln 2 / theta people; no law of this family keeps less than a uniform shuffle.
    A rule of thumb for 1 / theta much below l; use `preservation` for a statement.
    """
    edges = 2.0 * math.log(2.0) / (theta * size) if theta * size > 0.0 else math.inf
    return max(1.0 - edges, size / n)


def sample_replacements(
    shuffler: Shuffler, members: ArrayLike, *, draws: int, rng: Entropy | None = None
) -> NDArray[np.int64]:
    """Number of members replaced in each of `draws` permutations (draws,)."""
    rng = entropy_or_system(rng)
    own = _checked_members(members, shuffler.n)
    inside = np.zeros(shuffler.n, dtype=np.bool_)
    inside[own] = True
    each = (own.size - int(inside[shuffler.permutation(rng)[own]].sum()) for _ in range(draws))
    return np.fromiter(each, dtype=np.int64, count=whole("draws", draws, least=1))


def preservation(
    shuffler: Shuffler,
    members: ArrayLike,
    *,
    eta: float,
    draws: int,
    rng: Entropy | None = None,
    confidence: float = CONFIDENCE,
) -> Preservation:
    """Smallest delta with which these people keep a share eta of their places, by simulation.

    Parameters
    ----------
    shuffler : Shuffler
    members : int array, people 0..n-1
        Any set; a person named twice counts once.
    eta : float in [0, 1]
    draws : int, at least 1
    rng : Entropy, optional
        A simulation generator: these permutations protect nobody.
    confidence : float in (0, 1)

    Source
    ------
    Meehan et al. (2022), Definition A.4; Clopper, Pearson (1934) for the interval.
    """
    rng = entropy_or_system(rng)
    lost = sample_replacements(shuffler, members, draws=draws, rng=rng)
    k = max_replacements(_checked_members(members, shuffler.n).size, eta)
    failures = int((lost > k).sum())
    return Preservation(eta, failures, draws, clopper_pearson(failures, draws, confidence), confidence)


def retention_quantile(law: ArrayLike, size: int, *, delta: float) -> float:
    """Largest eta that holds with probability at least 1 - delta, from a law of the number of replaced members.

    >>> retention_quantile([0.5, 0.4, 0.1], 4, delta=0.1)
    0.75
    """
    beyond = np.cumsum(np.asarray(law, dtype=np.float64)[::-1])[::-1]  # Pr[at least j replaced]
    return (size - int((beyond[1:] > delta).sum())) / size


def clopper_pearson(failures: int, draws: int, confidence: float) -> Bracket:
    r"""Interval for a probability from `failures` in `draws`: quantiles of Beta(x, n-x+1) and Beta(x+1, n-x)."""
    half = (1.0 - probability("confidence", confidence)) / 2.0
    lower = 0.0 if failures == 0 else float(betaincinv(failures, draws - failures + 1, half)) * (1.0 - _ROUNDING)
    upper = 1.0 if failures == draws else float(betaincinv(failures + 1, draws - failures, 1.0 - half))
    return Bracket(lower, min(1.0, upper * (1.0 + _ROUNDING)))


def _checked_members(members: ArrayLike, n: int) -> NDArray[np.int64]:
    given = np.unique(np.asarray(members))
    if given.size == 0 or given.dtype.kind not in "iu" or given[0] < 0 or given[-1] >= n:
        raise DataError(
            f"`members` must be people 0..{n - 1}, at least one, got {np.asarray(members).tolist()!r:.80}."
        )
    return given.astype(np.int64)
