"""Numbers that are certified: an interval that holds the truth, and exact numbers rounded against ourselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import repeat
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.errors import ParameterError
from dovetail_protocol.budget import decimal_at_least
from dovetail_protocol.budget import round_up_to_double as round_up_to_double
from dovetail_protocol.exact_thresholds import as_written

# A number that is only known to lie between two others.


@dataclass(frozen=True)
class Bracket:
    """lower <= true value <= upper.

    Parameters
    ----------
    lower, upper : float
        Both ends are rounded outwards by anybody who makes the bracket.

    Raises
    ------
    ParameterError
        For a lower end above the upper one.

    Examples
    --------
    >>> Bracket(0.25, 0.5).gap
    1.0
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ParameterError(f"`lower` must be at most `upper`, got {self.lower!r} and {self.upper!r}.")

    @property
    def gap(self) -> float:
        """Relative gap upper / lower - 1; 0 when both ends agree, infinite when only the lower end is 0."""
        if self.upper == self.lower:
            return 0.0
        return self.upper / self.lower - 1.0 if self.lower > 0.0 else float("inf")

    def contains(self, value: float) -> bool:
        """True if `value` lies in the closed interval."""
        return self.lower <= value <= self.upper


# Exact numbers rounded against ourselves: a privacy loss never becomes smaller when it becomes a double.


def round_up_sum(values: Iterable[float], *, times: Iterable[int] | None = None) -> float:
    """Sum of numbers, each so many `times`, exact and then rounded up to a double; infinite if one of them is.

    >>> round_up_sum([0.1] * 10), round_up_sum([0.1], times=[10])  # doubles of .1 are above a tenth
    (1.0000000000000002, 1.0000000000000002)
    """
    pairs = [(value, how_many) for value, how_many in zip(values, times or repeat(1), strict=False) if how_many]
    if any(value == inf for value, _ in pairs):
        return inf
    return round_up_to_double(sum((how_many * Fraction(value) for value, how_many in pairs), Fraction(0)))


def sum_as_written(values: Iterable[float]) -> float:
    """Sum of numbers as people write them, rounded up: what a tenth and four tenths lose is a half, not a hair more.

    >>> sum_as_written([0.1, 0.4]), sum_as_written([0.7, 0.1]), 0.7 + 0.1
    (0.5, 0.8, 0.7999999999999999)
    """
    numbers = list(values)
    return inf if inf in numbers else decimal_at_least(sum(map(as_written, numbers), Fraction(0)))


def round_up_largest_product(left: ArrayLike, right: ArrayLike, *, unit: Fraction = Fraction(1)) -> float:
    """Largest left[i] * right[i] * unit, exact and then rounded up to a double; 0 when there is none.

    Parameters
    ----------
    left, right : arrays of finite numbers (n,), at least 0

    >>> round_up_largest_product([0.5, 0.25], [3, 5])
    1.5
    """
    pairs = np.unique(np.column_stack((left, right)), axis=0).tolist() if np.size(left) else []
    largest = max((Fraction(a) * Fraction(b) for a, b in pairs), default=Fraction(0))
    return round_up_to_double(largest * unit)
