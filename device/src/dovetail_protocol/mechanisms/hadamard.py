"""Hadamard response of one symbol."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dovetail_protocol.checks import privacy_budget, whole
from dovetail_protocol.exact_thresholds import Words, exp_floor, krr_masses
from dovetail_protocol.mechanism import Mechanism, pack, size, symbol, unpack
from dovetail_protocol.mechanisms.krr import respond


@final
@dataclass(frozen=True)
class Hadamard(Mechanism):
    """The device's side of `dovetail.Hadamard`: a symbol owns half of one block of reports.

    Parameters
    ----------
    k : int, 2 to 2^31
        Number of symbols; values are 0..k-1.
    epsilon : float, above 0 and at most 700, nats

    Notes
    -----
    A report is an int in 0..blocks width - 1.

    Examples
    --------
    >>> hadamard = Hadamard(k=1000, epsilon=2.0)
    >>> hadamard.blocks, hadamard.width, hadamard.report_bytes
    (4, 256, 2)
    """

    k: int
    epsilon: float
    name: ClassVar[str] = "hadamard"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 31))
        object.__setattr__(self, "epsilon", privacy_budget("epsilon", self.epsilon))
        _ = self.masses  # refused if the budget is too small

    @property
    def blocks(self) -> int:
        r"""A power of two near e^epsilon / 2: B = 2^(ceil(log2 min(e^epsilon, 2k)) - 1), in whole numbers."""
        # z that is no power of two has ceil(log2 z) = bits of floor(z), and e^epsilon is not even rational
        return 1 << min(exp_floor(self.epsilon).bit_length(), (2 * self.k - 1).bit_length()) - 1

    @property
    def width(self) -> int:
        """w, reports per block: the least power of two above the number of symbols in a block."""
        return 1 << (-(-self.k // self.blocks)).bit_length()

    @property
    def masses(self) -> tuple[int, int]:
        """(keep, lie) of the half blocks, out of keep + (2 blocks - 1) lie = 2^64."""
        return krr_masses(2 * self.blocks, self.epsilon)

    @property
    def report_bytes(self) -> int:
        return size(self.blocks * self.width)

    def check(self, value: Any) -> int:
        return symbol(value, self.k)

    def randomize(self, value: Any, words: Words) -> int:
        row, block = divmod(self.check(value), self.blocks)
        half = respond(2 * block, 2 * self.blocks, masses=self.masses, words=words)
        return half // 2 * self.width + _element(row + 1, half & 1, words.word() & (self.width // 2 - 1))

    def encode(self, report: int) -> bytes:
        return pack(report, self.blocks * self.width)

    def decode(self, data: bytes) -> int:
        return unpack(data, self.blocks * self.width)


def _element(row: int, parity: int, place: int) -> int:
    """Number `place` of the y with parity(popcount(row & y)) = parity.

    Leaving out of y the lowest bit of the row numbers them, because that bit follows from the others.
    """
    lowest = row & -row
    y = (place & -lowest) << 1 | (place & lowest - 1)
    return y | lowest * ((row & y).bit_count() + parity & 1)
