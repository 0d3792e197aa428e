"""The largest dispersion parameter theta of a Mallows distribution that a guarantee allows."""

import math
from fractions import Fraction

from dovetail.core.checks import refuse, whole
from dovetail.shuffle.sampling.lehmer_code import MOST_THETA


def largest_theta(alpha: float, sensitivity: int) -> float:
    r"""Largest double theta with theta * sensitivity <= alpha in exact arithmetic, at most 1000.

    >>> largest_theta(1.0, 3) * 3 <= 1.0
    True
    """
    sensitivity = whole("sensitivity", sensitivity, least=1)
    if not 0.0 <= alpha < math.inf:
        raise refuse("alpha", "a finite number, at least 0 (nats)", alpha)
    exact = Fraction(alpha) / sensitivity
    theta = float(min(exact, Fraction(MOST_THETA)))
    return math.nextafter(theta, 0.0) if Fraction(theta) > exact else theta
