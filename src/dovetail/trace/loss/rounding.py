r"""What rounding locations to the public grid before the noise may cost.

Given the true trace, the release of the rounded trace and that of the trace itself are normal with means that differ
by at most half a step in each number: :math:`\frac h2 \sqrt{n d / w}`-Gaussian differential privacy, w the smallest
variance of the noise in any direction. Two secret places are three hops apart (rounded, true, true, rounded), and
hops add.

Source
------
Dong, Roth, Su (2022), Gaussian Differential Privacy, JRSS B 84(1), theorem 2.14 (groups).
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from dovetail.core.errors import UnsupportedError
from dovetail.trace.kernels.kernel import Floats

MOST_CHARGE = 0.05  # of mu, beyond which a step is refused


def rounding_charge(step: float, coordinates: int, white: float) -> float:
    """What two hops add to mu, for a step in metres, n d numbers, and the least variance of the noise.

    >>> rounding_charge(0.5, 200, 2.0)
    5.0
    """
    return step * sqrt(coordinates / white)


def least_variance(noise: Floats) -> float:
    """Lower bound on the variance of noise with covariance `noise` (n, n) in any direction.

    Raises
    ------
    UnsupportedError
        Doubles cannot tell it from 0.
    """
    values = np.linalg.eigvalsh(noise)
    least = float(values[0]) - 4.0 * len(noise) * np.finfo(float).eps * float(values[-1])
    if least <= 0.0:
        raise UnsupportedError("The noise is nearly singular: ask for a white floor (0.01 of the budget).")
    return least


def check_charge(charge: float, mu: float, step: float) -> None:
    """Refuse a step whose rounding is more than a twentieth of mu."""
    if not charge <= MOST_CHARGE * mu:
        most = step * MOST_CHARGE / (1.0 - MOST_CHARGE) * (mu - charge) / charge
        raise UnsupportedError(
            f"`step` must be at most {most:.2g} m for this trace and guarantee, got {step:g}: rounding all of "
            f"its points adds {charge:.2g} to mu, {charge / mu:.0%} of it."
        )
