"""Optimized local hashing: hash the value with one's own hash function, then randomize the hash."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import ClassVar, Never, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.certified import Bracket
from dovetail.core.channel import MOST_CELLS, DenseChannel, KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.guarantee import LocalDP
from dovetail.core.stages import Encoded, Reports, Support, Valid
from dovetail.randomize.sampling.coins import JUST_BELOW, chunks, numbers_below, whole_words
from dovetail.randomize.sampling.domain import offenders, symbols
from dovetail.randomize.sampling.pure_protocol import Pure, PureProtocol, respond
from dovetail_protocol.mechanisms import local_hashing

Seeds = NDArray[np.uint64]  # (n,)

MOST_BUCKETS = 64  # with more of them less than 1 % is lost at a break
MOST_HASHES = 1e12  # an hour of tallying, at about four nanoseconds a hash

_HALF = np.uint64(32)


@final
@dataclass(frozen=True)
class LocalHashing(PureProtocol):
    r"""Optimized local hashing: g-ary randomized response on a pairwise independent hash of the value.

    .. math:: h_{a,b}(x) = \lfloor g\, \lfloor (a x + b \bmod 2^{64}) / 2^{32} \rfloor / 2^{32} \rfloor, \qquad
              g = \mathrm{round}(e^{\epsilon}) + 1

    As accurate as optimized unary encoding with reports of constant size, but the tally costs n k hashes: use
    Hadamard for large domains.

    Parameters
    ----------
    k : int, 2 to 2^31
        Number of symbols; values are 0..k-1.
    epsilon : float, above 0 and at most 11, nats
        Beyond it g would exceed 2^16; KRR and Hadamard have no such limit.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and for an epsilon too small for this k.
    DataError
        From `randomize` for values outside the domain, and from estimates for reports that are none.

    Notes
    -----
    A report is a row (a, b, y) of uint64: the public seeds of the person's own hash function, and the randomized
    hash in 0..g-1. Hashes of two symbols are exactly independent; a bucket's probability differs from 1/g by less
    than 2^-32, so two symbols collide with probability in [1/g, 1/g + g 2^-64]. The estimator uses 1/g.

    Examples
    --------
    >>> LocalHashing(k=1000, epsilon=1.0).g
    4

    Source
    ------
    Wang, Blocki, Li, Jha (2017), Locally Differentially Private Protocols for Frequency Estimation, USENIX Security,
    optimized local hashing; Dietzfelbinger (1996), Universal Hashing and k-Wise Independent Random Variables via
    Integer Arithmetic without Primes, STACS (the hash functions).
    """

    k: int
    epsilon: float
    name: ClassVar[str] = "local_hashing"
    label: ClassVar[str] = "local hashing"
    largest_epsilon: ClassVar[float] = 11.0

    @property
    def device(self) -> local_hashing.LocalHashing:
        """The same for one value at a time: the mechanism of a device, which owns the parameters."""
        return local_hashing.LocalHashing(self.k, self.epsilon)

    @property
    def guarantee(self) -> LocalDP:
        return LocalDP(self.epsilon, source="local hashing (Wang, Blocki, Li, Jha 2017): public seeds, then g-ary RR")

    @property
    def g(self) -> int:
        """Number of buckets."""
        return self.device.g

    def hash_channel(self) -> KRRChannel:
        """The law of the reported bucket given the hash of the value."""
        return KRRChannel(self.g, *self.device.masses)

    def seed_channel(self, a: int, b: int) -> DenseChannel:
        """The law (k, g) of the reported bucket given the value, for the person with seeds a and b."""
        if self.k * self.g > MOST_CELLS:
            raise UnsupportedError(
                f"A dense channel of {self.k:,} x {self.g:,} cells is too large; use hash_channel and the hash."
            )
        people = np.arange(self.k, dtype=np.int64)
        seeds = np.array([[a, b]], dtype=np.uint64).repeat(self.k, axis=0)
        return DenseChannel(self.hash_channel().matrix()[self.hash(people, seeds)])

    def channel(self) -> Never:
        raise UnsupportedError(
            "A report of local hashing names one of 2^128 hash functions, so its channel has no matrix; "
            "use seed_channel(a, b), the channel of one person's hash function."
        )

    def hash(self, values: NDArray[np.int64], seeds: Seeds) -> NDArray[np.int64]:
        """Buckets (n,) of values (n,) under seeds (n, 2)."""
        high = (seeds[:, 0] * values.astype(np.uint64) + seeds[:, 1]) >> _HALF
        return (high * np.uint64(self.g) >> _HALF).astype(np.int64)

    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        people = symbols(values, self.k)
        channel = self.hash_channel()
        reports = np.empty((people.size, 3), dtype=np.uint64)
        for part in chunks(people.size, size=1 << 14):
            piece = people[part]
            own = rng.at(part)
            seeds = own.words(2 * piece.size).reshape(-1, 2)
            reports[part, :2] = seeds
            reports[part, 2] = respond(self.hash(piece, seeds), channel, own)
        return reports

    def check_reports(self, reports: ArrayLike) -> Reports:
        array = np.asarray(reports)
        if array.dtype != np.uint64 or array.ndim != 2 or array.shape[1] != 3:
            raise DataError(f"`reports` must be rows (a, b, y), uint64 (n, 3), got {array.dtype} {array.shape}.")
        bad = array[:, 2] >= np.uint64(self.g)
        if bad.any():
            raise offenders("reports", f"rows (a, b, y) with y in 0..{self.g - 1}", array, bad)
        return array

    def tally(self, reports: Reports) -> NDArray[np.int64]:
        from dovetail.randomize.sampling.kernels import count_support

        return np.asarray(count_support(self.check_reports(reports), self.k, self.g))

    @property
    def ratio(self) -> Fraction:
        return Fraction(*self.device.masses)

    @property
    def report_bits(self) -> int:
        return 128 + (self.g - 1).bit_length()

    def decode_bytes(self, encoded: Encoded) -> tuple[Reports, Valid]:
        buckets, valid = numbers_below(self.g, encoded[:, 16:])
        seeds = (whole_words(encoded[:, :8]), whole_words(encoded[:, 8:16]))
        return np.stack([*seeds, buckets.astype(np.uint64)], axis=1), valid

    def _support(self, reports: Reports) -> Support:
        seeds, named = reports[:, :2], reports[:, 2].astype(np.int64)
        return np.column_stack([self.hash(np.full(len(reports), value), seeds) == named for value in range(self.k)])

    @property
    def support_log_odds(self) -> float:
        return self.hash_channel().epsilon

    @classmethod
    def breaks(cls, k: int) -> tuple[float, ...]:
        return tuple(log(g - 0.5) * JUST_BELOW for g in range(2, MOST_BUCKETS))

    @classmethod
    def burden(cls, k: int, n: int) -> str:
        return f"the tally would take n k = {n * k:.3g} hashes" if n * k > MOST_HASHES else ""

    def own_report_leakage(self) -> Bracket:
        r"""A public hash function and a randomized bucket add at most what g-ary randomized response does.

        .. math:: V - \frac1k = \frac{p - s}{k} (E[m] - 1), \qquad
                  \frac{k}{1 + (k - 1) c} \le E[m] \le \min(g, k)

        with m the number of buckets that some value hashes to. Lower end: m >= k^2 / sum of squared bucket counts,
        whose mean is k + k (k - 1) c for pairwise independent hashes that collide with probability c.
        """
        k, g, law = self.k, self.g, self.hash_channel()
        collide = (1.0 + 1e-9) / g  # at most 1/g + g 2^-64, and g < 2^17
        used = max(1.0, k / (1.0 + (k - 1) * collide))
        return Bracket(law.contrast * (used - 1.0) / k, law.contrast * (min(g, k) - 1.0) / k)

    @property
    def pure(self) -> Pure:
        channel = self.hash_channel()
        return Pure(Fraction(channel.keep, channel.total), Fraction(1, self.g))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(k=2, epsilon=0.5), cls(k=3, epsilon=1.0), cls(k=6, epsilon=2.0), cls(k=20, epsilon=1.5))
