"""Subset selection: report a random subset of the symbols, which holds the own one more often than not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, log
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import MOST_CELLS, DenseChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import LocalDP
from dovetail.core.stages import Encoded, Reports, Support, Valid
from dovetail.randomize.sampling.coins import (
    JUST_BELOW,
    bit_counts,
    check_packed_bits,
    chunks,
    coins,
    row_sizes,
)
from dovetail.randomize.sampling.domain import Symbols, offenders, symbols
from dovetail.randomize.sampling.pure_protocol import Pure, PureProtocol
from dovetail_protocol.exact_thresholds import WORD
from dovetail_protocol.mechanisms import subset_selection

MOST_BITS = 1 << 16  # of a report that a planner recommends
_CELLS = 1 << 20  # bits that are drawn at once


@final
@dataclass(frozen=True)
class SubsetSelection(PureProtocol):
    r"""A subset of d of the k symbols; those that hold the own symbol are e^epsilon times as likely as the others.

    .. math:: d \approx \frac{k}{e^{\epsilon} + 1}, \qquad
              \Pr[x \in S] = \frac{d e^{\epsilon}}{d e^{\epsilon} + k - d}, \qquad
              \text{uniform among the subsets with } x, \text{ and among those without}

    Optimal for shares in order and constant between k-ary randomized response, which it is for d = 1, and unary
    encodings; reports of k bits. Hadamard is shorter for large domains.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols; values are 0..k-1.
    epsilon : float, above 0 and at most 700, nats

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and for an epsilon too small for this k.
    DataError
        From `randomize` for values outside the domain, and from estimates for reports that are none.

    Notes
    -----
    Reports are packed bits, uint8 (n, ceil(k / 8)), with exactly d of them set. The law is exact: a 64-bit threshold
    decides whether the own symbol is held, and Floyd's algorithm draws the others. About 10 ns times d per value.

    Examples
    --------
    >>> chosen = SubsetSelection(k=4, epsilon=1.0)
    >>> chosen.size, chosen.channel().matrix().round(4)[0].tolist()
    (1, [0.4754, 0.1749, 0.1749, 0.1749])

    Source
    ------
    Ye, Barg (2018), Optimal Schemes for Discrete Distribution Estimation under Locally Differential Privacy, IEEE
    Transactions on Information Theory 64(8); Wang, Huang, Wang, Nie, Xu, Yang, Li, Qiao (2016), Mutual Information
    Optimally Local Private Discrete Distribution Estimation, arXiv 1607.08025.
    """

    k: int
    epsilon: float
    name: ClassVar[str] = "subset_selection"
    label: ClassVar[str] = "subset selection"
    largest_k: ClassVar[int] = 1 << 24

    @property
    def device(self) -> subset_selection.SubsetSelection:
        """The same for one value at a time: the mechanism of a device, which owns the parameters."""
        return subset_selection.SubsetSelection(self.k, self.epsilon)

    @property
    def guarantee(self) -> LocalDP:
        return LocalDP(self.epsilon, source="subset selection (Ye, Barg 2018)")

    @property
    def size(self) -> int:
        """d, symbols in a report."""
        return self.device.size

    @property
    def ratio(self) -> Fraction:
        device = self.device
        return Fraction(device.mass * (self.k - device.size), (WORD - device.mass) * device.size)

    @property
    def report_bits(self) -> int:
        return 8 * self.device.report_bytes

    def channel(self) -> DenseChannel:
        """Dense (k, C(k, d)), columns in the order of `itertools.combinations`; refused above ten million cells."""
        k, d, mass = self.k, self.size, self.device.mass
        if k * comb(k, d) > MOST_CELLS:
            raise UnsupportedError(
                f"A dense channel of subset selection has k C(k, d) cells, too many for k = {k:,} and d = {d:,}."
            )
        rows = np.full((k, comb(k, d)), (WORD - mass) / (WORD * comb(k - 1, d)))
        for column, chosen in enumerate(combinations(range(k), d)):
            rows[list(chosen), column] = mass / (WORD * comb(k - 1, d - 1))
        return DenseChannel(rows)

    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        people, device = symbols(values, self.k), self.device
        reports = np.empty((people.size, device.report_bytes), dtype=np.uint8)
        for part in chunks(people.size, size=max(1, _CELLS // self.k)):
            reports[part] = np.packbits(self._draw(people[part], device.mass, device.size, rng.at(part)), axis=1)
        return reports

    def _draw(self, people: Symbols, mass: int, size: int, rng: Entropy) -> NDArray[np.bool_]:
        """The subsets (n, k) of a few people, as bits."""
        bits = np.zeros((people.size, self.k), dtype=np.bool_)
        held = coins(mass, people.size, rng)
        bits[np.flatnonzero(held), people[held]] = True
        for rows, count in ((np.flatnonzero(held), size - 1), (np.flatnonzero(~held), size)):
            for last in range(self.k - 1 - count, self.k - 1) if rows.size else ():
                drawn = _without(rng.at(rows).below(last + 1, rows.size), people[rows])
                taken = bits[rows, drawn]
                bits[rows, np.where(taken, _without(np.full(rows.size, last), people[rows]), drawn)] = True
        return bits

    def check_reports(self, reports: ArrayLike) -> Reports:
        array = check_packed_bits(reports, self.k)
        wrong = row_sizes(array) != self.size
        if wrong.any():
            raise offenders("reports", f"packed bits with {self.size} of {self.k} set", array, wrong)
        return array

    def decode_bytes(self, encoded: Encoded) -> tuple[Reports, Valid]:
        padding = encoded[:, -1] & ((1 << (-self.k % 8)) - 1)
        return encoded, (padding == 0) & (row_sizes(encoded) == self.size)

    def all_reports(self) -> Reports:
        bits = np.zeros((comb(self.k, self.size), self.k), dtype=np.uint8)
        for row, chosen in enumerate(combinations(range(self.k), self.size)):
            bits[row, list(chosen)] = 1
        return np.packbits(bits, axis=1)

    def columns(self, reports: Reports) -> NDArray[np.int64]:
        place = {row.tobytes(): column for column, row in enumerate(self.all_reports())}
        return np.fromiter((place[row.tobytes()] for row in self.check_reports(reports)), np.int64, len(reports))

    def _support(self, reports: Reports) -> Support:
        return np.unpackbits(reports, axis=1, count=self.k).astype(np.bool_)

    @property
    def support_log_odds(self) -> float:
        return log(self.ratio)

    def tally(self, reports: Reports) -> NDArray[np.int64]:
        return bit_counts(self.check_reports(reports))[: self.k]

    @property
    def pure(self) -> Pure:
        """A report supports another symbol than the own with q = (p (d - 1) + (1 - p) d) / (k - 1)."""
        d, p = self.size, Fraction(self.device.mass, WORD)
        return Pure(p, (p * (d - 1) + (1 - p) * d) / (self.k - 1))

    @classmethod
    def breaks(cls, k: int) -> tuple[float, ...]:
        return tuple(sorted(log(odds) * JUST_BELOW for odds in _odds_of_breaks(k)))

    @classmethod
    def burden(cls, k: int, n: int) -> str:
        return f"a report would have {k:,} bits" if k > MOST_BITS else ""

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(k=2, epsilon=1.0),
            cls(k=5, epsilon=0.5),
            cls(k=9, epsilon=1.0),
            cls(k=4, epsilon=3.0),
        )


def _without(others: Symbols, own: Symbols) -> Symbols:
    """The symbols that these numbers of 0..k-2 stand for when the own one is left out."""
    return others + (others >= own)


def _odds_of_breaks(k: int) -> Iterator[float]:
    """e^epsilon at which d changes: k / (e^epsilon + 1) halfway between whole numbers; the largest few."""
    for d in range(1, min(k // 2, 64) + 1):
        odds = k / (d + 0.5) - 1.0
        if odds > 1.0:
            yield odds
