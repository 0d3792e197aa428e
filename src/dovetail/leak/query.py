"""A checked query about leakage: channel, number of people, prior, and gain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail.core.channel import MOST_CELLS, Channel, DenseChannel, KRRChannel, Matrix
from dovetail.core.checks import refuse, whole
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.special import Reals
from dovetail.core.stages import FrequencyRandomizer
from dovetail.leak.exact import histogram_count
from dovetail.leak.qif.inputs import MOST_GAIN, distance, distribution, identity, numbers, scientific
from dovetail.leak.qif.inputs import tries as tries_gain

MOST_ACTIONS = 10_000
MOST_VALUES = 2**24


@dataclass(frozen=True, eq=False)
class Query:
    """A leakage query in the form that all methods share.

    Parameters
    ----------
    channel : Channel
    n : int
    prior : float array (k,)
    tries : int
    gain : "tries", "distance" or a matrix (actions, k)
    """

    channel: Channel
    n: int
    prior: Reals
    tries: int
    gain: Any

    @property
    def k(self) -> int:
        """Number of values."""
        return self.channel.shape[0]

    @property
    def uniform(self) -> bool:
        """True if every value is equally likely beforehand."""
        return bool(np.ptp(self.prior) == 0.0)

    @property
    def krr(self) -> KRRChannel | None:
        """The channel, where it is k-ary randomized response; else None."""
        return self.channel if isinstance(self.channel, KRRChannel) else None

    @property
    def is_distance_gain(self) -> bool:
        """True if the gain falls with the distance of the guess from the value."""
        return isinstance(self.gain, str) and self.gain == "distance"

    @property
    def is_tries_gain(self) -> bool:
        """True if the gain is to name the value within `tries` guesses."""
        return isinstance(self.gain, str) and self.gain == "tries"

    @property
    def is_bayes(self) -> bool:
        """True if the gain is to name the value in one try: Bayes vulnerability."""
        return self.is_tries_gain and self.tries == 1

    def gains(self) -> Matrix:
        """Gain of every action for every value (actions, k)."""
        if isinstance(self.gain, np.ndarray):
            return self.gain
        if (self.is_distance_gain or self.tries == 1) and self.k**2 > MOST_CELLS:
            raise UnsupportedError(
                f"Gain matrix too large: one action for each of {self.k:,} values, the limit is "
                f"{math.isqrt(MOST_CELLS):,}. k-ary randomized response with the uniform prior needs no matrix."
            )
        if self.is_distance_gain:
            return np.asarray(distance(np.arange(self.k, dtype=np.float64)), dtype=np.float64)
        if self.tries == 1:
            return np.asarray(identity(self.k), dtype=np.float64)
        count = math.comb(self.k, self.tries)
        if count > MOST_ACTIONS:
            raise UnsupportedError(
                f"Gain matrix too large: {self.tries} tries among {self.k} values are {scientific(count)} actions, "
                f"the limit is {MOST_ACTIONS:,}. k-ary randomized response with the uniform prior needs no matrix."
            )
        return np.asarray(tries_gain(self.k, t=self.tries), dtype=np.float64)

    def joint(self) -> Matrix:
        """g diag(prior) R, with the distribution of one report as its last row."""
        weighted = self.prior[:, None] * self.channel.matrix()
        return np.vstack([self.gains() @ weighted, weighted.sum(axis=0)])

    def identity_joint(self) -> Matrix:
        """The same for the identity channel: each report is the value itself."""
        return np.vstack([self.gains() * self.prior, self.prior])


def parse_query(channel: object, *, n: object, prior: object, tries: object, gain: object) -> Query:
    """The query of these arguments, each checked once."""
    published = channel.channel() if isinstance(channel, FrequencyRandomizer) else channel
    if not isinstance(published, Channel):
        raise refuse("channel", "a channel or a randomizer of symbols", channel)
    k = published.shape[0]
    if not 2 <= k <= MOST_VALUES:
        raise ParameterError(f"`channel` must take from 2 to {MOST_VALUES:,} values, got {k:,}.")
    if not isinstance(published, KRRChannel):
        rows = published.matrix()  # a sum off by 1e-9 is off by n times that for n reports
        published = DenseChannel(rows / rows.sum(axis=1, keepdims=True))
    count = whole("tries", tries, least=1, most=k)
    if gain is not None and count != 1:
        raise ParameterError("`tries` and `gain` exclude each other: several tries are a gain of their own.")
    return Query(published, whole("n", n, least=1, most=10**12), _prior(prior, k), count, _gain(gain, k))


def _prior(prior: Any, k: int) -> Reals:
    if prior is None:
        return np.full(k, 1.0 / k)
    given = distribution("prior", prior).astype(np.float64)
    if given.size != k:
        raise ParameterError(f"`prior` must hold one probability per value, {k} of them, got {given.size}.")
    return np.asarray(given / given.sum())


def _gain(gain: Any, k: int) -> Any:
    if gain is None:
        return "tries"
    if isinstance(gain, str):
        if gain != "distance":
            raise refuse("gain", "'distance' or a matrix (actions, values)", gain)
        return gain
    try:
        table = numbers("gain", gain).astype(np.float64)
    except OverflowError:  # a fraction beyond the doubles
        raise DataError(f"`gain` must be at most {MOST_GAIN:g} everywhere; divide it.") from None
    if table.ndim != 2 or table.shape[1] != k or table.shape[0] == 0:
        raise ParameterError(f"`gain` must be a matrix (actions, {k} values), got shape {table.shape}.")
    if table.min() < 0.0:
        raise DataError(f"`gain` must be at least 0 everywhere, got {table.min():g}.")
    if table.max() > MOST_GAIN:
        raise DataError(f"`gain` must be at most {MOST_GAIN:g} everywhere, got {table.max():g}; divide it.")
    return table


def parse_known_histogram(known: object, *, k: int, n: int) -> tuple[int, ...]:
    """Read how many others are known to hold each value; at most n - 1 in all."""
    if not isinstance(known, Sequence | np.ndarray) or isinstance(known, str) or len(known) != k:
        raise refuse("known", f"a histogram of {k} counts, one per value", known)
    counts = tuple(whole("known", count, least=0) for count in known)
    if sum(counts) > n - 1:
        raise ParameterError(f"`known` must count at most the n - 1 = {n - 1:,} others, got {sum(counts):,}.")
    return counts


# Over how many reports can be summed in no time: what fewer people's reports tell is an upper bound.


MOST_LISTED = 300_000  # of a channel; its reports are compared with each other
MOST_PEOPLE = 1_000_000  # whom a sum over three kinds of report serves within a second
MOST_WORK = 5_000_000  # histograms times kinds of report


def listed_channel(randomizer: FrequencyRandomizer) -> Channel | None:
    """The channel, unless its reports are too many to be listed."""
    try:
        channel: Any = randomizer.channel()
    except UnsupportedError:
        return None
    small = isinstance(channel, KRRChannel) or channel.shape[0] * channel.shape[1] <= MOST_LISTED
    return channel if small else None


def people_in_reach(channel: Channel, n: int, *, work: int = MOST_WORK) -> int:
    """People, at most n, over whose reports can be summed in no time."""
    kinds = _kinds(channel)
    if kinds <= 3:
        return min(n, MOST_PEOPLE)
    m = 1
    while m < n and histogram_count(m + 1, kinds) * kinds <= work:
        m += 1
    return m


def _kinds(channel: Channel) -> int:
    """Reports that say different things."""
    if isinstance(channel, KRRChannel):
        return channel.k
    law = channel.matrix()
    return int(np.unique(np.round(law / law.sum(axis=0), 12), axis=1).shape[1])
