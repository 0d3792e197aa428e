r"""Pure protocols: a report supports its owner's value with probability p and each other value with probability q.

.. math:: \hat f_x = \frac{c_x / n - q}{p - q}, \qquad
          n \operatorname{Var} \hat f_x = \frac{f_x\, p (1 - p) + (1 - f_x)\, q (1 - q)}{(p - q)^2}

c_x counts the reports that support x; the f_x are the shares of exactly these people.

Source: Wang, Blocki, Li, Jha (2017), Locally Differentially Private Protocols for Frequency Estimation, USENIX
Security, the framework of pure protocols.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.channel import KRRChannel
from dovetail.core.entropy import Entropy, Words
from dovetail.core.stages import FrequencyRandomizer, Reports
from dovetail.randomize.sampling.coins import adopt, chunks
from dovetail.randomize.sampling.domain import Symbols, outside


@dataclass(frozen=True)
class Pure:
    """The two support probabilities, as exact fractions.

    Parameters
    ----------
    p, q : Fraction, p > q
    """

    p: Fraction
    q: Fraction

    def invert(self, counts: NDArray[Any], n: Any) -> NDArray[np.float64]:
        """Unbiased shares (.., k) from support counts (.., k) of n (..) reports."""
        seen = np.asarray(counts, dtype=np.float64) / np.asarray(n)[..., None]
        return np.asarray((seen - float(self.q)) / float(self.p - self.q))

    def variance(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """n Var (.., k) for people whose shares are exactly `shares` (.., k)."""
        f = np.asarray(shares, dtype=np.float64)
        spread = f * float(self.p * (1 - self.p)) + (1 - f) * float(self.q * (1 - self.q))
        return np.asarray(spread / float(self.p - self.q) ** 2)


class PureProtocol(FrequencyRandomizer):
    """A randomizer whose tally counts the reports that support each symbol; `pure` says how often they do."""

    variance_by_symbol: ClassVar[bool] = True

    def __post_init__(self) -> None:
        adopt(self, self.device)

    @property
    @abstractmethod
    def pure(self) -> Pure:
        """The chances of supporting the own symbol, and each other one."""

    @property
    def accounted(self) -> Self:
        return self  # these laws need no channel, which has a column for every report

    def invert(self, counts: NDArray[Any], n: Any) -> NDArray[np.float64]:
        return self.pure.invert(counts, n)

    def variance(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.pure.variance(shares)

    def indicators(self, reports: Reports) -> NDArray[np.float64]:
        return self.invert(seen := self.support(reports), np.ones(len(seen)))


# Sampling k-ary randomized response exactly: 16 random bits decide nearly always, 64 bits decide always.
#
# A 64-bit word u keeps the value when u < keep; otherwise it lies with offset 1 + (u - keep) // lie. The upper 16
# bits of u determine the offset unless their interval [h 2^48, (h + 1) 2^48) holds one of the k - 1 steps; only then
# the other 48 bits are drawn. The law is exactly keep / 2^64 and lie / 2^64.


Offsets = NDArray[np.int16]  # (65536,), the offset that these bits decide, or UNSURE

UNSURE = -1
MOST_TABLED = 4096  # beyond it more than one value in sixteen would need a second look


def respond(values: NDArray[Any], channel: KRRChannel, rng: Entropy) -> Symbols:
    """Reports with exactly the law of `channel`, whose masses are out of 2^64.

    Parameters
    ----------
    values : integer array (n,)
        Checked here, in the same pass; DataError when one is outside 0..k-1.
    """
    reports = np.empty(len(values), dtype=np.int64)
    sample = _by_table if channel.k <= MOST_TABLED else _by_word
    for part in chunks(len(values)):
        piece = values[part].astype(np.int64, copy=False)
        if sample(piece, channel, reports[part], rng.at(part)):
            raise outside(values, channel.k)
    return reports


def _by_table(values: Symbols, channel: KRRChannel, reports: Symbols, rng: Entropy) -> int:
    from dovetail.randomize.sampling.kernels import look_up

    halves = rng.narrow(values.size, np.uint16)
    unsure = np.empty(values.size, dtype=np.int64)
    bad, count = look_up(values, halves, offsets(channel), channel.k, reports, unsure)
    if count:
        places = unsure[:count]
        words = (halves[places].astype(np.uint64) << np.uint64(48)) | (rng.at(places).words(count) >> np.uint64(16))
        reports[places] = decide(values[places], words, channel)
    return int(bad)


def _by_word(values: Symbols, channel: KRRChannel, reports: Symbols, rng: Entropy) -> int:
    reports[:] = decide(values, rng.words(values.size), channel)
    return int(np.count_nonzero((values < 0) | (values >= channel.k)))


def decide(values: Symbols, words: Words, channel: KRRChannel) -> Symbols:
    """The reports that these whole 64-bit words stand for."""
    from dovetail.randomize.sampling.kernels import decide_words

    return np.asarray(decide_words(values, words, channel.k, np.uint64(channel.keep), np.uint64(channel.lie)))


@lru_cache(maxsize=64)
def offsets(channel: KRRChannel) -> Offsets:
    """Offsets by the upper 16 bits of a word; UNSURE where both ends of their interval disagree."""
    first = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
    low, high = (
        decide(np.zeros(1 << 16, dtype=np.int64), ends, channel) for ends in (first, first + np.uint64((1 << 48) - 1))
    )
    table = np.where(low == high, low, UNSURE).astype(np.int16)
    table.setflags(write=False)
    return table
