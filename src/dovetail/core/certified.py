"""Numbers that are certified: an interval that holds the truth, and exact numbers rounded against ourselves."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.errors import ParameterError
from dovetail_protocol.budget import round_up_to_double as round_up_to_double

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
