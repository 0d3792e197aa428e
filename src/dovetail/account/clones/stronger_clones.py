r"""The two clone pairs: what shuffling hides in the worst case, between certified ends.

Everybody else sends, with probability q, a report that looks like the victim's under either value, half of the time
like each. So the victim hides among C = C' + 1 fair trials, C' ~ Bin(n - 1, q), and her value tilts one of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dovetail.account.clones.binomial_tail import weighted_positive_part
from dovetail.account.clones.truncated_binomial import TruncatedBinomial, truncated_binomial
from dovetail.account.threshold_search import bracket_root, log_ratio
from dovetail.core.bracket import Bracket
from dovetail.core.checks import MOST_PEOPLE, privacy_budget, real, refuse, share, whole

Kind = Literal["stronger clones", "clones"]

RESOLUTION, LEAST_RESOLUTION = 1e-4, 1e-7
LEAST = 1e-300
SEARCH = 1e-8  # relative width to which a threshold is searched
ULPS = 8.0 * 2.0**-53  # epsilon0 is moved by this share of itself against us, to cover the rounding of the input


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
        if not isinstance(self.kind, str) or self.kind not in ("stronger clones", "clones"):
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

        The upper end is never above epsilon0, and delta(upper) <= delta was evaluated there. The relative gap is at
        most `resolution`, from 1e-7 to 1, or the gap at most a hundredth of that share of `gaussian_scale`.
        """
        _check_resolution(resolution)
        if share("delta", delta) == 0.0:
            return Bracket(self.epsilon0, self.epsilon0)
        coarse = self.blocks(1e-8 * delta, 1.0)
        if self.upper(0.0, coarse) <= delta:
            return Bracket(0.0, 0.0)
        near, steepness = self._guess(delta, coarse)
        blocks, finer = self.blocks_for(delta, resolution, coarse), resolution
        while True:  # as a rule once
            if self.lower(0.0, coarse) <= delta and self.upper(0.0, blocks) <= delta:
                return Bracket(0.0, 0.0)
            ends = self._ends(delta, blocks, near, steepness, resolution)
            width = ends.upper - ends.lower
            if width <= resolution * max(ends.upper, 1e-2 * self.gaussian_scale) or finer == LEAST_RESOLUTION:
                return ends
            near, finer = ends.upper, max(LEAST_RESOLUTION, 0.5 * finer * resolution * ends.upper / width)
            blocks = self.blocks_for(delta, finer)

    def _ends(
        self, delta: float, blocks: TruncatedBinomial, near: float, steepness: float, resolution: float
    ) -> Bracket:
        """The bracket that these blocks give, where delta(0) > `delta`; its lower end by one step, as a rule."""
        _, high = bracket_root(
            lambda e: log_ratio(self.upper(e, blocks), delta),
            near,
            steepness=steepness,
            most=self.epsilon0,
            tolerance=SEARCH,
        )
        short = log_ratio(self.lower(high, blocks), delta)
        low = high * math.exp(min(1.1 * short / steepness, 0.0))
        if high - low > max(blocks.resolution, SEARCH) * high or self.lower(low, blocks) <= delta:
            low, _ = bracket_root(
                lambda e: log_ratio(self.lower(e, blocks), delta),
                high,
                steepness=steepness,
                most=self.epsilon0,
                tolerance=max(SEARCH, 1e-2 * resolution),
            )
        return Bracket(min(low, high), high)

    def _guess(self, delta: float, coarse: TruncatedBinomial) -> tuple[float, float]:
        """Epsilon amid what few blocks give, and -d log delta / d log epsilon of two normals there."""
        t, steepness = normal_threshold(delta / self.gaussian_scale)
        _, high = bracket_root(
            lambda e: log_ratio(self.upper(e, coarse), delta),
            self.gaussian_scale * t,
            steepness=steepness,
            most=self.epsilon0,
            tolerance=1e-3,
        )
        short = log_ratio(self.lower(high, coarse), delta)
        return high * math.exp(min(max(0.5 * short / steepness, -0.1), 0.0)), steepness

    def blocks(self, tail: float, resolution: float) -> TruncatedBinomial:
        """The law of C', cut."""
        return truncated_binomial(self.n - 1, *self.clone_probability, tail=tail, resolution=resolution)

    def blocks_for(
        self, delta: float, resolution: float = RESOLUTION, given: TruncatedBinomial | None = None
    ) -> TruncatedBinomial:
        """Blocks that leave `epsilon(delta)` that relative gap, as a rule, or `given` where those are fine enough.

        delta(epsilon) depends mostly on epsilon sqrt(C), and is flat in epsilon near epsilon 0.
        """
        _, steepness = normal_threshold(delta / self.gaussian_scale)
        fineness = max(LEAST_RESOLUTION, 1.6 * resolution * steepness / (1.0 + steepness))
        return given if given and given.resolution <= fineness else self.blocks(1e-8 * delta, fineness)

    def upper(self, epsilon: float, blocks: TruncatedBinomial) -> float:
        """At least delta(epsilon): h does not grow, so each block counts with its left end."""
        e0 = self.epsilon0 * (1.0 + ULPS)
        if epsilon >= self.epsilon0:
            return 0.0
        _, positive_part = weighted_positive_part(
            blocks.edges + 1.0, np.append(blocks.masses, blocks.cut_right), epsilon, e0
        )
        alone = -math.expm1(epsilon - e0) / (1.0 + math.exp(-e0))  # n = 1: nobody to hide among
        total = _prefactor(epsilon, e0) * positive_part
        return min(1.0, total * (1.0 + blocks.error) + blocks.cut_left * alone + 1e-300)

    def lower(self, epsilon: float, blocks: TruncatedBinomial) -> float:
        """At most delta(epsilon): each block counts with its right end, and what was cut counts nothing."""
        e0 = self.epsilon0 * (1.0 - ULPS)
        if epsilon >= e0:
            return 0.0
        single = blocks.edges.size == blocks.edges[-1] - blocks.edges[0] + 1.0
        counts = blocks.edges[:-1] + 1.0 if single else blocks.edges[1:]  # the last C of each block
        positive_part, _ = weighted_positive_part(counts, blocks.masses, epsilon, e0)
        return max(0.0, _prefactor(epsilon, e0) * positive_part * (1.0 - blocks.error) - 1e-300)


def normal_threshold(target: float) -> tuple[float, float]:
    r"""About the t > 0 with phi(t) - t Q(t) = `target`, and -d log target / d log t there, for unit normals."""
    target = max(target, 5e-324)  # delta over a scale may leave the doubles
    t = math.sqrt(2.0 * math.log(min(max(0.4 / target, 1.0), 1e308))) + 1e-3
    steepness = 1.0
    for _ in range(4):  # Newton in log target, which is concave
        t = min(max(t, 1e-3), 37.0)
        tail = 0.5 * math.erfc(t / math.sqrt(2.0))
        value = math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) - t * tail
        t, steepness = t + math.log(value / target) * value / tail, t * tail / value
    return max(t, 1e-3), steepness


def _prefactor(epsilon: float, epsilon0: float) -> float:
    return 2.0 * math.tanh(0.5 * epsilon0) * (1.0 + math.exp(epsilon))


def _check_resolution(resolution: float) -> None:
    if not LEAST_RESOLUTION <= real("resolution", resolution) <= 1.0:
        raise refuse("resolution", "between 1e-7 and 1", resolution)
