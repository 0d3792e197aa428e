"""People who send dummies themselves: by chance a second message that says nothing; the shuffler caps and mixes."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import rectangular, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.numeric.special import binomial_cdf
from dovetail_protocol.wire.sent_dummies import CAP, SentDummies

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
