"""How frequent a string has to be for a search to find it."""

from __future__ import annotations

import math

import numpy as np

from dovetail.core.checks import privacy_budget, share, whole
from dovetail.core.errors import UnsupportedError
from dovetail.shuffle.dummies.dummies import Dummies

_STEPS = 60


def recall_of(held: float, *, n: int, levels: int, dummies: Dummies) -> float:
    r"""Chance that a string which a share of the people hold is found, with dummies of the shuffler.

    .. math:: \prod_{l=1}^{L} \Pr[\mathrm{Bin}(n_l, f) + N \ge s + 1], \qquad n_l = \lfloor n / L \rfloor

    As long as no more than `keep` other beginnings are as frequent. N is the noise of the dummies, at most s.
    """
    total = sum(dummies.noise.weights)  # whole numbers beyond any double
    weights = np.array([(one << 64) // total for one in dummies.noise.weights], dtype=np.float64) / 2.0**64
    noise = np.arange(weights.size) - dummies.reach
    from scipy.stats import binom  # half a second

    found = weights @ binom.sf(dummies.reach - noise, n // levels, held)
    return float(found**levels)


def smallest_share(*, n: int, epsilon: float, delta: float, levels: int, wanted: float = 0.95) -> float:
    """Smallest share of the people that is found with chance `wanted`.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    UnsupportedError
        Where even a string that everybody holds is found more rarely.

    Examples
    --------
    >>> 3.4e-4 < smallest_share(n=1_000_000, epsilon=1.0, delta=1e-6, levels=8) < 3.8e-4
    True
    """
    people, depth = whole("n", n, least=2), whole("levels", levels, least=1, most=64)
    dummies = Dummies(2, privacy_budget("epsilon", epsilon), share("delta", delta))
    chance = share("wanted", wanted)
    if recall_of(1.0, n=people, levels=depth, dummies=dummies) < chance:
        raise UnsupportedError(
            f"even a string that all {people:,} people hold is found with less than {chance:g}: use fewer levels, a "
            "larger epsilon or more people."
        )
    low, high = math.log(1e-12), 0.0  # of the share
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        enough = recall_of(math.exp(middle), n=people, levels=depth, dummies=dummies) >= chance
        low, high = (low, middle) if enough else (middle, high)
    return math.exp(high)
