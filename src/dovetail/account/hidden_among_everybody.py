"""Theorem A, hidden among everybody: an upper bound on delta for every collection of the others' values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.account.bound import bracket_root, first_point, is_zero, log_ratio
from dovetail.account.clones import normal_threshold
from dovetail.account.privacy_blanket import Exposure
from dovetail.core.checks import real, share, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals

# How likely the victim's report takes the place of another one: weights by Gauss-Laguerre quadrature.
#
# Given k others whose reports are draws of mu, the victim takes each of the k + 1 places with probability
# c(k) <= 1/(k + 1), and gives up hiding with the rest.


DIGITS = 120
MOST_NODES = 16
FLOOR = 1e-110  # above what 120 digits leave of a difference of numbers near 1


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
    c(k) <= 1/(k + 1) for every k. Nodes are computed to 120 digits, so that rho is no difference of rounded numbers.
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
    """Zeros of the Laguerre polynomial and Gauss weights, to about 115 digits."""
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


# The exponential tilt that makes the bound of an exposure small: any tilt is valid.


STEEPEST = 300.0  # largest exponent of a tilt
WIDTHS = (0.7, 0.1)  # how far around the last guess is looked, in log theta


@lru_cache(maxsize=4)  # asked for the first pair of values, and again where it is evaluated
def best_tilt(exposure: Exposure, n: int, epsilon: float) -> float | None:
    r"""About the theta of the smallest (n - 1) max_t log M_t(0) - 2 log theta; None where exponents are too large.

    Started from a normal law of the sum: v theta^2 + m theta - 2/n is least for the largest variance v.
    """
    most, exposure = steepest_tilt(exposure, epsilon), exposure.foremost
    x, at_mu = _ratios(exposure, epsilon)
    drift, spread = -math.expm1(epsilon), float((exposure.own * x**2).sum(axis=1).max())
    if not spread:
        return None  # differences below the rounding of a double: nothing to tilt
    others = n - 1.0
    guess = (-drift + math.sqrt(drift**2 + 8.0 * spread / others)) / (2.0 * spread)
    for width in WIDTHS:
        grid = np.minimum(guess * np.exp(np.linspace(-width, width, 15)), most)
        guess = _lowest(grid, _cost(grid, x, at_mu, exposure, others))
    return None if guess > 0.99 * most else guess


def steepest_tilt(exposure: Exposure, epsilon: float) -> float:
    """The tilt at which an exponent reaches `STEEPEST`, infinite where no two laws differ in a double."""
    largest = float(max(np.abs(ratio).max() for ratio in _ratios(exposure, epsilon)))
    return STEEPEST / largest if largest else math.inf


def _ratios(exposure: Exposure, epsilon: float) -> tuple[Reals, Reals]:
    """dH/dR_t for each type, and dH/dmu; 0 where there is no mass."""
    h = exposure.first - math.exp(epsilon) * exposure.second
    x = np.divide(h, exposure.own, out=np.zeros_like(h), where=exposure.own > 0.0)
    return x, np.divide(h[0], exposure.mu[0], out=np.zeros_like(h[0]), where=exposure.mu[0] > 0.0)


def _cost(theta: Reals, x: Reals, at_mu: Reals, exposure: Exposure, others: float) -> Reals:
    less = (exposure.own * np.expm1(theta[:, None, None] * x)).sum(axis=2)
    m0 = (exposure.mu[0] * np.exp(theta[:, None] * at_mu)).sum(axis=1)
    return np.asarray(others * np.log1p(np.maximum(less, -0.999)).max(axis=1) - 2.0 * np.log(theta) + np.log(m0))


def _lowest(grid: Reals, cost: Reals) -> float:
    """Where the parabola through the lowest point and its neighbours is lowest, in the log of the grid."""
    i = int(cost.argmin())
    if not 0 < i < grid.size - 1:
        return float(grid[i])
    a, b, c = cost[i - 1 : i + 2]
    bend = a - 2.0 * b + c
    shift = 0.5 * (a - c) / bend if bend > 0.0 else 0.0
    return float(grid[i]) * math.exp(shift * math.log(grid[1] / grid[0]))


# Exposure among everybody, for every collection of the others' values at once: one certified Fourier integral.
#
# .. math:: F(s) \le \frac{g M_0}{2 \pi \theta} \max_t \int \frac{du}{1 + u^2} M_{t,s}(u)^{n-1}
#           e^{\theta^2 \eta^2 (1 - u^2)/2}, \qquad
#           M_{t,s}(u) = \left| \int R_t^s \, e^{\theta (1 + iu) X} \right|, \quad
#           X = s \frac{dH}{dR_t^s}, \quad R_t^s = R_t - (1 - s) \mu, \quad H = R_a - e^{\epsilon} R_c


FINE, REACH = 0.02, 8.0  # half width of a cell and where the middle ends, in units of 1 / (theta sd)
NOISES = (3e-4, 1e-3)  # share of the variance that is added as Gaussian noise: little, then enough for lattices
GROWTH, EVEN = 1.06, 0.25  # cells beyond the middle: by this ratio, or of this half width where reports are a lattice
WIDE, HARDLY = (
    6.0,
    2.0,
)  # times as wide are cells that show that a pair, or a type, is far from the worst, or is not it
FEW = 4  # types that are not asked first whether they matter
BLOCK = 1 << 16  # cells at a time, which a processor keeps at hand
ULP = 2.0**-50  # a few roundings of a double
BEYOND = 1e-3  # share of the integral beyond the middle from which the reports are treated as a lattice
MOST_AT_ONCE = 200  # atoms of all rows for which cells beyond the middle are not first taken wide
NOTHING = 1e-13  # share of an integral, and of their sum, that is told no closer


class Tilted(NamedTuple):
    """Tilted sums at each node s and type t, arrays (nodes, types, atoms) or (nodes, types)."""

    x: Reals  # theta X
    own: Reals  # R_t^s
    real: Reals  # the integral of R_t^s e^(theta X), less 1
    inexact: Reals  # what roundings of X may sum up to, in units of an ulp
    rough: Reals  # what all roundings of one report may, at u = 0

    def rows(self, kept: NDArray[np.bool_]) -> TiltedRows:
        """Some nodes and types, one after the other."""
        x, own, real, inexact, rough = (field[kept] for field in self)
        mass = own * np.exp(x)
        first = (mass * x).sum(axis=1)
        mean = first / (1.0 + real)
        variance = (mass * (x - mean[:, None]) ** 2).sum(axis=1) / (1.0 + real)
        size = (4.0 + 0.25 * x.shape[1]) * (mass * np.abs(x)).sum(axis=1) + inexact  # tangents, and sums over atoms
        return TiltedRows(x, mass, real, first, variance, rough, size)


class TiltedRows(NamedTuple):
    """Nodes and types whose integrals are asked for, arrays (rows, atoms) or (rows,)."""

    x: Reals
    mass: Reals  # R_t^s e^(theta X)
    real: Reals
    first: Reals  # the integral of theta X R_t^s e^(theta X)
    variance: Reals  # of theta X
    rough: Reals
    size: Reals  # what roundings of one report may sum up to for each unit of u

    def among(self, kept: NDArray[np.bool_] | slice) -> TiltedRows:
        """Some of the rows."""
        return TiltedRows(*(field[kept] for field in self))


class Stretch(NamedTuple):
    """Edges of cells side by side in u; their centres are sums of a coarse angle and a fine one, fine ones first."""

    edges: Reals
    coarse: Reals
    fine: Reals


class Grid(NamedTuple):
    """Cells of the middle and of what is beyond, wide ones there, and theta^2 eta^2."""

    middle: Stretch
    beyond: Stretch
    wide: Stretch
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
        if float(self.nodes.missing.max()) * math.exp(min(self.epsilon, 700.0)) > self.exposure.most_lost:
            return math.inf
        found = None
        if tilt is not None and tilt <= steepest_tilt(self.exposure, self.epsilon):
            found = self._quick(tilt)
            if found[0] <= enough:
                return found[0]
        theta = best_tilt(self.exposure, self.n, self.epsilon)
        if theta is None:
            return math.inf
        quick, tilted, logs = found if found is not None and theta == tilt else self._quick(theta)
        if quick <= enough:
            return quick
        if enough > 0.0:  # wide cells are as valid, and settle most pairs
            rough = _total(self._worst(theta, tilted, logs, width=WIDE))
            if rough <= enough:
                return rough
        return _total(self._worst(theta, tilted, logs))

    def _quick(self, theta: float) -> tuple[float, Tilted, Reals]:
        """The value of M(0)^(n-1) alone, and its logs by nodes and types; of the sketch, where there is one."""
        tilted, logs = self._level(theta, self.exposure.sketch or self.exposure)
        return _total(logs.max(axis=1)), tilted, logs

    def _level(self, theta: float, exposure: Exposure) -> tuple[Tilted, Reals]:
        """Tilted sums of these types, and the logs of M(0)^(n-1) with its prefactors."""
        tilted = self._tilted(theta, exposure)
        return tilted, self._prefactors(theta)[:, None] + self._top(tilted) + math.log(math.pi)

    def _likely(self, theta: float, quick: Reals) -> int:
        """The type with the largest M(0)^(n-1)."""
        most = quick.max(axis=0)
        first = int(most.argmax())
        if self.exposure.sketch is None:
            return first
        some = np.flatnonzero(most >= self._level(theta, self.exposure.among([first]))[1].max())
        return (
            int(some[self._level(theta, self.exposure.among(some))[1].max(axis=0).argmax()]) if some.size else first
        )

    def _worst(self, theta: float, tilted: Tilted, quick: Reals, *, width: float = 1.0) -> Reals:
        """The largest log over types at each node; integrals only where the `quick` logs do not settle it."""
        bounds, likely = quick.copy(), np.zeros(quick.shape, dtype=bool)
        likely[:, self._likely(theta, quick)] = True

        def exact(asked: NDArray[np.bool_]) -> tuple[TiltedRows, Reals]:
            if self.exposure.sketch is None:
                return tilted.rows(asked), quick[asked]
            types = asked.any(axis=0)
            level, logs = self._level(theta, self.exposure.among(types))
            return level.rows(asked[:, types]), logs[asked[:, types]]

        rows, top = exact(likely)
        scale = math.sqrt((self.n - 1) * float(rows.variance.max()))
        if 0.5 * NOISES[1] * scale**2 > 600.0:  # e^noise, by which integrals are multiplied, may be no double
            return np.asarray(quick.max(axis=1))
        grid, found = self._grid(rows, scale, width)
        least = bounds[likely] = top + np.log(found)

        def unsettled() -> NDArray[np.bool_]:
            return np.asarray(bounds > np.maximum(least, least.max() + math.log(NOTHING))[:, None])

        def settle(asked: NDArray[np.bool_], rows: TiltedRows, top: Reals, cells: Grid) -> None:
            found = np.sum(self._shares(rows, cells), axis=0)
            bounds[asked] = np.minimum(bounds[asked], top + np.log(found))

        left, wide = unsettled(), _cells(scale, NOISES[0], WIDE)
        # wider cells are as valid, and so is a sketch: they settle most types
        for cells in (wide._replace(beyond=wide.wide), _cells(scale, NOISES[0], HARDLY)):
            if left.any(axis=0).sum() > FEW:
                settle(left, tilted.rows(left), quick[left], cells)
                left = unsettled()
        best = left & (bounds == bounds.max(axis=1)[:, None])
        if left.any(axis=0).sum() > FEW and best.any():  # and so do the worst of those that they leave
            settle(best, *exact(best), grid)
            least = np.maximum(least, np.where(best, bounds, -np.inf).max(axis=1))
            left = unsettled()
        if left.any():
            settle(left, *exact(left), grid)
        return np.asarray(bounds.max(axis=1))

    def _prefactors(self, theta: float) -> Reals:
        """Logs of omega s g M_0 / (2 pi theta), for each node."""
        mu, g = self.exposure.mu[0], self.exposure.g
        used = mu > 0.0
        h = self.exposure.first[0] - math.exp(self.epsilon) * self.exposure.second[0]
        tilts = theta * h[used] / mu[used]
        m0 = float(mu[used] @ np.exp(tilts)) / g
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.nodes.weights * g * m0 / (2.0 * math.pi * theta)) + 1e-9)

    def _tilted(self, theta: float, exposure: Exposure) -> Tilted:
        s, missing = self.nodes.s[:, None, None], self.nodes.missing[:, None, None]
        own = (exposure.own - exposure.mu) + s * exposure.mu
        e = math.exp(self.epsilon)
        h, both = exposure.first - e * exposure.second, exposure.first + e * exposure.second
        x = theta * s * np.divide(h, own, out=np.zeros_like(own), where=own > 0.0)
        grown = np.expm1(x)
        less, lost = own * grown, exposure.g * missing[:, :, 0]
        inexact = theta * (both * (1.0 + grown)).sum(axis=2)
        return Tilted(x, own, less.sum(axis=2) - lost, inexact, np.abs(less).sum(axis=2) + lost + inexact)

    def _top(self, tilted: Tilted) -> Reals:
        """Logs of M(0)^(n-1), rounded up, (nodes, types)."""
        others = self.n - 1
        return np.asarray(others * (np.log1p(tilted.real) + ULP * tilted.rough / (1.0 + tilted.real)))

    def _grid(self, likely: TiltedRows, scale: float, width: float) -> tuple[Grid, Reals]:
        """Cells and noise that suit these rows, dense ones where reports are a lattice; the rows' integrals."""
        grid = _cells(scale, NOISES[0], width)
        inner, outer = self._shares(likely, grid)
        if width < WIDE and np.any(outer > BEYOND * inner):  # wide cells overstate what is beyond
            grid = _cells(scale, NOISES[1], width, lattice=True)
            inner, outer = self._shares(likely, grid)
        return grid, inner + outer

    def _shares(self, rows: TiltedRows, grid: Grid) -> tuple[Reals, Reals]:
        """The integrals over pi M(0)^(n-1), of the middle and beyond: there by wide cells where that is nothing."""
        rough = grid.wide if rows.x.size > MOST_AT_ONCE else grid.beyond
        inner, outer = self._cell_sums(rows, (grid.middle, rough), grid.noise)
        shows = outer > NOTHING * inner
        if rough is not grid.beyond and shows.any():
            [outer[shows]] = self._cell_sums(rows.among(shows), (grid.beyond,), grid.noise)
        last = float(grid.beyond.edges[-1])
        rest = (1.0 - 2.0 / math.pi * math.atan(last)) * math.exp(0.5 * grid.noise * (1.0 - last**2))
        return inner, outer + rest

    def _cell_sums(self, rows: TiltedRows, cells: Sequence[Stretch], noise: float) -> Reals:
        """The integrals over some cells, over pi M(0)^(n-1), (stretches, rows); block by block."""
        angles = sum(stretch.coarse.size + stretch.fine.size for stretch in cells)
        size = max(1, BLOCK // (angles * rows.x.shape[1]))
        blocks = [slice(first, first + size) for first in range(0, len(rows.real), size)]
        return np.concatenate([self._block_sums(rows.among(block), cells, noise) for block in blocks], axis=1)

    def _block_sums(self, rows: TiltedRows, cells: Sequence[Stretch], noise: float) -> Reals:
        r"""`_cell_sums` of a few rows.

        In a cell u + y, |y| <= h: log|M|^2 is at most log|M(u)|^2 + D y + theta^2 var M(0)^2 h^2 / |M(u)|^2, since
        the second derivative of |M|^2 is at most 2 theta^2 var M(0)^2.
        """
        others, left = self.n - 1, np.concatenate([stretch.edges[:-1] for stretch in cells])
        half = 0.5 * np.concatenate([np.diff(stretch.edges) for stretch in cells])
        middle = left + half
        sums = [_turned_sums(rows.x, rows.mass, stretch) for stretch in cells]
        versed, turned, versed_x, turned_x = np.concatenate(sums, axis=2)
        real0, first, variance, rough, size = (field[:, None] for field in rows[2:])
        real, imaginary = real0 - versed, turned
        along, across = -turned_x, first - versed_x
        excess = 2.0 * real + real**2 + imaginary**2
        square, most = np.maximum(1.0 + excess, 1e-300), (1.0 + real0) ** 2
        slope = 2.0 * ((1.0 + real) * along + imaginary * across) / square
        log_ratio = np.log1p(np.maximum(excess, -1.0 + 1e-300)) - 2.0 * np.log1p(real0)
        doubt = ULP * (rough + (middle + half) * size) / np.sqrt(square)
        height = others * (0.5 * (log_ratio + variance * half**2 * most / square) + doubt)
        lean = np.abs(0.5 * others * slope - noise * middle) * half
        inside = height - 0.5 * noise * middle**2 + lean + _log_mean_exponential(lean)
        known = np.where(square > 1e-9 * most, inside, 0.0)
        values = 2.0 * half / (1.0 + left**2) * np.exp(np.minimum(known, -0.5 * noise * left**2) + 0.5 * noise)
        firsts = np.cumsum([0, *(stretch.edges.size - 1 for stretch in cells[:-1])])
        return np.asarray(np.add.reduceat(values, firsts, axis=1).T * (2.0 / math.pi))


def _turned_sums(x: Reals, mass: Reals, cells: Stretch) -> Reals:
    r"""Sums over atoms of p (1 - cos u x) and p sin u x, and the same with p x for p, each (rows, cells).

    Turns by a coarse angle and by a fine one are one product of matrices; differences from 1 keep what is small:

    .. math:: 1 - e^{i (a + b)} = (1 - e^{ia}) + e^{ia} (1 - e^{ib})
    """
    count, (versed, sine) = cells.edges.size - 1, _turns(cells.coarse, x)
    weights = np.stack([mass, mass * x])
    sums = [weights.swapaxes(0, 1) @ part.transpose(1, 2, 0) for part in (versed, sine)]
    if cells.fine.size == 1:
        return np.asarray(np.stack(sums, axis=1).transpose(2, 1, 0, 3).reshape(4, len(x), -1))
    fine_versed, fine_sine = _turns(cells.fine, x)
    pairs = ((1.0 - versed, (fine_versed, fine_sine)), (sine, (fine_sine, -fine_versed)))
    products = [
        (weights[:, None] * coarse).reshape(-1, *x.shape).swapaxes(0, 1) @ np.concatenate(fine).transpose(1, 2, 0)
        for coarse, fine in pairs
    ]
    both = (products[0] + products[1]).reshape(len(x), 2, cells.coarse.size, 2, -1)
    turned = np.stack(sums, axis=3)[..., None] + both
    return np.asarray(turned.transpose(1, 3, 0, 2, 4).reshape(4, len(x), -1)[..., :count])


def _turns(u: Reals, x: Reals) -> tuple[Reals, Reals]:
    """1 - cos u x and sin u x, (angles, rows, atoms), from one tangent: t = tan(u x / 2)."""
    tangent = np.tan(0.5 * u[:, None, None] * x)
    square = tangent**2
    share = 2.0 / (1.0 + square)
    return square * share, tangent * share


def _cells(scale: float, noise: float, width: float, *, lattice: bool = False) -> Grid:
    """Cells until the noise is e^-40, so many times as wide as usual in the middle."""
    step, last = 2.0 * FINE * width, max(9.0 / math.sqrt(noise), 1.1 * REACH)
    end = step * math.floor(REACH / step + 0.5)
    if lattice:
        wide = beyond = _even_cells(end / scale, 2.0 * EVEN / scale, math.floor((last - end) / (2.0 * EVEN)))
    else:
        wide, beyond = (_growing_cells(end / scale, last / scale, times) for times in (WIDE, 1.0))
    return Grid(_even_cells(0.0, step / scale, round(end / step)), beyond, wide, noise * scale**2)


def _growing_cells(first: float, last: float, width: float) -> Stretch:
    edges: Reals = np.geomspace(first, last, math.ceil(math.log(last / first) / math.log(GROWTH) / width) + 1)
    return Stretch(edges, np.asarray(0.5 * (edges[1:] + edges[:-1])), np.zeros(1))


def _even_cells(first: float, step: float, count: int) -> Stretch:
    few = math.ceil(math.sqrt(count))
    edges, fine = (np.asarray(step * np.arange(size), dtype=np.float64) for size in (count + 1, few))
    coarse = np.asarray(first + step * (few * np.arange(math.ceil(count / few)) + 0.5), dtype=np.float64)
    return Stretch(first + edges, coarse, fine)


def _log_mean_exponential(x: Reals) -> Reals:
    """log(e^-x sinh(x) / x) for x >= 0."""
    small = np.maximum(2.0 * x, 1e-9)
    return np.asarray(np.log(-np.expm1(-small) / small))


def _total(logs: Reals) -> float:
    """The sum of numbers given by their logs."""
    top = float(logs.max())
    return math.exp(min(top, 700.0)) * float(np.exp(logs - top).sum())


FEWEST = 30.0  # draws of mu that are expected among the others: below, the bound gives nothing
SEARCH = 1e-6  # relative width to which a threshold is searched
MANY = 40  # pairs of values of which most are told by two moments to be far from the worst one
CLEAR_ULP = 2.0**-46  # the rounding of sums over reports
LOST = 1e-6  # share of delta that may be given up
KNOWN = 1e-3  # share of an upper bound on delta that is taken for delta itself, to say how much may be given up

SOURCE = "Hidden among everybody: Theorems A and B of docs/theory/hidden-among-everybody.md"
NAME = "hidden among everybody"


@dataclass(frozen=True, eq=False)
class PairMoments:
    r"""Sums over reports by which many pairs of values are told at once to be far from the worst one.

    .. math:: M_{t,s}(0) \le 1 - g (1 - s) + \theta s \int dH
              + \frac{(\theta s)^2}{2} \psi(\theta s A) \int \frac{dH^2}{R_t^s}, \qquad
              \psi(x) = \frac{2 (e^x - 1 - x)}{x^2}, \quad A = \max \frac{dR_a}{dR_t^s}

    psi grows, and is at most 1 below 0: so e^x is at most 1 + x + psi x^2 / 2 for all x up to theta s A.

    Parameters
    ----------
    sums : float array (3, nodes, pairs, types)
        Of R_a^2, R_a R_c and R_c^2, each over R_t^s.
    most : float array (nodes, pairs, types)
        A.
    mu, first, second : float arrays (pairs, atoms)
        Of the first type, for M_0.
    """

    sums: Reals
    most: Reals
    mu: Reals
    first: Reals
    second: Reals

    @classmethod
    def of(cls, exposures: Sequence[Exposure], nodes: HidingNodes) -> PairMoments:
        mu, a, c, t = (
            np.array([getattr(one, name) for one in exposures]) for name in ("mu", "first", "second", "own")
        )
        sums, most = [], []
        for s in nodes.s:
            own = (t - mu) + s * mu
            x, z = (np.divide(law, own, out=np.zeros_like(own), where=own > 0.0) for law in (a, c))
            sums.append([(a * x).sum(axis=2), (a * z).sum(axis=2), (c * z).sum(axis=2)])
            most.append(x.max(axis=2))
        return cls(np.swapaxes(np.array(sums), 0, 1), np.array(most), mu[:, 0], a[:, 0], c[:, 0])

    @np.errstate(over="ignore", invalid="ignore")  # infinite and no number are not below what is asked
    def logs(self, theta: float, epsilon: float, n: int, nodes: HidingNodes) -> Reals:
        """Logs of what each node adds to delta at most, (nodes, pairs): what `FourierBound` has by its tilt alone."""
        e, s = math.exp(epsilon), nodes.s[:, None, None]
        h = self.first - e * self.second
        tilts = theta * np.divide(h, self.mu, out=np.zeros_like(h), where=self.mu > 0.0)
        at_mu = (self.mu * np.exp(np.minimum(tilts, 700.0))).sum(axis=1)
        squares = np.maximum(self.sums[0] - 2.0 * e * self.sums[1] + e * e * self.sums[2], 0.0)
        x = np.minimum(theta * s * self.most, 700.0)
        psi = np.where(x < 1e-2, 1.0 + x / 3.0 + x * x / 11.0, 2.0 * (np.expm1(x) - x) / np.maximum(x, 1e-2) ** 2)
        bend = 0.5 * (theta * s) ** 2 * psi * squares
        g = self.mu.sum(axis=1)[None, :, None]
        drift = theta * s * (self.first.sum(axis=1) - e * self.second.sum(axis=1))[None, :, None]
        real = bend + drift - g * nodes.missing[:, None, None]
        rough = (
            (theta * s) ** 2 * psi * (1.0 + e) ** 2 * (self.sums[0] + self.sums[2]) + np.abs(drift) + theta * e + g
        )
        top = (n - 1) * (np.log1p(np.maximum(real, -0.999)) + CLEAR_ULP * rough / np.maximum(1.0 + real, 1e-3))
        return np.asarray(top.max(axis=2) + np.log(nodes.weights[:, None] * at_mu / (2.0 * theta)) + 1e-9)

    def spread_logs(self, epsilon: float, n: int, nodes: HidingNodes) -> Reals:
        r"""The same by mean and variance alone, which is close where epsilon is small beside the normal shift.

        .. math:: E Y_+ \le \tfrac12 \big( m + \sqrt{m^2 + v} \big)

        Y is the sum, each R_t^s and mu made a probability; m is the same whatever the others hold, v depends on it.
        """
        e, s = math.exp(epsilon), nodes.s[:, None, None]
        g = self.mu.sum(axis=1)[None, :]
        own = (1.0 - g * nodes.missing[:, None])[:, :, None]
        h = self.first - e * self.second
        rough = CLEAR_ULP * (1.0 + e)
        drift = (h.sum(axis=1) + rough)[None, :]
        squares = self.sums[0] - 2.0 * e * self.sums[1] + e * e * self.sums[2]
        squares += CLEAR_ULP * (1.0 + e) ** 2 * (self.sums[0] + self.sums[2])
        at_mu = np.divide(h**2, self.mu, out=np.zeros_like(h), where=self.mu > 0.0).sum(axis=1)
        square = ((n - 1) * s**2 * squares / own).max(axis=2) + at_mu / g
        mean = drift * ((n - 1) * s[:, :, 0] / own[:, :, 0] + 1.0 / g)
        root = np.sqrt(mean**2 + square)
        positive = np.where(mean < 0.0, 0.5 * square / (root - np.minimum(mean, 0.0)), 0.5 * (mean + root))
        mass = (n - 1) * np.log1p(-g * nodes.missing[:, None])
        return np.asarray(mass + np.log(nodes.weights[:, None] * g * positive) + 1e-9)


@dataclass(frozen=True, eq=False)
class EverybodyLaw:
    r"""Privacy profile of n shuffled reports of one mechanism, whatever the others' values.

    .. math:: \delta(\epsilon) \le \rho + \sum_l \omega_l s_l F(s_l)

    Unlike the privacy blanket, nobody reveals whether her report was a draw of mu; what is lost is a share of about
    1/(g n) of delta, and what the tilt loses: 1 % of delta where epsilon is a normal shift or more away from 0.

    Parameters
    ----------
    exposures : several Exposure
        Of every ordered pair of values, with a type for every value of the others; alike ones once.
    n : int, 1 .. 1e12
        Honest reports in the batch.
    epsilon0 : float, nats
        Local promise: delta is 0 from there on.
    scale : float
        The delta that is asked about: what is given up stays a small share of it.

    Raises
    ------
    UnsupportedError
        For so few people that nothing is gained.
    """

    exposures: Sequence[Exposure]
    n: int
    epsilon0: float
    scale: float

    def __post_init__(self) -> None:
        people = whole("n", self.n, least=1)
        draws = min(exposure.g for exposure in self.exposures) * (people - 1.0)
        if draws < FEWEST:
            raise UnsupportedError(
                f"{SOURCE}: needs {FEWEST:g} reports that say nothing about their senders, expected are {draws:.3g}; "
                "the bounds for fewer people hold."
            )
        object.__setattr__(
            self, "exposures", sorted(self.exposures, key=lambda exposure: -float(exposure.spreads.max()))
        )

    def upper(self, epsilon: float, *, enough: float = 0.0, most: float = 1.0) -> float:
        """At least delta(epsilon), for epsilon at least 0; a pair below `enough` is told no closer than that.

        Where it is above `most`, that is all that is told; what is given up is small beside `most`.
        """
        if real("epsilon", epsilon) >= self.epsilon0:
            return 0.0
        tilt = best_tilt(self.exposures[0], self.n, epsilon)
        scale = KNOWN * most if most < 1.0 else 0.0
        first = self.exposures[0]
        for one, near in ((first.foremost, math.inf), (first, 0.0)):  # few types by the tilt alone, then all
            worst = self._one(one, epsilon, enough=near, tilt=tilt, scale=scale)
            while self.scale < scale > worst:  # delta is far below what is known of it
                scale = KNOWN * worst
                worst = self._one(one, epsilon, enough=near, tilt=tilt, scale=scale)
        if worst >= most:
            return min(1.0, worst)
        for exposure in self._left(epsilon, enough=max(worst, enough), tilt=tilt, scale=scale):
            worst = max(worst, self._one(exposure, epsilon, enough=max(worst, enough), tilt=tilt, scale=scale))
        return min(1.0, worst)

    def reaches(self, epsilon: float, delta: float) -> bool:
        """True if `delta` is kept at this epsilon for every pair of values, the most exposed asked first."""
        if real("epsilon", epsilon) >= self.epsilon0:
            return True
        tilt = best_tilt(self.exposures[0], self.n, epsilon)
        asked = [self.exposures[0], *self._left(epsilon, enough=delta, tilt=tilt)]
        return all(self._one(exposure, epsilon, enough=delta, tilt=tilt) <= delta for exposure in asked)

    def epsilon_upper(self, delta: float, *, most: float = math.inf, tolerance: float = SEARCH) -> float:
        """A point at which delta(upper) <= `delta` was evaluated for every pair of values, at most epsilon0.

        A pair is solved only when it exceeds `delta` at the answer of those before. A point `most` that is one
        already only saves time, and so does a wider `tolerance`, at the price of an answer larger by that share.
        """
        if share("delta", delta) == 0.0:
            return self.epsilon0
        if math.isfinite(most) and not self.reaches(min(most, self.epsilon0) * (1.0 - tolerance), delta):
            return min(most, self.epsilon0)  # where a search would end, a dozen evaluations later
        most = min(most, self.epsilon0)
        found = self._solved(self.exposures[0], delta, guess=0.0, most=most, tolerance=tolerance)
        tilt = best_tilt(self.exposures[0], self.n, found)
        asked = self._left(found, enough=delta, tilt=tilt)
        values = [self._one(exposure, found, enough=delta, tilt=tilt) for exposure in asked]
        for i in np.argsort(values)[::-1]:  # the worst first: what it is promised settles most others
            if values[i] > delta and self._one(asked[i], found, enough=delta, tilt=tilt) > delta:
                found = max(found, self._solved(asked[i], delta, guess=found, most=most, tolerance=tolerance))
                tilt = best_tilt(asked[i], self.n, found)
        return found

    def _solved(self, exposure: Exposure, delta: float, *, guess: float, most: float, tolerance: float) -> float:
        """A point as that of `epsilon_upper` for one pair: sought with few types first."""
        scale = max(math.sqrt(float(exposure.spreads.max()) / self.n), 1e-300)
        t, steepness = normal_threshold(delta / scale)

        def search(exposure: Exposure, guess: float) -> float:
            value, start = cache(lambda e: self._one(exposure, e)), first_point(guess, most)
            if is_zero(value, delta, start, steepness=steepness, tolerance=tolerance):
                return 0.0
            return bracket_root(
                lambda e: log_ratio(value(e), delta), start, steepness=steepness, most=most, tolerance=tolerance
            )[1]

        found, few = search(exposure.foremost, guess or scale * t), exposure.foremost
        if few is exposure or found == most or self._one(exposure, found, enough=delta) <= delta:
            return found
        return search(exposure, found or guess or scale * t)

    def _one(
        self,
        exposure: Exposure,
        epsilon: float,
        *,
        enough: float = 0.0,
        tilt: float | None = None,
        scale: float = 0.0,
    ) -> float:
        nodes = self._nodes(exposure.g, scale)
        bound = FourierBound(exposure, self.n, epsilon, nodes)
        found = bound.value(enough=max(0.0, enough - nodes.rho), tilt=tilt)
        return found + nodes.rho

    def _left(self, epsilon: float, *, enough: float, tilt: float | None, scale: float = 0.0) -> Sequence[Exposure]:
        """All but the first exposure and those that two moments show to be below `enough`."""
        if tilt is None or len(self.exposures) < MANY or not self._alike:
            return self.exposures[1:]
        nodes = self._nodes(self.exposures[0].g, scale)
        if nodes.s.size not in self._moments:
            self._moments[nodes.s.size] = PairMoments.of(self.exposures, nodes)
        moments = self._moments[nodes.s.size]
        logs = np.minimum(moments.logs(tilt, epsilon, self.n, nodes), moments.spread_logs(epsilon, self.n, nodes))
        most = np.exp(np.minimum(logs, 700.0)).sum(axis=0) + nodes.rho
        return [one for one, value in zip(self.exposures[1:], most[1:], strict=True) if not value <= enough]

    @cached_property
    def _alike(self) -> bool:
        """True if all pairs of values have reports of the same number and blankets of the same mass."""
        return len({(one.mu.shape, one.g) for one in self.exposures}) == 1

    @cached_property
    def _moments(self) -> dict[int, PairMoments]:
        """Of all pairs of values, by the number of nodes."""
        return {}

    def _nodes(self, g: float, scale: float) -> HidingNodes:
        return hiding_nodes(self.n, g, most=LOST * max(self.scale, scale))
