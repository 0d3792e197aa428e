"""k-ary randomized response of one symbol."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dovetail_protocol.checks import privacy_budget, whole
from dovetail_protocol.exact_thresholds import Words, krr_masses
from dovetail_protocol.mechanism import Mechanism, pack, size, symbol, unpack


@final
@dataclass(frozen=True)
class KRR(Mechanism):
    """The device's side of `dovetail.KRR`: tell the truth, or name one of the other symbols.

    Parameters
    ----------
    k : int, 2 to 2^31
        Number of symbols; values are 0..k-1.
    epsilon : float, above 0 and at most 700, nats

    Notes
    -----
    A report is an int in 0..k-1.

    Examples
    --------
    >>> krr = KRR(k=300, epsilon=2.0)
    >>> krr.report_bytes, krr.decode(krr.encode(299))
    (2, 299)
    """

    k: int
    epsilon: float
    name: ClassVar[str] = "krr"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 31))
        object.__setattr__(self, "epsilon", privacy_budget("epsilon", self.epsilon))
        _ = self.masses  # refused if the budget is too small

    @property
    def masses(self) -> tuple[int, int]:
        """(keep, lie) out of keep + (k - 1) lie = 2^64."""
        return krr_masses(self.k, self.epsilon)

    @property
    def report_bytes(self) -> int:
        return size(self.k)

    def check(self, value: Any) -> int:
        return symbol(value, self.k)

    def randomize(self, value: Any, words: Words) -> int:
        return respond(self.check(value), self.k, masses=self.masses, words=words)

    def encode(self, report: int) -> bytes:
        return pack(report, self.k)

    def decode(self, data: bytes) -> int:
        return unpack(data, self.k)


def respond(value: int, k: int, *, masses: tuple[int, int], words: Words) -> int:
    """One report of k-ary randomized response: a uniform word keeps the value or names the offset of a lie."""
    keep, lie = masses
    word = words.word()
    return value if word < keep else (value + 1 + (word - keep) // lie) % k
