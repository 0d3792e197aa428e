r"""One of many questions alike, answered by k-ary response: at most as exposed as one question with that response.

Where the two values differ in every block the ratios are those of k-ary response, whatever block was drawn. Where
they agree in a block both ratios are Z_a there, and

.. math:: \{(1 - E)\, p, \; 1 - E\} \text{ lies between } p - E \text{ and } 1 - E p, \qquad
          (1 - E)\, p + (1 - E) = (p - E) + (1 - E p)

so they are below in convex order. Where symbols stand for signs that a vector of bounded length leaves mostly
undetermined, `BlockOfSigns` is far smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.account.blanket.declared_law import DeclaredLaw
from dovetail.account.blanket.privacy_blanket import BlanketLaw, ShuffledLaw
from dovetail.account.bound import DominatingPair
from dovetail.account.composition.questions import SampledBlock
from dovetail.account.everybody.exposure import Exposure
from dovetail.account.mechanism_law import attack_dataset
from dovetail.account.mechanisms.krr import krr_exposures, krr_law
from dovetail.account.threshold_search import bracket_root, log_ratio
from dovetail.core.bracket import Bracket
from dovetail.core.channel import KRRChannel
from dovetail.core.errors import UnsupportedError
from dovetail.core.numeric.special import Reals


def sampled_law(sampled: SampledBlock) -> BlanketLaw:
    """That of k-ary response."""
    return krr_law(_channel(sampled))


def sampled_dataset(sampled: SampledBlock) -> BlanketLaw:
    """Everybody else holds the same bad symbol in every block; of signs, in all blocks that a vector can determine.

    Two blocks or more: vectors of period D / 2 are reached whatever d is, for rotations of the first D / 2
    coordinates have all of them. The first and the second vector have opposite signs in as many blocks as their
    length allows, the others' agree with neither, or with the second. Where not even one block is determined, all its
    signs have the same expectation, and the others hold 0.
    """
    if sampled.energy == 1.0:
        return attack_dataset(sampled.parts[0])
    s, period = sampled.signs, max(1, sampled.blocks // 2)
    full = math.floor(sampled.energy * period * (1.0 - 1e-9))
    p, lie = _ratio_and_lie(sampled)
    if full == 0:
        plus, share = np.arange(s + 1), 1.0 / period
        z = math.sqrt(min(1.0, sampled.energy * period * (1.0 - 1e-9)))
        ways = np.array([math.comb(s, int(i)) for i in plus]) * 0.5**s
        first = lie * 2.0**s * (1.0 + (p - 1.0) * (0.5 * (1.0 + z)) ** plus * (0.5 * (1.0 - z)) ** (s - plus))
        return BlanketLaw(np.append(first, 1.0), np.append(first[::-1], 1.0), np.append(share * ways, 1.0 - share))
    share = full / period
    if s == 1:  # the others hold the second value
        return BlanketLaw([p, 1.0 / p, 1.0], [1.0, 1.0, 1.0], [share * lie, share * p * lie, 1.0 - share])
    masses = [share * lie, share * lie, share * p * lie]
    return BlanketLaw([p, 1.0, 1.0 / p, 1.0], [1.0, p, 1.0 / p, 1.0], [*masses, 1.0 - sum(masses)])


def sampled_exposures(sampled: SampledBlock) -> list[Exposure]:
    r"""Types of blocks in which the values differ, and of those in which they agree.

    Another person's transform is the mean over blocks of those of her types, and |.|^(n - 1) is convex: so the worst
    type in every block bounds all. M_0 is largest where the values differ, by convex order.
    """
    if sampled.energy < 1.0:
        raise UnsupportedError("Blocks of signs are judged by a bound of their own, which is smaller.")
    [differ] = krr_exposures(_channel(sampled))
    mu, own = (np.concatenate([part] * 2) for part in (differ.mu, differ.own))
    first = np.concatenate([differ.first, differ.second])  # all symbols are alike: any one may be held twice
    second = np.concatenate([differ.second, differ.second])
    return [Exposure(mu, first, second, own)]


@dataclass(frozen=True)
class BlockOfSigns:
    r"""One of many blocks of s signs whose expectations are bounded on average: the smaller of two bounds on delta.

    .. math:: \delta(\epsilon) \le \min_{\theta > 0} \frac{M^n}{e\, \theta\, n}, \qquad
              M = 1 - g + g\, e^{-\theta (E - 1) / g} (1 + 2 \Lambda s \kappa), \qquad g = 2^s \mathrm{lie}

    and the law of k-ary response. kappa is the energy; Lambda is `_rate`. Proved in docs/theory/several-questions.md:
    (S)_+ <= e^(theta S) / (e theta) for the sum S of the blanket; a block's transform is convex in the square of each
    sign's expectation, so per unit of those squares it is largest where signs are determined.
    """

    sampled: SampledBlock
    n: int

    def delta(self, epsilon: float) -> Bracket:
        """The bound; both ends agree but for rounding."""
        known = self._response.delta(epsilon)
        if epsilon <= 0.0 or epsilon >= self.sampled.epsilon:
            return known
        found = min(known.upper, self._tilted(epsilon))
        return Bracket(min(known.lower, found * (1.0 - 1e-6)), found)

    def epsilon(self, delta: float) -> Bracket:
        """Ends of the smallest epsilon with delta(epsilon) <= delta."""
        known = self._response.epsilon(delta)
        if delta == 0.0 or known.upper == 0.0:
            return known
        high = bracket_root(
            lambda e: log_ratio(self.delta(e).upper, delta), 0.5 * known.upper, steepness=10.0, most=known.upper,
            tolerance=1e-6,
        )[1]  # fmt: skip
        return Bracket(min(known.lower, high * (1.0 - 1e-5)), high)

    @property
    def _response(self) -> ShuffledLaw:
        return ShuffledLaw(sampled_law(self.sampled), self.n)

    def _tilted(self, epsilon: float) -> float:
        """The first bound, at the best of many theta: each is valid."""
        p, lie = _ratio_and_lie(self.sampled)
        more = math.expm1(epsilon)
        variance = 2.0 * lie * p * p * self.sampled.energy  # about that of one report's contribution
        guess, best = more / variance, math.inf
        for width in (16.0, 1.3, 1.03):
            theta = guess * np.geomspace(1.0 / width, width, 33)
            log_bound = self._log_bound(theta, more)
            at = int(np.argmin(log_bound))
            guess, best = float(theta[at]), min(best, float(log_bound[at]))
        return math.exp(min(best, 0.0))

    def _log_bound(self, theta: Reals, more: float) -> Reals:
        p, lie = _ratio_and_lie(self.sampled)
        s = self.sampled.signs
        g = lie * 2.0**s
        most = 100.0 / (1.0 + more)  # beyond, the bound says nothing and need not be followed
        x = np.minimum(theta * (p - 1.0), most)
        gain = 2.0 * s * self.sampled.energy * _rate(x, s, 1.0 + more) * (1.0 + 1e-9)
        log_m = np.log1p(g * np.expm1(np.log1p(gain) - theta * more / g))
        out = self.n * (log_m + 1e-13 * np.abs(log_m)) - 1.0 - np.log(theta * self.n) + 1e-9
        return np.where(theta * (p - 1.0) > most, np.inf, out)


def _rate(x: Reals, s: int, e: float) -> Reals:
    r"""Lambda at theta (p - 1) = x: what a unit of squared expectations adds to a block's transform at most.

    .. math:: \Psi_a(v) = e^{Y} (e^v - 1 - v) + c v^2, \qquad
              \Psi_c(v) = c v^2 + \begin{cases} v^2 / 2 & v > 0 \\ e^{-v} - 1 + v & v \le 0 \end{cases}, \qquad
              Y = E X, \quad X = x / 2^s, \quad c = \tfrac14 Y e^Y

    .. math:: \Lambda = \max_{(i, j)} \frac{\hat\Psi_a(i) + \hat\Psi_c(j) + X Y \min(1, \frac{i + j}{2})}{i + j},
              \qquad (i, j) \in \{(2, 0), (0, 2), (s, 0), (0, s), (s, s)\}

    with Psi^(i) the mean of Psi over blocks in which Bin(s, i / s) signs are determined; 1 in place of 2 for s = 1.
    """
    low = x * 0.5**s
    y = e * low
    c = 0.25 * y * np.exp(y)
    h = np.arange(s + 1)
    first = np.outer(x, 2.0 ** (h - s) - 0.5**s)
    c_ = c[:, None]

    def both(value: Reals) -> tuple[Reals, Reals]:
        ahead = np.exp(y)[:, None] * _excess(value) + c_ * value**2
        back = e * value
        return ahead, c_ * back**2 + np.where(back > 0.0, 0.5 * back**2, _excess(-np.minimum(back, 0.0)))

    held, free = both(first), both(np.broadcast_to(-low[:, None], first.shape))
    share = 0.5**h
    psi_a, psi_c = (share * one + (1.0 - share) * other for one, other in zip(held, free, strict=True))
    psi_a[:, 0], psi_c[:, 0] = 0.0, 0.0
    two = min(2, s)
    chances = np.array([math.comb(s, int(i)) * (two / s) ** i * (1.0 - two / s) ** (s - i) for i in h])
    half = min(1.0, 0.5 * s)
    kinds = [
        (psi_a @ chances + low * y * min(1.0, 0.5 * two)) / two,
        (psi_c @ chances + low * y * min(1.0, 0.5 * two)) / two,
        (psi_a[:, s] + low * y * half) / s,
        (psi_c[:, s] + low * y * half) / s,
        (psi_a[:, s] + psi_c[:, s] + low * y) / (2.0 * s),
    ]
    return np.asarray(np.max(kinds, axis=0))


def _excess(v: Reals) -> Reals:
    """e^v - 1 - v, from above."""
    small = 0.5 * v**2 * (1.0 + v / 3.0 + v**2 / 12.0 + np.abs(v) ** 3 / 50.0)
    return np.asarray(np.where(np.abs(v) < 1e-3, small, (np.expm1(v) - v) * (1.0 + 1e-9)))


def _channel(sampled: SampledBlock) -> KRRChannel:
    return sampled.response.channel()


def _ratio_and_lie(sampled: SampledBlock) -> tuple[float, float]:
    """p, and the probability of each symbol that is not held."""
    channel = _channel(sampled)
    base = min(channel.keep, channel.lie)
    return max(channel.keep, channel.lie) / base, base / channel.total


def sampled_pair(sampled: SampledBlock, n: int) -> DominatingPair:
    """Of determined symbols the law of k-ary response; of signs the smaller one."""
    return ShuffledLaw(sampled_law(sampled), n) if sampled.energy == 1.0 else BlockOfSigns(sampled, n)


LAW = DeclaredLaw(
    SampledBlock,
    "one block, by k-ary randomized response",
    dataset=sampled_dataset,
    upper=sampled_law,
    exposures=sampled_exposures,
    pair=sampled_pair,
)
