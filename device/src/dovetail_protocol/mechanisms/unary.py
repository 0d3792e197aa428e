"""Unary encoding of one symbol: one noisy bit per symbol."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

from dovetail_protocol.checks import privacy_budget, refuse, whole
from dovetail_protocol.errors import DataError
from dovetail_protocol.exact_thresholds import Words, unary_masses
from dovetail_protocol.mechanism import Mechanism, exactly, symbol


@final
@dataclass(frozen=True)
class Unary(Mechanism):
    """The device's side of `dovetail.Unary`: the bit of the own symbol is likelier to be 1 than every other.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols; values are 0..k-1.
    epsilon : float, above 0 and at most 700, nats
    encoding : "optimized" or "symmetric"

    Notes
    -----
    A report is ceil(k / 8) bytes: symbol x is bit 7 - x mod 8 of byte x // 8, and the padding is zero. It takes
    64 random bits per symbol.

    Examples
    --------
    >>> Unary(k=20, epsilon=2.0).report_bytes
    3
    """

    k: int
    epsilon: float
    encoding: Literal["optimized", "symmetric"] = "optimized"
    name: ClassVar[str] = "unary"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 24))
        object.__setattr__(self, "epsilon", privacy_budget("epsilon", self.epsilon))
        if not isinstance(self.encoding, str) or self.encoding not in ("optimized", "symmetric"):
            raise refuse("encoding", '"optimized" or "symmetric"', self.encoding)
        _ = self.masses  # refused if the budget is too small

    @property
    def masses(self) -> tuple[int, int]:
        """(p, q) out of 2^64: what the own bit and every other bit is 1 with."""
        return unary_masses(self.epsilon, symmetric=self.encoding == "symmetric")

    @property
    def report_bytes(self) -> int:
        return -(-self.k // 8)

    @property
    def padding(self) -> int:
        """Zero bits at the end of a report."""
        return 8 * self.report_bytes - self.k

    def check(self, value: Any) -> int:
        return symbol(value, self.k)

    def randomize(self, value: Any, words: Words) -> bytes:
        own = 1 << (self.k - 1 - self.check(value))
        p, q = self.masses
        bits = coins(q, self.k, words) & ~own | own * coins(p, 1, words)
        return (bits << self.padding).to_bytes(self.report_bytes)

    def encode(self, report: bytes) -> bytes:
        return self.decode(report)

    def decode(self, data: bytes) -> bytes:
        if exactly(data, self.report_bytes)[-1] & ((1 << self.padding) - 1):
            raise DataError(f"`report` must be packed bits that are zero from bit {self.k}.")
        return data


def coins(mass: int, count: int, words: Words) -> int:
    """`count` independent bits, each 1 with probability exactly mass / 2^64; mass in 0..2^64 - 1.

    A bit is 1 when its uniform 64-bit number is below `mass`. All are compared at once, from the lowest binary place
    up: a place at which the number differs from `mass` decides; otherwise what the lower places say remains.
    """
    below = 0
    for place in range(64):
        zeros = words.bits(count)  # which numbers have a 0 here
        below = below | zeros if mass >> place & 1 else below & zeros
    return below
