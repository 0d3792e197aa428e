"""The two clone pairs: what shuffling hides in the worst case, between certified ends.

Everybody else sends, with probability q, a report that looks like the victim's under either value, half of the time
like each. So the victim hides among C = C' + 1 fair trials, C' ~ Bin(n - 1, q), and her value tilts one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dovetail.account.bound import Bound, bracket_root, log_ratio
from dovetail.core.certified import Bracket
from dovetail.core.checks import MOST_PEOPLE, privacy_budget, real, refuse, share, whole, word
from dovetail.core.special import Reals, binomial_cdf, binomial_pmf, binomial_survival

# A binomial law cut into blocks, with what was cut off charged to whoever uses it.


FEWEST_BLOCKS = 32
SMALLEST_TAIL = 1e-300
DENSE = 64  # adding up so many single counts is cheaper than one value of the incomplete beta function


@dataclass(frozen=True, eq=False)
class TruncatedBinomial:
    """Blocks of Bin(trials, q): block j holds the counts edges[j] .. edges[j + 1] - 1 and has mass masses[j].

    Parameters
    ----------
    edges : float array (blocks + 1,), whole numbers
    masses : float array (blocks,)
    cut_left, cut_right : float
        Upper bounds on the probability of counts below and above the window; 0 when nothing is cut.
    error : float
        Measured bound on the relative error that the masses bring into a sum over a monotone function.
    """

    edges: Reals
    masses: Reals
    cut_left: float
    cut_right: float
    error: float

    @property
    def resolution(self) -> float:
        """Width of the widest block over the middle of the window; 0 for single counts."""
        widest = float(np.diff(self.edges).max())
        return widest / max(0.5 * float(self.edges[0] + self.edges[-1]), 1.0) if widest > 1.0 else 0.0


def truncated_binomial(
    trials: int, q: float, complement: float, *, tail: float, resolution: float
) -> TruncatedBinomial:
    r"""Cut Bin(trials, q) to all but `tail` on each side, and the rest into blocks.

    .. math:: t = L/3 + \sqrt{L^2/9 + 2 v L}, \quad v = \mathrm{trials}\, q (1 - q), \quad
              L = \log(1/\mathrm{tail}), \quad \Pr[|X - \mathrm{mean}| \ge t] \le 2\, \mathrm{tail}

    Blocks are single counts while the window is short, else about `resolution` times the mean wide. Masses are sums
    of single counts while blocks are narrow, else differences of the lower tail left of the mean and of the upper
    tail right of it: the function summed is monotone, so Abel summation turns their relative error into at most four
    times that of the sum.

    Source
    ------
    Bernstein's inequality, e.g. Boucheron, Lugosi, Massart (2013), Concentration Inequalities, equation (2.10).
    """
    tail = max(tail, SMALLEST_TAIL)
    mean, log_tail = trials * q, -math.log(tail)
    reach = log_tail / 3.0 + math.sqrt(log_tail**2 / 9.0 + 2.0 * mean * complement * log_tail) + 1.0
    low, high = max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))
    size = high - low + 1
    blocks = min(size, max(FEWEST_BLOCKS, math.ceil(size / (max(mean, 1.0) * resolution))))
    edges = low + (size * np.arange(blocks + 1)) // blocks
    if size <= DENSE * blocks:
        masses = np.add.reduceat(_counts(low, high, trials, q, complement), edges[:-1] - low)
    else:
        masses = _differences(edges, trials, q, complement)
    return TruncatedBinomial(
        edges.astype(np.float64),
        masses,
        tail if low > 0 else 0.0,
        tail if high < trials else 0.0,
        max(1e-9, 4.0 * (1e-13 + 2e-15 * math.sqrt(trials))),
    )


def _counts(low: int, high: int, trials: int, q: float, complement: float) -> Reals:
    """Pr[X = low .. high], walked from the most likely count by ratios: a few ulp a step."""
    middle = min(max(math.floor(trials * q), low), high)
    start = float(binomial_pmf(middle, trials, q, complement))
    up, down = np.arange(middle + 1.0, high + 1.0), np.arange(middle - 0.0, low, -1.0)
    above = np.cumprod((trials + 1.0 - up) / up * (q / complement))
    below = np.cumprod(down / (trials + 1.0 - down) * (complement / q))
    return start * np.concatenate([below[::-1], [1.0], above])


def _differences(edges: NDArray[np.int64], trials: int, q: float, complement: float) -> Reals:
    """Block masses; the block that holds the mean takes what both sides leave."""
    middle = int(np.searchsorted(edges, trials * q, side="right"))  # edges[middle - 1] <= mean < edges[middle]
    middle = min(max(middle, 1), edges.size - 1)
    below = binomial_cdf(edges[:middle] - 1, trials, q, complement)  # before each edge
    above = binomial_survival(edges[middle:] - 1, trials, q, complement)  # from each edge on
    held = 1.0 - below[-1] - above[0]
    return np.concatenate([np.diff(below), [held], -np.diff(above)])


# Upper tail of Bin(n, 1/2): first term, Mills ratio and expected positive part, each to near the last digit.


SHORT = 4096  # elements of an array whose sum is faster than loading the compiled loops for it

_longest: ContextVar[int] = ContextVar("longest array that is summed without compiled loops", default=0)

PMF_ERROR, MILLS_ERROR = 4e-13, 4e-13  # four times and more what was measured


@contextmanager
def without_compiled_loops() -> Iterator[None]:
    """Arrays up to `SHORT` are summed by numpy: for a process that gives one answer.

    Loading the compiled loops takes a third of a second, and numpy about half a millisecond longer for each sum. The
    results agree to 1e-13, which `PMF_ERROR` and `MILLS_ERROR` cover.
    """
    token = _longest.set(SHORT)
    try:
        yield
    finally:
        _longest.reset(token)


def weighted_positive_part(trials: Reals, weights: Reals, epsilon: float, epsilon0: float) -> tuple[float, float]:
    r"""Ends of the sum of weight times h(C) = E[(A/C - beta)_+], A ~ Bin(C, 1/2), over numbers of trials C.

    .. math:: h(C) = \Pr[\mathrm{Bin}(C-1, \tfrac12) = k-1]
              \left( \tfrac14 - (\beta - \tfrac12)\, m(k, C) \right), \qquad k = \lfloor \beta C \rfloor + 1

    .. math:: \beta = \frac12 + \frac{\tanh(\epsilon/2)}{2 \tanh(\epsilon_0/2)}

    with the Mills ratio m of `symmetric_binomial_tail`; (1 - beta) / 2^C where k = C. A wrong k at an exact boundary
    is harmless: that term is zero.

    Parameters
    ----------
    trials : float array (m,), whole numbers from 1 to 1e12
    weights : float array (m,), at least 0
    epsilon, epsilon0 : float, 0 <= epsilon <= epsilon0, nats
    """
    if trials.size <= _longest.get():
        from dovetail.account.binomial_arrays import weigh
    else:
        from dovetail.account.binomial_kernels import weigh

    tilt = 0.5 * math.tanh(0.5 * epsilon) / math.tanh(0.5 * epsilon0)  # beta - 1/2
    rest = -math.expm1(epsilon - epsilon0) / (-math.expm1(-epsilon0) * (1.0 + math.exp(epsilon)))  # 1 - beta
    low, high = weigh(trials, weights, tilt, rest, MILLS_ERROR)
    return low * (1.0 - PMF_ERROR), high * (1.0 + PMF_ERROR)


def symmetric_binomial_tail(k: Reals, n: Reals) -> tuple[Reals, Reals]:
    r"""First term and Mills ratio (tail over first term) of the upper tail of Bin(n, 1/2), for (n + 1)/2 <= k <= n.

    .. math:: f = \Pr[\mathrm{Bin}(n-1, \tfrac12) = k - 1], \qquad m = \Pr[\mathrm{Bin}(n, \tfrac12) \ge k] / f

    Parameters
    ----------
    k, n : float arrays of one shape, whole numbers, n from 1 to 1e12

    Notes
    -----
    Measured relative errors, within 12 standard deviations: below 1e-13 for both. About 0.1 microseconds a value two
    standard deviations out and more, a microsecond nearer to the middle.
    """
    if n.size <= _longest.get():
        from dovetail.account.binomial_arrays import fill
    else:
        from dovetail.account.binomial_kernels import fill

    if not np.all((2.0 * k >= n + 1.0) & (k <= n)):
        raise refuse("k", "from (n + 1)/2 to n, where the tail of a fair binomial is summed", k)
    first, mills = np.empty_like(n), np.empty_like(n)
    fill(k, n, first, mills)
    return first, mills


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
        word("kind", self.kind, ("stronger clones", "clones"), '"stronger clones" or "clones"')

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


# Shuffling reports that are only approximately private: the clone pair plus what every delta0 adds.


NAME = "clones, approximate"
SOURCE = "Feldman, McMillan, Talwar (2021), Hiding Among the Clones, Proposition 2.2 of the workshop version"
LOCAL = "post-processing of the local guarantee"
TURNS = 60  # golden section gains a fifth of a digit a turn


def amplify_approximate(epsilon0: float, delta0: float, *, n: int, delta: float) -> Bound:
    r"""An upper bound on the central epsilon of n shuffled (epsilon0, delta0)-private reports.

    .. math:: \delta_{\mathrm{total}}(\epsilon) = \delta_{\mathrm{clone}}(\epsilon)
              + (e^{\epsilon} + 1)(1 + e^{-\epsilon_0})\, n\, \delta_0

    For Gaussian and other randomizers without a pure guarantee; `amplify` is tighter for pure ones. The second term
    grows with epsilon, so the answer is the smallest epsilon on the falling branch. From delta >= delta0 on the local
    epsilon0 holds in any case.

    Parameters
    ----------
    epsilon0 : float, above 0, at most 700, nats
    delta0 : float, at least 0, below 1
        The guarantee of one report; each randomizer may be chosen after seeing the reports before.
    n : int, 1 .. 1e12
        Honest reports in the batch.
    delta : float, at least 0, below 1

    Returns
    -------
    bound : Bound
        Without a value, and with the reason "n * delta0 too large", where neither theorem says anything.

    Examples
    --------
    >>> bound = amplify_approximate(1.0, 1e-14, n=10_000, delta=1e-6)
    >>> bound.name, round(bound.epsilon, 4)
    ('clones, approximate', 0.053)
    >>> amplify_approximate(1.0, 1e-8, n=10_000, delta=1e-9).epsilon is None
    True

    Source
    ------
    Feldman, McMillan, Talwar (2021), Hiding Among the Clones, Proposition 2.2 of the workshop version.
    """
    pair, target = ClonePair(epsilon0, n, "clones"), share("delta", delta)
    slack = total_variation(pair, share("delta0", delta0))
    found = _ends(pair, target, slack) if target > 0.0 else None
    if found is not None:
        return Bound(NAME, found.upper, SOURCE, lower=found.lower)
    reason = too_large_reason(slack, target) if slack > 0.0 else "at delta 0 shuffling amplifies nothing"
    if target >= delta0:
        return Bound("local", pair.epsilon0, LOCAL, reason)
    return Bound.inapplicable(NAME, reason, source=SOURCE)


def _ends(pair: ClonePair, delta: float, slack: float) -> Bracket | None:
    """Ends of the smallest epsilon with delta_total(epsilon) <= delta; None without one."""
    blocks = pair.blocks(1e-8 * delta, RESOLUTION)
    guess = pair.gaussian_scale * normal_threshold(delta / pair.gaussian_scale)[0]
    found = smallest_epsilon(lambda e: pair.upper(e, blocks), delta, slack=slack, most=pair.epsilon0, guess=guess)
    if found is None:
        return None
    high = found[1]
    below = smallest_epsilon(lambda e: pair.lower(e, blocks), delta, slack=slack, most=pair.epsilon0, guess=high)
    return Bracket(0.0 if below is None else min(below[0], high), high)


def total_variation(pair: ClonePair, delta0: float) -> float:
    r"""Total variation of n such reports from purely private ones: (1 + e^-epsilon0) n delta0."""
    return (1.0 + math.exp(-pair.epsilon0)) * pair.n * delta0


def too_large_reason(slack: float, delta: float) -> str:
    """Reason why there is no amplification."""
    return f"n * delta0 too large: it adds at least {2.0 * slack:.3g} to delta, of {delta:.3g}"


def smallest_epsilon(
    curve: Callable[[float], float], delta: float, *, slack: float, most: float, guess: float
) -> tuple[float, float] | None:
    """Two points around the smallest epsilon with curve(epsilon) + (e^epsilon + 1) slack <= delta; None without one.

    Both are evaluated: above `delta` at the first (or 0), at most `delta` at the second. Both terms are convex in
    e^epsilon, so the points that qualify are an interval, found by golden section.

    Parameters
    ----------
    curve : function of epsilon that falls and is convex in e^epsilon
    slack : float, at least 0
    most : float, nats
        Where to stop looking.
    guess : float, above 0, nats
        About the answer; a wrong one costs time only.
    """

    def total(epsilon: float) -> float:
        return curve(epsilon) + (math.exp(epsilon) + 1.0) * slack if slack > 0.0 else curve(epsilon)

    if 2.0 * slack > delta:
        return None
    if total(0.0) <= delta:
        return 0.0, 0.0
    end = min(most, math.log(max(delta / slack - 1.0, 1.0))) if slack > 0.0 else most
    feasible = _feasible(total, delta, end)
    if feasible is None:
        return None
    start = guess if guess < feasible else 0.5 * feasible
    return bracket_root(lambda e: log_ratio(total(e), delta), start, steepness=10.0, most=feasible, tolerance=1e-8)


def _feasible(total: Callable[[float], float], delta: float, end: float) -> float | None:
    """A point of [0, end] with total <= delta, looked for around the minimum."""
    if total(end) <= delta:
        return end
    golden, low, high = 0.5 * (math.sqrt(5.0) - 1.0), 0.0, end
    left, right = high - golden * high, golden * high
    at_left, at_right = total(left), total(right)
    for _ in range(TURNS):
        if min(at_left, at_right) <= delta:
            return left if at_left <= delta else right
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = total(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = total(right)
    return None
