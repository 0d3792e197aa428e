r"""How likely the victim's report takes the place of another one: weights by Gauss-Laguerre quadrature.

Given k others whose reports are draws of mu, the victim takes each of the k + 1 places with probability
c(k) <= 1/(k + 1), and gives up hiding with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np

from dovetail.core.numeric.special import Reals

DIGITS = 50
MOST_NODES = 16
FLOOR = 1e-40  # above what 50 digits leave of a difference of numbers near 1


@dataclass(frozen=True, eq=False)
class HidingNodes:
    r"""Nodes s_l, weights omega_l, and the probability rho of giving up.

    .. math:: c(k) = \sum_l \omega_l s_l^{k+1} \le \frac{1}{k+1}, \qquad
              \rho = 1 - \sum_l \omega_l s_l e_l^{n-2} (e_l + (n-1) g s_l), \quad e_l = 1 - g (1 - s_l)

    Parameters
    ----------
    s, missing : float arrays (nodes,)
        s_l and 1 - s_l.
    weights : float array (nodes,)
        omega_l s_l.
    rho : float
        Rounded up.
    """

    s: Reals
    missing: Reals
    weights: Reals
    rho: float


def hiding_nodes(n: int, g: float, *, most: float) -> HidingNodes:
    """The fewest nodes whose rho is at most `most`, or `MOST_NODES` of them.

    The remainder of Gauss quadrature for e^(-xv) has the sign of its derivative of even order, which is positive: so
    c(k) <= 1/(k + 1) for every k. Nodes are computed to 50 digits, so that rho is no difference of rounded numbers.
    """
    count = 2
    while True:
        found = _nodes(n, g, count)
        if found.rho <= most or count == MOST_NODES:
            return found
        count += 1 if count < 8 else 4


@lru_cache(maxsize=256)
def _nodes(n: int, g: float, count: int) -> HidingNodes:
    with localcontext() as context:
        context.prec = DIGITS
        mass, one = Decimal(g), Decimal(1)
        m = mass * (n - 1) + 1
        s = [(-v / m).exp() for v, _ in _laguerre(count)]
        weights = [w * v.exp() / m * x for (v, w), x in zip(_laguerre(count), s, strict=True)]
        left = [one - mass * (one - x) for x in s]
        kept = sum(
            w * (e.ln() * (n - 2)).exp() * (e + (n - 1) * mass * x) for w, e, x in zip(weights, left, s, strict=True)
        )
        rho = max(float(one - kept), 0.0) * (1.0 + 1e-6) + FLOOR
        missing = [float(one - x) for x in s]
    return HidingNodes(np.array([float(x) for x in s]), np.array(missing), np.array([float(w) for w in weights]), rho)


@lru_cache(maxsize=MOST_NODES)
def _laguerre(count: int) -> list[tuple[Decimal, Decimal]]:
    """Zeros of the Laguerre polynomial and Gauss weights, to about 45 digits."""
    found = []
    with localcontext() as context:
        context.prec = DIGITS
        for start in np.polynomial.laguerre.laggauss(count)[0]:
            x = Decimal(float(start))
            for _ in range(4):
                value, before = _polynomial(count, x)
                x -= value * x / (count * (value - before))  # x L' = count (L - L of one order less)
            after, _ = _polynomial(count + 1, x)
            found.append((x, x / ((count + 1) * after) ** 2))
    return found


def _polynomial(order: int, x: Decimal) -> tuple[Decimal, Decimal]:
    """L_order(x) and L_(order - 1)(x)."""
    before, value = Decimal(0), Decimal(1)
    for j in range(order):
        before, value = value, ((2 * j + 1 - x) * value - j * before) / (j + 1)
    return value, before
