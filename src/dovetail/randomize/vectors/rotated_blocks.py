"""A vector, clipped and rotated, of which one block of signs is reported by k-ary randomized response."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self, final

import numpy as np
from annotated_types import Ge
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import hadamard_transform
from dovetail.core.checks import positive, privacy_budget, refuse, whole
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError
from dovetail.core.guarantee import LocalDP
from dovetail.core.special import Reals
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.vector_randomizer import HeldBlock, Tallied, VectorRandomizer

MOST_COORDINATES = 1 << 16
SIZES = (1, 2, 4, 8, 16)  # signs in a block
SPREADS = 4.5  # a rotated coordinate is cut beyond so many of its standard deviations
CHUNK = 1 << 22  # numbers that are rotated at once

BlockReports = NDArray[np.int64]  # (n, 2): block, symbol


@final
@dataclass(frozen=True)
class RotatedBlocks(VectorRandomizer):
    r"""One block of the rotated vector's signs, by k-ary randomized response.

    .. math:: y = \frac{1}{\sqrt D} H S\, x \min\left(1, \frac{r}{|x|}\right), \qquad
              \Pr[b_j = 1] = \tfrac12 \left(1 + \frac{y_j}{B}\right), \qquad
              B = \min\left(r, \frac{4.5\, r}{\sqrt D}\right)

    S are public random signs, H is the Walsh-Hadamard matrix, D the power of two from d on. Each person draws one of
    the D / s blocks of s coordinates, whatever her vector is, and reports its s signs as one of 2^s symbols. For the
    mean of bounded vectors: gradients in federated learning, profiles, embeddings. For one number use a randomizer of
    numbers, for the shares of symbols one of frequencies.

    Parameters
    ----------
    d : int, 1 .. 65,536
        Coordinates.
    radius : float, above 0
        Vectors longer than r in Euclidean norm are shortened to it.
    epsilon : float, above 0 and at most 700, nats
    signs : int, a power of two up to 16, optional
        s; by default the number with the smallest error.
    seed : int, at least 0
        Public, of S; must not be chosen after looking at vectors.

    Notes
    -----
    Pure local privacy: signs are functions of the vector and of randomness of its own, and k-ary response draws by
    whole numbers, so no bits of floating-point noise leak. Cutting at B biases the mean by at most 0.003 r in
    Euclidean norm, on average over S.

    Examples
    --------
    >>> noise = RotatedBlocks(d=1000, radius=1.0, epsilon=4.0)
    >>> noise.blocks, noise.response.k, round(noise.error(100_000), 2)
    (256, 16, 0.3)

    Source
    ------
    Chen, Kairouz, Ozgur (2020), Breaking the Communication-Privacy-Accuracy Trilemma, NeurIPS, section 4: sampled
    signs of a spread representation; here a random rotation instead of Kashin's.
    """

    d: int
    radius: float
    epsilon: float
    signs: Literal[1, 2, 4, 8, 16] | None = field(default=None, kw_only=True)
    seed: Annotated[int, Ge(0)] = field(default=0, kw_only=True)
    name: ClassVar[str] = "rotated_blocks"
    label: ClassVar[str] = "a block of the rotated vector's signs"

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole("d", self.d, least=1, most=MOST_COORDINATES))
        positive("radius", self.radius)
        privacy_budget("epsilon", self.epsilon)
        whole("seed", self.seed, least=0)
        possible = [size for size in SIZES if size <= self.padded]
        if self.signs is None:
            object.__setattr__(self, "signs", min(possible, key=self._noise_of))
        elif self.signs not in possible:
            raise refuse("signs", f"one of {', '.join(map(str, possible))}", self.signs)

    @property
    def padded(self) -> int:
        """D."""
        return int(1 << (self.d - 1).bit_length())

    @property
    def size(self) -> int:
        """s, signs in a block."""
        assert self.signs is not None  # set above
        return self.signs

    @property
    def blocks(self) -> int:
        """D / s."""
        return self.padded // self.size

    @cached_property
    def response(self) -> KRR:
        """Response that reports the signs of a block."""
        return KRR(k=2**self.size, epsilon=self.epsilon)

    @property
    def guarantee(self) -> LocalDP:
        """Of one report."""
        return self.response.guarantee

    @property
    def bound(self) -> float:
        """B."""
        return self.radius * min(1.0, SPREADS / math.sqrt(self.padded))

    @property
    def bias(self) -> float:
        r"""Bound on the Euclidean norm of what cutting at B shifts the mean by, on average over the signs S.

        .. math:: \sqrt{D \int_B^\infty 2 (t - B)\, 2 e^{-t^2 D / (2 r^2)} dt}
                  = 2 r \sqrt{e^{-z^2/2} - z \sqrt{\pi/2}\, \operatorname{erfc}(z / \sqrt2)}, \qquad z = 4.5

        since Pr[|y_j| > t] <= 2 exp(-t^2 D / (2 r^2)) (Hoeffding), and lengths of means are at most means of lengths.
        """
        if self.bound >= self.radius:
            return 0.0
        beyond = math.exp(-0.5 * SPREADS**2) - SPREADS * math.sqrt(0.5 * math.pi) * math.erfc(
            SPREADS / math.sqrt(2.0)
        )
        return 2.0 * self.radius * math.sqrt(beyond) * (1.0 + 1e-9)

    def error(self, n: int) -> float:
        r"""Bound on the root mean squared Euclidean error of the mean of n clipped vectors, without the bias.

        .. math:: \frac{D B}{c \sqrt{s n}}, \qquad c = \Pr[\text{kept}] - \Pr[\text{each other symbol}]
        """
        return self.bound * math.sqrt(self._noise_of(self.size) / whole("n", n, least=1))

    def coordinate_error(self, n: int) -> float:
        """The same for one coordinate: the root mean square over coordinates."""
        return self.error(n) / math.sqrt(self.d)

    @property
    def sampled(self) -> HeldBlock:
        return HeldBlock(self.response, self.blocks, self.energy)

    @property
    def energy(self) -> float:
        """Bound on the mean squared expectation of a sign: a vector of length r has r^2 / (D B^2) of it."""
        return min(1.0, (self.radius / self.bound) ** 2 / self.padded * (1.0 + 1e-9))

    @property
    def report_bits(self) -> int:
        return max(1, (self.blocks - 1).bit_length() + self.size)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(3, 1.0, 1.0), cls(8, 2.0, 3.0, signs=4, seed=5), cls(1, 10.0, 2.0))

    def _noise_of(self, size: int) -> float:
        """D^2 / (s c^2)."""
        return self.padded**2 / (size * KRR(k=2**size, epsilon=self.epsilon).channel().contrast ** 2)

    def _reports(self, rows: Reals, rng: Entropy) -> BlockReports:
        chosen = rng.below(self.blocks, len(rows))
        symbols = np.zeros(len(rows), dtype=np.int64)
        count = max(1, CHUNK // self.padded)
        for start in range(0, len(rows), count):
            part = slice(start, start + count)
            symbols[part] = self._signs(rows[part], chosen[part], rng)
        return np.stack([chosen, self.response.randomize(symbols, rng)], axis=1)

    def _signs(self, rows: Reals, chosen: NDArray[np.int64], rng: Entropy) -> NDArray[np.int64]:
        """The drawn signs of each row's block, as a symbol."""
        with np.errstate(under="ignore"):  # a warning would tell of the vector
            rotated = self.rotate(self.radius * self.shortened(rows)).reshape(len(rows), self.blocks, self.size)
        held = rotated[np.arange(len(rows)), chosen]
        drawn = (rng.words(held.size) >> np.uint64(11)).reshape(held.shape) * 2.0**-53
        ones = drawn < 0.5 * (1.0 + np.clip(held / self.bound, -1.0, 1.0))
        return np.asarray(ones @ (1 << np.arange(self.size)), dtype=np.int64)

    def check_reports(self, reports: ArrayLike) -> BlockReports:
        seen = np.asarray(reports)
        fine = seen.ndim == 2 and seen.shape[1] == 2 and seen.dtype.kind in "iu"
        if not fine or np.any((seen < 0) | (seen >= (self.blocks, self.response.k))):
            ranges = f"a block below {self.blocks}, a symbol below {self.response.k}"
            raise DataError(f"`reports` must be whole numbers (n, 2): {ranges}.")
        return seen

    def tally(self, reports: BlockReports) -> Tallied:
        """For each block and place in it, reports with this sign less those with the other."""
        total = np.zeros((self.blocks, self.size), dtype=np.int64)
        for j in range(self.size):
            bits = 2.0 * ((reports[:, 1] >> j) & 1) - 1.0
            total[:, j] = np.bincount(reports[:, 0], bits, self.blocks)
        return total

    def invert(self, counts: Tallied, n: int) -> Reals:
        scale = self.blocks * self.bound / (n * self.response.channel().contrast)
        return self.rotate_back(np.asarray(scale * counts, dtype=np.float64).ravel())

    def rotate(self, rows: Reals) -> Reals:
        """H S x / sqrt(D) of rows (.., d), (.., D)."""
        wide = np.zeros((*rows.shape[:-1], self.padded))
        wide[..., : self.d] = rows * self._flips
        return hadamard_transform(wide) / math.sqrt(self.padded)

    def rotate_back(self, rotated: Reals) -> Reals:
        """The rows (.., d) that `rotate` turns into these."""
        return np.asarray((hadamard_transform(rotated) / math.sqrt(self.padded))[..., : self.d] * self._flips)

    @cached_property
    def _flips(self) -> Reals:
        """The diagonal of S."""
        return np.where(simulation(self.seed).narrow(self.d, np.uint8) & 1, -1.0, 1.0)
