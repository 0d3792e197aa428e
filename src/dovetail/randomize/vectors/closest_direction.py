"""A vector, of which a random direction is reported that is likelier the closest one: PrivUnit on a codebook."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from dovetail.core.checks import positive, privacy_budget, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.guarantee import LocalDP
from dovetail.core.special import Reals
from dovetail.core.stages import Encoded, Reports, Valid
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.coins import whole_words
from dovetail.randomize.sampling.vector_randomizer import HeldWord, Tallied, VectorRandomizer, directions_of

MOST_COORDINATES = 1 << 16
MOST_DIRECTIONS = 512  # axes among which the default is chosen
CHUNK = 1 << 18  # normal numbers that are made at once
FINE = 2.0**30  # units of a sum of directions: below 2^33 each, so that 2^30 people fit into 63 bits

Words = NDArray[np.uint64]


@final
@dataclass(frozen=True)
class ClosestDirection(VectorRandomizer):
    r"""One of 2 m random directions, by k-ary randomized response in which the closest one is held.

    .. math:: \hat x = \Big(\frac{x}{r}, \sqrt{1 - \frac{|x|^2}{r^2}}\Big), \qquad
              j^* = \arg\max_{j < 2m} \langle \pm g_j, \hat x \rangle, \qquad
              \hat\mu = \frac{r}{c\, \mu_m\, n} \sum_i g_{j_i}, \qquad
              \mu_m = \mathrm{E} \max_{j \le m} |N_j|

    Each person draws m numbers of 63 bits; each stands for a direction of normal numbers g, and for -g. k-ary
    response (k = 2 m, contrast c) picks one of the 2 m; that number with its sign, 64 bits, is the report.
    For the mean of bounded vectors, of all randomizers here with the smallest error: within 14 % of that of PrivUnit
    with the best parameters. `RotatedBlocks` is faster for large m d, with a larger error.

    Parameters
    ----------
    d : int, 1 .. 65,536
        Coordinates.
    radius : float, above 0
        Vectors longer than r in Euclidean norm are shortened to it.
    epsilon : float, above 0 and at most 700, nats
    axes : int, 1 .. 4,096, optional
        m, pairs of opposite directions that a person draws; by default the number up to 512 with the smallest error.

    Notes
    -----
    Why it is exact: whatever the vector is, exactly one of the 2 m numbers is held, and floating-point numbers decide
    which; they are the person's own. k-ary response draws by whole numbers, and its report is what anybody sees.
    Continuous PrivUnit draws from a cap of the sphere, whose measure among floating-point numbers nobody knows.
    Unbiased as the law of normal vectors looks alike from all sides (Isik and others 2023 show that this is needed).
    A device makes m (d + 1) normal numbers, in about 10 ns each.

    Examples
    --------
    >>> noise = ClosestDirection(d=1000, radius=1.0, epsilon=4.0)
    >>> noise.response.k, round(noise.error(100_000), 4), noise.report_bits
    (18, 0.0728, 64)

    Source
    ------
    Bhowmick, Duchi, Freudiger, Kapoor, Rogers (2018), Protection Against Reconstruction, PrivUnit. Isik, Chen, Ozgur,
    Weissman, No (2023), Exact Optimality of Communication-Privacy-Utility Tradeoffs in Distributed Mean Estimation,
    NeurIPS: the closest of a rotationally symmetric codebook. docs/theory/several-questions.md.
    """

    d: int
    radius: float
    epsilon: float
    axes: Annotated[int, Ge(1), Le(4096)] | None = field(default=None, kw_only=True)
    name: ClassVar[str] = "closest_direction"
    label: ClassVar[str] = "the closest of random directions"

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole("d", self.d, least=1, most=MOST_COORDINATES))
        positive("radius", self.radius)
        privacy_budget("epsilon", self.epsilon)
        if self.axes is None:
            object.__setattr__(self, "axes", best_axes(self.epsilon, self.d))
        else:
            whole("axes", self.axes, least=1, most=4096)

    @property
    def pairs(self) -> int:
        """m."""
        assert self.axes is not None  # set above
        return self.axes

    @cached_property
    def response(self) -> KRR:
        """Response that picks one of the 2 m directions."""
        return KRR(k=2 * self.pairs, epsilon=self.epsilon)

    @property
    def guarantee(self) -> LocalDP:
        source = f"k-ary randomized response about which of {self.response.k} random directions is closest"
        return LocalDP(self.response.guarantee.epsilon, source=source)

    @property
    def sampled(self) -> HeldWord:
        return HeldWord(self.response)

    def _reports(self, rows: Reals, rng: Entropy) -> Words:
        lifted = self._lifted(rows)
        drawn = (rng.words(len(rows) * self.pairs) & ~np.uint64(1)).reshape(len(rows), self.pairs)
        symbols = self.response.randomize(self._closest(drawn, lifted), rng)
        chosen = drawn[np.arange(len(rows)), symbols >> 1]
        return np.asarray(chosen | (symbols & 1).astype(np.uint64))

    def _closest(self, drawn: Words, lifted: NDArray[np.float32]) -> NDArray[np.int64]:
        """The symbol (n,) of the closest direction: twice its axis, plus 1 for the opposite one."""
        symbols = np.zeros(len(drawn), dtype=np.int64)
        count = max(1, CHUNK // (self.pairs * (self.d + 1)))
        for start in range(0, len(drawn), count):
            part = slice(start, start + count)
            made = directions_of(drawn[part].ravel(), self.d + 1)
            inner = np.matmul(made.reshape(-1, self.pairs, self.d + 1), lifted[part, :, None])[:, :, 0]
            axis = np.argmax(np.abs(inner), axis=1)
            symbols[part] = 2 * axis + (inner[np.arange(len(axis)), axis] < 0.0)
        return symbols

    def _lifted(self, rows: Reals) -> NDArray[np.float32]:
        """x^ (n, d + 1), of length 1."""
        short = self.shortened(rows)
        with np.errstate(under="ignore"):
            last = np.sqrt(np.maximum(0.0, 1.0 - np.sum(short**2, axis=1)))
            return np.column_stack([short, last]).astype(np.float32)

    def check_reports(self, reports: ArrayLike) -> Words:
        seen = np.asarray(reports)
        if seen.ndim != 1 or seen.dtype.kind not in "iu" or (seen.dtype.kind == "i" and np.any(seen < 0)):
            raise DataError("`reports` must be whole numbers (n,) of 64 bits without sign.")
        return seen.astype(np.uint64)

    def tally(self, reports: Words) -> Tallied:
        """The sum (d,) of the directions, each rounded to 2^-30: whole numbers, also while doubles add them."""
        total, count = np.zeros(self.d, dtype=np.int64), max(1, CHUNK // self.d)
        for start in range(0, len(reports), count):
            part = reports[start : start + count]
            signs = 1.0 - 2.0 * (part & np.uint64(1)).astype(np.float64)
            made = directions_of(part & ~np.uint64(1), self.d + 1)[:, : self.d].astype(np.float64)
            total += (signs @ np.rint(FINE * made)).astype(np.int64)
        return total

    def invert(self, counts: Tallied, n: int) -> Reals:
        return np.asarray(self._scale / n / FINE * counts)

    def error(self, n: int) -> float:
        r"""Bound on the root mean squared Euclidean error of the mean of n shortened vectors.

        .. math:: \frac{r}{\sqrt n} \sqrt{\max\Big(\frac{d}{c^2 \mu_m^2},
                  \frac{d - 1 + M}{c^2 \mu_m^2} - 1\Big)}, \qquad M = c\, \mathrm{E} \max_j N_j^2 + 1 - c

        M is the second moment of a report along the vector; across it a report is normal, whatever was held.
        """
        return self._error(self.d, n)

    def coordinate_error(self, n: int) -> float:
        """The same for each single coordinate."""
        return self._error(1, n)

    def _error(self, d: int, n: int) -> float:
        worst = float(_worst(d, self.response.channel().contrast, *largest_of(self.pairs)))
        return self.radius * math.sqrt(worst / whole("n", n, least=1))

    @property
    def _scale(self) -> float:
        """r / (c mu_m)."""
        return self.radius / (self.response.channel().contrast * largest_of(self.pairs)[0])

    @property
    def report_bits(self) -> int:
        return 64

    def decode_bytes(self, encoded: Encoded) -> tuple[Reports, Valid]:
        return whole_words(encoded), np.ones(len(encoded), dtype=np.bool_)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(3, 1.0, 1.0), cls(2, 5.0, 3.0, axes=4), cls(1, 0.5, 0.4))


@lru_cache(maxsize=4096)
def largest_of(m: int) -> tuple[float, float]:
    """Mean and mean square of the largest absolute value of m normal numbers.

    >>> [round(moment, 4) for moment in largest_of(1)], round(largest_of(100)[0], 3)
    ([0.7979, 1.0], 2.747)
    """
    t, w = _nodes()
    above = -np.expm1(m * np.log1p(-2.0 * ndtr(-t)))  # 1 - (2 Phi(t) - 1)^m
    return float(w @ above), float(w @ (2.0 * t * above))


@cache
def _nodes() -> tuple[Reals, Reals]:
    """Of Gauss-Legendre quadrature from 0 to 12 standard deviations."""
    nodes, weights = np.polynomial.legendre.leggauss(160)
    return 6.0 * (nodes + 1.0), 6.0 * weights


@cache
def _moments() -> Reals:
    """`largest_of` 1 .. MOST_DIRECTIONS, in two rows."""
    return np.array([largest_of(m) for m in range(1, MOST_DIRECTIONS + 1)]).T


@lru_cache(maxsize=1024)
def best_axes(epsilon: float, d: int) -> int:
    """m of at most 512 with the smallest error for d coordinates."""
    m = np.arange(1, MOST_DIRECTIONS + 1)
    contrast = -math.expm1(-epsilon) / (1.0 + (2 * m - 1) * math.exp(-epsilon))
    return int(m[np.argmin(_worst(d, contrast, *_moments()))])


def _worst(d: int, contrast: Any, mean: Any, square: Any) -> Any:
    """Largest mean squared error of one report in d coordinates, for vectors of length 0 and 1."""
    scale = 1.0 / (contrast * mean) ** 2
    return np.maximum(d * scale, (d + contrast * (square - 1.0)) * scale - 1.0)
