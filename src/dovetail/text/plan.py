"""Epsilon, number of good candidates and chance of selecting one, solved in any direction."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from decimal import ROUND_FLOOR, Decimal

import numpy as np

from dovetail.core.checks import not_negative_or_infinite, privacy_budget, probability, real, whole
from dovetail.core.errors import UnsupportedError
from dovetail.text.sampler import IntegerBudget, arrival_times

_LEAST_EPSILON, _MOST_EPSILON = 2e-6, 700.0  # for which there are whole numbers to draw by

Law = Callable[..., float]  # of `epsilon`, `candidates`, `good`, `lead` and `selection`


def good_probability(
    *, epsilon: float, candidates: int, good: int, lead: float, selection: str = "permute-and-flip"
) -> float:
    r"""Probability that one of the good candidates is released, by the rule in real numbers.

    `good` of the m candidates lead all others by as much as `lead` sentences can move: by `lead` in depth or votes,
    by `lead` times half the spread of any other utility.

    .. math:: \frac{b\, e^{\epsilon J/2}}{b\, e^{\epsilon J/2} + m - b} \quad \text{(exponential)}, \qquad
              \int_0^1 b (1-t)^{b-1} \bigl(1 - e^{-\epsilon J/2}\, t\bigr)^{m-b} dt \quad \text{(permute-and-flip)}

    Parameters
    ----------
    epsilon : float in (0, 700], nats
    candidates, good : int
        m and b, 1 <= b <= m; for cluster votes the clusters.
    lead : float, at least 0, finite
        J.

    Examples
    --------
    >>> round(good_probability(epsilon=3, candidates=5000, good=55, lead=5, selection="exponential"), 4)
    0.9526

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), Table 3.1 (exponential); McKenna, Sheldon (2020) (permute-and-flip).
    """
    behind = privacy_budget("epsilon", epsilon) * _lead(lead) / 2
    return _probability(behind, candidates, good, selection)


def drawn_probability(
    *, epsilon: float, candidates: int, good: int, lead: float, selection: str = "permute-and-flip"
) -> float:
    """The same for the whole numbers by which `DeepCandidate` draws: a little less, at most 2 % of epsilon."""
    budget = IntegerBudget.of(epsilon)
    levels = math.floor(min(_lead(lead) * (budget.steps - 2) / 2, sys.float_info.max))
    return _probability(levels * math.log1p(1.0 / budget.base), candidates, good, selection)


def _lead(lead: float) -> float:
    found = not_negative_or_infinite("lead", lead)
    return real("lead", found, wanted="a finite number, at least 0")


def _probability(behind: float, candidates: int, good: int, selection: str) -> float:
    m = whole("candidates", candidates, least=1)
    b = whole("good", good, least=1, most=m)
    if selection == "exponential":
        return b / (b + (m - b) * math.exp(-behind))
    rest = math.exp(-behind)
    t, weights = arrival_times(b + (m - b) * rest)
    log = math.log(b) + (b - 1) * np.log1p(-t) + (m - b) * np.log1p(-rest * t)
    return float(min(1.0, weights @ np.exp(log)))


def fewest_good(
    *,
    epsilon: float,
    candidates: int,
    lead: float,
    sure: float,
    selection: str = "permute-and-flip",
    law: Law = drawn_probability,
) -> int:
    """b: the smallest number of good candidates among which one is released with probability `sure`.

    Parameters
    ----------
    law : function
        `drawn_probability`, by which documents are released, or `good_probability`, as in the paper's table.

    Examples
    --------
    >>> given = {"epsilon": 3, "candidates": 5000, "lead": 5, "sure": 0.95}
    >>> fewest_good(**given), fewest_good(**given, law=good_probability)
    (59, 52)
    """
    probability("sure", sure)
    low, high = 1, whole("candidates", candidates, least=1)
    while low < high:
        middle = (low + high) // 2
        reached = law(epsilon=epsilon, candidates=candidates, good=middle, lead=lead, selection=selection)
        low, high = (low, middle) if reached >= sure else (middle + 1, high)
    return low


def least_epsilon(
    *,
    candidates: int,
    good: int,
    lead: float,
    sure: float,
    selection: str = "permute-and-flip",
    law: Law = drawn_probability,
) -> float:
    """The least epsilon, of six digits, that releases a good candidate with probability `sure`.

    By `drawn_probability` the least up to a fiftieth: the grid of whole numbers becomes coarser now and then as
    epsilon grows.

    Raises
    ------
    UnsupportedError
        Where no epsilon up to 700 does.
    """
    probability("sure", sure)

    def reached(epsilon: float) -> float:
        return law(epsilon=epsilon, candidates=candidates, good=good, lead=lead, selection=selection)

    if good == candidates:
        raise UnsupportedError("All candidates are good: any epsilon releases one; name fewer with --good.")
    low, high = _LEAST_EPSILON, _MOST_EPSILON
    if reached(high) < sure:
        raise UnsupportedError(
            f"No epsilon up to {_MOST_EPSILON:g} releases a good candidate with probability {sure:g}: {good} of "
            f"{candidates} with a lead of {lead:g} are too few; give more candidates or longer documents."
        )
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) >= sure else (middle, high)
    found = _upward(high)
    while found < _MOST_EPSILON and reached(found) < sure:  # what is printed is what does it
        found = _upward(found)
    return min(found, _MOST_EPSILON)


def _upward(number: float) -> float:
    """The next larger number of six digits."""
    unit = Decimal(1).scaleb(Decimal(number).adjusted() - 5)
    return float((Decimal(number) / unit).to_integral_value(ROUND_FLOOR) * unit + unit)
