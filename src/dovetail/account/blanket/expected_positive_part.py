r"""The expected positive part of a sum of independent copies of a discrete variable, between certified ends.

Few copies, or few off one common value, are summed by their counts (`count_sum`), many copies of a variable with few
values over a line in the complex plane (`contour_sum`): both sharply and soon. Otherwise, and where those leave the
ends apart, the law of the sum is computed on grids, by three devices. *Tilting* moves the bulk of the law to where
the sum changes sign, so that a probability of 1e-18 is as easy as one of 0.1. *Gridding* splits each value onto its
two neighbours on a grid with the mean kept; it grows the convex order, so the gridded sum S' has the larger expected
positive part. *Levels* in base r of n keep the grid at the scale of the sum: r blocks are added by one Fourier
transform, and the grid is made coarser before the next level.

The lower end of the grids comes from the event {S' > 0}: with h(x) = E[S; S' = x] carried along, E[S; S' > 0] <=
E[S_+]. Where copies off one common value are so rare that the transforms round them away, it comes from the cases
with one of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dovetail.account.blanket.contour_sum import contour_sum
from dovetail.account.blanket.count_sum import FEW_TERMS, count_sum
from dovetail.account.blanket.exponential_tilt import ExponentialTilt, saddle_point
from dovetail.account.blanket.tilted_convolution import TAIL, convolve_copies
from dovetail.core.bracket import Bracket
from dovetail.core.numeric.special import Reals

POINTS = 1 << 15
NOISE = 2.0**-48  # rounding of the transforms per copy, a share of the tilted mass: four times what was measured
ULP = 2.0**-50  # of each copy's place, and of its tilt


def expected_positive_part(
    values: Reals, masses: Reals, n: int, *, smaller: Reals | None = None, points: int = POINTS
) -> Bracket:
    r"""Ends of (1/n) E[(G_1 + .. + G_n)_+] for independent copies of a discrete G with mean at most about 0.

    Parameters
    ----------
    values, masses : float arrays (atoms,)
        Masses sum to 1.
    n : int, at least 1
    smaller : float array (atoms,), optional
        Values that the lower end uses instead, at most `values`: leaves room for the rounding of the input.
    points : int, a power of two
        Grid points, where grids are needed. The relative gap then falls with their square.

    Examples
    --------
    >>> ends = expected_positive_part(np.array([1.0, -2.0]), np.array([0.5, 0.5]), 2)  # E = 2/4, over 2
    >>> ends.contains(0.25), ends.gap < 1e-6
    (True, True)

    Source
    ------
    docs/theory/mechanism-laws.md; for the blanket sum, Balle, Bell, Gascon, Nissim (2019), The Privacy Blanket of the
    Shuffle Model, CRYPTO, Lemma 5.3.
    """
    used = masses > 0.0
    values, masses = values[used], masses[used]
    true = values if smaller is None else smaller[used]
    alone = Bracket(*(float(np.maximum(part, 0.0) @ masses) for part in (true, values)))
    if n == 1 or alone.upper == 0.0:
        return alone
    theta = saddle_point(values, masses, n)
    summed = (
        count_sum(values, masses, n, true=true, most_terms=FEW_TERMS)
        or contour_sum(values, masses, n, theta, uncertain=values - true)
        or count_sum(values, masses, n, true=true)
    )
    if summed is None:
        return _gridded(values, masses, n, true=true, alone=alone, theta=theta, points=points)
    upper = min(summed.upper / n, alone.upper)  # more people never help the adversary
    return Bracket(min(summed.lower / n, upper), upper)


def gridded_positive_part(
    values: Reals, masses: Reals, n: int, *, smaller: Reals | None = None, points: int = POINTS
) -> Bracket:
    """The same by grids alone, for n at least 2 and masses above 0.

    Notes
    -----
    Levels = log n / log 128, rounded up. The ends hold up to the rounding of the transforms, for which `NOISE` times
    (n + sqrt(points)) of the tilted mass is charged, and of places and tilts, for which `ULP` of theta n E|G| is;
    that is measured, not proved.

    Examples
    --------
    >>> gridded_positive_part(np.array([1.0, -2.0]), np.array([0.5, 0.5]), 2).contains(0.25)
    True
    """
    true = values if smaller is None else smaller
    alone = Bracket(*(float(np.maximum(part, 0.0) @ masses) for part in (true, values)))
    theta = saddle_point(values, masses, n)
    return _gridded(values, masses, n, true=true, alone=alone, theta=theta, points=points)


def _gridded(
    values: Reals, masses: Reals, n: int, *, true: Reals, alone: Bracket, theta: float, points: int
) -> Bracket:
    shift = _atom_near_zero(values, masses, n)  # a heavy atom that lies on the grid is not split
    tilt = ExponentialTilt(values - shift, masses, theta)
    single = min(_one_uncommon_copy(true, masses, values == shift, n), alone.upper)
    summed = convolve_copies(tilt, true - shift, n, points)
    if summed is None:
        return Bracket(single, alone.upper)
    exponent = n * tilt.kappa + theta * n * shift
    if exponent > 700.0:  # a tilt that tells nothing
        return Bracket(single, alone.upper)
    total, splits = summed
    sums = total.places + n * shift
    weight = np.where(sums > 0.0, np.exp(-theta * np.maximum(sums, 0.0)), 0.0)
    rounding = NOISE * (n + math.sqrt(points))
    lost = TAIL * math.exp(tilt.growth(n, splits))  # splits add tilted mass
    wide = 2.0 * math.sqrt(np.sum(sums**2 * total.masses)) + n * abs(shift)
    upper = float(np.sum(weight * sums * total.masses)) + (lost + rounding) / (math.e * theta)
    means = total.means + n * shift * total.masses
    noisy = NOISE * (math.sqrt(n) + math.sqrt(points))
    lower = float(np.sum(weight * means)) - 2.0 * rounding / (math.e * theta) - wide * (math.sqrt(lost) + noisy)
    scale = math.exp(exponent) / n
    rounding += ULP * theta * n * float(tilt.masses @ np.abs(tilt.values) + abs(shift))
    upper = min(scale * upper * (1.0 + rounding), alone.upper)  # more people never help the adversary
    lower = max(scale * max(0.0, lower) * max(0.0, 1.0 - rounding), single)
    return Bracket(min(lower, upper), upper)


def _one_uncommon_copy(values: Reals, masses: Reals, common: NDArray[np.bool_], n: int) -> float:
    """What the cases add in which all copies but one take the common value: no transform rounds it away."""
    rare = ~common
    moved = float(masses[rare].sum())
    if not common.any() or moved >= 1.0:
        return 0.0
    others, chance = (n - 1) * float(values[common].min()), math.exp((n - 1) * math.log1p(-moved))
    return chance * (1.0 - 1e-12) * float(np.maximum(values[rare] + others, 0.0) @ masses[rare])


def _atom_near_zero(values: Reals, masses: Reals, n: int) -> float:
    """The heaviest of the values so near 0 that n of them are not far on the scale of the sum; 0 if there is none."""
    spread = math.sqrt(masses @ (values - masses @ values) ** 2)
    near = np.abs(values) * math.sqrt(n) <= 10.0 * spread
    return float(values[near][masses[near].argmax()]) if near.any() else 0.0
