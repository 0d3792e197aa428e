"""Which epsilon selects a good candidate, how many good ones it takes, and how surely: solved in any direction."""

from __future__ import annotations

import math

import numpy as np

from dovetail.core.checks import not_negative_or_infinite, privacy_budget, probability, whole
from dovetail.core.errors import UnsupportedError

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)
_MOST_EPSILON = 700.0


def good_probability(
    *, epsilon: float, candidates: int, good: int, lead: float, selection: str = "permute-and-flip"
) -> float:
    r"""How surely one of the good candidates is released.

    `good` of the m candidates lead all others by as much as `lead` sentences can move: by `lead` in depth or votes,
    by `lead` times half the spread of any other utility.

    .. math:: \frac{b\, e^{\epsilon J/2}}{b\, e^{\epsilon J/2} + m - b} \quad \text{(exponential)}, \qquad
              \int_0^1 b (1-t)^{b-1} \bigl(1 - e^{-\epsilon J/2}\, t\bigr)^{m-b} dt \quad \text{(permute-and-flip)}

    Parameters
    ----------
    epsilon : float in (0, 700], nats
    candidates, good : int
        m and b, 1 <= b <= m.
    lead : float, at least 0
        J.

    Examples
    --------
    >>> round(good_probability(epsilon=3, candidates=5000, good=55, lead=5, selection="exponential"), 4)
    0.9526

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), Table 3.1 (exponential); McKenna, Sheldon (2020) (permute-and-flip).
    """
    m = whole("candidates", candidates, least=1)
    b = whole("good", good, least=1, most=m)
    behind = -privacy_budget("epsilon", epsilon) * not_negative_or_infinite("lead", lead) / 2
    if selection == "exponential":
        return b / (b + (m - b) * math.exp(behind))
    # with s = (1 - t)^b the first good candidate's arrival is uniform, and the integrand smooth
    s, weights = (_NODES + 1) / 2, _WEIGHTS / 2
    arrival = -np.expm1(np.log(s) / b)
    return float(min(1.0, weights @ np.exp((m - b) * np.log1p(-math.exp(behind) * arrival))))


def fewest_good(
    *, epsilon: float, candidates: int, lead: float, sure: float, selection: str = "permute-and-flip"
) -> int:
    """b: the smallest number of good candidates among which one is released with probability `sure`.

    >>> fewest_good(epsilon=6, candidates=5000, lead=3, sure=0.95, selection="exponential")
    12
    """
    probability("sure", sure)
    low, high = 1, whole("candidates", candidates, least=1)
    while low < high:
        middle = (low + high) // 2
        reached = good_probability(
            epsilon=epsilon, candidates=candidates, good=middle, lead=lead, selection=selection
        )
        low, high = (low, middle) if reached >= sure else (middle + 1, high)
    return low


def least_epsilon(
    *, candidates: int, good: int, lead: float, sure: float, selection: str = "permute-and-flip"
) -> float:
    """The smallest epsilon, rounded up in its tenth digit, that releases a good candidate with probability `sure`.

    Raises
    ------
    UnsupportedError
        Where no epsilon up to 700 does.
    """
    probability("sure", sure)

    def reached(epsilon: float) -> float:
        return good_probability(epsilon=epsilon, candidates=candidates, good=good, lead=lead, selection=selection)

    low, high = 0.0, _MOST_EPSILON
    if reached(high) < sure:
        raise UnsupportedError(
            f"No epsilon up to {_MOST_EPSILON:g} releases a good candidate with probability {sure:g}: {good} of "
            f"{candidates} with a lead of {lead:g} are too few; give more candidates or longer documents."
        )
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) >= sure else (middle, high)
    return high
