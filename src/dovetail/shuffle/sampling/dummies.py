"""A shuffler that adds dummies: exact counts stay hidden in the number of dummies of each symbol."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import ceil, log, log1p, nextafter
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import instance, privacy_budget, rectangular, refuse, share, whole, wholes
from dovetail.core.discrete_noise import can_draw, discrete_gaussian
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.special import binomial_cdf
from dovetail_protocol.dummies import CAP, SentDummies
from dovetail_protocol.exact_thresholds import WORD, exp_bracket

# How many dummies a symbol gets: the truncated symmetric geometric law, in whole numbers.


MOST_REACH = 4096  # s; weights are numbers of 20 s bits
MOST_GAUSSIAN_REACH = 1 << 18
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
        return Fraction(*self.least_parts)

    @property
    def least_parts(self) -> tuple[int, int]:
        """Numerator and denominator of D(0), not reduced: their thousands of bits take long to."""
        num, den, s = self.numerator, self.denominator, self.reach
        return num**s * (den - num), den**s * (den + num) - 2 * num ** (s + 1)

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
        """Distribution of a count's error: multiples of `unit`, ascending (2s + 1,), and their probabilities."""
        off = np.arange(-self.reach, self.reach + 1, dtype=np.float64)
        masses = float(self.ratio) ** np.abs(off)
        return unit * off, masses / masses.sum()

    def characteristic(self, angles: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""E cos(angle (Z - s)), which is the whole characteristic function of a symmetric law.

        .. math:: 1 + 2 \sum_{a=1}^s t^a \cos a x =
                  \frac{1 - t^2 - 2 t^{s+1} (\cos (s + 1) x - t \cos s x)}{1 - 2 t \cos x + t^2}
        """
        t, s = self.numerator / self.denominator, self.reach
        ends = np.cos((s + 1) * angles) - t * np.cos(s * angles)
        found = (1.0 - t**2 - 2.0 * t ** (s + 1) * ends) / (1.0 - 2.0 * t * np.cos(angles) + t**2)
        return np.asarray(found / (1.0 + 2.0 * t * (1.0 - t**s) / (1.0 - t)))

    def sample(self, count: int, rng: Entropy) -> NDArray[np.int64]:
        """`count` independent draws of exactly this law."""
        cumulated, floors = _thresholds(self)
        words = rng.words(count)
        drawn = np.searchsorted(floors, words, side="right").astype(np.int64)
        at = np.minimum(np.searchsorted(floors, words, side="left"), floors.size - 1)
        for place in np.flatnonzero(floors[at] == words):  # a step may lie inside this word
            drawn[place] = _settle(cumulated, int(words[place]), rng.owners(np.array([place]), count))
        return drawn


def _settle(cumulated: list[int], word: int, rng: Entropy) -> int:
    """Value of a uniform number that begins with `word`: more of its bits are drawn until it is certain."""
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
    r"""By closed sums of t^a and a^2 t^a, times powers of the denominator, as gcds of sums take long.

    .. math:: \mathrm{Var}\, Z = \frac{2 \sum_{a=1}^s a^2 t^a}{1 + 2 \sum_{a=1}^s t^a}, \qquad
              (1 - t)^3 \sum_{a=1}^s a^2 t^a = t (1 + t) - t^{s+1} ((s + 1)^2 - (2 s^2 + 2 s - 1) t + s^2 t^2)
    """
    num, den, s = law.numerator, law.denominator, law.reach
    last = num ** (s + 1)
    ends = (s + 1) ** 2 * den**2 - (2 * s * s + 2 * s - 1) * num * den + s * s * num**2
    squares = num * (den + num) * den ** (s + 1) - last * ends
    return Fraction(2 * squares, (den - num) ** 2 * (den**s * (den + num) - 2 * last))


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
        (least, all_), most = law.least_parts, Fraction(delta)
        if least * (2 * all_ - least) * most.denominator <= most.numerator * all_**2:  # law.delta <= delta
            return law
        reach += 1
    raise refuse(
        "epsilon", f"larger: it takes more than {MOST_REACH:,} dummies for each symbol at delta {delta:g}", epsilon
    )


# The same by truncated discrete Gaussian noise: better where several symbols of a person are counted.


@dataclass(frozen=True)
class TruncatedGaussian:
    r"""A number of dummies in 0..2s, mean s.

    .. math:: \Pr[Z = s + k] \propto e^{-k^2 / (2 v)}, \qquad |k| \le s

    A person's value shifts Z of one symbol up and of another down: losses are whole multiples of 1/v, and add up
    without rounding over questions and rounds (`dovetail.account.message_delta`).

    Parameters
    ----------
    scale : Fraction, above 0
        v, all but the variance.
    reach : int, at least 1
        s, the most that a count is off.

    Raises
    ------
    ParameterError
        For numbers outside their ranges.

    Examples
    --------
    >>> round(TruncatedGaussian(Fraction(9), 12).variance, 3)
    8.995

    Source
    ------
    docs/theory/several-symbols.md. Sampler: Canonne, Kamath, Steinke (2020), arXiv 2004.00010.
    """

    scale: Fraction
    reach: int

    def __post_init__(self) -> None:
        if not (isinstance(self.scale, Fraction) and can_draw(self.scale)):
            raise refuse("scale", "a fraction above 0 whose square root is at most 2^15", self.scale)
        object.__setattr__(self, "reach", whole("reach", self.reach, least=1, most=MOST_GAUSSIAN_REACH))

    @property
    def masses(self) -> NDArray[np.float64]:
        """Pr[Z = a], a = 0..2s, to a relative error of 2^-50 (1 + s^2 / (2v))."""
        off = np.arange(-self.reach, self.reach + 1, dtype=np.float64)
        weights = np.exp(off * off / (-2.0 * float(self.scale)))
        return np.asarray(weights / math.fsum(weights))

    @property
    def variance(self) -> float:
        """Of Z."""
        return float(self.masses @ np.arange(-self.reach, self.reach + 1, dtype=np.float64) ** 2)

    def error_law(self, unit: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Distribution of a count's error: multiples of `unit`, ascending (2s + 1,), and their probabilities."""
        return unit * np.arange(-self.reach, self.reach + 1, dtype=np.float64), self.masses

    def characteristic(self, angles: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""E cos(angle (Z - s)), which is the whole characteristic function of a symmetric law.

        .. math:: w_0 + 2 \sum_{a=1}^s w_a \cos a x, \quad \text{by Clenshaw's recurrence in } \cos x

        Examples
        --------
        >>> law = TruncatedGaussian(Fraction(9), 12)
        >>> bool(abs(law.characteristic(np.array([0.5]))[0] - law.masses @ np.cos(0.5 * np.arange(-12, 13))) < 1e-14)
        True
        """
        double, one, two = 2.0 * np.cos(angles), np.zeros_like(angles), np.zeros_like(angles)
        weights = self.masses[self.reach :]
        for weight in weights[:0:-1]:
            one, two = 2.0 * weight + double * one - two, one
        return np.asarray(weights[0] + 0.5 * double * one - two)

    def sample(self, count: int, rng: Entropy) -> NDArray[np.int64]:
        """`count` independent draws of exactly this law: those beyond the ends are drawn again."""
        found = discrete_gaussian(self.scale, count, rng)
        beyond = np.flatnonzero(np.abs(found) > self.reach)
        while beyond.size:
            found[beyond] = discrete_gaussian(self.scale, beyond.size, rng)
            beyond = beyond[np.abs(found[beyond]) > self.reach]
        return found + self.reach


@dataclass(frozen=True)
class SummedLaw:
    r"""The sum of so many independent numbers of dummies: of all combinations of answers with one of them.

    .. math:: \mathrm{E}\, e^{i x (Z_1 + \dots + Z_m - m s)} = \varphi(x)^m

    Parameters
    ----------
    each : TruncatedGeometric or TruncatedGaussian
    times : int
        m.
    """

    each: TruncatedGeometric | TruncatedGaussian
    times: int

    @property
    def reach(self) -> int:
        """The most that the sum is off, which is its mean."""
        return self.times * self.each.reach

    @property
    def variance(self) -> float:
        """Of the sum."""
        return self.times * float(self.each.variance)

    def characteristic(self, angles: NDArray[np.float64]) -> NDArray[np.float64]:
        """That of each, to the power of m."""
        return np.asarray(self.each.characteristic(angles) ** self.times)

    def error_law(self, unit: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """As that of each, by a discrete Fourier transform; without what is rarer than 1e-15 (Bernstein)."""
        most = min(self.reach, ceil(12.0 * math.sqrt(self.variance) + 50.0 * self.each.reach))
        size = 2 * most + 1  # what lies further out is added to places inside
        angles = 2.0 * np.pi / size * np.arange(most + 1, dtype=np.float64)
        masses = np.fft.irfft(self.characteristic(angles.astype(np.float64)), size)
        return unit * np.arange(-most, most + 1, dtype=np.float64), np.fft.fftshift(np.maximum(masses, 0.0))

    def sample(self, count: int, rng: Entropy) -> NDArray[np.int64]:
        """`count` independent draws of exactly this law."""
        return np.asarray(self.each.sample(count * self.times, rng).reshape(count, self.times).sum(axis=1))


CountLaw = TruncatedGeometric | TruncatedGaussian | SummedLaw
MOST_DUMMIES = 10**8


def symbols_of(reports: ArrayLike, k: int) -> NDArray[np.int64]:
    """`reports` (n,) as symbols below k; DataError for anything else."""
    batch = rectangular("reports", reports)
    whole_numbers = batch.ndim == 1 and (batch.dtype.kind in "iu" or batch.size == 0)
    if not whole_numbers or (batch.size and not (batch.min() >= 0 and batch.max() < k)):
        raise DataError(f"`reports` must be whole numbers in 0..{k - 1}, one for each person.")
    return batch.astype(np.int64)


def mix_evenly(reports: NDArray[np.int64], dummies: NDArray[np.int64], rng: Entropy) -> NDArray[np.int64]:
    """Both in uniform order."""
    mixed = np.concatenate([reports, dummies])
    return mixed[rng.permutation(mixed.size)]


class AddedDummies(ABC):
    """Dummies that a shuffler adds to each batch: of every symbol a number of its own, independent of all else."""

    k: int  # number of symbols; reports are 0..k-1
    kept: ClassVar[Fraction] = Fraction(1)  # the probability that a report is in the batch

    @final
    def places(self, n: int, rng: Entropy) -> NDArray[np.int64]:
        """Which of n reports are in the batch: all of them."""
        return np.arange(n)

    @property
    @abstractmethod
    def laws(self) -> tuple[tuple[CountLaw, int], ...]:
        """The laws of the numbers of dummies, in the order of the symbols, and of how many symbols each is."""

    @property
    def messages(self) -> int:
        """Reports of one person."""
        return 1

    @property
    @final
    def total(self) -> int:
        """Dummies of a batch on average."""
        return sum(symbols * law.reach for law, symbols in self.laws)

    @property
    @final
    def reach(self) -> int:
        """s: the most that a count is off; of symbols with one law their dummies on average."""
        return max(law.reach for law, _ in self.laws)

    @property
    @final
    def variance(self) -> float:
        """Of every estimated count; of several laws the largest."""
        return max(float(law.variance) for law, _ in self.laws)

    @property
    @final
    def means(self) -> NDArray[np.float64]:
        """Dummies of each symbol (k,) on average."""
        return np.concatenate([np.full(symbols, float(law.reach)) for law, symbols in self.laws])

    @property
    @final
    def variances(self) -> NDArray[np.float64]:
        """Of the estimated count of each symbol (k,)."""
        return np.concatenate([np.full(symbols, float(law.variance)) for law, symbols in self.laws])

    def marginal(self, k: int) -> MarginalDummies:
        """What they add to one of k answers, where symbols are combinations with as many for each answer."""
        ((law, _),) = self.laws
        assert not isinstance(law, SummedLaw)  # combinations are not combined again
        return MarginalDummies(k, SummedLaw(law, self.k // k))

    @final
    def add(self, reports: ArrayLike, rng: Entropy | None = None) -> NDArray[np.int64]:
        """`reports` (n,) and the dummies in uniform order; the dummies are drawn anew with each call."""
        rng = entropy_or_system(rng)
        return mix_evenly(symbols_of(reports, self.k), self.drawn(rng), rng)

    @final
    def drawn(self, rng: Entropy) -> NDArray[np.int64]:
        """The dummies of one batch, symbol by symbol."""
        if self.total > MOST_DUMMIES:
            raise UnsupportedError(
                f"{self.k:,} symbols take {self.total:,} dummies, more than {MOST_DUMMIES:,}: join symbols."
            )
        return np.repeat(np.arange(self.k), np.concatenate([law.sample(many, rng) for law, many in self.laws]))

    @final
    def counts(self, batch: ArrayLike) -> NDArray[np.float64]:
        """Unbiased numbers (k,) of people behind the symbols of a batch with dummies."""
        return self.counts_of(self.tally(batch))

    @final
    def counts_of(self, tally: NDArray[Any]) -> NDArray[np.float64]:
        """The same from a tally (k,)."""
        return np.asarray(np.asarray(tally, dtype=np.float64) - self.means)

    @final
    def tally(self, batch: ArrayLike) -> NDArray[np.int64]:
        """How often each symbol (k,) came, dummies included: tallies of the parts of a batch add."""
        return np.bincount(symbols_of(batch, self.k), minlength=self.k)

    @final
    def people(self, size: int, n: int) -> int:
        """`n`, where a batch of `size` reports can be that of n people; DataError otherwise.

        Too small or too large a batch means that its shuffler adds other dummies than these, or none; a good batch is
        refused with probability below 1e-11 (Bernstein), and one without any dummies always.
        """
        mean, slack = self.total, 27.0 * self.reach / 3.0
        reach = slack + math.sqrt(slack**2 + 54.0 * sum(many * float(law.variance) for law, many in self.laws))
        least, most = max(1, math.floor(mean - reach)), min(2 * mean, math.ceil(mean + reach))
        sent = self.messages * n
        if not sent + least <= size <= sent + most:
            raise DataError(
                f"a batch of {n:,} people has {sent + least:,} to {sent + most:,} reports with these dummies, got "
                f"{size:,}: its shuffler adds others, or none."
            )
        return n


@final
@dataclass(frozen=True)
class Dummies(AddedDummies):
    r"""Dummies of the shuffler: for each of the k symbols independently, the count is off by Z - s.

    .. math:: h_j = c_j + Z_j, \qquad \hat c_j = h_j - s, \qquad \Pr[Z = a] \propto t^{|a - s|}, \quad a = 0..2s

    The standard deviation of every count is that of Z, 2.8 at epsilon = 1 and delta = 1e-6, whatever the number of
    people, symbols and the count; local noise is not needed. **The shuffler must be trusted with more**: with the
    analyst it reads every answer. See `dovetail.account.dummies_guarantee` for what is promised against whom.

    Every symbol that can be reported needs dummies, also one that nobody holds: the k symbols are public and closed.
    Draw the dummies of a round once: two draws for one batch are two releases.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols; reports are 0..k-1.
    epsilon : float, above 0, at most 700, nats
        Of one round.
    delta : float, above 0, below 1

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    DataError
        For reports that are no symbols, and for a batch that cannot hold these dummies.
    UnsupportedError
        From `add`, for more than 1e8 dummies.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> dummies = Dummies(k=3, epsilon=1.0, delta=1e-6)
    >>> batch = dummies.add([0] * 500 + [2] * 40, rng=simulation(1))
    >>> dummies.reach, dummies.counts(batch).round().tolist()
    (27, [499.0, -1.0, 40.0])

    Source
    ------
    docs/theory/accuracy.md, section B.
    """

    k: int
    epsilon: float
    delta: float
    noise: TruncatedGeometric = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 24))
        object.__setattr__(self, "epsilon", privacy_budget("epsilon", self.epsilon))
        object.__setattr__(self, "delta", share("delta", self.delta))
        law = TruncatedGeometric.calibrated(epsilon=self.epsilon, delta=self.delta)
        object.__setattr__(self, "noise", law)

    @property
    def laws(self) -> tuple[tuple[CountLaw, int], ...]:
        return ((self.noise, self.k),)


@final
@dataclass(frozen=True)
class GaussianDummies(AddedDummies):
    r"""Dummies of the shuffler with truncated discrete Gaussian numbers, the same law for each of k symbols.

    .. math:: h_j = c_j + Z_j, \qquad \hat c_j = h_j - s, \qquad \Pr[Z = s + a] \propto e^{-a^2 / (2 v)},
              \quad |a| \le s

    They tell less over five collections and more about the same people than `Dummies` of the same variance do:
    `dovetail.account.dummies_for_rounds` takes the better ones. Everything else is as with `Dummies`.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols; reports are 0..k-1.
    noise : TruncatedGaussian

    Raises
    ------
    ParameterError, DataError, UnsupportedError
        As `Dummies`.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> dummies = GaussianDummies(3, TruncatedGaussian(Fraction(429), 124))
    >>> batch = dummies.add([0] * 500 + [2] * 40, rng=simulation(1))
    >>> round(dummies.variance**0.5, 1), dummies.counts(batch).round().tolist()
    (20.7, [483.0, -7.0, 47.0])

    Source
    ------
    docs/theory/several-symbols.md.
    """

    k: int
    noise: TruncatedGaussian

    def __post_init__(self) -> None:
        instance("noise", self.noise, TruncatedGaussian)
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 24))

    @property
    def laws(self) -> tuple[tuple[CountLaw, int], ...]:
        return ((self.noise, self.k),)


@final
@dataclass(frozen=True)
class SeveralDummies(AddedDummies):
    """Dummies of several questions that a person answers with a report each, their symbols numbered through.

    Parameters
    ----------
    noises : tuple of TruncatedGaussian, one for each question
        Such as those of `dovetail.account.message_for`.
    sizes : tuple of int, one for each question, at least 2
        How many symbols it has.
    times : int
        How often all of these lists stand one after the other, where a person answers by one of so many rows of them.

    Raises
    ------
    ParameterError, DataError, UnsupportedError
        As `Dummies`.

    Examples
    --------
    >>> law = TruncatedGaussian(Fraction(9), 20)
    >>> SeveralDummies((law, law), (3, 2)).k
    5

    Source
    ------
    docs/theory/several-symbols.md.
    """

    noises: tuple[TruncatedGaussian, ...]
    sizes: tuple[int, ...]
    times: int = 1
    k: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", wholes("sizes", self.sizes, least=2, most=1 << 24))
        if not (isinstance(self.noises, tuple) and len(self.noises) == len(self.sizes)):
            raise refuse("noises", f"one for each of {len(self.sizes):,} sizes", self.noises)
        for noise in self.noises:
            instance("noises", noise, TruncatedGaussian)
        object.__setattr__(self, "k", self.times * sum(self.sizes))

    @property
    def messages(self) -> int:
        return len(self.sizes)

    @property
    def laws(self) -> tuple[tuple[CountLaw, int], ...]:
        return tuple(zip(self.noises, self.sizes, strict=True)) * self.times


@final
@dataclass(frozen=True)
class MarginalDummies(AddedDummies):
    """Dummies of combinations of answers, as they stand beside the k answers to one question.

    Nothing is promised of them by themselves: released are the combinations.

    Parameters
    ----------
    k : int
    noise : SummedLaw
        Of all combinations with one of the answers: no two answers have one in common, so that numbers of dummies of
        different answers are independent.
    """

    k: int
    noise: SummedLaw

    @property
    def laws(self) -> tuple[tuple[CountLaw, int], ...]:
        return ((self.noise, self.k),)


# Few dummies for large domains: reports are kept by chance, and most symbols get none.


COINS = 1 << 32


@final
@dataclass(frozen=True)
class SparseDummies:
    r"""The shuffler keeps each report with probability beta and adds Z dummies of each of the k symbols, no delta.

    .. math:: \Pr[Z = a] = (1 - q) q^a, \qquad q \approx \frac{1}{1 + e^{\epsilon / 2}}, \qquad
              \beta \approx 1 - e^{-\epsilon / 2}, \qquad 1 + \frac{\beta}{q (1 - \beta)} \le e^{\epsilon}

    Most symbols get no dummy, .61 on average at epsilon = 1, where `Dummies` are 27 of each. **Never more accurate
    for a symbol of more than one person**: kept reports are a sample. Coins and dummies are drawn once for a
    batch, and the number of reports that were kept stays a secret of the shuffler.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols; reports are 0..k-1.
    epsilon : float, from 1e-6 to 40, nats
    times : int
        Combinations of answers that each symbol stands for, as `marginal` makes them: each has Z dummies of its own.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    DataError
        For reports that are no symbols, and for a batch that cannot hold these dummies.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> dummies = SparseDummies(k=1000, epsilon=1.0)
    >>> batch = dummies.add([7] * 500, rng=simulation(1))
    >>> round(float(dummies.kept), 3), round(dummies.mean, 2), batch.size < 1000
    (0.393, 0.61, True)

    Source
    ------
    docs/theory/several-symbols.md. Idea: Murakami et al. (2025), arXiv 2504.07362, third protocol.
    """

    k: int
    epsilon: float
    times: int = 1  # a count is of so many combinations of answers, each with dummies of its own
    messages: ClassVar[int] = 1  # of one person
    kept: Fraction = field(init=False, repr=False, compare=False)  # beta
    more: Fraction = field(init=False, repr=False, compare=False)  # q

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 24))
        epsilon = privacy_budget("epsilon", self.epsilon, most=40.0)
        if epsilon < 1e-6:
            raise refuse("epsilon", "at least 1e-6", epsilon)
        object.__setattr__(self, "epsilon", epsilon)
        kept = Fraction(math.floor((1 - exp_bracket(-Fraction(epsilon) / 2)[1]) * COINS), COINS)
        lift = exp_bracket(Fraction(epsilon))[0] - 1
        object.__setattr__(self, "kept", kept)
        object.__setattr__(self, "more", Fraction(ceil(kept / (lift * (1 - kept)) * COINS), COINS))

    @property
    def mean(self) -> float:
        """Dummies of a symbol on average."""
        return self.times * float(self.more / (1 - self.more))

    def marginal(self, k: int) -> SparseDummies:
        """What they leave of one of k answers, where symbols are combinations with as many for each answer."""
        return replace(self, k=k, times=self.k // k)

    @property
    def total(self) -> float:
        """Dummies of a batch on average."""
        return self.k * self.mean

    def variance(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Of estimated counts of symbols that so many people hold."""
        q, beta = float(self.more), float(self.kept)
        held = np.asarray(counts, dtype=np.float64)
        return np.asarray(self.times * q / ((1.0 - q) * beta) ** 2 + held * (1.0 - beta) / beta)

    def places(self, n: int, rng: Entropy) -> NDArray[np.int64]:
        """Which of n reports are kept."""
        return np.flatnonzero(rng.narrow(n, np.uint32) < self.kept.numerator * (COINS // self.kept.denominator))

    def drawn(self, rng: Entropy) -> NDArray[np.int64]:
        """The dummies of one batch: each coin that falls well gives its symbol one more, and another coin."""
        going, found = np.repeat(np.arange(self.k), self.times), [np.empty(0, dtype=np.int64)]
        while going.size:
            coins = rng.narrow(going.size, np.uint32)
            going = going[coins < self.more.numerator * (COINS // self.more.denominator)]
            found.append(going)
        return np.concatenate(found)

    def add(self, reports: ArrayLike, rng: Entropy | None = None) -> NDArray[np.int64]:
        """Those of `reports` (n,) that are kept and the dummies, in uniform order; drawn anew with each call."""
        rng, own = entropy_or_system(rng), symbols_of(reports, self.k)
        return mix_evenly(own[self.places(own.size, rng)], self.drawn(rng), rng)

    def counts(self, batch: ArrayLike) -> NDArray[np.float64]:
        """Unbiased numbers (k,) of people behind the symbols of a batch."""
        return self.counts_of(self.tally(batch))

    def counts_of(self, tally: NDArray[Any]) -> NDArray[np.float64]:
        """The same from a tally (k,)."""
        return np.asarray((np.asarray(tally, dtype=np.float64) - self.mean) / float(self.kept))

    def tally(self, batch: ArrayLike) -> NDArray[np.int64]:
        """How often each symbol (k,) came, dummies included: tallies of the parts of a batch add."""
        return np.bincount(symbols_of(batch, self.k), minlength=self.k)

    def people(self, size: int, n: int) -> int:
        """`n`, where a batch of `size` reports can be that of n people; DataError otherwise.

        A good batch is refused with probability below 1e-11 (Bernstein).
        """
        q, beta = float(self.more), float(self.kept)
        mean = n * beta + self.k * self.mean
        spread = n * beta * (1.0 - beta) + self.k * self.times * q / (1.0 - q) ** 2
        reach = 27.0 * 3.0 + math.sqrt(54.0 * spread)
        least, most = max(0, math.floor(mean - reach)), math.ceil(mean + reach)
        if not least <= size <= most:
            raise DataError(
                f"a batch of {n:,} people has {least:,} to {most:,} reports with these sparse dummies, got {size:,}: "
                "its shuffler keeps others, or adds others."
            )
        return n


# People who send dummies themselves: by chance a second message that says nothing; the shuffler caps and mixes.


Batch = NDArray[np.int64]  # (messages,)
DOUBT = 1e-9  # how seldom people who follow the protocol are doubted


@final
@dataclass(frozen=True)
class UserDummies:
    r"""Each of n people sends her symbol and, with probability `rate`, a uniform symbol as a message of its own.

    .. math:: h_j = c_j + Z_j, \qquad \hat c_j = h_j - \frac{n\,\mathrm{rate}}{k}, \qquad
              Z_j \sim \mathrm{Bin}\Bigl(n, \frac{\mathrm{rate}}{k}\Bigr)

    Everybody hides among the dummies of the honest, whatever the others know. The shuffler adds nothing: it takes at
    most two messages of a person and mixes them. There is no local promise, and people who drop out take noise away:
    see `dovetail.account.user_dummies_for`, which chooses the rate, and `user_dummies_guarantee`.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols, public and closed.
    rate : float, above 0, at most 1
        Rounded up to a multiple of 2^-32.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    DataError
        For messages that are no symbols, and for a batch that people with these dummies cannot have sent.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> dummies = UserDummies(k=3, rate=0.5)
    >>> batch = dummies.add([0] * 500 + [2] * 40, rng=simulation(1))
    >>> batch.size, dummies.counts(batch, 540).round().tolist()
    (825, [503.0, 12.0, 40.0])

    Source
    ------
    docs/theory/accuracy.md, section C3.
    """

    k: int
    rate: float
    others: int = 0  # symbols of other questions: a dummy may be of them, too
    senders: int = 0  # people who send dummies, where only some of them are asked this question; else 0

    def __post_init__(self) -> None:
        sent = SentDummies(self.k, self.rate)
        object.__setattr__(self, "k", sent.k)
        object.__setattr__(self, "rate", sent.rate)

    @property
    def share(self) -> float:
        """Chance that a person sends a dummy of a symbol."""
        return self.rate / (self.k + self.others)

    def variance(self, n: int) -> float:
        """Of every estimated count, where n people send dummies."""
        return n * self.share * (1.0 - self.share)

    def restricted(self, k: int, *, senders: int) -> UserDummies:
        """The same beside k of these symbols, which one question of several has, of so many people."""
        return replace(self, k=k, others=self.k + self.others - k, senders=senders)

    def marginal(self, k: int) -> UserDummies:
        """What people send of one of k answers, where symbols are combinations with as many for each answer.

        A uniform combination has a uniform answer to each question: each person sends a dummy of it as often.
        """
        return UserDummies(k, self.rate)

    def send(self, values: ArrayLike, rng: Entropy | None = None) -> tuple[Batch, Batch]:
        """Senders and messages, aligned: everybody's value (n,), and behind them the dummies."""
        own = self._symbols(values)
        sends, extra = self.sent(own.size, entropy_or_system(rng))
        return np.concatenate([np.arange(own.size), sends]), np.concatenate([own, extra])

    def sent(self, n: int, rng: Entropy) -> tuple[NDArray[np.int64], Batch]:
        """Which of n people send a dummy, and their dummies."""
        sends = np.flatnonzero(rng.narrow(n, np.uint32) < SentDummies(self.k, self.rate).numerator)
        return sends, rng.owners(sends, n).below(self.k, sends.size)

    def add(self, values: ArrayLike, rng: Entropy | None = None) -> Batch:
        """Messages of people who hold `values` (n,), with dummies, in uniform order."""
        rng = entropy_or_system(rng)
        _, messages = self.send(values, rng)  # two of each person at most: nothing is capped
        return messages[rng.permutation(messages.size)]

    def mix(self, senders: ArrayLike, messages: ArrayLike, rng: Entropy | None = None) -> Batch:
        """The shuffler's part: at most two messages of a sender, the first that came, in uniform order."""
        rng, who, sent = entropy_or_system(rng), np.asarray(senders), self._symbols(messages)
        if who.shape != sent.shape:
            raise DataError(f"`senders` must be one for each of {sent.size:,} messages, got {who.size:,}.")
        kept = sent[_rank(who) < CAP]
        return kept[rng.permutation(kept.size)]

    def counts(self, batch: ArrayLike, n: int) -> NDArray[np.float64]:
        """Unbiased numbers (k,) of people behind the symbols of a batch of n people."""
        return self.tally(batch).astype(np.float64) - n * self.share

    def tally(self, batch: ArrayLike) -> NDArray[np.int64]:
        """How often each symbol (k,) came, dummies included: tallies of the parts of a batch add."""
        return np.bincount(self._symbols(batch), minlength=self.k)

    def people(self, size: int, n: int, *, honest: int) -> int:
        """`n`, where a batch of `size` messages can be that of n people of whom so many are honest; else DataError.

        Too few messages mean that people do not send their dummies; a good batch is refused with probability below
        1e-11 (Bernstein).
        """
        trusted = whole("honest", honest, least=1, most=whole("n", n, least=1))
        fewest, often = self._dummies_of(trusted)
        least, most = fewest, min(n, n - trusted + often)
        if not n + least <= size <= n + most:
            raise DataError(
                f"a batch of {n:,} people has {n + least:,} to {n + most:,} messages with these dummies, got "
                f"{size:,}: they send others, or none."
            )
        return n

    def require_messages(self, size: int, *, honest: int, symbols: int = 1) -> None:
        """DataError where so many honest people would have sent more messages, whatever the others did not send.

        Each of them sends so many `symbols` beside her dummy. They are refused wrongly with probability below 1e-11
        (Bernstein).
        """
        trusted = whole("honest", honest, least=1)
        least = symbols * trusted + self._dummies_of(trusted)[0]
        if size < least:
            raise DataError(
                f"{trusted:,} honest people send {least:,} messages or more with these dummies, got {size:,}: fewer "
                "of them follow the protocol."
            )

    def most_followers(self, size: int, n: int, *, symbols: int = 1) -> int:
        r"""Largest number of n people who can have followed the protocol, where `size` messages came.

        .. math:: \max\{m \le n : \Pr[s m + \mathrm{Bin}(m, \mathrm{rate}) \le \mathrm{size}] \ge 10^{-9}\}

        s symbols of each. The others may have sent anything, or nothing. It is fewer than there are with probability
        below 1e-9.
        """

        def too_many(people: int) -> bool:
            spare = size - symbols * people  # dummies, if each of them has sent her answer
            return spare < 0 or (spare < people and float(binomial_cdf(spare, people, self.rate)) < DOUBT)

        return bisect_left(range(1, n + 1), True, key=too_many)

    def _dummies_of(self, honest: int) -> tuple[int, int]:
        """Fewest and most dummies of so many honest people."""
        mean, slack = honest * self.rate, 27.0 / 3.0
        reach = slack + math.sqrt(slack**2 + 54.0 * honest * self.rate * (1.0 - self.rate))
        return max(0, math.floor(mean - reach)), math.ceil(mean + reach)

    def _symbols(self, messages: ArrayLike) -> Batch:
        """`messages` as symbols; DataError for anything else."""
        found = rectangular("messages", messages)
        numbers = found.ndim == 1 and (found.dtype.kind in "iu" or found.size == 0)
        if not numbers or (found.size and not (found.min() >= 0 and found.max() < self.k)):
            raise DataError(f"`messages` must be whole numbers in 0..{self.k - 1}, at least one for each person.")
        return found.astype(np.int64)


def _rank(senders: NDArray[np.generic]) -> Batch:
    """Count the messages of the same sender before each (n,)."""
    if senders.size == 0:
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(senders, kind="stable")
    ordered = senders[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    starts = np.maximum.accumulate(np.where(first, np.arange(ordered.size), 0))
    found = np.empty(ordered.size, dtype=np.int64)
    found[order] = np.arange(ordered.size) - starts
    return found
