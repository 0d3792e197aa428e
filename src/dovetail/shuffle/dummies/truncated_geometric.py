"""How many dummies a symbol gets: the truncated symmetric geometric law, in whole numbers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import ceil, log, log1p, nextafter

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import privacy_budget, refuse, share
from dovetail.core.entropy import Entropy
from dovetail_protocol.exact_thresholds import WORD, exp_bracket

MOST_REACH = 4096  # s; weights are numbers of 20 s bits
DENOMINATOR = 1 << 20


@dataclass(frozen=True)
class TruncatedGeometric:
    r"""A number of dummies in 0..2s, mean s.

    .. math:: \Pr[Z = a] = D(a) \propto t^{|a - s|}, \qquad t = \frac{\mathrm{numerator}}{\mathrm{denominator}}

    Two data sets that differ in one person's value shift Z of one symbol up and of another down. Off the ends that
    changes probabilities by a factor of t^2 at most, so exactly

    .. math:: \delta(\epsilon) = 2 D(0) - D(0)^2 \quad \text{at} \quad \epsilon = -2 \log t

    Parameters
    ----------
    numerator, denominator : int, numerator below denominator, at least 1
    reach : int, at least 1
        s, the most that a count is off.

    Source
    ------
    docs/theory/accuracy.md, section B. Idea: Murakami et al. (2025), arXiv 2504.07362.
    """

    numerator: int
    denominator: int
    reach: int

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float) -> TruncatedGeometric:
        """The law with the least reach whose dummies are (epsilon, delta)-private.

        >>> law = TruncatedGeometric.calibrated(epsilon=1.0, delta=1e-6)
        >>> law.reach, round(float(law.variance), 2), f"{float(law.delta):.3g}"
        (27, 7.83, '6.72e-07')
        """
        return _calibrated(privacy_budget("epsilon", epsilon), share("delta", delta))

    @property
    def ratio(self) -> Fraction:
        """t."""
        return Fraction(self.numerator, self.denominator)

    @property
    def weights(self) -> list[int]:
        """D(a) times a common factor, a = 0..2s."""
        s, num, den = self.reach, self.numerator, self.denominator
        half = [num ** (s - a) * den**a for a in range(s + 1)]
        return half + half[-2::-1]

    @property
    def least(self) -> Fraction:
        """D(0), the probability of each end."""
        t, s = self.ratio, self.reach
        return t**s * (1 - t) / (1 + t - 2 * t ** (s + 1))

    @property
    def delta(self) -> Fraction:
        """Probability that a release exposes a person's value, exactly; at `epsilon`."""
        return 2 * self.least - self.least**2

    @property
    def epsilon(self) -> float:
        """-2 log t, rounded up; nats."""
        found = -2.0 * log(self.numerator / self.denominator)
        while exp_bracket(-Fraction(found) / 2)[1] > self.ratio:
            found = nextafter(found, 800.0)
        return found

    @property
    def variance(self) -> Fraction:
        """Of Z, exactly."""
        return _moments(self)

    def error_law(self, unit: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What a count is off, in multiples of `unit`, ascending (2s + 1,), and with which probabilities."""
        off = np.arange(-self.reach, self.reach + 1, dtype=np.float64)
        masses = float(self.ratio) ** np.abs(off)
        return unit * off, masses / masses.sum()

    def sample(self, count: int, rng: Entropy) -> NDArray[np.int64]:
        """`count` independent draws of exactly this law."""
        cumulated, floors = _thresholds(self)
        words = rng.words(count)
        drawn = np.searchsorted(floors, words, side="right").astype(np.int64)
        at = np.minimum(np.searchsorted(floors, words, side="left"), floors.size - 1)
        for place in np.flatnonzero(floors[at] == words):  # a step may lie inside this word
            drawn[place] = _settle(cumulated, int(words[place]), rng)
        return drawn


def _settle(cumulated: list[int], word: int, rng: Entropy) -> int:
    """What a uniform number stands for that begins with `word`: more of its bits are drawn until it is certain."""
    uniform, bits, total = word, 64, cumulated[-1]
    while True:
        first = bisect_right(cumulated, (uniform * total) >> bits)  # sums above the number's lower end
        last = bisect_left(cumulated, -(-(uniform + 1) * total >> bits))
        if first == last:
            return first
        uniform, bits = uniform * WORD + int(rng.words(1)[0]), bits + 64


@lru_cache(maxsize=64)
def _thresholds(law: TruncatedGeometric) -> tuple[list[int], NDArray[np.uint64]]:
    cumulated = list(accumulate(law.weights))
    total = cumulated[-1]
    floors = np.array([(WORD * upto) // total for upto in cumulated[:-1]], dtype=np.uint64)
    floors.setflags(write=False)
    return cumulated, floors


@lru_cache(maxsize=64)
def _moments(law: TruncatedGeometric) -> Fraction:
    weights, s = law.weights, law.reach
    return Fraction(sum((a - s) ** 2 * weight for a, weight in enumerate(weights)), sum(weights))


@lru_cache(maxsize=256)
def _calibrated(epsilon: float, delta: float) -> TruncatedGeometric:
    if delta == 0.0:
        raise refuse("delta", "above 0: dummies of the shuffler are bounded", delta)
    numerator = ceil(exp_bracket(-Fraction(epsilon) / 2)[1] * DENOMINATOR)
    if numerator >= DENOMINATOR:
        raise refuse("epsilon", f"at least {-2.0 * log1p(-1.0 / DENOMINATOR):.1g}", epsilon)
    t = numerator / DENOMINATOR
    reach = max(1, int((log(delta) - log(2.0) + log1p(t) - log1p(-t)) / log(t)) - 2)
    while reach <= MOST_REACH:
        law = TruncatedGeometric(numerator, DENOMINATOR, reach)
        if law.delta <= Fraction(delta):
            return law
        reach += 1
    raise refuse(
        "epsilon", f"larger: it takes more than {MOST_REACH:,} dummies for each symbol at delta {delta:g}", epsilon
    )
