"""Binary randomized response: the exact maximum over everybody else's values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dovetail.account.attack_lower_bound import ERROR, BinaryAttack
from dovetail.account.blanket.privacy_blanket import SEARCH
from dovetail.account.clones.stronger_clones import normal_threshold
from dovetail.account.threshold_search import bracket_root, first_point, is_zero, largest_exceeding, log_ratio
from dovetail.core.bracket import Bracket
from dovetail.core.checks import privacy_budget, real, refuse, share, whole
from dovetail.core.numeric.special import Reals

MOST_EXACT = 1000  # people up to whom every mixture of values is evaluated
FAR = 2 * MOST_EXACT  # from here on stronger clones are below what so many people have (measured)
TAIL = 80.0  # e^-80 of each binomial law is left out of its window
SMALL = 1e-22  # below, whole laws are used
LOOSE = 1e-6  # share of delta by which intervals of mixtures may be above the largest mixture
AT_ONCE, PARTS = 4, 3  # intervals split before all are looked at again, at first; parts of each


@dataclass(frozen=True)
class BinaryExact:
    r"""The shuffled collection of binary randomized response, with the worst values of the others.

    .. math:: \delta(\epsilon) = \max_{n_1, k} \; (r - e^{\epsilon} s) \Pr[T = k - 1]
              - (e^{\epsilon} - 1) \Pr[T \ge k], \qquad
              T \sim \mathrm{Bin}(n - 1 - n_1, s) + \mathrm{Bin}(n_1, r)

    with s = 1/(p + 1), r = p s. The likelihood ratio grows with the number of ones, so thresholds k are all there is;
    exchanging the two symbols turns one direction into the other. That everybody else holds the same value is *not*
    always worst.

    Parameters
    ----------
    epsilon0 : float, above 0 and at most 700, nats
    n : int, 1 .. 1000
        n^2 numbers are held. Above, `BinaryAttack` from below; from above stronger clones, and up to `FAR` people
        this law at 1000, since delta falls in n: one person's report can be revealed.

    Examples
    --------
    >>> bool(BinaryExact(math.log(3.0), 5).delta(math.log(1.25)).contains(81 / 512))
    True

    Source
    ------
    docs/theory/mechanism-laws.md.
    """

    epsilon0: float
    n: int

    def __post_init__(self) -> None:
        privacy_budget("epsilon0", self.epsilon0)
        object.__setattr__(self, "n", whole("n", self.n, least=1, most=MOST_EXACT))

    def delta(self, epsilon: float) -> Bracket:
        """Ends of delta(epsilon), epsilon >= 0: they differ by a share of 1e-6 at most."""
        if not real("epsilon", epsilon) >= 0.0:
            raise refuse("epsilon", "at least 0", epsilon)
        if epsilon >= self.epsilon0:
            return Bracket(0.0, 0.0)
        low, high = mixture_cover(self.epsilon0, self.n, TAIL).delta(epsilon)
        if high < SMALL:
            low, high = mixture_cover(self.epsilon0, self.n, math.inf).delta(epsilon)
        return Bracket(low, min(1.0, high + 1e-300))

    def epsilon(self, delta: float) -> Bracket:
        """Ends of the smallest epsilon with delta(epsilon) <= delta, for 0 <= delta < 1."""
        share("delta", delta)
        if delta == 0.0:
            return Bracket(self.epsilon0, self.epsilon0)
        guess, steepness = binary_guess(self.epsilon0, self.n, delta)
        start = first_point(guess, self.epsilon0)
        if is_zero(lambda e: self.delta(e).upper, delta, start, steepness=steepness, tolerance=SEARCH):
            return Bracket(0.0, 0.0)
        _, high = bracket_root(
            lambda e: log_ratio(self.delta(e).upper, delta),
            start,
            steepness=steepness,
            most=self.epsilon0,
            tolerance=SEARCH,
        )
        return Bracket(min(self.epsilon_lower(delta, guess=high), high), high)

    def epsilon_lower(self, delta: float, *, guess: float) -> float:
        """The largest epsilon found at which the lower end of delta exceeds `delta`."""
        _, steepness = binary_guess(self.epsilon0, self.n, delta)
        return largest_exceeding(
            lambda e: self.delta(e).lower,
            delta,
            most=self.epsilon0,
            guess=guess,
            steepness=steepness,
            tolerance=SEARCH,
        )


class MixtureCover:
    r"""All mixtures of the others' values, covered by intervals of how many of them hold a one.

    .. math:: d(n - 1 - n_1, n_1) \le d(n - 1 - b, a) \quad \text{for } a \le n_1 \le b

    since n_1 - a of the ones and b - n_1 of the zeros can be revealed. Intervals whose value is above the largest
    mixture that was evaluated are split, until single mixtures decide; laws are kept for the next epsilon.

    Parameters
    ----------
    tail : float
        e^-tail of each binomial law is left outside its window; infinite for whole laws.
    """

    def __init__(self, epsilon0: float, n: int, tail: float) -> None:
        self.epsilon0, self.n = epsilon0, n
        tiny = math.exp(-epsilon0)
        self.lie, self.truth = tiny / (1.0 + tiny), 1.0 / (1.0 + tiny)
        self.tail, self.cut = tail, 4.0 * math.exp(-tail)  # two sides of two laws
        lies = np.zeros((n, n))  # row m: the law of the lies among m people
        lies[0, 0] = 1.0
        for m in range(1, n):
            lies[m, : m + 1] = self.truth * lies[m - 1, : m + 1]
            lies[m, 1 : m + 1] += self.lie * lies[m - 1, :m]
        self._lies = lies
        edges = np.unique(np.linspace(1, n - 1, 17).astype(np.int64))
        inner = [(int(a), int(b) - 1) for a, b in pairwise(edges)]
        ends = np.array(sorted({(0, 0), (n - 1, n - 1), *inner}))
        self._held = (ends, *self._laws(ends))

    def delta(self, epsilon: float) -> tuple[float, float]:
        """The largest evaluated mixture from below, and the largest interval from above."""
        gain = -math.expm1(epsilon - self.epsilon0) / (1.0 + math.exp(-self.epsilon0))  # r - e^epsilon s
        loss = math.expm1(epsilon)
        ends, laws, above = self._held
        most = AT_ONCE
        while True:
            high = (gain * (1.0 + ERROR) * laws - loss * (1.0 - ERROR) * above).max(axis=1) + self.cut
            single = ends[:, 0] == ends[:, 1]
            low = float((gain * (1.0 - ERROR) * laws - loss * (1.0 + ERROR) * above)[single].max()) - loss * self.cut
            wide = ~single & (high > (1.0 + LOOSE) * max(low, 1e6 * self.cut))
            if not wide.any():
                self._held = (ends, laws, above)
                return max(0.0, low), max(0.0, float(high.max()))
            wide &= high >= np.sort(high[wide])[-most:][0]  # the largest first: what they show settles others
            most *= 2
            parts = np.array([part for a, b in ends[wide].tolist() for part in _split(a, b)])
            new_laws, new_above = self._laws(parts)
            width = max(laws.shape[1], new_laws.shape[1])
            ends = np.concatenate([ends[~wide], parts])
            laws = np.concatenate([_wider(laws[~wide], width), _wider(new_laws, width)])
            above = np.concatenate([_wider(above[~wide], width), _wider(new_above, width)])

    def _laws(self, ends: NDArray[np.int64]) -> tuple[Reals, Reals]:
        """Pr[T = k - 1] and Pr[T >= k] with a ones and n - 1 - b zeros, a row for each interval [a, b]."""
        rows = [np.convolve(self._window(self.n - 1 - b), self._window(a)[::-1]) for a, b in ends.tolist()]
        laws = np.zeros((len(rows), max(row.size for row in rows)))
        for place, row in zip(laws, rows, strict=True):
            place[: row.size] = row
        above = np.zeros_like(laws)
        above[:, :-1] = np.cumsum(laws[:, :0:-1], axis=1)[:, ::-1]
        return laws, above

    def _window(self, m: int) -> Reals:
        """The law of the lies among m people, where Bernstein's bound leaves anything."""
        if math.isinf(self.tail):
            return np.asarray(self._lies[m, : m + 1])
        third, mean = self.tail / 3.0, m * self.lie
        reach = third + math.sqrt(third**2 + 2.0 * mean * self.truth * self.tail)
        return np.asarray(self._lies[m, max(0, math.floor(mean - reach)) : min(m, math.ceil(mean + reach)) + 1])


@lru_cache(maxsize=8)
def mixture_cover(epsilon0: float, n: int, tail: float) -> MixtureCover:
    """The cover for these people, with what earlier questions have split."""
    return MixtureCover(epsilon0, n, tail)


def _split(a: int, b: int) -> list[tuple[int, int]]:
    """About equal parts of an interval of whole numbers."""
    edges = sorted({a + (b + 1 - a) * part // PARTS for part in range(PARTS + 1)} | {b + 1})
    return [(first, last - 1) for first, last in pairwise(edges)]


def _wider(rows: Reals, width: int) -> Reals:
    """Rows with zeros at their ends."""
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))


def binary_reached(epsilon0: float, n: int, delta: float, *, guess: float | None = None) -> float:
    """An epsilon that a collection reaches: exact up to `MOST_EXACT` people, everybody else on one value above."""
    if share("delta", delta) == 0.0:
        return epsilon0
    usual, steepness = binary_guess(epsilon0, n, delta)
    if n <= MOST_EXACT:
        return BinaryExact(epsilon0, n).epsilon_lower(delta, guess=guess or usual)
    return largest_exceeding(
        BinaryAttack(epsilon0, n).delta, delta, most=epsilon0, guess=guess or usual, steepness=steepness
    )


def binary_guess(epsilon0: float, n: int, delta: float) -> tuple[float, float]:
    """Where a normal approximation puts epsilon(delta), and -d log delta / d log epsilon there."""
    scale = 2.0 * math.tanh(0.5 * epsilon0) / math.sqrt(max(1.0, n * math.exp(-epsilon0)))
    t, steepness = normal_threshold(delta / scale)
    return scale * t, steepness
