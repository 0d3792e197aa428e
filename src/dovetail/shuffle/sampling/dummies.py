"""A shuffler that adds dummies: exact counts stay hidden in the number of dummies of each symbol."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import ceil, log, log1p, nextafter
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import privacy_budget, rectangular, refuse, share, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.special import binomial_cdf
from dovetail_protocol.dummies import CAP, SentDummies
from dovetail_protocol.exact_thresholds import WORD, exp_bracket

# How many dummies a symbol gets: the truncated symmetric geometric law, in whole numbers.


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


MOST_DUMMIES = 10**8


@final
@dataclass(frozen=True)
class Dummies:
    r"""What the shuffler adds to a batch: independently for each of the k symbols Z - s dummies too many or too few.

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
    def reach(self) -> int:
        """s: dummies of each symbol on average, and the most that a count is off."""
        return self.noise.reach

    @property
    def variance(self) -> float:
        """Of every estimated count."""
        return float(self.noise.variance)

    def add(self, reports: ArrayLike, rng: Entropy | None = None) -> NDArray[np.int64]:
        """`reports` (n,) and the dummies in uniform order; the dummies are drawn anew with each call."""
        rng = entropy_or_system(rng)
        batch = self._symbols(reports)
        if self.k * self.reach > MOST_DUMMIES:
            raise UnsupportedError(
                f"{self.k:,} symbols take {self.k * self.reach:,} dummies, more than {MOST_DUMMIES:,}: join symbols."
            )
        mixed = np.concatenate([batch, np.repeat(np.arange(self.k), self.noise.sample(self.k, rng))])
        return mixed[rng.permutation(mixed.size)]

    def counts(self, batch: ArrayLike) -> NDArray[np.float64]:
        """Unbiased numbers (k,) of people behind the symbols of a batch with dummies."""
        return np.bincount(self._symbols(batch), minlength=self.k).astype(np.float64) - self.reach

    def _symbols(self, reports: ArrayLike) -> NDArray[np.int64]:
        """`reports` (n,) as symbols; DataError for anything else."""
        batch = rectangular("reports", reports)
        whole_numbers = batch.ndim == 1 and (batch.dtype.kind in "iu" or batch.size == 0)
        if not whole_numbers or (batch.size and not (batch.min() >= 0 and batch.max() < self.k)):
            raise DataError(f"`reports` must be whole numbers in 0..{self.k - 1}, one for each person.")
        return batch.astype(np.int64)

    def people(self, size: int, n: int) -> int:
        """`n`, where a batch of `size` reports can be that of n people; DataError otherwise.

        Too small or too large a batch means that its shuffler adds other dummies than these, or none; a good batch is
        refused with probability below 1e-11 (Bernstein), and one without any dummies always.
        """
        mean, slack = self.k * self.reach, 27.0 * self.reach / 3.0
        reach = slack + math.sqrt(slack**2 + 54.0 * self.k * self.variance)
        least, most = max(1, math.floor(mean - reach)), min(2 * mean, math.ceil(mean + reach))
        if not n + least <= size <= n + most:
            raise DataError(
                f"a batch of {n:,} people has {n + least:,} to {n + most:,} reports with these dummies, got "
                f"{size:,}: its shuffler adds others, or none."
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

    def __post_init__(self) -> None:
        sent = SentDummies(self.k, self.rate)
        object.__setattr__(self, "k", sent.k)
        object.__setattr__(self, "rate", sent.rate)

    def variance(self, n: int) -> float:
        """Of every estimated count of n people."""
        share = self.rate / self.k
        return n * share * (1.0 - share)

    def send(self, values: ArrayLike, rng: Entropy | None = None) -> tuple[Batch, Batch]:
        """Senders and messages, aligned: everybody's value (n,), and behind them the dummies."""
        rng, own = entropy_or_system(rng), self._symbols(values)
        sends = np.flatnonzero(rng.narrow(own.size, np.uint32) < SentDummies(self.k, self.rate).numerator)
        extra = rng.below(self.k, sends.size)
        return np.concatenate([np.arange(own.size), sends]), np.concatenate([own, extra])

    def add(self, values: ArrayLike, rng: Entropy | None = None) -> Batch:
        """What the shuffler hands on of people who hold `values` (n,): their messages in uniform order."""
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
        return np.bincount(self._symbols(batch), minlength=self.k).astype(np.float64) - n * self.rate / self.k

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

    def require_messages(self, size: int, *, honest: int) -> None:
        """DataError where so many honest people would have sent more messages, whatever the others did not send.

        They are refused wrongly with probability below 1e-11 (Bernstein).
        """
        trusted = whole("honest", honest, least=1)
        least = trusted + self._dummies_of(trusted)[0]
        if size < least:
            raise DataError(
                f"{trusted:,} honest people send {least:,} messages or more with these dummies, got {size:,}: fewer "
                "of them follow the protocol."
            )

    def most_followers(self, size: int, n: int) -> int:
        r"""How many of n people can have sent what they should, where `size` messages came; all n if nothing objects.

        .. math:: \max\{m \le n : \Pr[m + \mathrm{Bin}(m, \mathrm{rate}) \le \mathrm{size}] \ge 10^{-9}\}

        The others may have sent anything, or nothing. It is fewer than there are with probability below 1e-9.
        """

        def too_many(people: int) -> bool:
            spare = size - people  # dummies, if each of them has sent her answer
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
    """How many messages of the same sender came before each (n,)."""
    if senders.size == 0:
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(senders, kind="stable")
    ordered = senders[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    starts = np.maximum.accumulate(np.where(first, np.arange(ordered.size), 0))
    found = np.empty(ordered.size, dtype=np.int64)
    found[order] = np.arange(ordered.size) - starts
    return found
