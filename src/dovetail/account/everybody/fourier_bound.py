r"""Exposure among everybody, for every collection of the others' values at once: one certified Fourier integral.

.. math:: F(s) \le \frac{g M_0}{2 \pi \theta} \max_t \int \frac{du}{1 + u^2} M_{t,s}(u)^{n-1}
          e^{\theta^2 \eta^2 (1 - u^2)/2}, \qquad
          M_{t,s}(u) = \left| \int R_t^s \, e^{\theta (1 + iu) X} \right|, \quad
          X = s \frac{dH}{dR_t^s}, \quad R_t^s = R_t - (1 - s) \mu, \quad H = R_a - e^{\epsilon} R_c
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.account.everybody.exposure import Exposure
from dovetail.account.everybody.laguerre_nodes import HidingNodes
from dovetail.account.everybody.tilt import best_tilt, steepest_tilt
from dovetail.core.numeric.special import Reals

FINE, REACH = 0.02, 8.0  # half width of a cell and where the middle ends, in units of 1 / (theta sd)
NOISES = (3e-4, 1e-3)  # share of the variance that is added as Gaussian noise: little, then enough for lattices
GROWTH, EVEN = 1.06, 0.25  # cells beyond the middle: by this ratio, or of this half width where reports are a lattice
BLOCK = 1 << 14  # angles at a time, which a processor keeps at hand
ULP = 2.0**-50  # a few roundings of a double
BEYOND = 1e-3  # share of the integral beyond the middle from which the reports are treated as a lattice


class Tilted(NamedTuple):
    """Tilted sums at each node s and type t, arrays (nodes, types, atoms) or (nodes, types)."""

    theta: float
    x: Reals  # theta X
    mass: Reals  # R_t^s e^(theta X)
    real: Reals  # the integral of R_t^s e^(theta X), less 1
    variance: Reals  # of theta X
    rough: Reals  # what roundings of one report may sum up to, in units of an ulp, at u = 0
    size: Reals  # the same for each unit of u


class Grid(NamedTuple):
    """Edges of cells in u, the number of those in the middle, and theta^2 eta^2."""

    edges: Reals
    middle: int
    noise: float


@dataclass(frozen=True, eq=False)
class FourierBound:
    """The bound for one ordered pair at one epsilon.

    Parameters
    ----------
    exposure : Exposure
    n : int, at least 2
    epsilon : float, nats
    nodes : HidingNodes
    """

    exposure: Exposure
    n: int
    epsilon: float
    nodes: HidingNodes

    def value(self, *, enough: float = 0.0, tilt: float | None = None) -> float:
        """At least delta - rho, infinite where no tilt is found; by a tilt alone where that gives `enough`.

        `tilt` is one to try first: any is valid.
        """
        if tilt is not None and tilt <= steepest_tilt(self.exposure, self.epsilon):
            quick, _, _ = self._quick(tilt)
            if quick <= enough:
                return quick
        theta = best_tilt(self.exposure, self.n, self.epsilon)
        if theta is None:
            return math.inf
        quick, tilted, logs = self._quick(theta)
        if quick <= enough or self._beyond_doubles(tilted):
            return quick
        return _total(self._worst(tilted, logs, self._prefactors(theta)))

    def _beyond_doubles(self, tilted: Tilted) -> bool:
        """Whether e^noise, by which integrals are multiplied, may be no double: then the tilt alone has to serve."""
        return 0.5 * NOISES[1] * (self.n - 1) * float(tilted.variance.max()) > 600.0

    def _quick(self, theta: float) -> tuple[float, Tilted, Reals]:
        """What M(0)^(n-1) alone gives, and its logs by nodes and types."""
        tilted = self._tilted(theta)
        logs = self._prefactors(theta)[:, None] + self._top(tilted) + math.log(math.pi)
        return _total(logs.max(axis=1)), tilted, logs

    def _worst(self, tilted: Tilted, quick: Reals, prefactors: Reals) -> Reals:
        """The largest log over types at each node; integrals only where the `quick` logs do not settle it."""
        first = np.array([int(quick.max(axis=0).argmax())])
        grid, cells = self._grid(tilted, first)
        worst = prefactors + self._integrals(tilted, first, cells)[:, 0]
        ceiling = quick + 0.5 * grid.noise  # at most that, where the noise is added
        unsettled = np.any(ceiling > worst[:, None], axis=0)
        unsettled[first] = False
        others = np.flatnonzero(unsettled)
        if others.size:
            cells = self._cell_sums(tilted, others, grid)
            found = prefactors[:, None] + self._integrals(tilted, others, cells)
            worst = np.maximum(worst, found.max(axis=1))
        return worst

    def _prefactors(self, theta: float) -> Reals:
        """Logs of omega s g M_0 / (2 pi theta), for each node."""
        mu, g = self.exposure.mu[0], self.exposure.g
        used = mu > 0.0
        h = self.exposure.first[0] - math.exp(self.epsilon) * self.exposure.second[0]
        tilts = theta * h[used] / mu[used]
        m0 = float(mu[used] @ np.exp(tilts)) / g
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.nodes.weights * g * m0 / (2.0 * math.pi * theta)) + 1e-9)

    def _tilted(self, theta: float) -> Tilted:
        s, missing = self.nodes.s[:, None, None], self.nodes.missing[:, None, None]
        own = (self.exposure.own - self.exposure.mu) + s * self.exposure.mu
        e = math.exp(self.epsilon)
        h, both = self.exposure.first - e * self.exposure.second, self.exposure.first + e * self.exposure.second
        x = theta * s * np.divide(h, own, out=np.zeros_like(own), where=own > 0.0)
        mass, less = own * np.exp(x), own * np.expm1(x)
        real = less.sum(axis=2) - self.exposure.g * missing[:, :, 0]
        total = 1.0 + real
        mean = (mass * x).sum(axis=2) / total
        variance = (mass * (x - mean[:, :, None]) ** 2).sum(axis=2) / total
        inexact = theta * (both * np.exp(x)).sum(axis=2)
        rough = np.abs(less).sum(axis=2) + self.exposure.g * missing[:, :, 0] + inexact
        size = (4.0 + 0.25 * x.shape[2]) * (mass * np.abs(x)).sum(axis=2) + inexact  # tangents, and sums over atoms
        return Tilted(theta, x, mass, real, variance, rough, size)

    def _top(self, tilted: Tilted) -> Reals:
        """Logs of M(0)^(n-1), rounded up, (nodes, types)."""
        others = self.n - 1
        return np.asarray(others * (np.log1p(tilted.real) + ULP * tilted.rough / (1.0 + tilted.real)))

    def _grid(self, tilted: Tilted, kept: NDArray[np.int64]) -> tuple[Grid, Reals]:
        """Cells and noise that suit these types, dense cells where their reports are a lattice; their sums."""
        scale = math.sqrt((self.n - 1) * float(tilted.variance[:, kept].max()))
        small, dense = (_cells(scale, noise, lattice=noise == NOISES[1]) for noise in NOISES)
        values = self._cell_sums(tilted, kept, small)
        inner, outer = values[..., : small.middle].sum(axis=2), values[..., small.middle :].sum(axis=2)
        if np.all(outer <= BEYOND * inner):
            return small, values
        return dense, self._cell_sums(tilted, kept, dense)

    def _integrals(self, tilted: Tilted, kept: NDArray[np.int64], cells: Reals) -> Reals:
        """Logs of the integrals, rounded up, (nodes, kept types)."""
        return np.asarray(self._top(tilted)[:, kept] + np.log(2.0 * cells.sum(axis=2)))

    def _cell_sums(self, tilted: Tilted, kept: NDArray[np.int64], grid: Grid) -> Reals:
        r"""The integral from 0 on over M(0)^(n-1), cell by cell, what lies beyond last.

        In a cell u + y, |y| <= h: log|M|^2 is at most log|M(u)|^2 + D y + theta^2 var M(0)^2 h^2 / |M(u)|^2, since
        the second derivative of |M|^2 is at most 2 theta^2 var M(0)^2.
        """
        others, edges, noise = self.n - 1, grid.edges, grid.noise
        left, half = edges[:-1], 0.5 * np.diff(edges)
        middle = left + half
        x, mass = tilted.x[:, kept], tilted.mass[:, kept]
        real0, variance = tilted.real[:, kept, None], tilted.variance[:, kept, None]
        versed, turned, versed_x, turned_x = _turned_sums(x, mass, middle)
        real, imaginary = real0 - versed, turned
        along, across = -turned_x, (mass * x).sum(axis=2)[:, :, None] - versed_x
        excess = 2.0 * real + real**2 + imaginary**2
        square, most = np.maximum(1.0 + excess, 1e-300), (1.0 + real0) ** 2
        slope = 2.0 * ((1.0 + real) * along + imaginary * across) / square
        log_ratio = np.log1p(np.maximum(excess, -1.0 + 1e-300)) - 2.0 * np.log1p(real0)
        doubt = ULP * (tilted.rough[:, kept, None] + (middle + half) * tilted.size[:, kept, None]) / np.sqrt(square)
        height = others * (0.5 * (log_ratio + variance * half**2 * most / square) + doubt)
        lean = np.abs(0.5 * others * slope - noise * middle) * half
        inside = height - 0.5 * noise * middle**2 + lean + _log_mean_exponential(lean)
        known = np.where(square > 1e-9 * most, inside, 0.0)
        values = 2.0 * half / (1.0 + left**2) * np.exp(np.minimum(known, -0.5 * noise * left**2) + 0.5 * noise)
        beyond = (0.5 * math.pi - math.atan(edges[-1])) * math.exp(0.5 * noise * (1.0 - edges[-1] ** 2))
        return np.concatenate([values, np.full((*values.shape[:2], 1), beyond)], axis=2)


def _turned_sums(x: Reals, mass: Reals, u: Reals) -> NDArray[np.float64]:
    r"""Sums over atoms of p (1 - cos u x) and p sin u x, and the same with p x for p, each (nodes, types, cells).

    From one tangent each, t = tan(u x / 2): 1 - cos = 2 t^2 / (1 + t^2) and sin = 2 t / (1 + t^2), block by block.
    """
    nodes, types, atoms = x.shape
    places, weights = x.reshape(-1, 1, atoms), 2.0 * np.stack([mass, mass * x], axis=3).reshape(-1, atoms, 2)
    sums = np.empty((nodes * types, u.size, 4))
    rows = max(1, BLOCK // (u.size * atoms))
    for first in range(0, nodes * types, rows):
        block = slice(first, first + rows)
        tangent = np.tan(0.5 * u[:, None] * places[block])
        square = tangent**2
        share = 1.0 / (1.0 + square)
        square *= share
        tangent *= share
        np.matmul(square, weights[block], out=sums[block, :, 0::2])
        np.matmul(tangent, weights[block], out=sums[block, :, 1::2])
    return np.moveaxis(sums.reshape(nodes, types, u.size, 4), 3, 0)


def _cells(scale: float, noise: float, *, lattice: bool) -> Grid:
    """Cells until the noise is e^-40."""
    middle = np.arange(0.0, REACH + FINE, 2.0 * FINE)
    last = max(9.0 / math.sqrt(noise), 1.1 * REACH)
    if lattice:
        rest = np.arange(middle[-1], last, 2.0 * EVEN)[1:]
    else:
        rest = np.geomspace(middle[-1], last, math.ceil(math.log(last / middle[-1]) / math.log(GROWTH)) + 1)[1:]
    return Grid(np.append(middle, rest) / scale, middle.size - 1, noise * scale**2)


def _log_mean_exponential(x: Reals) -> Reals:
    """log(e^-x sinh(x) / x) for x >= 0."""
    small = np.maximum(2.0 * x, 1e-9)
    return np.asarray(np.log(-np.expm1(-small) / small))


def _total(logs: Reals) -> float:
    """The sum of numbers given by their logs."""
    top = float(logs.max())
    return math.exp(min(top, 700.0)) * float(np.exp(logs - top).sum())
