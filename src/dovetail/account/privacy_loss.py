r"""The privacy loss of the clone pairs on a grid, certified from above and from below.

With A ~ Bin(C, 1/2) and x = 2A/C - 1, the pair of `ClonePair` is

.. math:: P = \mathrm{Bin}(C, \tfrac12)\,(1 + \tau x), \quad Q = \mathrm{Bin}(C, \tfrac12)\,(1 - \tau x), \quad
          \log(P/Q) = 2 \operatorname{artanh}(\tau x), \qquad \tau = \tanh(\epsilon_0/2),

mixed over C. Exchanging heads and tails exchanges P and Q, so losses above 0 say everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from dovetail.account.bound import DominatingPair
from dovetail.account.clones import (
    MILLS_ERROR,
    PMF_ERROR,
    ULPS,
    ClonePair,
    smallest_epsilon,
    symmetric_binomial_tail,
)
from dovetail.account.hidden_among_everybody import FLOOR, EverybodyLaw
from dovetail.account.mechanism_law import (
    Subject,
    blanket_law,
    everybody_law,
    everybody_laws,
    local_epsilon,
    mechanism_law,
)
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.special import Reals

TAIL_ERROR = 2.0 * (PMF_ERROR + MILLS_ERROR)  # relative, of a tail that is their product
SLACK = 1e-6  # what the rounding of many blocks may add to a sum of probabilities
BLOCKS = 1.5e-4  # relative width of the blocks of C: a quarter of it is lost in epsilon


@dataclass(frozen=True, eq=False)
class PrivacyLossDistribution:
    r"""A privacy loss distribution on an equidistant grid: mass masses[i] at start + i * step, the rest at infinity.

    .. math:: \delta(\epsilon) \le \mathrm{infinity} + \sum_i \mathrm{masses}_i (1 - e^{\epsilon - l_i})_+

    Made by `envelope_pld`, where this inequality holds for the pair and survives composition, or by
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


# Sums of independent privacy losses by one tilted Fourier transform, its errors charged.
#
# Under the tilted law the losses around the epsilon in question are the usual ones, so that rounding is small beside
# delta itself, however small delta is:
#
# .. math:: \Pr[S = s] = e^{K(\theta) - \theta s} \Pr_\theta[S = s], \qquad
#           K(\theta) = \sum_r t_r \log E[e^{\theta L_r}].


OUTSIDE = 1e-12  # tilted mass that may lie outside the transform
NEARER = (1.0, 0.7, 0.4, 0.2, 0.1)  # shares of the tilt that suits a normal law: less for a heavy tail
MOST_INEXACT = 700.0  # e^700 is a double
LONGEST = 2**24
UNIT = 2.0**-53

Terms = Sequence[tuple[PrivacyLossDistribution, int]]


@dataclass(frozen=True, eq=False)
class ComposedPLD:
    """The tilted law of a sum of losses on its grid, good for epsilons near the one it was made for.

    Parameters
    ----------
    theta, log_moment : float
        The tilt and K(theta).
    start, step : float, nats
    masses : float array (points,)
        Tilted law, total about 1.
    noise : float
        Bound on the Euclidean error of `masses`: rounding of the transforms.
    infinity : float
        Mass of the sum at infinity.
    error : float
        Relative error of delta that the rounds bring in, all of them together.
    """

    theta: float
    log_moment: float
    start: float
    step: float
    masses: Reals
    noise: float
    infinity: float
    error: float

    @property
    def middle(self) -> float:
        """The middle of the window: about the epsilon it was made for."""
        return self.start + 0.5 * self.step * self.masses.size

    def upper(self, epsilon: float) -> float:
        """At least delta(epsilon) of the sum."""
        finite, doubt = self._finite(epsilon)
        return min(1.0, (finite + doubt) * (1.0 + self.error) + self.infinity)

    def lower(self, epsilon: float) -> float:
        """At most delta(epsilon) of the sum, what lies at infinity left out."""
        if self.error >= 1.0:  # rounding may be all there is
            return 0.0
        finite, doubt = self._finite(epsilon)
        return max(0.0, finite - doubt) * (1.0 - self.error)

    def _finite(self, epsilon: float) -> tuple[float, float]:
        r"""Sum over the finite losses, and the error of rounding and wrapping round.

        .. math:: 1 - e^{-k s - f} = e^{-f} (1 - e^{-k s}) + (1 - e^{-f})
        """
        first = max(0, math.floor((epsilon - self.start) / self.step) + 1)
        left = max(0, self.masses.size - first)
        f = self.start - epsilon + self.step * first
        near, far = -math.expm1(-f) * math.exp(-self.theta * f), math.exp(-f - self.theta * f)
        ones, rising = self._sums[:, left]
        found = near * float(ones) + far * float(rising)
        length = near * self._length(left) + far * self._length(left, rising=True)
        scale = math.exp(min(self.log_moment - self.theta * epsilon, 700.0))
        rounding = 1e-12 + 8.0 * UNIT * left  # of as many steps of a recurrence, all of them positive
        return scale * found, scale * (self.noise * length + rounding * found + 2.0 * OUTSIDE)

    def _length(self, count: int, *, rising: bool = False) -> float:
        r"""At least the Euclidean length of the first weights r^k, r = e^(-theta s), or of r^k (1 - e^(-k s)).

        .. math:: 1 - e^{-k s} \le \min(1, k s), \qquad \sum_k k^2 r^{2k} = \frac{r^2 (1 + r^2)}{(1 - r^2)^3}
        """
        fall = 2.0 * self.theta * self.step  # r^2 = e^-fall
        square = math.expm1(-fall * count) / math.expm1(-fall) if fall > 0.0 else float(count)
        if rising:
            square *= min(1.0, self.step * max(0, count - 1)) ** 2  # the first is 0
            if fall > 0.0:
                square = min(square, 2.0 * self.step**2 * math.exp(-fall) / (-math.expm1(-fall)) ** 3)
        return math.sqrt(square)

    @cached_property
    def _sums(self) -> Reals:
        """The last masses times e^(-theta k s), k = 0, 1, .., and times 1 - e^(-k s) too, (2, points + 1)."""
        from scipy.signal import lfilter

        decay, less = math.exp(-self.theta * self.step), -math.expm1(-self.step)
        ones = lfilter([1.0], [1.0, -decay], self.masses[::-1])
        rising = lfilter([0.0, decay * less], [1.0, -decay * (1.0 - less)], ones)
        return np.pad([ones, rising], ((0, 0), (1, 0)))


def convolve_plds(terms: Terms, *, theta: float) -> ComposedPLD:
    r"""The law of the sum of t_r independent losses of each law r, tilted by theta >= 0.

    The window holds all but `OUTSIDE` of the tilted law on each side, by Chernoff's bound; what wraps round it is
    charged. For `upper` a sum above the window may count too little, by e^(K - theta epsilon) times the tilted mass
    there at most; for `lower` one that wraps in from either side may count too much, by as much at most.

    Raises
    ------
    UnsupportedError
        When the transform would be longer than `LONGEST`.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    step = terms[0][0].step
    spread = max(math.sqrt(_cumulants(terms, theta)[2]), step)
    z = math.sqrt(2.0 * math.log(1.0 / OUTSIDE)) / spread
    high, low = (_reach(terms, theta, sign * z) for sign in (1.0, -1.0))
    origin = sum(times * pld.start for pld, times in terms)
    first = math.floor((low - origin) / step)
    size = next_fast_len(max(math.ceil((high - low) / step) + 2, *(pld.masses.size for pld, _ in terms)), real=True)
    if size > LONGEST:
        raise UnsupportedError(
            f"The sum of losses needs {size:,} grid points, more than {LONGEST:,}: split the rounds."
        )
    inexact = sum(times * math.log1p(pld.error) for pld, times in terms)
    if inexact > MOST_INEXACT:
        raise UnsupportedError("The sum of so many losses may be all rounding: split the rounds.")
    spectrum = reduce(np.multiply, (_power(rfft(_tilted(pld, theta), size), times) for pld, times in terms))
    masses = np.roll(irfft(spectrum, size), -(first % size))
    rounds = sum(times for _, times in terms)
    return ComposedPLD(
        theta=theta,
        log_moment=_cumulants(terms, theta)[0],
        start=origin + first * step,
        step=step,
        masses=np.maximum(masses, 0.0),
        noise=16.0 * UNIT * (rounds + 1) * math.log2(size),
        infinity=sum(times * pld.infinity for pld, times in terms),
        error=math.expm1(inexact),
    )


def _power(spectrum: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """The power, 0 where it is below e^-90, far below any rounding: of many rounds almost everywhere."""
    square = spectrum.real**2 + spectrum.imag**2
    kept = np.flatnonzero(square > math.exp(-180.0 / times))
    power = np.zeros_like(spectrum)
    power[kept] = spectrum[kept] ** times
    return power


def convolve_near(terms: Terms, *, delta: float, epsilon: float = math.inf) -> ComposedPLD:
    """The sum tilted until its mean is about `epsilon`, or the epsilon of `delta` where that is smaller."""
    return convolve_plds(terms, theta=tilt_near(terms, delta=delta, epsilon=epsilon))


def tilt_near(terms: Terms, *, delta: float, epsilon: float = math.inf) -> float:
    """The tilt, above 0, at which the mean of the sum is about `epsilon`, or the epsilon of `delta`."""
    high = 1.0
    while _short(terms, high, delta, epsilon) and high * terms[0][0].step < 1.0:
        high *= 2.0
    low = 0.5 * high if high > 1.0 else 0.0
    while high - low > 0.02 * high + 1e-9:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _short(terms, middle, delta, epsilon) else (low, middle)
    return high


def _short(terms: Terms, theta: float, delta: float, epsilon: float) -> bool:
    """True if K' < epsilon and delta(K') is above `delta`, were the tilted sum normal."""
    value, mean, variance = _cumulants(terms, theta)
    return mean < epsilon and value - theta * mean + _log_normal_part(theta, variance) > math.log(delta)


def _log_normal_part(theta: float, variance: float) -> float:
    r"""Log of the share of Chernoff's bound that delta is, at the mean of a tilted normal law.

    .. math:: \delta(K') = e^{K - \theta K'} \left( g(\theta \sigma) - g((\theta + 1) \sigma) \right), \qquad
              g(x) = e^{x^2 / 2} \Phi(-x)
    """
    from scipy.special import erfcx

    near, far = (0.5 * float(erfcx(math.sqrt(0.5 * variance) * x)) for x in (theta, theta + 1.0))
    return math.log(max(near - far, 1e-300))


LEAST_SPREAD = 1e-150  # its square is a double


def normal_spread(epsilon: float, delta: float) -> float:
    """The standard deviation at which normal losses have this delta at `epsilon`, about: for guesses.

    Their mean is half the square of it.
    """
    low, high = max(epsilon / 45.0, LEAST_SPREAD), 8.0 + math.sqrt(64.0 + 2.0 * epsilon)
    while high > 1.001 * low:
        spread = math.sqrt(low * high)
        theta = epsilon / spread**2 - 0.5
        value = _log_normal_part(theta, spread**2) - 0.5 * (theta * spread) ** 2
        low, high = (spread, high) if value < math.log(delta) else (low, spread)
    return low


def smallest_of_sum(terms: Terms, *, delta: float, most: float, slack: float = 0.0) -> float | None:
    """The smallest epsilon that the sum and the slack leave at `delta`, as `smallest_epsilon`; None without one.

    `most` is one that keeps it by other reasons.
    """

    def smallest(total: ComposedPLD) -> float | None:
        found = smallest_epsilon(
            lambda e: total.upper(e) if e < most else 0.0,
            delta, slack=slack, most=most, guess=max(total.middle, total.step),
        )  # fmt: skip
        return None if found is None else found[1]

    total = convolve_near(terms, delta=delta)
    first = smallest(total)
    if first is None or _is_central(terms, total.theta, first):
        return first
    near = smallest(convolve_near(terms, delta=delta, epsilon=max(first, terms[0][0].step)))  # the tilt for it
    return first if near is None else min(first, near)


def _is_central(terms: Terms, theta: float, epsilon: float) -> bool:
    """True if the sum tilted so has its mean within a standard deviation of epsilon."""
    _, mean, variance = _cumulants(terms, theta)
    return abs(epsilon - mean) <= math.sqrt(variance)


def shift_quantile(terms: Terms, shifts: Sequence[Reals], beta: float) -> float:
    r"""Bound that the sum of all shifts exceeds with probability at most `beta`, by Chernoff's bound.

    .. math:: w = \min_{u > 0} \frac{\log(1/\beta) + \sum_r t_r \log E[e^{u Z_r}]}{u}

    Parameters
    ----------
    shifts : float arrays, one for each law, nats
        What each of its losses exceeds the truth by.
    """
    rounds, step = sum(times for _, times in terms), terms[0][0].step
    rates = np.geomspace(1e-2 / (rounds * step), 1e4 / step, 60)
    growth = np.zeros(rates.size)
    for (pld, times), shift in zip(terms, shifts, strict=True):
        held = pld.masses > 0.0
        most = shift[held].max(initial=-step)
        growth += times * (rates * most + np.log(np.exp(np.outer(rates, shift[held] - most)) @ pld.masses[held]))
    surely = sum(times * float(shift.max()) for (_, times), shift in zip(terms, shifts, strict=True))
    return min(surely, float(np.min((growth - math.log(beta)) / rates)))


def _cumulants(terms: Terms, theta: float) -> tuple[float, float, float]:
    """K and its first two derivatives."""
    total = np.zeros(3)
    for pld, times in terms:
        held = np.flatnonzero(pld.masses)  # a chain of chords has few masses on a long grid
        losses = pld.start + pld.step * held
        top = float((theta * losses).max())
        tilted = pld.masses[held] * np.exp(theta * losses - top)
        moment = float(tilted.sum())
        tilted /= moment
        mean = float(tilted @ losses)
        total += times * np.array([top + math.log(moment), mean, float(tilted @ (losses - mean) ** 2)])
    return float(total[0]), float(total[1]), float(total[2])


def _tilted(pld: PrivacyLossDistribution, theta: float) -> Reals:
    weights = theta * pld.losses
    top = float(np.max(weights[pld.masses > 0.0]))
    tilted: Reals = pld.masses * np.exp(np.minimum(weights - top, 0.0))
    return np.asarray(tilted / tilted.sum())


def _reach(terms: Terms, theta: float, z: float) -> float:
    """Where all but `OUTSIDE` of the tilted sum is below (z > 0) or above (z < 0), by Chernoff's bound near z."""
    here, sign = _cumulants(terms, theta)[0], math.copysign(1.0, z)
    ends = [(_cumulants(terms, theta + part * z)[0] - here - math.log(OUTSIDE)) / (part * z) for part in NEARER]
    return sign * min(sign * end for end in ends)


# The privacy loss of a shuffled mechanism, from any certified values of its delta: the convex envelope.
#
# .. math:: C \text{ convex in } E, \quad C \ge D_E(P \| Q) \text{ for every collection and pair}
#           \quad\Longrightarrow\quad \text{the pair with hockey stick } C \text{ dominates them all}


FINE, FINENESS, COARSE = 50.0, 16.0, 8.0  # evaluated points in one typical loss; fewer for a slow source
LOST, LOST_SOON, LOST_SLOWLY = 6e-5, 8e-4, 2.5e-3  # share of epsilon that chords may add: more for a slow source
HALVINGS, APART = 8, 4  # how often cells are halved; of how many places delta has to fall
FEW = 10  # pairs of values whose evaluation is quick
MOST_POINTS, LONGEST_GAP = 2400, 100.0
MOST_CELLS = (
    160_000  # pairs of values times what the others may hold times reports, of a law that rounds ask again and again
)
ROUNDING = 1e-11  # share by which values of delta are raised, for the rounding of their differences
SUMS = 1e-13  # what adding up masses may lose
TINY = 1e-290  # masses that leave the range of normal doubles where they are tilted
FLAT, ALIKE = 0.999, 100  # share of delta that is kept over some places where few losses lie between
BETTER = 0.96  # share of what is known below which a slow source is worth its time
Delta = Callable[[float], float]


def pessimistic_pld(
    pair: ClonePair, *, step: float, cut: float, width: float = BLOCKS, theta: float | None = None
) -> PrivacyLossDistribution:
    """A privacy loss distribution that dominates the pair: the convex envelope of its certified delta.

    Parameters
    ----------
    step : float, above 0, nats
    cut : float
        About the mass that may be left at infinity.
    width : float
        Relative width of the blocks of C.
    theta : float, above 0, optional
        The tilt that it is made for: dense only where that looks. Without it, it is dense everywhere.

    Source
    ------
    Doroshenko, Ghazi, Kamath, Kumar, Manurangsi (2022), Connect the Dots, PoPETs, section 3.
    """
    window = pair.blocks(1e-3 * cut, width)
    scale = min(pair.gaussian_scale, 0.5 * pair.epsilon0)

    def delta(epsilon: float) -> float:
        return pair.upper(epsilon, window)

    if theta is None:
        stride = max(1, math.floor(scale / FINE / step))
        places, values = evaluate_delta(delta, pair.epsilon0, stride * step, cut, flat=ALIKE)
        return envelope_pld(np.rint(places / step).astype(np.int64), values, step=step)
    cells, values = evaluate_near(delta, pair.epsilon0, scale, step=step, cut=cut, theta=theta, lost=LOST)
    return envelope_pld(cells, values, step=step)


@dataclass(frozen=True)
class MechanismCurve:
    """Privacy profile of n shuffled reports of one mechanism: an upper bound at every epsilon.

    Parameters
    ----------
    mechanism : Randomizer or Channel of pure local privacy, or epsilon0 of any randomizer with that promise
    n : int
        Honest reports in the batch.
    """

    mechanism: Subject
    n: int

    @property
    def epsilon0(self) -> float:
        """The local promise."""
        return local_epsilon(self.mechanism)

    @property
    def clones(self) -> ClonePair:
        """The clone pair of every mechanism with this promise."""
        return ClonePair(self.epsilon0, self.n)

    @property
    def gaussian_scale(self) -> float:
        """About the normal shift that it behaves like: a guess, never a bound."""
        with suppress(UnsupportedError):
            law = everybody_law(self.mechanism, n=self.n, delta=1e-6)
            spread = max(float(exposure.spreads.max()) for exposure in law.exposures)
            return min(self.clones.gaussian_scale, math.sqrt(spread / self.n))
        own = None if isinstance(self.mechanism, float) else blanket_law(self.mechanism)
        known = self.clones.gaussian_scale
        return known if own is None else min(known, math.sqrt(own.spread / self.n))

    @property
    def hides_more(self) -> bool:
        """True if everybody hides more than clones do, at a typical loss."""
        return _hides_more(self)

    def pessimistic(self, *, step: float, cut: float, theta: float | None) -> PrivacyLossDistribution:
        """A law of losses on multiples of `step` that dominates, as `pessimistic_pld`."""
        return _pessimistic(self, step, cut, theta)


def _quick_laws(curve: MechanismCurve, *, delta: float) -> list[EverybodyLaw]:
    """Laws that can be asked some hundred times; of others many rounds take minutes."""
    with suppress(UnsupportedError):
        laws = everybody_laws(curve.mechanism, n=curve.n, delta=delta)
        return [law for law in laws if sum(one.mu.size for one in law.exposures) <= MOST_CELLS]
    return []


@lru_cache(maxsize=64)
def _hides_more(curve: MechanismCurve) -> bool:
    loss = min(curve.gaussian_scale, 0.5 * curve.epsilon0)
    known = curve.clones.delta(loss).upper
    laws = _quick_laws(curve, delta=known)
    return bool(laws) and laws[-1].upper(loss, most=known) < known


@lru_cache(maxsize=64)
def _pessimistic(curve: MechanismCurve, step: float, cut: float, theta: float | None) -> PrivacyLossDistribution:
    delta, lost = _smallest(curve, cut)
    scale = min(curve.gaussian_scale, 0.5 * curve.epsilon0)
    if theta is not None:
        cells, values = evaluate_near(delta, curve.epsilon0, scale, step=step, cut=cut, theta=theta, lost=lost)
        return envelope_pld(cells, values, step=step)
    stride = max(1, math.floor(scale / (COARSE if lost == LOST_SLOWLY else FINENESS) / step))
    places, values = evaluate_delta(delta, curve.epsilon0, stride * step, cut)
    return envelope_pld(np.rint(places / step).astype(np.int64), values, step=step)


@lru_cache(maxsize=16)
def _smallest(curve: MechanismCurve, cut: float) -> tuple[Delta, float]:
    """The smallest certified delta at an epsilon, and what chords may lose; a slow source only where it is better."""
    clones = curve.clones
    blocks = clones.blocks(1e-3 * cut, 1e-3)
    everybody = _quick_laws(curve, delta=max(cut, FLOOR))
    own: DominatingPair | None = None
    with suppress(UnsupportedError):
        own = mechanism_law(curve.mechanism, n=curve.n)[1]

    def hidden(epsilon: float, most: float) -> float:
        """The first law that says something serves: the next one has more pairs of values."""
        for law in everybody:
            if (found := law.upper(epsilon, most=most)) < 1.0:
                return min(found, most)
        return most

    def known(epsilon: float) -> float:
        return hidden(epsilon, clones.upper(epsilon, blocks))

    lost = LOST_SLOWLY if everybody and len(everybody[-1].exposures) > FEW else LOST_SOON
    middle = min(0.5 * curve.gaussian_scale, 0.5 * curve.epsilon0)
    ends_sooner = len(everybody) > 1  # few draws of mu: large losses of the blanket are far less likely
    if own is None or (everybody and not ends_sooner and own.delta(middle).upper >= BETTER * known(middle)):
        return cache(known), lost
    least = cache(lambda epsilon: hidden(epsilon, min(clones.upper(epsilon, blocks), own.delta(epsilon).upper)))
    return least, LOST_SLOWLY


def evaluate_delta(delta: Delta, epsilon0: float, stride: float, cut: float, *, flat: int = 8) -> tuple[Reals, Reals]:
    """Multiples of `stride` and delta there, until at most `cut` is left.

    Where the losses are few, up to epsilon0, the last place is there: between, delta is all but a chord.
    """
    places, values = [0.0], [min(1.0, delta(0.0))]
    while values[-1] > cut and places[-1] < epsilon0:
        far = len(places) > MOST_POINTS or (len(values) > flat and values[-1] > FLAT * values[-flat])
        if far and epsilon0 > LONGEST_GAP * places[-1]:
            break  # the rest is charged to infinity
        place = stride * (math.ceil(epsilon0 / stride) if far else len(places))
        places.append(place)
        values.append(0.0 if place >= epsilon0 else min(values[-1], delta(place)))
    return np.array(places), np.array(values)


def evaluate_near(
    delta: Delta, epsilon0: float, scale: float, *, step: float, cut: float, theta: float, lost: float
) -> tuple[NDArray[np.int64], Reals]:
    r"""Multiples of `step` and delta there, dense where chords would show in the moment of a sum tilted by `theta`.

    .. math:: E\, e^{\theta L} = 1 + \theta (\theta + 1) \int_0^\infty
              \left( e^{\theta l} + e^{-(1 + \theta) l} \right) \delta(l)\, dl

    Cells are halved until the chords add at most about `lost` of its logarithm, and so of epsilon.
    """
    widest = 1 << max(0, math.floor(math.log2(max(scale / step, 1.0))))
    places, values = evaluate_delta(delta, epsilon0, widest * step, cut, flat=APART)
    cells = np.rint(places / step).astype(np.int64)
    for _ in range(HALVINGS):
        more = _chords_that_show(cells, values, step=step, theta=theta, lost=lost)
        if not more.size:
            break
        middle = (cells[more] + cells[more + 1]) // 2
        found = np.array([0.0 if cell * step >= epsilon0 else delta(cell * step) for cell in middle.tolist()])
        cells, values = np.insert(cells, more + 1, middle), np.insert(values, more + 1, found)
    return cells, values


def _chords_that_show(
    cells: NDArray[np.int64], values: Reals, *, step: float, theta: float, lost: float
) -> NDArray[np.int64]:
    """Which cells to halve, by what a chord adds to a function of the slopes on both sides of it: an estimate."""
    if cells.size < 3:
        return np.flatnonzero(np.diff(cells) > 1)
    losses = step * cells
    x = np.expm1(losses)
    gaps, slopes = np.diff(x), np.diff(values) / np.diff(x)
    bends = 2.0 * np.diff(slopes) / (gaps[1:] + gaps[:-1])
    bend = np.maximum(np.append(bends, bends[-1]), np.append(bends[0], bends))
    show = np.zeros(gaps.size, dtype=bool)
    for tilt in (theta, 0.5 * theta):  # losses with a heavy tail are tilted less
        logs = np.logaddexp((tilt - 1.0) * losses, -(tilt + 2.0) * losses) + math.log(tilt * (tilt + 1.0))
        middle = np.maximum(logs[1:], logs[:-1])
        with np.errstate(divide="ignore"):
            moment = np.logaddexp.reduce(middle + np.log(0.5 * (values[1:] + values[:-1]) * gaps))
            added = middle + np.log(np.maximum(bend, 0.0) * gaps**3 / 12.0)
        log_moment = np.logaddexp(0.0, moment)
        allowed = math.log(lost / gaps.size) + math.log(max(float(log_moment), 1e-300)) + log_moment
        show |= added > allowed
    return np.flatnonzero(show & (np.diff(cells) > 1))


def envelope_pld(cells: NDArray[np.int64], values: Reals, *, step: float) -> PrivacyLossDistribution:
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
    x = np.expm1(step * cells)  # E - 1, whose differences keep their digits where losses are tiny
    values[0] = min(float(values[0]), float(np.min((2.0 * values + x) / (x + 2.0))))  # chords to the mirror image
    values = np.minimum.accumulate(values)
    hull = lower_hull(x, values)
    places, heights = 1.0 + x[hull], values[hull]
    slopes = np.append(np.diff(heights) / np.diff(x[hull]), 0.0)
    masses = np.zeros(int(cells[-1]) + 1)
    masses[cells[hull[1:]]] = places[1:] * np.maximum(np.diff(slopes), 0.0)
    tiny = masses < TINY
    infinity, right = float(heights[-1]) + float(masses[tiny].sum()), np.where(tiny, 0.0, masses)[1:]
    left = right * np.exp(-step * np.arange(1, right.size + 1))
    left[left < TINY] = 0.0
    middle = max(0.0, 1.0 + SUMS - float(right.sum() + left.sum()) - infinity)
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
