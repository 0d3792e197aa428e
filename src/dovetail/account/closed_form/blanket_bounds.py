r"""Balle et al.'s bounds: a tail inequality for the sum of what each report says.

.. math:: \delta(\epsilon) \le \frac 1n E\left[ (v_1 + \dots + v_M)_+ \right], \qquad M \sim \mathrm{Bin}(n, g), \quad
          v = Z_0 - e^{\epsilon} Z_1 \text{ on the support of mass } g
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dovetail.account.blanket.privacy_blanket import BlanketLaw
from dovetail.account.bound import Bound
from dovetail.account.closed_form.shuffle_parameters import ShuffleParameters
from dovetail.account.threshold_search import bracket_root
from dovetail.core.numeric.special import Reals

SOURCE = "Balle, Bell, Gascon, Nissim (2019), The Privacy Blanket of the Shuffle Model"
PAPER = "Balle et al. 2019"
GRID = 400  # points from 1e-8 epsilon0 to epsilon0; the bounds need not fall everywhere
MARGIN = 1e-9  # in log delta, for the rounding of the formula


@dataclass(frozen=True, eq=False)
class SummandBounds:
    """Mass g of the support, and largest value, width and variance of v there, or more, at each E = e^epsilon."""

    mass: float
    most: Reals
    width: Reals
    variance: Reals


SummandBoundsAt = Callable[[Reals], SummandBounds]


def hoeffding(epsilon0: float, *, n: int, delta: float, law: BlanketLaw | None = None, of: str = PAPER) -> Bound:
    r"""Balle et al.'s bound by Hoeffding's inequality, generic or for any upper law.

    .. math:: \delta = \frac{w^2}{4 a n} \left( 1 - g + g\, e^{-2 a^2 / w^2} \right)^n, \qquad
              a = \frac{e^\epsilon - 1}{g}, \quad w = \max v - \min v

    Solved for epsilon; the point returned was evaluated and keeps `delta`. For one fixed randomizer.

    Parameters
    ----------
    epsilon0, n, delta : as in `ShuffleParameters`
    law : BlanketLaw, optional
        An upper law of the randomizer; without it the paper's parameters for any randomizer.
    of : str
        What the law belongs to; becomes part of the name.

    Source
    ------
    Balle, Bell, Gascon, Nissim (2019), The Privacy Blanket of the Shuffle Model, CRYPTO, Theorem 5.4 (Hoeffding) with
    the generic parameters of the authors' code.
    """

    def log_delta(growth: Reals, shape: SummandBounds) -> Reals:
        a = growth / shape.mass
        square = shape.width**2
        return np.log(square / (4.0 * a)) + _log_mixture(n, shape.mass, 2.0 * a * a / square)

    return _solve(
        f"Hoeffding ({of})", ShuffleParameters(epsilon0, n, delta), log_delta, _summand_bounds(epsilon0, law)
    )


def bennett(epsilon0: float, *, n: int, delta: float, law: BlanketLaw | None = None, of: str = PAPER) -> Bound:
    r"""Balle et al.'s bound by Bennett's inequality, generic or for any upper law.

    .. math:: \delta = \frac{b}{n \log(1 + ab/c)} \left( 1 - g + g\, e^{-(c/b^2)\, \varphi(ab/c)} \right)^n, \qquad
              b = \max v + a, \quad c = \mathrm{Var}\, v, \quad \varphi(u) = (1 + u) \log(1 + u) - u

    Parameters
    ----------
    epsilon0, n, delta, law, of : as in `hoeffding`

    Examples
    --------
    >>> p, b = math.e, 1 / (math.e + 9)  # ten-ary randomized response at epsilon0 = 1
    >>> law = BlanketLaw([p, 1, 1], [1, p, 1], [b, b, 8 * b])
    >>> round(bennett(1.0, n=10_000, delta=1e-6, law=law).epsilon, 4)
    0.028

    Source
    ------
    As `hoeffding` (Bennett).
    """

    def log_delta(growth: Reals, shape: SummandBounds) -> Reals:
        a = growth / shape.mass
        b, c = shape.most + a, shape.variance
        u = a * b / c
        return np.log(b / np.log1p(u)) + _log_mixture(n, shape.mass, c / b**2 * bennett_function(u))

    return _solve(f"Bennett ({of})", ShuffleParameters(epsilon0, n, delta), log_delta, _summand_bounds(epsilon0, law))


def _log_mixture(n: int, mass: float, exponent: Reals) -> Reals:
    """log((1 - g + g e^-x)^n / n)."""
    return np.asarray(n * np.log1p(mass * np.expm1(-exponent)) - math.log(n))


def bennett_function(u: Reals) -> Reals:
    """(1 + u) log(1 + u) - u; below 1/100 its series, cut after a negative term: never above."""
    s = np.minimum(u, 0.01)
    series = s * s * (1 / 2 - s * (1 / 6 - s * (1 / 12 - s * (1 / 20 - s * (1 / 30 - s / 42)))))
    return np.where(u < 0.01, series, (1.0 + u) * np.log1p(u) - u)


def _summand_bounds(epsilon0: float, law: BlanketLaw | None) -> SummandBoundsAt:
    return _generic_bounds(epsilon0) if law is None else _bounds_of_law(law)


def _generic_bounds(epsilon0: float) -> SummandBoundsAt:
    """The published parameters: Z in [1/p, p] and g >= 1/p, and g set to 1 wherever a larger g is worse."""
    p = math.exp(min(epsilon0, 200.0))  # far above, where these bounds say nothing any more

    def shape(e: Reals) -> SummandBounds:
        return SummandBounds(1.0 / p, p * p - e, (e + 1.0) * (p * p - 1.0), p**3 * (e * e + 1.0) - 2.0 * e / p)

    return shape


def _bounds_of_law(law: BlanketLaw) -> SummandBoundsAt:
    """The law's own parameters, the worse of the two directions for each."""
    share, z0, z1 = law.mass / law.mass.sum(), law.z0[:, None], law.z1[:, None]

    def shape(e: Reals) -> SummandBounds:
        ways = np.stack([z0 - e * z1, z1 - e * z0])  # (2, atoms, points)
        centred = ways - np.einsum("a,dap->dp", share, ways)[:, None, :]
        variance = np.einsum("a,dap->dp", share, centred**2)
        most, least = ways.max(axis=1), ways.min(axis=1)
        return SummandBounds(
            float(law.mass.sum()), most.max(axis=0), (most - least).max(axis=0), variance.max(axis=0)
        )

    return shape


def _solve(
    name: str,
    parameters: ShuffleParameters,
    log_delta: Callable[[Reals, SummandBounds], Reals],
    shape: SummandBoundsAt,
) -> Bound:
    """The smallest epsilon found at which the formula keeps delta: evaluated there."""

    def log_ratio(epsilon: Reals) -> Reals:
        with np.errstate(all="ignore"):  # a formula that overflows says nothing
            value = log_delta(np.expm1(epsilon), shape(np.exp(epsilon))) - math.log(parameters.delta) + MARGIN
        return np.where(np.isnan(value), np.inf, value)

    grid = parameters.epsilon0 * np.geomspace(1e-8, 1.0 - 1e-9, GRID)
    good = np.flatnonzero(log_ratio(grid) <= 0.0)
    if good.size == 0:
        return Bound.inapplicable(name, "not informative: keeps delta at no epsilon below epsilon0", source=SOURCE)
    first = float(grid[good[0]])
    _, epsilon = bracket_root(
        lambda e: float(log_ratio(np.array([e]))[0]), 0.98 * first, steepness=10.0, most=first, tolerance=1e-6
    )
    return parameters.bound(name, epsilon, source=SOURCE)
