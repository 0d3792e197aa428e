"""The range checks of `dovetail_protocol.checks` by this package's own name: both ends refuse in the same words."""

from typing import Any

import numpy as np

from dovetail_protocol.checks import nearest, positive, privacy_budget, probability, real, refuse, share, whole

__all__ = [
    "nearest",
    "not_negative_or_infinite",
    "positive",
    "privacy_budget",
    "probability",
    "real",
    "refuse",
    "share",
    "whole",
]


def not_negative_or_infinite(name: str, value: Any) -> float:
    """`value` as a float, at least 0; unlike the other checks it accepts infinity.

    >>> not_negative_or_infinite("alpha", 2), not_negative_or_infinite("alpha", float("inf"))
    (2.0, inf)
    """
    wanted = "a number, at least 0"
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating) or not value >= 0:
        raise refuse(name, wanted, value)
    try:
        return float(value)
    except OverflowError:  # a whole number beyond the doubles
        raise refuse(name, wanted, value) from None
