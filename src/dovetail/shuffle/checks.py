"""The range check that all promises and radii share."""

from typing import Any

import numpy as np

from dovetail.core.checks import refuse


def not_negative(name: str, value: Any) -> float:
    """`value` as a float, at least 0; infinity is welcome.

    >>> not_negative("alpha", 2)
    2.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating) or not value >= 0:
        raise refuse(name, "a number, at least 0", value)
    return float(value)
