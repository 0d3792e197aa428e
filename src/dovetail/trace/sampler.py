"""Noise that is released: normal numbers from the operating system's entropy, on a public grid.

Locations are rounded to a public step before the noise is added and afterwards, so that the last bits of a
double tell nothing about them. That is not proved to make a floating-point Gaussian private; the guarantee says so.
"""

from __future__ import annotations

from math import floor, log2, sqrt

import numpy as np
from scipy.special import ndtri

from dovetail.core.checks import positive
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.trace.descent import LEAST_FLOOR
from dovetail.trace.kernels import Floats
from dovetail.trace.loss import positive_factor

_FINEST = 1e-6  # step, as a share of the floor's standard deviation
_DEFAULT = 1e-4
_CHARGE = 0.02  # of mu, that rounding all points may cost by default


def standard_normals(count: int, rng: Entropy) -> Floats:
    """`count` normal numbers from 64-bit words: a sign, and a tail probability of 63 bits, which reaches 9 sigma."""
    words = rng.words(count)
    tails = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64  # in (0, 1/2)
    return np.asarray(np.where(words & np.uint64(1), ndtri(tails), -ndtri(tails)))


def correlated_noise(covariance: Floats, rng: Entropy) -> Floats:
    """One draw (n,) of N(0, covariance)."""
    return positive_factor(covariance, "The noise") @ standard_normals(len(covariance), rng)


def default_step(white: float) -> float:
    """A public step in metres, a power of two: 1e-4 of the floor's standard deviation or less.

    >>> default_step(12.5) == 2.0**-12
    True
    """
    return 2.0 ** floor(log2(_DEFAULT * sqrt(positive("white", white))))


def step_for(mu: float, *, white: float, numbers: int) -> float:
    """A public step in metres, a power of two: rounding `numbers` coordinates adds at most a fiftieth to `mu`.

    Never coarser than the default, nor finer than what doubles allow.

    >>> step_for(1.0, white=12.5, numbers=60) == default_step(12.5)
    True
    """
    share = min(_DEFAULT, _CHARGE * mu / sqrt(numbers))
    return 2.0 ** floor(log2(max(2.0 * _FINEST, share) * sqrt(positive("white", white))))


def check_step(step: float, *, white: float, floor_share: float) -> None:
    """Refuse a floor or a step that rounding would spoil.

    Parameters
    ----------
    step : float, metres
    white : float, square metres
        Variance of the white part of the noise on every coordinate.
    floor_share : float
        White part as a share of the budget.
    """
    if floor_share < LEAST_FLOOR:
        raise UnsupportedError(
            f"`floor` must be at least {LEAST_FLOOR:g} of the budget for a release, got {floor_share:g}."
        )
    if not _FINEST * sqrt(white) <= step <= sqrt(white):
        raise ParameterError(
            f"`step` must lie between {_FINEST * sqrt(white):.3g} and {sqrt(white):.3g} m for this noise, got "
            f"{step:g}."
        )


def on_grid(points: Floats, step: float) -> Floats:
    """Points rounded to the public grid."""
    return np.asarray(np.rint(points / step) * step)
