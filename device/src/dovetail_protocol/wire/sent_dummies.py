"""Dummies that devices send themselves: a message with the symbol, and by chance a second one that says nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

from dovetail_protocol.checks import real, refuse, whole
from dovetail_protocol.mechanism import Mechanism
from dovetail_protocol.symbols import pack, size, symbol, unpack
from dovetail_protocol.words import Words

CAP = 2  # messages of one person, which the shuffler enforces
SCALE = 1 << 32


@final
@dataclass(frozen=True)
class SentDummies:
    r"""What a device sends for one value: the value, and with probability `rate` a uniform symbol beside it.

    How many messages a device sends does not depend on its value. Each goes into envelopes of its own: whoever opens
    two of them together would know that the value is one of the two.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols; values are 0..k-1.
    rate : float, above 0, at most 1
        Rounded up to a multiple of 2^-32.

    Examples
    --------
    >>> sent = SentDummies(k=4, rate=0.25)
    >>> sent.numerator == 2**30
    True
    """

    k: int
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 24))
        given = real("rate", self.rate)
        if not 0.0 < given <= 1.0:
            raise refuse("rate", "above 0 and at most 1", self.rate)
        object.__setattr__(self, "rate", math.ceil(given * SCALE) / SCALE)

    @property
    def numerator(self) -> int:
        """Of the rate, out of 2^32."""
        return int(self.rate * SCALE)

    def messages(self, value: Any, words: Words) -> list[int]:
        """One or two symbols, to be sealed and sent each by itself."""
        own = symbol(value, self.k)
        if words.bits(32) >= self.numerator:
            return [own]
        return [own, words.below(self.k)]

    def filled(self, value: Any, words: Words) -> list[int]:
        """The same with the blank k in place of a dummy that is not sent, in either order: always `CAP` of them."""
        drawn = self.messages(value, words)
        drawn += [self.k] * (CAP - len(drawn))
        return drawn if words.below(2) else drawn[::-1]


@final
@dataclass(frozen=True)
class Unrandomized(Mechanism):
    """What a device sends where only other people's dummies hide it: a symbol as it is, or a blank.

    There is no local promise: epsilon is infinite.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols; values are 0..k-1, and k is the blank.

    Examples
    --------
    >>> sent = Unrandomized(k=255)
    >>> sent.report_bytes, sent.decode(sent.encode(sent.blank)), sent.epsilon
    (1, 255, inf)
    """

    k: int
    epsilon: float = field(default=math.inf, init=False)
    name: ClassVar[str] = "none"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 24))

    @property
    def blank(self) -> int:
        """What stands for no message: it is sealed like one, and nobody counts it."""
        return self.k

    @property
    def report_bytes(self) -> int:
        return size(self.k + 1)

    def check(self, value: Any) -> int:
        return symbol(value, self.k)

    def randomize(self, value: Any, words: Words) -> int:
        return self.check(value)

    def encode(self, report: int) -> bytes:
        return pack(report, self.k + 1)

    def decode(self, data: bytes) -> int:
        return unpack(data, self.k + 1)
