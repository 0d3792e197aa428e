"""Exact spending: what reports cost, and how many of them a budget pays for, in the decimals that people write.

Devices, campaigns and streams all count with these functions, so that they never disagree about the last report.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dovetail_protocol.exact_thresholds import as_written

DEVICE_TOTAL = 10.0  # nats that a device gives in all, to whoever asks, unless whoever runs it says otherwise
QUESTION_TOTAL = 5.0  # nats that it gives to one question
NOTHING = Fraction(0)


def cost(reports: int, epsilon: float) -> Fraction:
    """Nats that so many reports of `epsilon` cost together, by basic composition.

    >>> cost(10, 0.1)
    Fraction(1, 1)
    """
    return reports * as_written(epsilon)


def affordable(budget: float, epsilon: float, *, spent: Fraction = NOTHING) -> int:
    """How many more reports of `epsilon` (above 0) fit into a finite `budget` of which `spent` nats are gone.

    >>> affordable(1.0, 0.1), affordable(1.0, 0.1, spent=cost(9, 0.1)), affordable(1.0, 0.3, spent=Fraction(2))
    (10, 1, 0)
    """
    return max(0, int((as_written(budget) - spent) // as_written(epsilon)))


def round_up_to_double(value: Fraction) -> float:
    """The smallest double that is at least `value`.

    >>> round_up_to_double(Fraction(1, 10)), round_up_to_double(Fraction(1, 3)) * 3 >= 1
    (0.1, True)
    """
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def decimal_at_least(value: Fraction) -> float:
    """The double nearest to `value`, or the next one, that is at least `value` as it is written.

    >>> decimal_at_least(cost(3, 0.1)), round_up_to_double(cost(3, 0.1)), decimal_at_least(Fraction(1, 3)) * 3 >= 1
    (0.3, 0.30000000000000004, True)
    """
    nearest = float(value)
    return nearest if as_written(nearest) >= value else math.nextafter(nearest, math.inf)
