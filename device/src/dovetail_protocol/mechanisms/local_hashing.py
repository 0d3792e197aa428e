"""Optimized local hashing of one symbol: randomize the value's bucket under one's own hash function."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dovetail_protocol.checks import privacy_budget, whole
from dovetail_protocol.errors import DataError
from dovetail_protocol.exact_thresholds import WORD, Words, exp_floor, krr_masses
from dovetail_protocol.mechanism import Mechanism, exactly, pack, size, symbol, unpack
from dovetail_protocol.mechanisms.krr import respond

Report = tuple[int, int, int]  # (a, b, y): the seeds of the hash function, and the randomized bucket


@final
@dataclass(frozen=True)
class LocalHashing(Mechanism):
    """The device's side of `dovetail.LocalHashing`: g-ary randomized response on a hash of the value.

    Parameters
    ----------
    k : int, 2 to 2^31
        Number of symbols; values are 0..k-1.
    epsilon : float, above 0 and at most 11, nats

    Notes
    -----
    A report is (a, b, y): two 64-bit seeds, and y in 0..g-1.

    Examples
    --------
    >>> hashing = LocalHashing(k=1000, epsilon=1.0)
    >>> hashing.g, hashing.report_bytes
    (4, 17)
    """

    k: int
    epsilon: float
    name: ClassVar[str] = "local_hashing"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 31))
        object.__setattr__(self, "epsilon", privacy_budget("epsilon", self.epsilon, most=11.0))
        _ = self.masses  # refused if the budget is too small

    @property
    def g(self) -> int:
        """Number of buckets: e^epsilon rounded to a whole number, plus 1."""
        return (exp_floor(self.epsilon, scale=2) + 1) // 2 + 1

    @property
    def masses(self) -> tuple[int, int]:
        """(keep, lie) of the buckets, out of keep + (g - 1) lie = 2^64."""
        return krr_masses(self.g, self.epsilon)

    @property
    def report_bytes(self) -> int:
        return 16 + size(self.g)

    def check(self, value: Any) -> int:
        return symbol(value, self.k)

    def hash(self, value: int, a: int, b: int) -> int:
        """The bucket of `value` under the seeds a and b."""
        return ((a * value + b) % WORD >> 32) * self.g >> 32

    def randomize(self, value: Any, words: Words) -> Report:
        own, a, b = self.check(value), words.word(), words.word()
        return a, b, respond(self.hash(own, a, b), self.g, masses=self.masses, words=words)

    def encode(self, report: Report) -> bytes:
        if not isinstance(report, tuple) or len(report) != 3:
            raise DataError("`report` must be a tuple (a, b, y).")
        a, b, y = report
        return pack(a, WORD) + pack(b, WORD) + pack(y, self.g)

    def decode(self, data: bytes) -> Report:
        a, b, y = (exactly(data, self.report_bytes)[part] for part in (slice(8), slice(8, 16), slice(16, None)))
        return unpack(a, WORD), unpack(b, WORD), unpack(y, self.g)
