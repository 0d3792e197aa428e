"""Subset selection of one symbol: a random subset of the symbols that holds the own one more often than not."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, final

from dovetail_protocol.checks import privacy_budget, whole
from dovetail_protocol.errors import DataError, ParameterError
from dovetail_protocol.exact_thresholds import WORD, Words, exp_bracket
from dovetail_protocol.mechanism import Mechanism, exactly, symbol


@final
@dataclass(frozen=True)
class SubsetSelection(Mechanism):
    """The device's side of `dovetail.SubsetSelection`: a subset of d of the k symbols.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols; values are 0..k-1.
    epsilon : float, above 0 and at most 700, nats

    Notes
    -----
    A report is packed bits, d of them set: symbol x is bit 7 - x mod 8 of byte x // 8, and the padding is zero.

    Examples
    --------
    >>> chosen = SubsetSelection(k=10, epsilon=1.0)
    >>> chosen.size, chosen.report_bytes, chosen.decode(bytes.fromhex("9040")).hex()
    (3, 2, '9040')
    """

    k: int
    epsilon: float
    name: ClassVar[str] = "subset_selection"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 24))
        object.__setattr__(self, "epsilon", privacy_budget("epsilon", self.epsilon))
        mass, size = self.mass, self.size
        if mass * (self.k - size) <= (WORD - mass) * size:
            raise ParameterError(
                f"`epsilon` = {self.epsilon!r} with `k` = {self.k:,} is too small for 64-bit probabilities: subsets "
                "with the value would be no likelier than those without it."
            )

    @property
    def size(self) -> int:
        """d, the whole number nearest to k / (e^epsilon + 1), at least 1."""
        return min(max(1, round(Fraction(self.k) / (_most_odds(self.epsilon) + 1))), self.k - 1)

    @property
    def mass(self) -> int:
        r"""Out of 2^64: how often the subset holds the own symbol.

        .. math:: \frac{p}{1 - p} \cdot \frac{k - d}{d} \le e^{\epsilon}, \qquad p = \mathrm{mass} / 2^{64}
        """
        odds = self.size * _most_odds(self.epsilon)
        return int(WORD * odds / (odds + self.k - self.size))

    @property
    def report_bytes(self) -> int:
        return -(-self.k // 8)

    def check(self, value: Any) -> int:
        return symbol(value, self.k)

    def randomize(self, value: Any, words: Words) -> bytes:
        own = self.check(value)
        held = words.word() < self.mass
        others = uniform_subset(self.k - 1, self.size - held, words)
        chosen = {other + (other >= own) for other in others} | ({own} if held else set())
        last = 8 * self.report_bytes - 1
        return sum(1 << (last - symbol) for symbol in chosen).to_bytes(self.report_bytes)

    def encode(self, report: Any) -> bytes:
        return self.decode(report)

    def decode(self, data: bytes) -> bytes:
        bits = int.from_bytes(exactly(data, self.report_bytes))
        if bits & ((1 << (8 * self.report_bytes - self.k)) - 1) or bits.bit_count() != self.size:
            raise DataError(f"`report` must be packed bits with {self.size:,} of {self.k:,} set.")
        return data


@lru_cache(maxsize=256)
def _most_odds(epsilon: float) -> Fraction:
    """Just below e^epsilon: kept, for every report asks for it several times."""
    return exp_bracket(Fraction(epsilon))[0]


def uniform_subset(count: int, size: int, words: Words) -> set[int]:
    """`size` different numbers of 0..count-1, every such set equally likely: Floyd's algorithm.

    Source
    ------
    Bentley, Floyd (1987), A Sample of Brilliance, Communications of the ACM 30(9).
    """
    chosen: set[int] = set()
    for last in range(count - size, count):
        drawn = words.below(last + 1)
        chosen.add(last if drawn in chosen else drawn)
    return chosen
