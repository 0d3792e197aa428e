r"""How much likelier one value of a person is than another among m uniform reports: a sum, from few of its terms.

.. math:: h(m) = E[g(B)], \qquad
          g(b) = \frac{p - 1}{m} E\left[\left(A - E b - \frac{(E - 1) m}{p - 1}\right)_+ \middle| B = b\right], \qquad
          B \sim \mathrm{Bin}(m, \tfrac1k), \quad A \mid B = b \sim \mathrm{Bin}(m - b, \tfrac1{k - 1})

g falls and is convex in b: with one b more, a Bernoulli variable and E are taken off A - E b, and
(x + y + z)_+ + x_+ >= (x + y)_+ + (x + z)_+ for y, z >= 0. So chords through a few b are above it, and chords
prolonged are below it. The points stand close where pmf times g is large, by a normal law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.account.mechanisms.mixture.binomial_window import LEFT_OUT, Window, binomial_window
from dovetail.core.numeric.special import Reals, binomial_pmf, binomial_survival

OFF, OFF_ROOT = (
    1e-12,
    1e-14,
)  # a binomial tail or point of n is off by OFF + OFF_ROOT sqrt(n): five times what is measured
ALL, POINTS = 600, 400  # so many b at most are all counted; of more, so many
PLACES = np.sinh(np.linspace(-3.2, 3.2, POINTS))  # in standard deviations, from the middle of pmf times g


@dataclass(frozen=True, eq=False)
class Draws:
    """Numbers m of uniform reports, and the law of B for each."""

    k: int
    numbers: tuple[int, ...]
    windows: tuple[Window, ...]

    @classmethod
    def among(cls, k: int, numbers: Sequence[int]) -> Draws:
        """Of these numbers, each at least 1."""
        return cls(k, tuple(numbers), tuple(binomial_window(m, 1.0 / k) for m in numbers))

    def gains(self, ratio: float, factor: float, *, side: float = 1.0) -> Reals:
        """h of each m from above, or with side -1 from below, at p = `ratio` and E = `factor`."""
        chosen = [
            self._points(m, window, ratio, factor) for m, window in zip(self.numbers, self.windows, strict=True)
        ]
        sizes = [one.size for one in chosen]
        b, m = np.concatenate(chosen), np.repeat(np.array(self.numbers, dtype=np.float64), sizes)
        low, high = _excess(m - b, self.k, factor * b + (factor - 1.0) * m / (ratio - 1.0))
        ends = np.cumsum(sizes)[:-1]
        parts = zip(chosen, self.windows, np.split(low, ends), np.split(high, ends), strict=True)
        sums = [_above(b, law, h) if side > 0.0 else _below(b, law, g, h) for b, law, g, h in parts]
        outside = max(0.0, side) * LEFT_OUT * (ratio - factor)
        scale = (ratio - 1.0) / np.array(self.numbers, dtype=np.float64)
        return np.asarray(scale * np.array(sums) + outside)

    def _points(self, m: int, window: Window, ratio: float, factor: float) -> Reals:
        """The b that g is computed at, ascending, the first and the last one of the window among them."""
        k, first, last = self.k, window.first, window.first + window.masses.size - 1
        bar = (factor - 1.0) * m / (ratio - 1.0)
        if k == 2:  # g is a line down to 0
            zero = math.floor((m - bar) / (1.0 + factor))
            places = np.array([first + 1.0, zero - 1.0, zero, zero + 1.0])
        elif window.masses.size <= ALL:
            return np.arange(first, last + 1.0)
        else:
            spread, other, slope = m * (k - 1.0) / k**2, m * (k - 2.0) / (k * (k - 1.0)), factor + 1.0 / (k - 1)
            middle = m / k - slope * ((factor - 1.0) * m / k + bar) / (other / spread + slope * slope)
            places = np.rint(min(max(middle, first), last) + PLACES / math.sqrt(1.0 / spread + slope**2 / other))
        return np.unique(np.concatenate([[first], np.clip(places, first, last), [last]]))


def _moments(points: Reals, window: Window) -> tuple[Reals, Reals]:
    """Of the b from each point to the next: their mass, and the sum of mass times distance from the point."""
    at = (points - window.first).astype(np.int64)
    mass = np.add.reduceat(window.masses, at)
    return mass, np.add.reduceat(window.masses * np.arange(window.masses.size), at) - at * mass


def _above(points: Reals, window: Window, high: Reals) -> float:
    """At least the mean of a convex function that is at most `high` at these points: by chords."""
    mass, beyond = _moments(points, window)
    return float(mass @ high + (np.diff(high) / np.diff(points)) @ beyond[:-1])


def _below(points: Reals, window: Window, low: Reals, high: Reals) -> float:
    """At most the mean of a convex falling function between `low` and `high` there: by the chords next to each."""
    mass, beyond = _moments(points, window)
    gaps = np.diff(points)
    steep, flat = np.minimum((low[1:] - high[:-1]) / gaps, 0.0), np.minimum((high[1:] - low[:-1]) / gaps, 0.0)
    left = mass * low
    left[1:] += steep * beyond[1:]
    left[0] *= beyond[0] <= 0.0  # nothing is known before the first point
    right = mass[:-1] * low[1:] + np.append(flat[1:], 0.0) * (beyond[:-1] - mass[:-1] * gaps)
    return float(np.maximum(left[:-1], right).sum() + left[-1])


def _excess(n: Reals, k: int, bar: Reals) -> tuple[Reals, Reals]:
    r"""Ends of E[(A - bar)_+] for A ~ Bin(n, q), q = 1/(k - 1), elementwise; `bar` is at least 0.

    .. math:: (n q - x) \Pr[A' > x] + q (n - x) \Pr[A' = \lfloor x \rfloor], \qquad A' \sim \mathrm{Bin}(n - 1, q)
    """
    if k == 2:
        value = np.maximum(n - bar, 0.0)
        return value, value
    q, others = 1.0 / (k - 1), np.maximum(n - 1.0, 0.0)
    some = bar < n
    x, n, others = bar[some], n[some], others[some]
    above = np.floor(x)
    tail = (n * q - x) * binomial_survival(above, others, q, 1.0 - q)
    point = q * (n - x) * binomial_pmf(above, others, q, 1.0 - q)
    off = (OFF + OFF_ROOT * np.sqrt(n)) * (np.abs(tail) + point)
    low, high = np.zeros(bar.shape), np.zeros(bar.shape)
    low[some], high[some] = np.maximum(tail + point - off, 0.0), np.maximum(tail + point + off, 0.0)
    return low, high
