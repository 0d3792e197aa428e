"""Exponential tilting of a discrete law, and what splitting onto grids adds to its moment generating function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dovetail.core.numeric.special import Reals

MOST_STEPS, NEAR = 60, 0.01  # of a search for a tilt; any tilt is valid
_FACTORS = np.exp2(np.arange(-3.0, 2.5, 0.5))


@dataclass(frozen=True, eq=False)
class ExponentialTilt:
    r"""A law of values with masses, and the tilted law that is summed instead.

    .. math:: \kappa = \log E[e^{\theta G}], \qquad
              E[f(S)] = e^{n \kappa}\, E_\theta[f(S)\, e^{-\theta S}], \qquad
              s_+ e^{-\theta s} \le \frac{1}{e\, \theta}
    """

    values: Reals
    weights: Reals  # untilted
    theta: float

    def cumulants(self, tilts: Reals) -> tuple[Reals, Reals]:
        """log E exp(t G) at each t, and the share of it that values other than 0 have."""
        powers = tilts[:, None] * self.values + np.log(self.weights)
        top = powers.max(axis=1)
        parts = np.exp(powers - top[:, None])
        total = parts.sum(axis=1)
        return np.asarray(top + np.log(total)), np.asarray(parts[:, self.values != 0.0].sum(axis=1) / total)

    @cached_property
    def kappa(self) -> float:
        return float(self.cumulants(np.array([self.theta]))[0][0])

    @cached_property
    def masses(self) -> Reals:
        """The tilted masses."""
        return self.weights * np.exp(self.theta * self.values - self.kappa)

    def reach(self, copies: int, log_tail: float, splits: GridSteps) -> tuple[float, float]:
        r"""An interval that a gridded sum of `copies` leaves, on each side, with tilted mass at most e^-log_tail.

        .. math:: \log \Pr_\theta[S' \ge t] \le m(\kappa(\theta + \lambda) - \kappa(\theta))
                  + \mathrm{growth}(\theta + \lambda) - \lambda t
        """
        if copies == 0:
            return 0.0, 0.0
        spread, width = self._spread
        noise = 2.0 * self.growth(copies, splits) / self.theta**2
        scales = [  # any lambda gives a bound; these are the natural sizes
            math.sqrt(2.0 * log_tail / (copies * max(spread, 1e-30 * width**2) + noise)),
            log_tail / width,
            self.theta,
        ]
        lambdas = np.outer(scales, _FACTORS).ravel()
        ends = []
        for sign in (-1.0, 1.0):
            tilts = self.theta + sign * lambdas
            kappas, moved = self.cumulants(tilts)
            rounding = 2.0**-48 * (np.abs(kappas) + abs(self.kappa))
            exponent = copies * (kappas - self.kappa + rounding) + splits.growth(copies, tilts, moved)
            ends.append(sign * float(np.min((exponent + log_tail) / lambdas)))
        return ends[0], ends[1]

    @cached_property
    def _spread(self) -> tuple[float, float]:
        """Variance of the tilted law, and the width of its range."""
        variance = float(self.masses @ (self.values - self.masses @ self.values) ** 2)
        return variance, float(np.ptp(self.values))

    def growth(self, copies: int, splits: GridSteps) -> float:
        """log of the tilted mass that the splits of so many copies may have made of 1."""
        tilts, moved = self._here
        return float(splits.growth(copies, tilts, moved)[0])

    @cached_property
    def _here(self) -> tuple[Reals, Reals]:
        """theta, and the share that values other than 0 have there."""
        tilts = np.array([self.theta])
        return tilts, self.cumulants(tilts)[1]


class GridSteps(NamedTuple):
    r"""The grid steps s_i of the levels so far; on level i a block is the sum of r^i copies.

    A split onto neighbours at distance s multiplies E[exp(t S)] by at most exp(t^2 s^2 / 8) (Hoeffding's lemma). The
    value 0 lies on every grid and is not split, so a block whose share a of E[exp(t S)] belongs to 0 grows less:

    .. math:: \log\left(a + (1 - a)\, e^{t^2 s^2 / 8}\right)
              \le \min\left(\tfrac18 t^2 s^2, \; (1 - a)(e^{t^2 s^2 / 8} - 1)\right), \qquad
              a \ge (1 - f)^{r^i} e^{-c}

    with f the share of the values other than 0 in one copy, c what the block grew by on the levels before.
    """

    base: int
    steps: tuple[float, ...]

    def growth(self, copies: int, tilts: Reals, moved: Reals) -> Reals:
        """What log E[exp(t S)] of a sum of `copies` grew by, at most, at each t; `moved` is f there."""
        still = np.log1p(-np.minimum(moved, 1.0 - 2.0**-53))
        total, block = np.zeros_like(tilts), np.zeros_like(tilts)
        for level, step in enumerate(self.steps):
            whole = 0.125 * (tilts * step) ** 2
            part = -np.expm1(self.base**level * still - block)
            grown = np.minimum(whole, part * np.expm1(np.minimum(whole, 700.0)))
            total += copies / self.base**level * grown + whole  # all blocks, and the copies that make up no block
            block = self.base * (block + grown)
        return total


def saddle_point(values: Reals, masses: Reals, n: int) -> float:
    r"""About the theta at which exp(n kappa) / (e theta), a bound on n times the answer, is least.

    Newton steps for n kappa'(theta) = 1/theta, started from a normal law, kept between the ends of a bracket.
    """
    largest = float(np.abs(values).max())
    values = values / largest  # no power leaves the doubles
    one = float(masses @ values)
    mean, wide = n * one, n * float(masses @ (values - one) ** 2)
    theta = (abs(mean) + math.sqrt(mean**2 + 4.0 * wide)) / (2.0 * wide)
    low, high, stride = 0.0, math.inf, 4.0
    for turn in range(MOST_STEPS):
        powers = theta * values
        tilted = masses * np.exp(powers - powers.max())
        tilted /= tilted.sum()
        first = float(tilted @ values)
        slope, bend = n * first - 1.0 / theta, n * float(tilted @ (values - first) ** 2) + 1.0 / theta / theta
        low, high = (low, theta) if slope > 0.0 else (theta, high)
        if abs(slope) * theta <= NEAR or theta > 1e100:  # without a value above 0, for ever
            break
        newton = theta - slope / bend
        slow = turn > 8 and turn % 2 == 1  # Newton creeps down where masses grow steeply
        if slow or not (low < newton < high and abs(newton - theta) > NEAR * theta):
            if high == math.inf:
                newton, stride = stride * low, min(stride * stride, 1e20)
            else:
                newton = math.sqrt(low) * math.sqrt(high) if low > 0.0 else 0.25 * high
        theta = newton
    return theta / largest
