"""A checked question about leakage: channel, crowd, prior, and what counts as success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from dovetail.core.channel import Channel, KRRChannel, Matrix
from dovetail.core.checks import refuse, whole
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.special import Reals
from dovetail.core.stages import FrequencyRandomizer
from dovetail.leak.arithmetic import in_powers
from dovetail.leak.gain import distance, identity
from dovetail.leak.gain import tries as several

MOST_ACTIONS = 10_000


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, in the form that the methods share.

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
        """Whether every value is equally likely beforehand."""
        return bool(np.ptp(self.prior) == 0.0)

    @property
    def response(self) -> KRRChannel | None:
        """The channel, where it is k-ary randomized response."""
        return self.channel if isinstance(self.channel, KRRChannel) else None

    def gains(self) -> Matrix:
        """Gain of every action for every value (actions, k)."""
        if isinstance(self.gain, np.ndarray):
            return self.gain
        if self.gain == "distance":
            return np.asarray(distance(np.arange(self.k, dtype=np.float64)), dtype=np.float64)
        if self.tries == 1:
            return np.asarray(identity(self.k), dtype=np.float64)
        if comb(self.k, self.tries) > MOST_ACTIONS:
            raise UnsupportedError(
                f"{self.tries} tries among {self.k} values are {in_powers(comb(self.k, self.tries))} actions; at "
                f"most {MOST_ACTIONS:,} are compared. k-ary randomized response with the uniform prior needs no list."
            )
        return np.asarray(several(self.k, t=self.tries), dtype=np.float64)

    def joint(self, channel: Matrix) -> Matrix:
        """g diag(prior) R, with the law of one report as its last row."""
        weighted = self.prior[:, None] * channel
        return np.vstack([self.gains() @ weighted, weighted.sum(axis=0)])


def ask(channel: object, *, n: object, prior: object, tries: object, gain: object) -> Question:
    """Check everything once."""
    law = channel.channel() if isinstance(channel, FrequencyRandomizer) else channel
    if not isinstance(law, Channel):
        raise refuse("channel", "a channel or a randomizer of symbols", channel)
    k = law.shape[0]
    count = whole("tries", tries, least=1, most=k)
    if gain is not None and count != 1:
        raise ParameterError("`tries` and `gain` exclude each other: several tries are a gain of their own.")
    return Question(law, whole("n", n, least=1, most=10**12), _prior(prior, k), count, _gain(gain, k))


def _prior(prior: object, k: int) -> Reals:
    if prior is None:
        return np.full(k, 1.0 / k)
    law: Reals = _numbers("prior", prior)
    if law.shape != (k,):
        raise ParameterError(f"`prior` must hold one probability per value, {k} of them, got shape {law.shape}.")
    if law.min() < 0.0 or abs(law.sum() - 1.0) > 1e-9:
        raise DataError(f"`prior` must be probabilities that sum to 1, got a sum of {law.sum():.12g}.")
    return law


def _gain(gain: object, k: int) -> Any:
    if gain is None:
        return "tries"
    if isinstance(gain, str):
        if gain != "distance":
            raise refuse("gain", "'distance' or a matrix (actions, values)", gain)
        return gain
    table = _numbers("gain", gain)
    if table.ndim != 2 or table.shape[1] != k or table.shape[0] == 0:
        raise ParameterError(f"`gain` must be a matrix (actions, {k} values), got shape {table.shape}.")
    if table.min() < 0.0:
        raise DataError(f"`gain` must be at least 0 everywhere, got {table.min():g}.")
    return table


def _numbers(name: str, given: Any) -> Any:
    try:
        table = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise refuse(name, "an array of numbers", given) from None
    if np.asarray(given).dtype == bool or not np.isfinite(table).all() or table.size == 0:
        raise refuse(name, "an array of finite numbers", given)
    return table


def known_histogram(known: object, *, k: int, n: int) -> tuple[int, ...]:
    """How many others are known to hold each value; at most n - 1 in all."""
    if not isinstance(known, Sequence | np.ndarray) or isinstance(known, str) or len(known) != k:
        raise refuse("known", f"a histogram of {k} counts, one per value", known)
    counts = tuple(whole("known", count, least=0) for count in known)
    if sum(counts) > n - 1:
        raise ParameterError(f"`known` must count at most the n - 1 = {n - 1:,} others, got {sum(counts):,}.")
    return counts
