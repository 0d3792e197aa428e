r"""The two clone pairs: what shuffling hides in the worst case, between certified ends.

Everybody else sends, with probability q, a report that looks like the victim's under either value, half of the time
like each. So the victim hides among C = C' + 1 coins, C' ~ Bin(n - 1, q), and adds one that is tilted by her value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dovetail.account.solve import straddle
from dovetail.account.window import Window, window
from dovetail.core.bracket import Bracket
from dovetail.core.checks import privacy_budget, real, refuse, whole
from dovetail.core.special import Reals, binomial_pmf, fair_mills

Kind = Literal["stronger clones", "clones"]

RESOLUTION = 1e-4
MOST_PEOPLE = 10**12
LEAST = 1e-300
SEARCH = 1e-8  # relative width to which a threshold is searched
ULPS = 8.0 * 2.0**-53  # epsilon0 is moved by this share of itself against us, to cover the rounding of the input
PMF_ERROR, MILLS_ERROR = 4e-13, 4e-13  # four times and more what was measured


@dataclass(frozen=True)
class ClonePair:
    r"""A pair of laws that dominates every shuffled collection with n honest reports.

    .. math:: \delta(\epsilon) = 2 \tanh(\epsilon_0/2)\,(1 + e^{\epsilon})\, E[h(C' + 1)], \qquad
              h(C) = E[(A/C - \beta)_+], \; A \sim \mathrm{Bin}(C, \tfrac12)

    .. math:: C' \sim \mathrm{Bin}(n - 1, q), \quad q = \frac{2}{e^{\epsilon_0} + 1} \text{ (stronger clones)}, \;
              q = e^{-\epsilon_0} \text{ (clones)}, \quad
              \beta = \frac12 + \frac{\tanh(\epsilon/2)}{2 \tanh(\epsilon_0/2)}

    "stronger clones" needs one fixed randomizer that all people share; "clones" also holds when each answer's
    randomizer is chosen after seeing the earlier reports. Neither covers people who bring their own randomizers.

    Parameters
    ----------
    epsilon0 : float, above 0, at most 700, nats
        Pure local privacy of one report.
    n : int, 1 .. 1e12
        Honest reports in the batch.

    Notes
    -----
    Both ends are certified up to measured errors of the special functions, for which `Window.error`, `PMF_ERROR`
    and `MILLS_ERROR` allow; there is no directed rounding. Cost per evaluation free of n.

    Examples
    --------
    >>> pair = ClonePair(1.0, 10)
    >>> round(pair.delta(0.5).upper, 9)
    0.027755329
    >>> round(ClonePair(1.0, 10_000).epsilon(1e-6).upper, 4)
    0.0432

    Source
    ------
    Feldman, McMillan, Talwar (2021), Hiding Among the Clones, Theorem 2.1 of the workshop version ("clones");
    docs/theory/stronger-clones.md after Feldman, McMillan, Talwar (2022) ("stronger clones").
    """

    epsilon0: float
    n: int
    kind: Kind = "stronger clones"

    def __post_init__(self) -> None:
        if privacy_budget("epsilon0", self.epsilon0) < LEAST:
            raise refuse("epsilon0", f"at least {LEAST:g}, where doubles keep their digits", self.epsilon0)
        object.__setattr__(self, "n", whole("n", self.n, least=1, most=MOST_PEOPLE))
        if self.kind not in ("stronger clones", "clones"):
            raise refuse("kind", '"stronger clones" or "clones"', self.kind)

    @property
    def clone_probability(self) -> tuple[float, float]:
        """(q, 1 - q), each without cancellation."""
        tiny = math.exp(-self.epsilon0)
        if self.kind == "clones":
            return tiny, -math.expm1(-self.epsilon0)
        return 2.0 * tiny / (1.0 + tiny), math.tanh(0.5 * self.epsilon0)

    @property
    def gaussian_scale(self) -> float:
        r"""The pair behaves like two unit normals this far apart, for large n: a first guess, never a bound.

        .. math:: \mu_G = \frac{2 \tanh(\epsilon_0/2)}{\sqrt{n q}}
        """
        q, _ = self.clone_probability
        return 2.0 * math.tanh(0.5 * self.epsilon0) / math.sqrt(max(1.0, self.n * q))

    def delta(self, epsilon: float, *, resolution: float = RESOLUTION) -> Bracket:
        """Ends of delta(epsilon), for epsilon >= 0.

        `resolution` is about the relative width, in epsilon, that the blocks may leave; from 1e-7 to 1.
        """
        if not real("epsilon", epsilon) >= 0.0:
            raise refuse("epsilon", "at least 0", epsilon)
        _check_resolution(resolution)
        if epsilon >= self.epsilon0:
            return Bracket(0.0, 0.0)
        tail = 1e-30
        while True:  # until the tails that were cut off weigh nothing
            blocks = self.blocks(tail, resolution)
            ends = Bracket(self.lower(epsilon, blocks), self.upper(epsilon, blocks))
            if tail <= 1e-8 * ends.lower or tail < 1e-290:
                return ends
            tail = max(1e-9 * ends.lower, tail**2 if ends.lower == 0.0 else 0.0, 1e-291)

    def epsilon(self, delta: float, *, resolution: float = RESOLUTION) -> Bracket:
        """Ends of the smallest epsilon with delta(epsilon) <= delta, for 0 <= delta < 1.

        The upper end is never above epsilon0, and delta(upper) <= delta was evaluated there.
        """
        if not 0.0 <= real("delta", delta) < 1.0:
            raise refuse("delta", "at least 0 and below 1", delta)
        _check_resolution(resolution)
        if delta == 0.0:
            return Bracket(self.epsilon0, self.epsilon0)
        blocks = self.blocks(1e-8 * delta, resolution)
        if self.upper(0.0, blocks) <= delta:
            return Bracket(0.0, 0.0)
        near, steepness = self._guess(delta)
        _, high = straddle(
            lambda e: log_ratio(self.upper(e, blocks), delta),
            near,
            steepness=steepness,
            most=self.epsilon0,
            tolerance=SEARCH,
        )
        if self.lower(0.0, blocks) <= delta:
            return Bracket(0.0, high)
        low, _ = straddle(
            lambda e: log_ratio(self.lower(e, blocks), delta),
            high,
            steepness=steepness,
            most=self.epsilon0,
            tolerance=max(SEARCH, 1e-2 * resolution),
        )
        return Bracket(min(low, high), high)

    def _guess(self, delta: float) -> tuple[float, float]:
        """Epsilon at `delta` and -d log delta / d log epsilon there, from few blocks."""
        coarse = self.blocks(1e-8 * delta, 1.0)

        def excess(epsilon: float) -> float:
            return log_ratio(self.upper(epsilon, coarse), delta)

        spread = 2.0 * math.log(1.0 / delta) + 1e-3
        start = self.gaussian_scale * math.sqrt(spread)
        low, high = straddle(excess, start, steepness=spread, most=self.epsilon0, tolerance=1e-4)
        fall = excess(0.999 * low) - excess(low) if low > 0.0 else spread
        return high, max(1e3 * fall, 1e-3)

    def blocks(self, tail: float, resolution: float) -> Window:
        """The law of C', cut."""
        return window(self.n - 1, *self.clone_probability, tail=tail, resolution=resolution)

    def upper(self, epsilon: float, blocks: Window) -> float:
        """At least delta(epsilon): h does not grow, so each block counts with its left end."""
        e0 = self.epsilon0 * (1.0 + ULPS)
        if epsilon >= self.epsilon0:
            return 0.0
        excess = coin_excess(blocks.edges + 1.0, epsilon, e0)[1]
        alone = -math.expm1(epsilon - e0) / (1.0 + math.exp(-e0))  # n = 1: nobody to hide among
        factor = _prefactor(epsilon, e0)
        total = factor * (float(blocks.masses @ excess[:-1]) + blocks.cut_right * float(excess[-1]))
        return min(1.0, total * (1.0 + blocks.error) + blocks.cut_left * alone + 1e-300)

    def lower(self, epsilon: float, blocks: Window) -> float:
        """At most delta(epsilon): each block counts with its right end, and what was cut counts nothing."""
        e0 = self.epsilon0 * (1.0 - ULPS)
        if epsilon >= e0:
            return 0.0
        single = blocks.edges.size == blocks.edges[-1] - blocks.edges[0] + 1.0
        counts = blocks.edges[:-1] + 1.0 if single else blocks.edges[1:]  # the last C of each block
        excess = coin_excess(counts, epsilon, e0)[0]
        return max(0.0, _prefactor(epsilon, e0) * float(blocks.masses @ excess) * (1.0 - blocks.error) - 1e-300)


def coin_excess(coins: Reals, epsilon: float, epsilon0: float) -> tuple[Reals, Reals]:
    r"""Ends of h(C) = E[(A/C - beta)_+] for each number of coins C.

    .. math:: h(C) = \Pr[\mathrm{Bin}(C-1, \tfrac12) = k-1]
              \left( \tfrac14 - (\beta - \tfrac12)\, m(k, C) \right), \qquad k = \lfloor \beta C \rfloor + 1

    with the Mills ratio m of `fair_mills`; (1 - beta) / 2^C where k = C. A wrong k at an exact boundary is harmless:
    that term is zero.
    """
    tilt = 0.5 * math.tanh(0.5 * epsilon) / math.tanh(0.5 * epsilon0)  # beta - 1/2
    rest = -math.expm1(epsilon - epsilon0) / (-math.expm1(-epsilon0) * (1.0 + math.exp(epsilon)))  # 1 - beta
    others = np.ceil(rest * coins) - 1.0  # C - k: how many coins may show the other side
    k = coins - np.maximum(others, 0.0)
    first = np.where(others >= 0.0, binomial_pmf(k - 1.0, coins - 1.0, 0.5), 0.0)
    cancelled = tilt * fair_mills(k, coins)
    low, high = (np.where(others == 0.0, 0.5 * rest, 0.25 - cancelled * (1.0 + s * MILLS_ERROR)) for s in (1, -1))
    return first * (1.0 - PMF_ERROR) * np.maximum(low, 0.0), first * (1.0 + PMF_ERROR) * np.maximum(high, 0.0)


def log_ratio(value: float, target: float) -> float:
    """log(value / target), finite also at value 0: what a search for a threshold in delta runs on."""
    return math.log(max(value, 1e-320)) - math.log(target)


def _prefactor(epsilon: float, epsilon0: float) -> float:
    return 2.0 * math.tanh(0.5 * epsilon0) * (1.0 + math.exp(epsilon))


def _check_resolution(resolution: float) -> None:
    if not 1e-7 <= real("resolution", resolution) <= 1.0:
        raise refuse("resolution", "between 1e-7 and 1", resolution)
