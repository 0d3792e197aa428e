r"""The privacy loss of the clone pairs on a grid, certified from above and from below.

With A ~ Bin(C, 1/2) and x = 2A/C - 1, the pair of `ClonePair` is

.. math:: P = \mathrm{Bin}(C, \tfrac12)\,(1 + \tau x), \quad Q = \mathrm{Bin}(C, \tfrac12)\,(1 - \tau x), \quad
          \log(P/Q) = 2 \operatorname{artanh}(\tau x), \qquad \tau = \tanh(\epsilon_0/2),

mixed over C. Exchanging heads and tails exchanges P and Q, so losses above 0 say everything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.account.clones.binomial_tail import MILLS_ERROR, PMF_ERROR, symmetric_binomial_tail
from dovetail.account.clones.stronger_clones import ULPS, ClonePair
from dovetail.core.errors import DataError
from dovetail.core.numeric.special import Reals

TAIL_ERROR = 2.0 * (PMF_ERROR + MILLS_ERROR)  # relative, of a tail that is their product
SLACK = 1e-6  # what the rounding of many blocks may add to a sum of probabilities
BLOCKS = 1.5e-4  # relative width of the blocks of C: a quarter of it is lost in epsilon


@dataclass(frozen=True, eq=False)
class PrivacyLossDistribution:
    r"""A privacy loss distribution on an equidistant grid: mass masses[i] at start + i * step, the rest at infinity.

    .. math:: \delta(\epsilon) \le \mathrm{infinity} + \sum_i \mathrm{masses}_i (1 - e^{\epsilon - l_i})_+

    Made by `pessimistic_pld`, where this inequality holds for the pair and survives composition, or by
    `optimistic_pld`.

    Parameters
    ----------
    step, start : float, nats
    masses : float array (points,)
    infinity : float
        Mass that is charged to delta.
    error : float
        Relative error of a round's delta that the masses of the blocks bring in, once per round.
    """

    step: float
    start: float
    masses: Reals
    infinity: float
    error: float

    def __post_init__(self) -> None:
        numbers = np.array([self.step, self.start, self.infinity, self.error])
        if not (np.isfinite(numbers).all() and self.step > 0.0 and self.infinity >= 0.0 and self.error >= 0.0):
            raise DataError(f"A privacy loss distribution must have finite numbers at least 0, got {numbers}.")
        total = float(self.masses.sum()) if self.masses.size and self.masses.min() >= 0.0 else math.nan
        if not total <= 1.0 + SLACK:
            raise DataError(f"`masses` must be probabilities with sum at most 1, got sum {total!r}.")

    @property
    def losses(self) -> Reals:
        """The grid, float array (points,), nats."""
        return self.start + self.step * np.arange(self.masses.size, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Tails:
    """At each grid loss l >= 0: mass of Q beyond l, of P less Q, and ends of delta(l); float arrays (points,)."""

    q: Reals
    gap: Reals
    low: Reals
    high: Reals


def pessimistic_pld(pair: ClonePair, *, step: float, cut: float, width: float = BLOCKS) -> PrivacyLossDistribution:
    r"""A privacy loss distribution that dominates the pair: the pessimistic estimate.

    .. math:: \Pr[L' > l_j] = \frac{\delta(l_j) - e^{-s} \delta(l_{j+1})}{1 - e^{-s}}, \qquad l_j = j s

    Each output is split between the two grid losses beside its own so that P and Q both keep their mass: delta is
    exact on the grid and a chord in e^epsilon between, so what is lost falls with the square of the step. Blocks
    of C count with their left ends; what is cut off is charged to infinity.

    Parameters
    ----------
    step : float, above 0, nats
    cut : float
        About the mass that may be cut off on each side.
    width : float
        Relative width of the blocks of C.

    Source
    ------
    Doroshenko, Ghazi, Kamath, Kumar, Manurangsi (2022), Connect the Dots, PoPETs, section 3; the order of blocks is
    the reverse martingale A/C and Jensen's inequality.
    """
    window = pair.blocks(cut, width)
    masses = np.append(window.masses, window.cut_right)
    tails = _tails(window.edges + 1.0, masses, pair.epsilon0 * (1.0 + ULPS), step=step, cut=cut)
    low, high = (_beyond(a, b, step) for a, b in ((tails.low, tails.high), (tails.high, tails.low)))
    noise = float(np.max(high - low))
    beyond = np.maximum.accumulate(high[::-1])[::-1]  # a survival function does not grow
    right = beyond[:-1] - beyond[1:]  # at losses step, 2 step, ...
    infinity = float(beyond[-1]) + window.cut_left + cut
    left = right * np.exp(-step * np.arange(1, right.size + 1))
    middle = max(0.0, 1.0 + 2.0 * noise - float(right.sum() + left.sum()) - infinity)
    pld = np.concatenate([left[::-1], [middle], right])
    return PrivacyLossDistribution(step, -step * right.size, pld, infinity, window.error)


def _beyond(here: Reals, following: Reals, step: float) -> Reals:
    """Pr[L' > l_j] from delta at l_j and l_{j+1}."""
    value: Reals = (here[:-1] - math.exp(-step) * following[1:]) / -math.expm1(-step)
    return value


def optimistic_pld(pair: ClonePair, *, step: float, cut: float) -> tuple[PrivacyLossDistribution, Reals]:
    r"""A privacy loss distribution near the pair's own, and how far each of its losses may lie above the truth.

    Outputs whose loss lies in one cell of the grid are merged, which can only hide: P and Q of the cell give the
    merged loss. It is moved to the middle of its cell, and the shift is returned. Blocks of C count with their
    right ends, and what is cut off is left out.

    Returns
    -------
    law, shifts : LossDistribution, float array (points,)
        middle of the cell minus merged loss, an upper end; at most step / 2.
    """
    window = pair.blocks(cut, BLOCKS)
    tails = _tails(window.edges[1:], window.masses, pair.epsilon0 * (1.0 - ULPS), step=step, cut=cut)
    q, gap = tails.q[:-1] - tails.q[1:], tails.gap[:-1] - tails.gap[1:]
    q, gap = np.maximum(q, 0.0), np.maximum(gap, 0.0)  # tails fall, but for rounding
    p = q + gap
    middles = step * (np.arange(q.size) + 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = 2.0 * (PMF_ERROR * tails.gap[:-1] + gap * TAIL_ERROR * tails.q[:-1] / q) / p
        shift = middles - np.log1p(gap / q)
        right, left = (
            np.clip(np.nan_to_num(v + noise, nan=np.inf), -0.5 * step, 0.5 * step) for v in (shift, -shift)
        )
    # losses of exactly 0 lie on the edge of two cells and count half in each
    ties = max(0.0, float(window.masses.sum()) * (1.0 - 1e-11) - float(tails.gap[0] + 2.0 * tails.q[0]))
    pld = np.concatenate([q[::-1], p])
    shifts = np.concatenate([left[::-1], right])
    pld[p.size - 1 : p.size + 1] += 0.5 * ties
    shifts[p.size - 1 : p.size + 1] = 0.5 * step
    return PrivacyLossDistribution(step, -middles[-1], pld * (1.0 - 2.0 * TAIL_ERROR), 0.0, window.error), shifts


def _tails(trials: Reals, weights: Reals, epsilon0: float, *, step: float, cut: float) -> _Tails:
    """Mixture over the numbers of trials C, on the grid 0, step, ... up to where at most about `cut` is left of P."""
    reach = np.minimum(np.sqrt(2.0 * math.log(4.0 / cut) / trials), 1.0)  # Hoeffding, and 1 + tau x is at most 2
    most = 2.0 * np.arctanh(math.tanh(0.5 * epsilon0) * np.where(reach < 1.0, reach, 0.0))
    points = np.ceil(np.where(reach < 1.0, most, epsilon0) / step).astype(np.int64) + 2
    total = np.zeros((4, int(points.max())))
    for c, weight, size in zip(trials, weights, points, strict=True):
        total[:, :size] += weight * _binomial_tails(c, step * np.arange(size), epsilon0)
    used = max(3, int(np.count_nonzero(total[0] + total[1] > cut)) + 2)
    return _Tails(*total[:, :used])


def _binomial_tails(trials: float, loss: Reals, epsilon0: float) -> Reals:
    r"""The rows of `_Tails` for one number of trials, float array (4, points).

    .. math:: Q = f\,(m - \tfrac{\tau}{2}), \quad P - Q = f \tau, \quad
              P - e^l Q = f (1 + e^l) \left(\tfrac{\tau}{2} - \tanh(\tfrac l2)\, m\right), \qquad
              f = \Pr[\mathrm{Bin}(C-1, \tfrac12) = k-1], \; m = \Pr[\mathrm{Bin}(C, \tfrac12) \ge k] / f
    """
    tau = math.tanh(0.5 * epsilon0)
    inside = loss < epsilon0
    at = np.minimum(loss, epsilon0)
    rest = -np.expm1(at - epsilon0) / (-math.expm1(-epsilon0) * (1.0 + np.exp(at)))  # most failures per trial
    most = math.floor(0.5 * (trials - 1.0))  # a loss of 0 and more has beta >= 1/2: a tie is not beyond it
    others = np.where(inside, np.minimum(np.ceil(rest * trials) - 1.0, most), -1.0)
    fresh = np.concatenate([[True], others[1:] != others[:-1]])  # it falls with the loss, in few steps for few trials
    distinct, where = others[fresh], np.cumsum(fresh) - 1
    k = trials - np.maximum(distinct, 0.0)
    first, mills = symmetric_binomial_tail(k, np.full_like(k, trials))
    f = np.where(distinct >= 0.0, first, 0.0)[where]
    alone = others <= 0.0  # no failure among them: everything is known in closed form
    m = np.where(alone, 0.5, mills[where])
    hidden = 2.0 / (math.exp(epsilon0) + 1.0) if epsilon0 < 700.0 else 0.0  # 1 - tau
    q, gap = f * (m - 0.5 + 0.5 * hidden), f * tau
    lone = f * tau * np.expm1(at - epsilon0) / math.expm1(-epsilon0)
    scale, cancelled = f * (1.0 + np.exp(at)), np.tanh(0.5 * at) * m
    low, high = (
        (1.0 + sign * PMF_ERROR)
        * np.where(alone, lone, np.maximum(0.0, scale * (0.5 * tau - cancelled * (1.0 - sign * MILLS_ERROR))))
        for sign in (-1.0, 1.0)
    )
    return np.stack([q, gap, low, high])
