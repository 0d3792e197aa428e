"""Exact numbers rounded against ourselves: a privacy loss never becomes smaller when it becomes a double."""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dovetail_protocol.budget import round_up_to_double as round_up_to_double


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
