r"""The privacy loss of a shuffled mechanism, from any certified values of its delta: the convex envelope.

.. math:: C \text{ convex in } E, \quad C \ge D_E(P \| Q) \text{ for every collection and pair}
          \quad\Longrightarrow\quad \text{the pair with hockey stick } C \text{ dominates them all}
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dovetail.account.clones.stronger_clones import ClonePair
from dovetail.account.composition.privacy_loss import PrivacyLossDistribution, pessimistic_pld
from dovetail.account.mechanism_law import Mechanism, blanket_law, everybody_law, local_epsilon, mechanism_law
from dovetail.core.errors import UnsupportedError
from dovetail.core.numeric.special import Reals

FINENESS, COARSE = 16.0, 8.0  # evaluated points in one typical loss; fewer for many pairs of values
FEW = 10  # pairs of values whose evaluation is quick
MOST_POINTS = 1200
ROUNDING = 1e-11  # share by which values of delta are raised, for the rounding of their differences
BETTER = 0.96  # share of what is known below which a slow source is worth its time
Delta = Callable[[float], float]


@dataclass(frozen=True)
class MechanismCurve:
    """What n shuffled reports of one mechanism reveal at most, at every epsilon.

    Parameters
    ----------
    mechanism : Randomizer or Channel, of pure local privacy
    n : int
        Honest reports in the batch.
    """

    mechanism: Mechanism
    n: int

    @property
    def epsilon0(self) -> float:
        """The local promise."""
        return local_epsilon(self.mechanism)

    @property
    def clones(self) -> ClonePair:
        """What every mechanism with this promise has."""
        return ClonePair(self.epsilon0, self.n)

    @property
    def gaussian_scale(self) -> float:
        """About the normal shift that it behaves like: a guess, never a bound."""
        with suppress(UnsupportedError):
            law = everybody_law(self.mechanism, n=self.n, delta=1e-6)
            spread = max(float(exposure.spreads.max()) for exposure in law.exposures)
            return min(self.clones.gaussian_scale, math.sqrt(spread / self.n))
        own = blanket_law(self.mechanism)
        known = self.clones.gaussian_scale
        return known if own is None else min(known, math.sqrt(own.spread / self.n))

    def pessimistic(self, *, step: float, cut: float) -> PrivacyLossDistribution:
        """A law of losses on multiples of `step` that dominates; about `cut` is left at infinity."""
        return _pessimistic(self, step, cut)


@lru_cache(maxsize=64)
def _pessimistic(curve: MechanismCurve, step: float, cut: float) -> PrivacyLossDistribution:
    delta, fineness = _smallest(curve, cut)
    stride = max(1, math.floor(min(curve.gaussian_scale, 0.5 * curve.epsilon0) / fineness / step))
    places, values = evaluate_delta(delta, curve.epsilon0, stride * step, cut)
    if not values[-1] <= 0.1 * values[0]:  # next to nothing is hidden, and the losses are few
        return pessimistic_pld(curve.clones, step=step, cut=cut)
    return envelope_pld(np.rint(places / step).astype(np.int64), values, step=step)


def _smallest(curve: MechanismCurve, cut: float) -> tuple[Delta, float]:
    """The smallest certified delta at an epsilon, and how densely to ask; a slow source only where it is better."""
    fineness, clones = FINENESS, curve.clones
    blocks = clones.blocks(1e-3 * cut, 1e-3)
    sources: list[Delta] = [lambda e: clones.upper(e, blocks)]
    with suppress(UnsupportedError):
        everybody = everybody_law(curve.mechanism, n=curve.n, delta=max(cut, 1e-30))
        sources.append(everybody.upper)
        fineness = FINENESS if len(everybody.exposures) <= FEW else COARSE
    with suppress(UnsupportedError):
        law = mechanism_law(curve.mechanism, n=curve.n)[1]
        middle, own = min(0.5 * curve.gaussian_scale, 0.5 * curve.epsilon0), list(sources)
        if len(own) == 1 or law.delta(middle).upper < BETTER * min(source(middle) for source in own):
            sources.append(lambda e: law.delta(e).upper)
            fineness = COARSE
    return lambda e: min(source(e) for source in sources), fineness


def evaluate_delta(delta: Delta, epsilon0: float, stride: float, cut: float) -> tuple[Reals, Reals]:
    """Multiples of `stride` and delta there, until at most `cut` or nothing more is gained."""
    places, values = [0.0], [min(1.0, delta(0.0))]
    while values[-1] > cut and len(places) <= MOST_POINTS:
        place = stride * len(places)
        places.append(place)
        values.append(0.0 if place >= epsilon0 else min(values[-1], delta(place)))
        if len(values) > 8 and values[-1] > 0.999 * values[-8]:
            break
    return np.array(places), np.array(values)


def envelope_pld(cells: Reals, values: Reals, *, step: float) -> PrivacyLossDistribution:
    r"""The law of losses whose hockey stick is the convex envelope of delta at losses `cells` times `step`.

    .. math:: \Pr[L' = l_j] = e^{l_j} (C'(E_j+) - C'(E_j-)), \qquad \Pr[L' = \infty] = \delta_J, \qquad
              \delta_{-j} = 1 - e^{-l_j} (1 - \delta_j)

    Losses below 0 mirror those above, since exchanging the pair does. A later value above an earlier one, or above a
    chord, would be negative mass: it is lowered, which is valid, because delta is convex in E and falls.

    Parameters
    ----------
    cells : int array (points,), ascending from 0
    values : float array (points,)
        At least delta there, for every collection and both orders of every pair of values.
    """
    cells, values = np.asarray(cells), np.minimum.accumulate(np.minimum(np.asarray(values) * (1.0 + ROUNDING), 1.0))
    e = np.exp(step * cells)
    values[0] = min(
        float(values[0]), float(np.min((2.0 * values + e - 1.0) / (e + 1.0)))
    )  # chords to the mirror image
    hull = lower_hull(e, values)
    places, heights = e[hull], values[hull]
    slopes = np.append(np.diff(heights) / np.diff(places), 0.0)
    first = float(slopes[0])
    masses = np.zeros(int(cells[-1]) + 1)
    masses[cells[hull[1:]]] = places[1:] * np.maximum(np.diff(slopes), 0.0)
    infinity, right = float(heights[-1]), masses[1:]
    left = right * np.exp(-step * np.arange(1, right.size + 1))
    middle = max(0.0, 1.0 - float(right.sum() + left.sum()) - infinity)
    assert first <= 0.0
    pld = np.concatenate([left[::-1], [middle], right])
    return PrivacyLossDistribution(step, -step * right.size, pld, infinity, 1e-9)


def lower_hull(x: Reals, y: Reals) -> np.ndarray:
    """Indices of the lower convex hull of a function's points, ascending in x."""
    kept: list[int] = []
    for i in range(x.size):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return np.array(kept)
