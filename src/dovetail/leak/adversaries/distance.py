r"""Additive leakage under the distance gain: k ordered values, k-ary randomized response, uniform prior."""

from __future__ import annotations

import numpy as np

from dovetail.core.errors import UnsupportedError
from dovetail.leak.additive_leakage import NO_LEAKAGE, AdditiveLeakage, weakest_method
from dovetail.leak.adversaries.iid import MOST_PEOPLE, iid_leakage

MOST_VALUES = 10_000


def distance_leakage(k: int, contrast: float, *, n: int) -> AdditiveLeakage:
    r"""What n shuffled reports add, uniform prior.

    .. math:: V = 1 - \frac{1}{k-1} \sum_{c=0}^{k-2} E \min(P_c, 1 - P_c), \qquad
              P_c = \frac{c+1}{k} + (p - s) \left( \frac Xn - \frac{c+1}{k} \right), \quad
              X \sim \mathrm{Bin}(n, (c+1)/k)

    E min(P, 1 - P) falls below min(E P, 1 - E P) by E(2 P - 1)^+ (for E P up to 1/2): one binomial sum per value,
    mirror images counted twice.

    Parameters
    ----------
    k : int
    contrast : float
        p - s; its sign does not matter, since only its product with a centred count enters.
    n : int

    Examples
    --------
    >>> round(distance_leakage(2, 1.0, n=2).value, 12)  # two values: the same as naming the right one
    0.25

    Source
    ------
    E|a - x| is the sum of P_c below a and of 1 - P_c from a on; the median takes the smaller term at every c.
    """
    if contrast == 0.0:
        return NO_LEAKAGE
    if k > MOST_VALUES or n > MOST_PEOPLE:
        raise UnsupportedError(
            f"The distance gain is summed for at most {MOST_VALUES:,} values and {MOST_PEOPLE:.0e} people, got "
            f"k = {k:,} and n = {n:,}. Vulnerability falls in n: a smaller n gives an upper bound."
        )
    parts = []
    for c in range(k // 2):
        share = (c + 1.0) / k
        lean = np.array([share, 1.0 - share])  # distribution of "at most c" and "above c"
        advantage = np.array([2.0 * (share + contrast * (1.0 - share)) - 1.0, 2.0 * (share - contrast * share) - 1.0])
        joint = np.vstack([np.zeros(2), advantage * lean, lean])
        twice = 1.0 if 2 * (c + 1) == k else 2.0
        parts.append(iid_leakage(joint, n=n).scale(twice / (k - 1)))
    return AdditiveLeakage(
        sum(part.value for part in parts),
        sum(part.lower for part in parts),
        sum(part.upper for part in parts),
        weakest_method(*parts),
    )
