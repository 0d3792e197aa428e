"""Hadamard response: a symbol owns half of one block of reports, and names one of its own more often."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log, log2
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import HadamardChannel, KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.guarantee import LocalDP
from dovetail.core.stages import Encoded, FrequencyRandomizer, Reports, Valid
from dovetail.randomize.sampling.coins import JUST_BELOW, adopt, chunks, numbers_below
from dovetail.randomize.sampling.domain import symbols
from dovetail.randomize.sampling.pure_protocol import respond
from dovetail_protocol.mechanisms import hadamard


@final
@dataclass(frozen=True)
class Hadamard(FrequencyRandomizer):
    r"""Hadamard response with B blocks of w reports.

    .. math:: B = 2^{\lceil \log_2 \min(e^{\epsilon}, 2k) \rceil - 1}, \quad
              w = 2^{\lceil \log_2 (k / B + 1) \rceil}, \quad
              \Pr[y \mid x] = \frac{e^{\epsilon} \text{ if } y \in S_x \text{ else } 1}
                                   {(e^{\epsilon} + 2B - 1)\, w / 2}

    A (2B)-ary randomized response over half blocks, then a uniform place inside the half block. Near-optimal at every
    epsilon with reports of O(log k) bits and a tally of O(k log k): the choice for large domains.

    Parameters
    ----------
    k : int, 2 to 2^31
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
    A report is an int64 in 0..B w - 1; `HadamardChannel` documents which reports a symbol owns. The law is exact.

    Examples
    --------
    >>> Hadamard(k=1000, epsilon=2.0).channel().shape
    (1000, 1024)

    Source
    ------
    Acharya, Sun, Zhang (2019), Hadamard Response: Estimating Distributions Privately, Efficiently, and with Little
    Communication, AISTATS.
    """

    k: int
    epsilon: float
    name: ClassVar[str] = "hadamard"
    label: ClassVar[str] = "Hadamard response"
    variance_period: ClassVar[str] = "blocks"

    def __post_init__(self) -> None:
        adopt(self, self.device)

    @property
    def device(self) -> hadamard.Hadamard:
        """The same for one value at a time: the mechanism of a device, which owns the parameters."""
        return hadamard.Hadamard(self.k, self.epsilon)

    @property
    def guarantee(self) -> LocalDP:
        return LocalDP(self.epsilon, source="Hadamard response (Acharya, Sun, Zhang 2019)")

    @property
    def blocks(self) -> int:
        """B, a power of two near e^epsilon / 2."""
        return self.device.blocks

    @property
    def width(self) -> int:
        """w, reports per block: the least power of two above the number of symbols in a block."""
        return self.device.width

    def channel(self) -> HadamardChannel:
        device = self.device
        return HadamardChannel(self.k, device.blocks, device.width, *device.masses)

    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        from dovetail.randomize.sampling.kernels import place_reports

        people = symbols(values, self.k)
        blocks, width = self.blocks, self.width
        halves = KRRChannel(2 * blocks, *self.device.masses)
        reports = np.empty(people.size, dtype=np.int64)
        for part in chunks(people.size):
            piece = people[part]
            own = rng.at(part)
            chosen = respond(2 * (piece % blocks), halves, own)
            places = own.narrow(piece.size, np.uint32)
            place_reports(piece // blocks + 1, chosen, places, width, reports[part])
        return reports

    def check_reports(self, reports: ArrayLike) -> Reports:
        return symbols(reports, self.blocks * self.width, name="reports")

    def tally(self, reports: Reports) -> NDArray[np.int64]:
        return np.bincount(self.check_reports(reports), minlength=self.blocks * self.width)

    def invert(self, counts: NDArray[Any], n: Any) -> NDArray[np.float64]:
        return self.channel().invert(counts / np.asarray(n)[..., None])

    def variance(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.channel().inverse_variance(shares)

    @property
    def ratio(self) -> Fraction:
        return Fraction(*self.device.masses)

    @property
    def report_bits(self) -> int:
        return int(log2(self.blocks * self.width))

    def decode_bytes(self, encoded: Encoded) -> tuple[Reports, Valid]:
        return numbers_below(self.blocks * self.width, encoded)

    def indicators(self, reports: Reports) -> NDArray[np.float64]:
        kinds, which = np.unique(self.check_reports(reports), return_inverse=True)
        channel = self.channel()
        return np.asarray(channel.invert(kinds[:, None] == np.arange(channel.shape[1]))[which])

    @classmethod
    def breaks(cls, k: int) -> tuple[float, ...]:
        return tuple(log(2.0**power) * JUST_BELOW for power in range(1, (2 * k - 1).bit_length()))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(k=2, epsilon=1.0),
            cls(k=3, epsilon=0.5),
            cls(k=7, epsilon=1.5),
            cls(k=10, epsilon=2.5),
            cls(k=4, epsilon=6.0),
        )
