"""Unary encoding: one noisy bit per symbol."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import ClassVar, Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import MOST_CELLS, DenseChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import LocalDP
from dovetail.core.stages import Encoded, Reports, Support, Valid
from dovetail.randomize.sampling.coins import bit_counts, check_packed_bits, chunks, coins
from dovetail.randomize.sampling.domain import symbols
from dovetail.randomize.sampling.pure_protocol import Pure, PureProtocol
from dovetail_protocol.exact_thresholds import WORD
from dovetail_protocol.mechanisms import unary

MOST_BITS = 1 << 16  # of a report that a planner recommends
_BYTES = 1 << 18  # random bytes drawn at once


@final
@dataclass(frozen=True)
class Unary(PureProtocol):
    r"""Unary encoding: the bit of the own symbol is 1 with probability p, every other bit with probability q.

    .. math:: \text{optimized: } p = \tfrac12,\; q = \frac{1}{e^{\epsilon} + 1}; \qquad
              \text{symmetric: } p = 1 - q = \frac{e^{\epsilon/2}}{e^{\epsilon/2} + 1}

    Nearly optimal for k above 3 e^epsilon + 2, with reports of k bits; Hadamard is shorter, KRR better below. The
    symmetric encoding is basic RAPPOR, and has the larger variance.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols; values are 0..k-1.
    epsilon : float, above 0 and at most 700, nats
    encoding : "optimized" or "symmetric"
        Optimized has the smaller variance; symmetric is basic RAPPOR.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and for an epsilon too small for this k.
    DataError
        From `randomize` for values outside the domain, and from estimates for reports that are none.

    Notes
    -----
    Reports are packed bits, uint8 (n, ceil(k / 8)): symbol x is bit 7 - x mod 8 of byte x // 8 (`np.packbits`
    order), and the padding is zero. The law of every bit is exact. One random byte per bit.

    Examples
    --------
    >>> Unary(k=3, epsilon=1.0).bit_channel().matrix().round(4).tolist()
    [[0.7311, 0.2689], [0.5, 0.5]]

    Source
    ------
    Wang, Blocki, Li, Jha (2017), Locally Differentially Private Protocols for Frequency Estimation, USENIX Security,
    optimized unary encoding; Erlingsson, Pihur, Korolova (2014), RAPPOR, CCS (symmetric).
    """

    k: int
    epsilon: float
    encoding: Literal["optimized", "symmetric"] = "optimized"
    name: ClassVar[str] = "unary"
    label: ClassVar[str] = "unary encoding"
    largest_k: ClassVar[int] = 1 << 24

    @property
    def device(self) -> unary.Unary:
        """The same for one value at a time: the mechanism of a device, which owns the parameters."""
        return unary.Unary(self.k, self.epsilon, self.encoding)

    @property
    def guarantee(self) -> LocalDP:
        return LocalDP(self.epsilon, source=f"{self.encoding} unary encoding (Wang, Blocki, Li, Jha 2017)")

    @property
    def masses(self) -> tuple[int, int]:
        """(p, q) out of 2^64."""
        return self.device.masses

    def bit_channel(self) -> DenseChannel:
        """The law of one bit given whether its symbol is the value: rows (other, own), columns (0, 1).

        Two values differ in two bits; the report's epsilon is the sum of what these two reveal.
        """
        p, q = self.masses  # whole numbers: 1 - p may be less than a rounding of p
        return DenseChannel([[(WORD - q) / WORD, q / WORD], [(WORD - p) / WORD, p / WORD]])

    def channel(self) -> DenseChannel:
        """Dense (k, 2^k); column y has symbol x's bit as bit x of y. Above ten million cells use `bit_channel`."""
        if self.k << self.k > MOST_CELLS:
            raise UnsupportedError(
                f"A dense channel of unary encoding has k 2^k cells, too many for k = {self.k:,}; "
                "use bit_channel, because the bits are independent."
            )
        other, own = self.bit_channel().matrix()
        bits = np.arange(1 << self.k)[:, None] >> np.arange(self.k) & 1  # (2^k, k)
        law = np.prod(other[bits], axis=1)
        return DenseChannel((law[:, None] * own[bits] / other[bits]).T)

    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        people = symbols(values, self.k)
        reports = np.empty((people.size, self._width), dtype=np.uint8)
        for part in chunks(people.size, size=max(1, _BYTES // (8 * self._width))):
            reports[part] = self._encode(people[part], rng.at(part))
        return reports

    def _encode(self, people: NDArray[np.int64], rng: Entropy) -> Reports:
        p, q = self.masses
        bits = coins(q, people.size * 8 * self._width, rng).reshape(people.size, -1)
        bits[np.arange(people.size), people] = coins(p, people.size, rng)
        bits[:, self.k :] = False
        return np.packbits(bits).reshape(people.size, -1)

    def check_reports(self, reports: ArrayLike) -> Reports:
        return check_packed_bits(reports, self.k)

    def tally(self, reports: Reports) -> NDArray[np.int64]:
        return bit_counts(self.check_reports(reports))[: self.k]

    @property
    def ratio(self) -> Fraction:
        p, q = self.masses
        return Fraction(p * (WORD - q), (WORD - p) * q)

    @property
    def report_bits(self) -> int:
        return 8 * self._width

    def decode_bytes(self, encoded: Encoded) -> tuple[Reports, Valid]:
        return encoded, encoded[:, -1] & ((1 << self.device.padding) - 1) == 0

    def all_reports(self) -> Reports:
        bits = np.arange(1 << self.k)[:, None] >> np.arange(self.k) & 1
        return np.packbits(bits.astype(np.uint8), axis=1)

    def columns(self, reports: Reports) -> NDArray[np.int64]:
        return np.asarray(np.unpackbits(reports, axis=1)[:, : self.k] @ (1 << np.arange(self.k)))

    def _support(self, reports: Reports) -> Support:
        return np.unpackbits(reports, axis=1, count=self.k).astype(np.bool_)

    @property
    def support_log_odds(self) -> float:
        p, q = self.masses
        return log(p * (WORD - q)) - log(q * (WORD - p))

    @classmethod
    def burden(cls, k: int, n: int) -> str:
        return f"a report would have {k:,} bits" if k > MOST_BITS else ""

    @property
    def pure(self) -> Pure:
        p, q = self.masses
        return Pure(Fraction(p, WORD), Fraction(q, WORD))

    @property
    def _width(self) -> int:
        return self.device.report_bytes

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(k=2, epsilon=1.0),
            cls(k=3, epsilon=2.0, encoding="symmetric"),
            cls(k=5, epsilon=0.5),
            cls(k=9, epsilon=4.0),
        )
