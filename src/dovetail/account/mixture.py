"""k-ary randomized response with different epsilons for different people, shuffled together without their classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from dovetail.account.bound import bracket_root, is_zero, log_ratio
from dovetail.core.certified import Bracket
from dovetail.core.checks import refuse, share, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.special import Reals, binomial_pmf, binomial_survival
from dovetail.randomize.krr import KRR

# A binomial law where it is not negligible.


LEFT_OUT, LEAST = 1e-20, 1e-220  # of every binomial law, by Bernstein's bound: less where delta is tiny


@dataclass(frozen=True, eq=False)
class Window:
    """A binomial law where it is not negligible: masses from `first` on, all but a given mass."""

    first: int
    masses: Reals


def binomial_window(n: int, q: float, left_out: float = LEFT_OUT) -> Window:
    """Bin(n, q) by ratios of neighbours outward from its mode; for q above 0, below 1."""
    slack = 47.0 + math.log(LEFT_OUT / left_out)  # e^-47 is less than half of `LEFT_OUT`
    reach = math.sqrt(2.0 * slack * n * q * (1.0 - q)) + math.ceil(slack / 1.5)
    first, last = max(0, math.floor(n * q - reach)), min(n, math.ceil(n * q + reach))
    mode = min(last, math.floor((n + 1) * q))
    up, down = np.arange(mode + 1.0, last + 1.0), np.arange(mode, first, -1.0)
    right = np.cumprod((n + 1.0 - up) / up * (q / (1.0 - q)))
    left = np.cumprod(down / (n + 1.0 - down) * ((1.0 - q) / q))
    masses = np.concatenate([left[::-1], [1.0], right])
    return Window(first, masses / masses.sum())


# How much likelier one value of a person is than another among m uniform reports: a sum, from few of its terms.
#
# .. math:: h(m) = E[g(B)], \qquad
#           g(b) = \frac{p - 1}{m} E\left[\left(A - E b - \frac{(E - 1) m}{p - 1}\right)_+ \middle| B = b\right],
#           \qquad
#           B \sim \mathrm{Bin}(m, \tfrac1k), \quad A \mid B = b \sim \mathrm{Bin}(m - b, \tfrac1{k - 1})
#
# g falls and is convex in b: with one b more, a Bernoulli variable and E are taken off A - E b, and
# (x + y + z)_+ + x_+ >= (x + y)_+ + (x + z)_+ for y, z >= 0. So chords through a few b are above it, and chords
# prolonged are below it. The points stand close where pmf times g is large, by a normal law.


OFF, OFF_ROOT = (
    1e-12,
    1e-14,
)  # a binomial tail or point of n is off by OFF + OFF_ROOT sqrt(n): five times what is measured
ALL, POINTS = 600, 400  # so many b at most are all counted; of more, so many
PLACES = np.sinh(np.linspace(-3.2, 3.2, POINTS))  # in standard deviations, from the middle of pmf times g


@dataclass(frozen=True, eq=False)
class Draws:
    """Numbers m of uniform reports, and the law of B for each."""

    k: int
    numbers: tuple[int, ...]
    windows: tuple[Window, ...]
    left_out: float

    @classmethod
    def among(cls, k: int, numbers: Sequence[int], left_out: float = LEFT_OUT) -> Draws:
        """Of these numbers, each at least 1."""
        return cls(k, tuple(numbers), tuple(binomial_window(m, 1.0 / k, left_out) for m in numbers), left_out)

    def gains(self, ratio: float, factor: float, *, side: float = 1.0) -> Reals:
        """h of each m from above, or with side -1 from below, at p = `ratio` and E = `factor`."""
        chosen = [
            self._points(m, window, ratio, factor) for m, window in zip(self.numbers, self.windows, strict=True)
        ]
        sizes = [one.size for one in chosen]
        b, m = np.concatenate(chosen), np.repeat(np.array(self.numbers, dtype=np.float64), sizes)
        low, high = _excess(m - b, self.k, factor * b + (factor - 1.0) * m / (ratio - 1.0))
        ends = np.cumsum(sizes)[:-1]
        parts = zip(chosen, self.windows, np.split(low, ends), np.split(high, ends), strict=True)
        sums = [_above(b, law, h) if side > 0.0 else _below(b, law, g, h) for b, law, g, h in parts]
        outside = max(0.0, side) * self.left_out * (ratio - factor)
        scale = (ratio - 1.0) / np.array(self.numbers, dtype=np.float64)
        return np.asarray(scale * np.array(sums) + outside)

    def _points(self, m: int, window: Window, ratio: float, factor: float) -> Reals:
        """The b that g is computed at, ascending, the first and the last one of the window among them."""
        k, first, last = self.k, window.first, window.first + window.masses.size - 1
        bar = (factor - 1.0) * m / (ratio - 1.0)
        if k == 2:  # g is a line down to 0
            zero = math.floor((m - bar) / (1.0 + factor))
            places = np.array([first + 1.0, zero - 1.0, zero, zero + 1.0])
        elif window.masses.size <= ALL:
            return np.arange(first, last + 1.0)
        else:
            spread, other, slope = m * (k - 1.0) / k**2, m * (k - 2.0) / (k * (k - 1.0)), factor + 1.0 / (k - 1)
            middle = m / k - slope * ((factor - 1.0) * m / k + bar) / (other / spread + slope * slope)
            places = np.rint(min(max(middle, first), last) + PLACES / math.sqrt(1.0 / spread + slope**2 / other))
        return np.unique(np.concatenate([[first], np.clip(places, first, last), [last]]))


def _moments(points: Reals, window: Window) -> tuple[Reals, Reals]:
    """Of the b from each point to the next: their mass, and the sum of mass times distance from the point."""
    at = (points - window.first).astype(np.int64)
    mass = np.add.reduceat(window.masses, at)
    return mass, np.add.reduceat(window.masses * np.arange(window.masses.size), at) - at * mass


def _above(points: Reals, window: Window, high: Reals) -> float:
    """At least the mean of a convex function that is at most `high` at these points: by chords."""
    mass, beyond = _moments(points, window)
    return float(mass @ high + (np.diff(high) / np.diff(points)) @ beyond[:-1])


def _below(points: Reals, window: Window, low: Reals, high: Reals) -> float:
    """At most the mean of a convex falling function between `low` and `high` there: by the chords next to each."""
    mass, beyond = _moments(points, window)
    gaps = np.diff(points)
    steep, flat = np.minimum((low[1:] - high[:-1]) / gaps, 0.0), np.minimum((high[1:] - low[:-1]) / gaps, 0.0)
    left = mass * low
    left[1:] += steep * beyond[1:]
    left[0] *= beyond[0] <= 0.0  # nothing is known before the first point
    right = mass[:-1] * low[1:] + np.append(flat[1:], 0.0) * (beyond[:-1] - mass[:-1] * gaps)
    return float(np.maximum(left[:-1], right).sum() + left[-1])


def _excess(n: Reals, k: int, bar: Reals) -> tuple[Reals, Reals]:
    r"""Ends of E[(A - bar)_+] for A ~ Bin(n, q), q = 1/(k - 1), elementwise; `bar` is at least 0.

    .. math:: (n q - x) \Pr[A' > x] + q (n - x) \Pr[A' = \lfloor x \rfloor], \qquad A' \sim \mathrm{Bin}(n - 1, q)
    """
    if k == 2:
        value = np.maximum(n - bar, 0.0)
        return value, value
    q, others = 1.0 / (k - 1), np.maximum(n - 1.0, 0.0)
    some = bar < n
    x, n, others = bar[some], n[some], others[some]
    above = np.floor(x)
    tail = (n * q - x) * binomial_survival(above, others, q, 1.0 - q)
    point = q * (n - x) * binomial_pmf(above, others, q, 1.0 - q)
    off = (OFF + OFF_ROOT * np.sqrt(n)) * (np.abs(tail) + point)
    low, high = np.zeros(bar.shape), np.zeros(bar.shape)
    low[some], high[some] = np.maximum(tail + point - off, 0.0), np.maximum(tail + point + off, 0.0)
    return low, high


# How many reports of people of several classes are uniform: a sum of binomial counts, in blocks.


BLOCKS, OUTER = 20, 8  # each counted at one of its ends: where the law is large, and left of it
FEW = 256  # numbers that are blocks of their own
LONG = 512  # of both factors of a convolution: transformed
UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class UniformCount:
    """Blocks of a law of whole numbers.

    Parameters
    ----------
    starts, ends : tuple of int
        First and last number of each block, ascending.
    masses : float array (blocks,)
    missing : float
        Mass that is in no block.
    noise : float
        Bound on the summed errors of `masses`.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    masses: Reals
    missing: float
    noise: float


def uniform_count(parts: Sequence[tuple[int, float]], left_out: float = LEFT_OUT) -> UniformCount:
    """The sum of Bin(n, q) over these (n, q).

    Blocks are narrow where the law is large: the error of a block is mass times width, and the sum of these is least
    at widths like law^(-1/2). A fourth root loses little there and leaves no wide block at the ends; left of them h
    of few uniform reports may be large.
    """
    start, law, noise = 0, np.ones(1), 0.0
    for n, q in parts:
        part = binomial_window(n, q, left_out)
        law, error = _convolve(law, part.masses)
        start, noise = start + part.first, noise + error
    if law.size <= FEW:
        edges = np.arange(law.size)
    else:
        depth = np.cumsum(law**0.25)
        inner = np.searchsorted(depth, depth[-1] * np.arange(1, BLOCKS + 1) / (BLOCKS + 1))
        edges = np.unique(np.concatenate([np.arange(OUTER) * inner[0] // OUTER, inner]))
    ends = np.append(edges[1:], law.size) - 1
    return UniformCount(
        starts=tuple((start + edges).tolist()), ends=tuple((start + ends).tolist()),
        masses=np.add.reduceat(law, edges), missing=left_out * len(parts), noise=noise,
    )  # fmt: skip


def _convolve(one: Reals, two: Reals) -> tuple[Reals, float]:
    """The convolution of two laws, and a bound on the sum of its errors where it is transformed."""
    if min(one.size, two.size) < LONG:
        return np.convolve(one, two), 0.0
    from scipy.fft import irfft, next_fast_len, rfft

    size = one.size + two.size - 1
    length = next_fast_len(size, real=True)
    found = np.maximum(irfft(rfft(one, length) * rfft(two, length), length)[:size], 0.0)
    error = 16.0 * UNIT * math.log2(length) * float(np.linalg.norm(one) * np.linalg.norm(two))
    return found, math.sqrt(size) * error


SOURCE = "Different epsilons behind one shuffle (docs/theory/accuracy.md, section F)"
MOST_EPSILON = 40.0  # of a person: beyond, doubles lose the others beside her
MOST_CLASSES = 100
CLOSE = 1e-6  # of epsilons, relative
UP = 1.0 + 1e-8  # far beyond the rounding of what is summed here, all of it of one sign


@dataclass(frozen=True, eq=False)
class MixtureLaw:
    r"""Privacy profile of a person of one class among people of several classes.

    .. math:: \delta(\epsilon) \le k b\, E_M[h(M + 1)], \qquad
              h(m) = E\left[\left((p - 1) \frac{A - E B}{m} - (E - 1)\right)_+\right], \qquad
              (A, B) \sim \mathrm{multinomial}(m; \tfrac1k, \tfrac1k)

    M counts the reports of the other honest people that are uniform: each with probability k b_i, b_i = 1 / (p_i +
    k - 1). h falls in m, so blocks of M are counted at their lower ends, and what is below all blocks at h(1).

    Parameters
    ----------
    own : KRR
        Of the person.
    others : tuple of (int, KRR)
        How many other honest people there are of each class.
    least : float
        The smallest delta that is asked: what is left out of binomial laws is a small share of it.
    """

    own: KRR
    others: tuple[tuple[int, KRR], ...]
    least: float = 1.0

    @property
    def left_out(self) -> float:
        """Of every binomial law."""
        return max(LEAST, min(LEFT_OUT, 1e-5 * self.least))

    @cached_property
    def ratio(self) -> float:
        """p, realized."""
        keep, lie = self.own.device.masses
        return keep / lie

    @property
    def uniform(self) -> float:
        """k b: how often a report of the person herself is uniform."""
        return _uniform(self.own)

    @property
    def mean(self) -> float:
        """Of M."""
        return sum(count * _uniform(one) for count, one in self.others)

    def delta(self, epsilon: float) -> float:
        """Upper end of delta at `epsilon`, at least 0."""
        factor = math.exp(epsilon)
        if factor >= self.ratio:
            return 0.0
        worst = (self.ratio - factor) / self.own.k  # h(1)
        each = self._most.gains(self.ratio, factor)
        inside = float(self._count.masses @ each) + self._count.noise * float(each[0])
        return min(1.0, self.uniform * (self._count.missing * worst + inside) * UP)

    def delta_lower(self, epsilon: float) -> float:
        """The same from below: blocks of M count at their upper ends, and what is missing not at all."""
        factor = math.exp(epsilon)
        if factor >= self.ratio:
            return 0.0
        each = self._fewest.gains(self.ratio, factor, side=-1.0)
        inside = float(self._count.masses @ each) - 2.0 * self._count.noise * float(each[0])
        return max(0.0, self.uniform * inside / UP)

    def epsilon(self, delta: float) -> float:
        """The least epsilon found with `delta` kept; at most the person's own."""
        return self._solve(self.delta, delta)[1]

    def epsilon_lower(self, delta: float) -> float:
        """An epsilon that the theorem's own value is not below."""
        return self._solve(self.delta_lower, delta)[0]

    def _solve(self, curve: Callable[[float], float], delta: float) -> tuple[float, float]:
        """Around the threshold of a curve, from where it is if M is its mean."""
        value, most = cache(curve), self.own.epsilon
        start, steepness = self._start(delta)
        if is_zero(value, delta, start, steepness=steepness, tolerance=CLOSE):
            return 0.0, 0.0
        return bracket_root(
            lambda e: log_ratio(value(e), delta), start, steepness=steepness, most=most, tolerance=CLOSE
        )

    def _start(self, delta: float) -> tuple[float, float]:
        """About the epsilon of `delta`, and how fast log delta falls there in log epsilon."""
        slack, most = math.log(1.0 / delta), self.own.epsilon
        guess = self.uniform * (self.ratio - 1.0) * 2.0 * math.sqrt(slack / (self.own.k * (self.mean + 1.0)))
        draws = Draws.among(self.own.k, [math.floor(self.mean) + 1], self.left_out)

        def middle(epsilon: float) -> float:
            return log_ratio(self.uniform * float(draws.gains(self.ratio, math.exp(epsilon))[0]), delta)

        if middle(0.0) <= 0.0:
            return guess, 2.0 * slack + 1.0
        start = bracket_root(
            middle, min(guess, 0.5 * most), steepness=2.0 * slack + 1.0, most=most, tolerance=1e-4
        )[0]  # fmt: skip
        return start, max(1.0, (middle(start * 0.999) - middle(start)) / 1e-3)

    @cached_property
    def _count(self) -> UniformCount:
        return uniform_count([(count, _uniform(one)) for count, one in self.others], self.left_out)

    @cached_property
    def _most(self) -> Draws:
        return Draws.among(self.own.k, [start + 1 for start in self._count.starts], self.left_out)

    @cached_property
    def _fewest(self) -> Draws:
        return Draws.among(self.own.k, [end + 1 for end in self._count.ends], self.left_out)


def amplify_mixture(
    k: int, mixture: Sequence[tuple[int, float]], *, delta: float, honest: int | Sequence[int] | None = None
) -> tuple[CentralDP, ...]:
    """One guarantee for each class of people who use k-ary randomized response with an epsilon0 of their own.

    Reports carry no class, and a person's class must not depend on her value. People with a small epsilon0 send
    many uniform reports, and everybody hides among these: those with a large epsilon0 live on the careful ones, who
    have to be honest and present. Next to the central epsilon stands the local one: at 12 it is hardly a promise.

    Parameters
    ----------
    k : int, at least 2
    mixture : several (people, epsilon0)
        At most 100 classes, epsilon0 above 0 and at most 40; of many epsilons round every other one's up.
    delta : float, above 0, below 1
    honest : int or several int, optional
        People that are assumed honest: of all classes together, in the worst allocation (`worst_others`), or of each
        class; default all.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    UnsupportedError
        For a mixture of one person, whom nobody hides.

    Examples
    --------
    >>> careful, open = amplify_mixture(4, [(50_000, 1.0), (50_000, 4.0)], delta=1e-6)
    >>> round(careful.epsilon, 4), round(open.epsilon, 4), open.colluding
    (0.0136, 0.0463, 4.0)

    Source
    ------
    docs/theory/accuracy.md, section F.
    """
    if not share("delta", delta) > 0.0:
        raise refuse("delta", "above 0: at delta 0 shuffling amplifies nothing", delta)
    classes = _classes(k, mixture)
    people = sum(count for count, _ in classes)
    if not isinstance(honest, Sequence):
        trusted = people if honest is None else whole("honest", honest, least=1, most=people)
        return tuple(
            amplify_class(classes, place, crowd=people, honest=trusted, delta=delta) for place in range(len(classes))
        )
    each = list(honest)
    if len(each) != len(classes):
        raise refuse("honest", f"one number, or one for each of the {len(classes)} classes", honest)
    for place, (count, _) in enumerate(classes):
        each[place] = whole("honest", each[place], least=1, most=count)
    everybody = [count for count, _ in classes]
    return tuple(
        _guarantee(classes, place, _without(everybody, place), _without(each, place), delta)
        for place in range(len(classes))
    )


def amplify_class(
    classes: Sequence[tuple[int, KRR]], own: int, *, crowd: int, honest: int, delta: float
) -> CentralDP:
    """Guarantee of a person of class `own` among `crowd` people, `honest` of whom are: nobody knows which.

    Parameters
    ----------
    classes : several (people, KRR)
        At least one person of her own, and at least `crowd` in all.
    crowd, honest : int, 1 <= honest <= crowd
        Herself included.
    """
    counts, epsilons = [count for count, _ in classes], [one.epsilon for _, one in classes]

    def others(many: int) -> list[int]:
        return worst_others(counts, epsilons, own=own, honest=many)

    return _guarantee(list(classes), own, others(crowd), others(honest), delta)


def worst_others(counts: Sequence[int], epsilons: Sequence[float], *, own: int, honest: int) -> list[int]:
    r"""How many other honest people of each class there are, at worst, beside a person of class `own`.

    Who is not honest may be of any class, so some h - 1 of the others are honest. The worst are those with the
    largest epsilon0. Proof: match any other h - 1 people with these, both in the order of k b = k / (p + k - 1),
    which falls in epsilon0. The i-th of these has the i-th smallest k b of all others, hence at most that of her
    partner; independent Bernoulli variables with larger means have a stochastically larger sum M, and delta is the
    mean of h(M + 1), which falls in M. In the same way delta falls in h and in every count.

    Parameters
    ----------
    counts : int (classes,)
        People of each class, herself included.
    epsilons : float (classes,)
    honest : int, 1 .. sum(counts)
        Herself included.

    Examples
    --------
    >>> worst_others([50, 50], [1.0, 4.0], own=1, honest=60)
    [10, 49]
    """
    left, found = honest - 1, [0] * len(counts)
    others = _without(counts, own)
    for place in sorted(range(len(counts)), key=lambda place: -epsilons[place]):
        found[place] = min(left, others[place])
        left -= found[place]
    return found


def _without(counts: Sequence[int], own: int) -> list[int]:
    return [count - (place == own) for place, count in enumerate(counts)]


def _guarantee(
    classes: list[tuple[int, KRR]], place: int, everybody: list[int], trusted: list[int], delta: float
) -> CentralDP:
    """Of a person of class `place` among these others: everybody, and those who are assumed honest."""
    own = classes[place][1]

    def among(others: list[int]) -> MixtureLaw:
        return MixtureLaw(own, tuple((n, one) for n, (_, one) in zip(others, classes, strict=True) if n), delta)

    law = among(trusted)
    some = law.epsilon(delta)
    every = some if trusted == everybody else min(some, among(everybody).epsilon(delta))
    return CentralDP(
        all=every, honest=some, colluding=own.epsilon, delta=delta, n=sum(everybody) + 1, honest_n=sum(trusted) + 1,
        method="k-ary randomized response, several epsilons", source=SOURCE,
        numeric=Bracket(min(some, law.epsilon_lower(delta)), some), attack_lower=0.0,
    )  # fmt: skip


def _classes(k: int, mixture: Any) -> list[tuple[int, KRR]]:
    """The mixture, checked."""
    wanted = "pairs of people and epsilon0, such as [(50_000, 1.0), (50_000, 4.0)]"
    try:
        pairs = [(count, epsilon0) for count, epsilon0 in mixture]
    except (TypeError, ValueError):
        raise refuse("mixture", wanted, mixture) from None
    if not 1 <= len(pairs) <= MOST_CLASSES:
        raise refuse("mixture", f"1 to {MOST_CLASSES} {wanted}", f"{len(pairs)} of them")
    found = [(whole("mixture", count, least=1, most=10**9), KRR(k, epsilon0)) for count, epsilon0 in pairs]
    for _, one in found:
        if one.epsilon > MOST_EPSILON:
            raise refuse("epsilon0", f"at most {MOST_EPSILON:g} in a mixture", one.epsilon)
    if sum(count for count, _ in found) < 2:
        raise UnsupportedError("a mixture of one person hides nobody: her local guarantee is all there is.")
    return found


def _uniform(randomizer: KRR) -> float:
    """k b: probability that a report says nothing."""
    channel = randomizer.channel()
    return channel.k * channel.lie / channel.total
