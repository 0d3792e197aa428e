r"""Epsilon that a real randomizer reaches: no proof for every randomizer can promise less.

Three collections are evaluated exactly or from below: binary randomized response with everybody else on one value;
for small n also with every other mixture of values; and three-way randomized response with everybody else on the
third value. Any event S gives Pr_P[S] - e^epsilon Pr_Q[S] <= delta, so where the events below are cut does not matter
for validity, and dropped terms are positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dovetail.account.bound import largest_exceeding
from dovetail.account.clones import (
    MILLS_ERROR,
    PMF_ERROR,
    TruncatedBinomial,
    symmetric_binomial_tail,
    truncated_binomial,
)
from dovetail.core.special import Reals, binomial_cdf, binomial_pmf, binomial_survival

MOST_MIXED = 64  # every mixture of the others' values is tried up to this n
LARGEST = 300.0  # above this epsilon0 the three-way law leaves the range of doubles, and binary is as good
TOLERANCE = 1e-4  # a floor need not be sharper
RESOLUTION = 1e-3
ERROR = 1e-12  # relative, of the law of a mixture and its tails; measured below a tenth


def attack_lower(epsilon0: float, n: int, delta: float, *, guess: float | None = None) -> float:
    """The largest epsilon found at which the best of three attacks still exceeds `delta`; 0 when none does.

    Parameters
    ----------
    epsilon0 : float, above 0, at most 700, nats
    n : int, 1 .. 1e12
    delta : float in [0, 1)
    guess : float, above 0, optional
        Where to look first, such as the promise that is to be judged; changes the time, not the answer's validity.

    Notes
    -----
    Measured for n from 1e4 and delta = 1e-6: at most 1.18 times below the stronger-clone pair (near epsilon0 =
    log 2), 1 % at epsilon0 = 4. One to three milliseconds.

    Source
    ------
    Exact laws of 2- and 3-ary randomized response after shuffling; any event bounds delta from below.
    """
    if delta == 0.0:
        return epsilon0  # binary randomized response reaches every smaller epsilon with positive probability
    attacks: list[BinaryAttack | MixedAttack | ThreeWayAttack] = [BinaryAttack(epsilon0, n)]
    if n <= MOST_MIXED:
        attacks.append(MixedAttack(epsilon0, mixed_laws(epsilon0, n)))
    if epsilon0 <= LARGEST:
        attacks.append(ThreeWayAttack(epsilon0, n, three_way_blocks(epsilon0, n, 1e-6 * delta)))
    spread = 2.0 * math.log(1.0 / delta) + 1e-3
    gaussian = 2.0 * math.tanh(0.5 * epsilon0) * math.sqrt(spread / max(1.0, n * math.exp(-epsilon0)))
    best, start = 0.0, guess * _share(epsilon0) if guess else gaussian
    for attack in reversed(attacks) if epsilon0 > math.log(2.0) else attacks:  # the best one is likely the first
        if attack.delta(best) > delta:
            best = largest_exceeding(attack.delta, delta, most=epsilon0, guess=best or start, tolerance=TOLERANCE)
    return best


def _share(epsilon0: float) -> float:
    """Share of stronger clones that the better of binary and three-way response reaches; large n, small delta."""
    tiny = math.exp(-epsilon0)
    return math.sqrt((1.0 + tiny) / min(2.0, 1.0 + 2.0 * tiny))


@dataclass(frozen=True)
class BinaryAttack:
    r"""Binary randomized response, the n - 1 others all hold x' (first line) or all hold x (second line).

    .. math:: \delta \ge \tanh(\epsilon_0/2) \Pr[X' = k-1] - (e^\epsilon - 1) \Pr[X \ge k]

    .. math:: \delta \ge (e^\epsilon r - s) \Pr[X' = j] - (e^\epsilon - 1) \Pr[X' \le j]

    with s = 1/(p + 1), r = p s, X ~ Bin(n, s), X' ~ Bin(n - 1, s), any k and j; equality at the thresholds used.
    """

    epsilon0: float
    n: int

    def delta(self, epsilon: float) -> float:
        """A value that the exact delta of this collection reaches."""
        s, r = _flip(self.epsilon0)
        e0, e = self.epsilon0, math.exp(epsilon)
        people, both = self.n * math.exp(-e0), math.expm1(-2.0 * e0)
        k = math.floor(people * e * (math.expm1(-epsilon - e0) / both)) + 1
        j = min(math.ceil(people * math.exp(-epsilon) * (math.expm1(epsilon - e0) / both)) - 1, self.n - 1)
        high = _net(
            math.tanh(0.5 * e0) * float(binomial_pmf(k - 1, self.n - 1, s, r)),
            math.expm1(epsilon) * float(binomial_survival(k - 1, self.n, s, r)),
            self.n,
        )
        low = _net(
            (e * r - s) * float(binomial_pmf(j, self.n - 1, s, r)),
            math.expm1(epsilon) * float(binomial_cdf(j, self.n - 1, s, r)),
            self.n,
        )
        return max(high, low)


@dataclass(frozen=True, eq=False)
class MixedAttack:
    r"""Binary randomized response, any number of the others on each value; every threshold event is tried.

    .. math:: \delta \ge (r - e^\epsilon s) \Pr[T = k-1] - (e^\epsilon - 1) \Pr[T \ge k]

    T counts the ones among the others. Exchanging the two symbols covers the other direction.
    """

    epsilon0: float
    laws: Reals  # (n, n): row n1 is the law of T when n1 of the n - 1 others hold a one

    @cached_property
    def _above(self) -> Reals:
        """Pr[T >= k] in the place of Pr[T = k - 1]."""
        above = np.zeros_like(self.laws)
        above[:, :-1] = np.cumsum(self.laws[:, :0:-1], axis=1)[:, ::-1]
        return above

    def delta(self, epsilon: float, *, error: float = -ERROR) -> float:
        """The largest value over mixtures and thresholds; with `error` = ERROR, no mixture exceeds it."""
        gain = -math.expm1(epsilon - self.epsilon0) / (1.0 + math.exp(-self.epsilon0))  # r - e^epsilon s
        loss = math.expm1(epsilon)
        return max(0.0, float(np.max(gain * (1.0 + error) * self.laws - loss * (1.0 - error) * self._above)))


@lru_cache(maxsize=4)
def mixed_laws(epsilon0: float, n: int) -> Reals:
    """Row n1: the law of the ones among n - 1 others, n1 of whom hold a one; (n, n)."""
    s, r = _flip(epsilon0)
    people, lying = np.tril_indices(n)
    lies = np.zeros((n, n))  # row m: the law of the lies among m people, m minus which is that of the truths
    lies[people, lying] = binomial_pmf(lying, people, s, r)
    laws = np.array([np.convolve(lies[n - 1 - ones, : n - ones], lies[ones, ones::-1]) for ones in range(n)])
    laws.setflags(write=False)
    return laws


@dataclass(frozen=True, eq=False)
class ThreeWayAttack:
    r"""Three-way randomized response, everybody else holds the third symbol.

    .. math:: \delta = \frac{c}{n} E_M\!\left[ E\left[(A - M/2 - w_M)_+\right] \right], \quad
              M \sim \mathrm{Bin}(n, \tfrac{2}{p+2}), \; A \sim \mathrm{Bin}(M, \tfrac12)

    .. math:: c = (p-1)(1+e^\epsilon), \qquad
              w_M = \frac{\tanh(\epsilon/2)}{p - 1} \left( \frac{(p+1) M}{2} + \frac{n - M}{p} \right)

    M is cut into blocks. A user more among the M adds a term whose mean is the change of w, so by Jensen a block
    M1..M2 counts at least as M1 trials against w at M2.
    """

    epsilon0: float
    n: int
    blocks: TruncatedBinomial

    def delta(self, epsilon: float) -> float:
        """A value that the exact delta of this collection reaches."""
        p = math.exp(self.epsilon0)
        first, last = self.blocks.edges[:-1], self.blocks.edges[1:] - 1.0
        weight = math.tanh(0.5 * epsilon) / math.expm1(self.epsilon0)
        shift = weight * (0.5 * (p + 1.0) * last + (self.n - last) / p) * (1.0 + 1e-15)
        trials = np.maximum(first, 1.0)
        k = np.floor(0.5 * trials + shift) + 1.0
        reachable = (k <= trials) & (first >= 1.0)
        k = np.where(reachable, k, trials)
        head, mills = symmetric_binomial_tail(k, trials)
        gain = 0.25 * trials - shift * mills * (1.0 + MILLS_ERROR)
        total = float(self.blocks.masses @ np.where(reachable, head * np.maximum(gain, 0.0), 0.0)) * (1.0 - PMF_ERROR)
        c = math.expm1(self.epsilon0) * (1.0 + math.exp(epsilon))
        return c / self.n * total * (1.0 - self.blocks.error)


def three_way_blocks(epsilon0: float, n: int, tail: float) -> TruncatedBinomial:
    """The law of how many of n reports show one of the two contested symbols."""
    tiny = math.exp(-epsilon0)
    return truncated_binomial(
        n, 2.0 * tiny / (1.0 + 2.0 * tiny), 1.0 / (1.0 + 2.0 * tiny), tail=tail, resolution=RESOLUTION
    )


def _flip(epsilon0: float) -> tuple[float, float]:
    """(s, r): probabilities of the lie and of the truth."""
    tiny = math.exp(-epsilon0)
    return tiny / (1.0 + tiny), 1.0 / (1.0 + tiny)


def _net(gain: float, loss: float, n: int) -> float:
    """gain - loss, with the measured errors of binomial tails against us."""
    error = 4.0 * (1e-13 + 2e-15 * math.sqrt(n))
    return max(0.0, gain * (1.0 - error) - loss * (1.0 + error))
