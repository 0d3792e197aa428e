r"""The mean excess of a sum of many independent copies of one discrete variable, between certified ends.

Three devices. *Tilting* moves the bulk of the law to where the sum changes sign, so that a probability of 1e-18 is as
easy as one of 0.1. *Gridding* splits each value onto its two neighbours on a grid with the mean kept; it grows the
convex order, so the gridded sum S' has the larger mean excess. *Levels* in base r of n keep the grid at the scale of
the sum: r blocks are added by one Fourier transform, and the grid is made coarser before the next level.

The lower end comes from the event {S' > 0}: with h(x) = E[S; S' = x] carried along, E[S; S' > 0] <= E[S_+]. Where
copies off one common value are so rare that the transforms round them away, it comes from the cases with one of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.core.bracket import Bracket
from dovetail.core.special import Reals

POINTS = 1 << 15
BASE = 128  # most copies that one transform adds
COARSE = 10.0  # splits may multiply the tilted mass by e^10
STEEPEST = 500.0  # the tilt may change by e^500 from one grid point to the next
TAIL = 1e-17  # tilted mass left outside all windows
NOISE = 2.0**-48  # rounding of the transforms per copy, a share of the tilted mass: four times what was measured
_FACTORS = np.exp2(np.arange(-3.0, 2.5, 0.5))

Spectrum = NDArray[np.complex128]  # (2, points / 2 + 1): of masses and of means


class Placed(NamedTuple):
    """A tilted law of a gridded sum S', with what the sum S itself is there."""

    places: Reals
    masses: Reals
    means: Reals  # tilted E[S; S' = place]


@dataclass(frozen=True, eq=False)
class Tilt:
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

    @property
    def kappa(self) -> float:
        return float(self.cumulants(np.array([self.theta]))[0][0])

    @property
    def masses(self) -> Reals:
        """The tilted masses."""
        return self.weights * np.exp(self.theta * self.values - self.kappa)

    def reach(self, copies: int, log_tail: float, splits: Splits) -> tuple[float, float]:
        r"""An interval that a gridded sum of `copies` leaves, on each side, with tilted mass at most e^-log_tail.

        .. math:: \log \Pr_\theta[S' \ge t] \le m(\kappa(\theta + \lambda) - \kappa(\theta))
                  + \mathrm{growth}(\theta + \lambda) - \lambda t
        """
        if copies == 0:
            return 0.0, 0.0
        spread = float(self.masses @ (self.values - self.masses @ self.values) ** 2)
        width = float(np.ptp(self.values))
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

    def growth(self, copies: int, splits: Splits) -> float:
        """log of the tilted mass that the splits of so many copies may have made of 1."""
        tilts = np.array([self.theta])
        return float(splits.growth(copies, tilts, self.cumulants(tilts)[1])[0])


class Splits(NamedTuple):
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


def mean_excess(
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
        Grid points. The relative gap falls with their square.

    Notes
    -----
    Levels = log n / log 128, rounded up. The ends hold up to the rounding of the transforms, for which `NOISE` times
    (n + sqrt(points)) of the tilted mass is charged; that is measured, not proved.

    Examples
    --------
    >>> ends = mean_excess(np.array([1.0, -2.0]), np.array([0.5, 0.5]), 2)  # 2, -1 or -4: E = 2/4, divided by 2
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
    shift = _common(values, masses, n)  # a heavy atom that lies on the grid is not split
    tilt = Tilt(values - shift, masses, _saddle(values, masses, n))
    single = min(_single(true, masses, values == shift, n), alone.upper)
    summed = _sum(tilt, true - shift, n, points)
    if summed is None:
        return Bracket(single, alone.upper)
    total, splits = summed
    theta, sums = tilt.theta, total.places + n * shift
    weight = np.where(sums > 0.0, np.exp(-theta * np.maximum(sums, 0.0)), 0.0)
    rounding = NOISE * (n + math.sqrt(points))
    lost = TAIL * math.exp(tilt.growth(n, splits))  # splits add tilted mass
    wide = 2.0 * math.sqrt(np.sum(sums**2 * total.masses)) + n * abs(shift)
    upper = float(np.sum(weight * sums * total.masses)) + (lost + rounding) / (math.e * theta)
    means = total.means + n * shift * total.masses
    noisy = NOISE * (math.sqrt(n) + math.sqrt(points))
    lower = float(np.sum(weight * means)) - 2.0 * rounding / (math.e * theta) - wide * (math.sqrt(lost) + noisy)
    scale = math.exp(n * tilt.kappa + theta * n * shift) / n
    upper = min(scale * upper * (1.0 + rounding), alone.upper)  # more people never help the adversary
    lower = max(scale * lower * (1.0 - rounding), single)
    return Bracket(min(lower, upper), upper)


def _single(values: Reals, masses: Reals, common: NDArray[np.bool_], n: int) -> float:
    """What the cases add in which all copies but one take the common value: no transform rounds it away."""
    rare = ~common
    moved = float(masses[rare].sum())
    if not common.any() or moved >= 1.0:
        return 0.0
    others, chance = (n - 1) * float(values[common].min()), math.exp((n - 1) * math.log1p(-moved))
    return chance * (1.0 - 1e-12) * float(np.maximum(values[rare] + others, 0.0) @ masses[rare])


def _common(values: Reals, masses: Reals, n: int) -> float:
    """The heaviest of the values so near 0 that n of them are not far on the scale of the sum; 0 if there is none."""
    spread = math.sqrt(masses @ (values - masses @ values) ** 2)
    near = np.abs(values) * math.sqrt(n) <= 10.0 * spread
    return float(values[near][masses[near].argmax()]) if near.any() else 0.0


def _saddle(values: Reals, masses: Reals, n: int) -> float:
    """About the theta at which exp(n kappa) / (e theta), a bound on n times the answer, is least."""
    logs = np.log(masses)

    def slope(theta: float) -> float:
        powers = np.exp(theta * values + logs - np.max(theta * values + logs))
        return n * float(powers @ values) / float(powers.sum()) - 1.0 / theta

    low = high = 1.0 / math.sqrt(n * float(masses @ (values - masses @ values) ** 2))
    while slope(low) > 0.0:
        low /= 4.0
    while slope(high) < 0.0:
        high *= 4.0
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return high


def _sum(tilt: Tilt, true: Reals, n: int, points: int) -> tuple[Placed, Splits] | None:
    """The sum of n copies and the splits that it went through; None where the grid is too coarse.

    On level i a block is the sum of r^i copies, the rest is the sum of n mod r^i others.
    """
    levels = max(1, math.ceil(math.log(n) / math.log(BASE) - 1e-9))
    base = max(2, math.ceil(n ** (1.0 / levels) - 1e-9))
    block = Placed(tilt.values, tilt.masses, tilt.masses * true)
    rest = Placed(np.zeros(1), np.ones(1), np.zeros(1))
    splits = Splits(base, ())
    for level in range(levels):
        held = n % base**level  # copies in the rest so far
        then = n if level == levels - 1 else n % base ** (level + 1)
        sizes = [then] if level == levels - 1 else [then, base ** (level + 1)]
        log_tail = math.log(4.0 * levels * max(1.0, n / base ** (level + 1)) / TAIL)
        windows = _windows(tilt, sizes, log_tail, splits, points)
        if windows is None:
            return None
        step, firsts = windows
        splits = Splits(base, (*splits.steps, step))
        one, other = (_spectrum(law, step, tilt.theta, points) for law in (block, rest))
        rest = _add(one, other, (then - held) // base**level, firsts[0], step, points)
        if level < levels - 1:
            block = _add(one, np.array([[1.0], [0.0]]), base, firsts[1], step, points)
    return rest, splits


def _windows(
    tilt: Tilt, sizes: list[int], log_tail: float, before: Splits, points: int
) -> tuple[float, list[int]] | None:
    """The step at which `points` cover every sum of the level, and the first grid number of each; None if coarse."""
    step = 0.0
    while True:
        guess = 1.01 * step
        splits = Splits(before.base, (*before.steps, guess))
        if tilt.growth(max(sizes), splits) > COARSE:
            return None
        spans = [tilt.reach(size, log_tail, splits) for size in sizes]
        step = max(high - low for low, high in spans) / (points - 4)
        if tilt.theta * step > STEEPEST:
            return None
        if step <= guess:
            return step, [math.floor(low / step) - 1 for low, _ in spans]


def _spectrum(law: Placed, step: float, theta: float, points: int) -> Spectrum:
    """Transforms of masses and means, split onto multiples of the step; number j is in cell j mod points."""
    left = np.floor(law.places / step)
    share = law.places / step - left  # the untilted share that goes right
    cell = np.mod(left, points).astype(np.int64)
    cells = np.concatenate([cell, (cell + 1) % points])
    factors = np.append((1.0 - share) * np.exp(-theta * share * step), share * np.exp(theta * (1.0 - share) * step))
    parts = [np.bincount(cells, factors * np.tile(part, 2), points) for part in (law.masses, law.means)]
    return np.asarray(np.fft.rfft(parts))


def _add(one: Spectrum, other: NDArray[Any], copies: int, first: int, step: float, points: int) -> Placed:
    """`copies` of the law `one` and one of the law `other`, from the grid number `first` on."""
    power = one[0] ** max(copies - 1, 0)
    full = power * one[0] if copies else power
    both = np.array([other[0] * full, other[1] * full + copies * other[0] * one[1] * power])
    masses, means = np.roll(np.fft.irfft(both, points), -(first % points), axis=1)
    places = step * (first + np.arange(points, dtype=np.float64))
    return Placed(places, np.maximum(masses, 0.0), means)
