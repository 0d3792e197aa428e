"""k-ary randomized response: tell the truth, or name one of the other symbols."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.guarantee import LocalDP
from dovetail.core.stages import Encoded, FrequencyRandomizer, Reports, Support, Valid
from dovetail.randomize.sampling.coins import adopt, numbers_below
from dovetail.randomize.sampling.domain import symbols, whole_numbers
from dovetail.randomize.sampling.pure_protocol import respond
from dovetail_protocol.mechanisms import krr


@final
@dataclass(frozen=True)
class KRR(FrequencyRandomizer):
    r"""k-ary randomized response.

    .. math:: \Pr[y \mid x] = \frac{e^{\epsilon}}{e^{\epsilon} + k - 1} \text{ if } y = x, \quad
              \frac{1}{e^{\epsilon} + k - 1} \text{ otherwise}

    The best choice for k below about 3 e^epsilon + 2; otherwise use Hadamard or Unary (optimized).

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
    A report is an int64 in 0..k-1. Probabilities are whole multiples of 2^-64, rounded towards more privacy, and the
    sampler has exactly this law. About 4 ns per value.

    Beyond a few million symbols the rounding costs utility, and a small epsilon is refused: 2^64 is then too coarse.

    Examples
    --------
    >>> KRR(k=2, epsilon=1.0).channel().p
    0.7310585786300049

    Source
    ------
    Kairouz, Bonawitz, Ramage (2016), Discrete Distribution Estimation under Local Privacy, ICML.
    """

    k: int
    epsilon: float
    name: ClassVar[str] = "krr"
    label: ClassVar[str] = "k-ary randomized response"
    variance_by_symbol: ClassVar[bool] = True
    names_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        adopt(self, self.device)

    @property
    def device(self) -> krr.KRR:
        """The same for one value at a time: the mechanism of a device, which owns the parameters."""
        return krr.KRR(self.k, self.epsilon)

    @property
    def guarantee(self) -> LocalDP:
        return LocalDP(self.epsilon, source="k-ary randomized response (Kairouz, Bonawitz, Ramage 2016)")

    def channel(self) -> KRRChannel:
        return KRRChannel(self.k, *self.device.masses)

    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        return respond(whole_numbers(values, self.k), self.channel(), rng)

    def check_reports(self, reports: ArrayLike) -> Reports:
        return symbols(reports, self.k, name="reports")

    def tally(self, reports: Reports) -> NDArray[np.int64]:
        return np.bincount(self.check_reports(reports), minlength=self.k)

    def invert(self, counts: NDArray[Any], n: Any) -> NDArray[np.float64]:
        return self.channel().invert(counts / np.asarray(n)[..., None])

    def variance(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.channel().inverse_variance(shares)

    @property
    def ratio(self) -> Fraction:
        return Fraction(*self.device.masses)

    @property
    def report_bits(self) -> int:
        return (self.k - 1).bit_length()

    def decode_bytes(self, encoded: Encoded) -> tuple[Reports, Valid]:
        return numbers_below(self.k, encoded)

    def _support(self, reports: Reports) -> Support:
        return np.asarray(reports[:, None] == np.arange(self.k))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(k=2, epsilon=1.0), cls(k=3, epsilon=0.25), cls(k=5, epsilon=3.0), cls(k=16, epsilon=2.0))
