"""Binary randomized response: the exact maximum over everybody else's values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.account.attack_lower_bound import ERROR, BinaryAttack
from dovetail.account.bound import bracket_root, first_point, is_zero, largest_exceeding, log_ratio
from dovetail.account.clones import normal_threshold
from dovetail.account.privacy_blanket import SEARCH
from dovetail.core.certified import Bracket
from dovetail.core.checks import MOST_PEOPLE, privacy_budget, real, refuse, share, whole
from dovetail.core.special import Reals, bernstein_reach, binomial_pmf

FAR = 2  # times as many people as are exact are given these people's law where nothing is below it
MOST_LIES = 500.0  # variance of the number of lies up to which mixtures are evaluated: of 2,000 people at least
TAIL = 80.0  # e^-80 of each binomial law is left out of its window
SPARE = 24.0  # and e^-24 of delta where that is known
SMALL = 1e-22  # below, this much is left out:
LEAST_TAIL = 700.0
STEP_ERROR = 1e-15  # relative, for each step away from a law's middle: 7 roundings
LOOSE = 1e-5  # share of delta by which intervals of mixtures may be above the largest mixture
FAR_OFF = 1e-3  # and more, as a share of how far, in the log, they are from the delta that is asked about
AT_ONCE = 4  # intervals split before all are looked at again, at first


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
    n : int, 1 .. `most_exact`
        Above, what hides among everybody is as sharp and takes less time; and this law at fewer people is a bound,
        since delta falls in n: one person's report can be revealed.

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
        object.__setattr__(self, "n", whole("n", self.n, least=1, most=most_exact(self.epsilon0)))

    def delta(self, epsilon: float) -> Bracket:
        """Ends of delta(epsilon), epsilon >= 0: they differ by a share of 1e-5 at most."""
        if not real("epsilon", epsilon) >= 0.0:
            raise refuse("epsilon", "at least 0", epsilon)
        if epsilon >= self.epsilon0:
            return Bracket(0.0, 0.0)
        low, high = mixture_cover(self.epsilon0, self.n, TAIL + self.epsilon0).delta(epsilon)
        if high < SMALL:
            low, high = mixture_cover(self.epsilon0, self.n, LEAST_TAIL).delta(epsilon)
        return Bracket(low, min(1.0, high + 1e-300))

    def delta_near(self, epsilon: float, delta: float) -> Bracket:
        """As `delta`, sooner and for searches: as sharp only where it is close to this delta."""
        if epsilon >= self.epsilon0:
            return Bracket(0.0, 0.0)
        tail = SPARE + self.epsilon0 - math.log(delta)  # what is cut counts e^epsilon times
        low, high = mixture_cover(self.epsilon0, self.n, tail).delta(epsilon, near=delta)
        return Bracket(low, min(1.0, high + 1e-300))

    def epsilon(self, delta: float) -> Bracket:
        """Ends of the smallest epsilon with delta(epsilon) <= delta, for 0 <= delta < 1."""
        share("delta", delta)
        if delta == 0.0:
            return Bracket(self.epsilon0, self.epsilon0)
        guess, steepness = binary_guess(self.epsilon0, self.n, delta)
        start = first_point(guess, self.epsilon0)
        value = cache(lambda e: self.delta_near(e, delta).upper)
        if is_zero(value, delta, start, steepness=steepness, tolerance=SEARCH):
            return Bracket(0.0, 0.0)
        _, high = bracket_root(
            lambda e: log_ratio(value(e), delta),
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
            lambda e: self.delta_near(e, delta).lower,
            delta,
            most=self.epsilon0,
            guess=guess,
            steepness=steepness,
            tolerance=SEARCH,
        )


def most_exact(epsilon0: float) -> int:
    """The most people all mixtures of whose values are evaluated: their lies have a variance of at most `MOST_LIES`.

    Examples
    --------
    >>> [most_exact(epsilon0) for epsilon0 in (0.1, 1.0, 4.0)]
    [2005, 2543, 28308]
    """
    tiny = math.exp(-epsilon0)
    return math.floor(min(float(MOST_PEOPLE), MOST_LIES * (1.0 + tiny) ** 2 / tiny))


class Mixtures(NamedTuple):
    """Some intervals [a, b] of how many of the others hold a one, each with a law that covers its mixtures.

    Parameters
    ----------
    ends : int array (intervals, 2)
    laws, above : float arrays (intervals, thresholds)
        Pr[T = k - 1] and Pr[T >= k] of a ones and n - 1 - b zeros, from the first threshold k that counts.
    """

    ends: NDArray[np.int64]
    laws: Reals
    above: Reals

    @property
    def single(self) -> NDArray[np.bool_]:
        """True where the interval is one mixture, (intervals,)."""
        return np.asarray(self.ends[:, 0] == self.ends[:, 1])

    @property
    def error(self) -> float:
        """How far the laws and what is above may be off, as a share."""
        steps: int = self.laws.shape[1]
        return ERROR + STEP_ERROR * steps

    def among(self, rows: NDArray[np.bool_]) -> Mixtures:
        """Those intervals alone."""
        return Mixtures(self.ends[rows], self.laws[rows], self.above[rows])

    def most(self, gain: float, loss: float) -> Reals:
        """The largest gain Pr[T = k - 1] - loss Pr[T >= k] over k, (intervals,)."""
        return np.asarray((gain * self.laws - loss * self.above).max(axis=1))


class MixtureCover:
    r"""All mixtures of the others' values, covered by intervals of how many of them hold a one.

    .. math:: d(n - 1 - n_1, n_1) \le d(n - 1 - b, a) \quad \text{for } a \le n_1 \le b

    since n_1 - a of the ones and b - n_1 of the zeros can be revealed. Intervals whose value is above the largest
    mixture that was evaluated are split, until single mixtures decide; laws are kept for the next epsilon.

    Parameters
    ----------
    tail : float
        e^-tail of each binomial law is left outside its window.
    """

    def __init__(self, epsilon0: float, n: int, tail: float) -> None:
        self.epsilon0, self.n = epsilon0, n
        tiny = math.exp(-epsilon0)
        self.lie, self.truth = tiny / (1.0 + tiny), 1.0 / (1.0 + tiny)
        self.tail, self.cut = tail, 4.0 * math.exp(-tail)  # two sides of two laws
        self._windows: dict[int, Reals] = {}
        edges = np.unique(np.linspace(1, n - 1, 9).astype(np.int64))
        inner = [half for a, b in pairwise(edges) for half in _halves(int(a), int(b) - 1)]
        self.parts = [self._covered(np.array(sorted({(0, 0), (n - 1, n - 1), *inner})))]

    def delta(self, epsilon: float, *, near: float | None = None) -> tuple[float, float]:
        """The largest evaluated mixture from below, and the largest interval from above.

        They may differ by a share of `LOOSE`, and by more the further they are from the delta that is asked about.
        """
        highs, split = [self._high(part, epsilon) for part in self.parts], AT_ONCE
        low = max(self._low(part, epsilon) for part in self.parts)
        while True:
            high = max(float(values.max()) for values in highs if values.size)
            far = 0.0 if near is None else abs(log_ratio(high, near))
            bar = (1.0 + max(LOOSE, FAR_OFF * far)) * max(low, 1e6 * self.cut)
            wide = [~part.single & (values > bar) for part, values in zip(self.parts, highs, strict=True)]
            if not any(rows.any() for rows in wide):
                return max(0.0, low), max(0.0, high)
            tallest = np.sort(np.concatenate([values[rows] for values, rows in zip(highs, wide, strict=True)]))
            least, split = tallest[-split:][0], 2 * split  # the largest first: what they show settles others
            left = [~rows | (values < least) for values, rows in zip(highs, wide, strict=True)]
            fresh = self._split(left)
            highs = [*(values[rows] for values, rows in zip(highs, left, strict=True)), self._high(fresh, epsilon)]
            low = max(low, self._low(fresh, epsilon))

    def _split(self, left: list[NDArray[np.bool_]]) -> Mixtures:
        """Puts parts of the other intervals, which are returned, beside those that are left."""
        pairs = zip(self.parts, left, strict=True)
        ends = [part for held, rows in pairs for a, b in held.ends[~rows].tolist() for part in _halves(a, b)]
        fresh = self._covered(np.array(ends))
        self.parts = [*(held.among(rows) for held, rows in zip(self.parts, left, strict=True)), fresh]
        return fresh

    def _high(self, held: Mixtures, epsilon: float) -> Reals:
        """Upper bounds (intervals,) for all mixtures of these intervals."""
        gain, loss = self._factors(epsilon)
        return held.most(gain * (1.0 + held.error), loss * (1.0 - held.error)) + self.cut

    def _low(self, held: Mixtures, epsilon: float) -> float:
        """Lower bound: the largest value of the single mixtures."""
        gain, loss = self._factors(epsilon)
        reached = held.among(held.single).most(gain * (1.0 - held.error), loss * (1.0 + held.error))
        return float(reached.max(initial=0.0)) - loss * self.cut

    def _factors(self, epsilon: float) -> tuple[float, float]:
        """r - e^epsilon s and e^epsilon - 1."""
        return self.truth * -math.expm1(epsilon - self.epsilon0), math.expm1(epsilon)

    def _covered(self, ends: NDArray[np.int64]) -> Mixtures:
        """These intervals with the laws of a ones and n - 1 - b zeros."""
        self._measure({*ends[:, 0].tolist(), *(self.n - 1 - ends[:, 1]).tolist()})
        rows = [np.convolve(self._windows[self.n - 1 - b], self._windows[a][::-1]) for a, b in ends.tolist()]
        laws = np.zeros((len(rows), max(row.size for row in rows)))
        for place, row in zip(laws, rows, strict=True):
            place[: row.size] = row
        above = np.zeros_like(laws)
        above[:, :-1] = np.cumsum(laws[:, :0:-1], axis=1)[:, ::-1]
        return Mixtures(ends, laws, above)

    def _measure(self, sizes: set[int]) -> None:
        """The laws of the lies among so many people, outwards from the middle, as far as Bernstein's bound says."""
        people = np.array(sorted(sizes - self._windows.keys()), dtype=np.int64)
        middles = np.floor(people * self.lie)
        peaks = binomial_pmf(middles, people, self.lie, self.truth)
        for m, mode, peak in zip(people.tolist(), middles.astype(np.int64).tolist(), peaks.tolist(), strict=True):
            mean, odds = m * self.lie, self.lie / self.truth
            reach = bernstein_reach(mean * self.truth, self.tail)
            first, last = max(0, math.floor(mean - reach)), min(m, math.ceil(mean + reach))
            lies = np.arange(first, last + 1, dtype=np.float64)
            middle = mode - first
            up = np.cumprod((m - lies[middle:-1]) / lies[middle + 1 :] * odds)
            down = np.cumprod(lies[middle:0:-1] / (m - lies[middle:0:-1] + 1.0) / odds)
            self._windows[m] = peak * np.concatenate([down[::-1], [1.0], up])


@lru_cache(maxsize=8)
def mixture_cover(epsilon0: float, n: int, tail: float) -> MixtureCover:
    """The cover for these people, with what earlier questions have split."""
    return MixtureCover(epsilon0, n, tail)


def _halves(a: int, b: int) -> list[tuple[int, int]]:
    """Two halves of an interval of whole numbers and the number between them, without those that are empty."""
    middle = (a + b) // 2
    return [(first, last) for first, last in ((a, middle - 1), (middle, middle), (middle + 1, b)) if first <= last]


def binary_reached(epsilon0: float, n: int, delta: float, *, guess: float | None = None) -> float:
    """An epsilon that a collection reaches: the largest up to `most_exact`, above that of everybody on one value."""
    if share("delta", delta) == 0.0:
        return epsilon0
    usual, steepness = binary_guess(epsilon0, n, delta)
    if n <= most_exact(epsilon0):
        return BinaryExact(epsilon0, n).epsilon_lower(delta, guess=guess or usual)
    return largest_exceeding(
        BinaryAttack(epsilon0, n).delta, delta, most=epsilon0, guess=guess or usual, steepness=steepness
    )


def binary_guess(epsilon0: float, n: int, delta: float) -> tuple[float, float]:
    """Where a normal approximation puts epsilon(delta), and -d log delta / d log epsilon there."""
    scale = 2.0 * math.tanh(0.5 * epsilon0) / math.sqrt(max(1.0, n * math.exp(-epsilon0)))
    t, steepness = normal_threshold(delta / scale)
    return scale * t, steepness
