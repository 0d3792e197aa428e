"""A randomizer of vectors of bounded length: what each one publishes, and which there are."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.registry import Registry
from dovetail.core.special import Reals
from dovetail.core.stages import FrequencyRandomizer, Randomizer

VectorReports = NDArray[Any]  # (n,) or (n, width), whole numbers: one row for each person
Tallied = NDArray[np.int64]
PIECE = 1 << 20  # coordinates that are looked at at once


class GaussianSteps(NamedTuple):
    """Discrete Gaussian noise on so many grid steps, clamped 6.2 standard deviations outside."""

    steps: int
    sigma: float


class HeldBlock(NamedTuple):
    """One of so many blocks of signs, by k-ary response; `energy` bounds the mean squared expectation of a sign."""

    response: FrequencyRandomizer
    blocks: int
    energy: float


class HeldWord(NamedTuple):
    """One of m drawn words or its opposite, picked by k-ary response; the other words are not sent."""

    response: FrequencyRandomizer


class VectorRandomizer(Randomizer):
    """Turns one person's vector, shortened to a public length, into one report.

    A concrete one is a frozen dataclass whose fields are d, radius, epsilon and its own settings.
    Laws: reports are independent; `guarantee` holds for what is really sent; tallies are whole numbers that add, in
    any order and split; `estimate` is unbiased for the mean of the shortened vectors but for `bias`; `error` bounds
    its root mean squared Euclidean error.

    Raises
    ------
    ParameterError, DataError
        For parameters outside their ranges; for what is no vector of d finite numbers.
    """

    question = "vector"
    domain = frozenset({"d", "radius"})
    is_pure: ClassVar[bool] = True  # whether its local guarantee has no delta
    d: int
    radius: float
    epsilon: float

    @property
    @abstractmethod
    def sampled(self) -> HeldBlock | HeldWord | GaussianSteps | None:
        """Mechanism that is accounted for: a block of signs, a word, noise on a grid, or none of them."""

    @final
    def _randomize(self, values: ArrayLike, rng: Entropy) -> VectorReports:
        """In pieces: many long vectors fill the memory as they are."""
        rows = vectors_of(values, self.d)
        n, count = len(rows), max(1, PIECE // self.d)
        places = [np.arange(start, min(n, start + count)) for start in range(0, n, count)]
        return np.concatenate([self._reports(rows[here], rng.owners(here, n)) for here in places])

    @abstractmethod
    def _reports(self, rows: Reals, rng: Entropy) -> VectorReports:
        """`randomize` of checked vectors."""

    @abstractmethod
    def check_reports(self, reports: ArrayLike) -> VectorReports:
        """`reports` as a valid array; DataError otherwise."""

    @abstractmethod
    def tally(self, reports: VectorReports) -> Tallied:
        """Counts or sums, whole numbers that add, of valid reports."""

    @abstractmethod
    def invert(self, counts: Tallied, n: int) -> Reals:
        """The mean (d,) of the shortened vectors of n people, from their tally."""

    @final
    def estimate(self, reports: ArrayLike) -> Reals:
        """The mean (d,) of the shortened vectors."""
        seen = self.check_reports(reports)
        if not len(seen):
            raise DataError("`reports` must be at least one.")
        return self.invert(self.tally(seen), len(seen))

    @abstractmethod
    def error(self, n: int) -> float:
        """Bound on the root mean squared Euclidean error of the mean of n shortened vectors, without the bias."""

    @abstractmethod
    def coordinate_error(self, n: int) -> float:
        """The same for one coordinate: of each, or, where there is a public rotation, on average over coordinates."""

    @final
    def error95(self, n: int) -> float:
        """Euclidean error of the mean of n shortened vectors, with probability 95 %.

        The noise is a sum of independent ones, taken as normal, with the variance of `coordinate_error` in one
        direction and what remains of `error` in the others; the sum of squares is taken as a scaled chi-square with
        the same two moments.
        """
        error = self.error(n)
        most = (self.coordinate_error(n) / error) ** 2  # of the variance; as shares, lengths of any size are in range
        squares = most**2 + (max(0.0, 1.0 - most) ** 2 / (self.d - 1) if self.d > 1 else 0.0)
        return error * math.sqrt(squares * float(chdtri(1.0 / squares, 0.05))) + self.bias

    @property
    def bias(self) -> float:
        """Bound on the Euclidean norm of the bias."""
        return 0.0

    @final
    def shortened(self, rows: Reals) -> Reals:
        """Rows (n, d) over the radius, none of them longer than 1."""
        return shortened(rows, self.radius)


VECTOR_RANDOMIZERS: Registry[VectorRandomizer] = Registry(
    "vector randomizer", VectorRandomizer, package="dovetail.randomize.vectors", group="dovetail.vector_randomizers"
)


def shortened(rows: Reals, radius: float) -> Reals:
    """Rows (n, d) over the radius, none of them longer than 1."""
    peaks, lengths = _peaks_and_lengths(rows)
    with np.errstate(all="ignore"):  # a warning would tell of the vector
        return np.asarray(rows / peaks[:, None] * np.minimum(peaks / radius, 1.0 / lengths)[:, None])


def relative_lengths(rows: Reals, radius: float) -> Reals:
    """Euclidean lengths (n,) of rows (n, d), in units of the radius."""
    peaks, lengths = _peaks_and_lengths(rows)
    with np.errstate(all="ignore"):
        return np.asarray(peaks / radius * lengths)


def _peaks_and_lengths(rows: Reals) -> tuple[Reals, Reals]:
    """The largest coordinate of each row, 1 for a row of zeros, and the length, at least 1, in units of it."""
    peaks = np.max(np.abs(rows), axis=1)
    peaks[peaks == 0.0] = 1.0
    with np.errstate(all="ignore"):
        return peaks, np.maximum(np.sqrt(np.sum((rows / peaks[:, None]) ** 2, axis=1)), np.finfo(float).tiny)


def vectors_of(vectors: Any, d: int) -> Reals:
    """Vectors (n, d) as finite floats.

    Raises
    ------
    DataError
        For anything else.
    """
    try:
        rows = np.asarray(vectors)
    except ValueError:
        raise DataError(f"`vectors` must be numbers (n, {d}), got rows of different lengths.") from None
    if rows.ndim != 2 or rows.shape[1] != d or rows.dtype.kind not in "iuf" or not len(rows):
        raise DataError(f"`vectors` must be numbers (n, {d}), n at least 1, got shape {rows.shape}.")
    rows = rows.astype(np.float64)
    if not np.all(np.isfinite(rows)):
        raise DataError("`vectors` must be finite.")
    return rows


# Directions that a number of 64 bits stands for: normal coordinates from a public hash, the same for everybody.


Words = NDArray[np.uint64]
Directions = NDArray[np.float32]  # (n, d)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def directions_of(words: Words, d: int) -> Directions:
    """Normal coordinates (n, d), to about seven digits, of words (n,): SplitMix64 of word and place, then Box-Muller.

    Nothing about privacy rests on them: people draw words, and say which word they drew.

    >>> directions_of(np.array([2, 4], dtype=np.uint64), 3).shape
    (2, 3)
    """
    half = (d + 1) // 2
    with np.errstate(over="ignore"):
        places = np.arange(1, half + 1, dtype=np.uint64) * _GOLDEN
        bits = _mixed(_mixed(words)[:, None] + places)
    low = (bits & np.uint64(0xFFFFFFFF)).astype(np.float32)
    high = (bits >> np.uint64(32)).astype(np.float32)
    angle = high * np.float32(2.0 * np.pi / 2**32)
    radius = np.sqrt(np.float32(-2.0) * np.log((low + np.float32(0.5)) * np.float32(2.0**-32)))
    made = np.empty((len(words), 2 * half), dtype=np.float32)
    np.multiply(radius, np.cos(angle), out=made[:, :half])
    np.multiply(radius, np.sin(angle), out=made[:, half:])
    return made[:, :d]


def _mixed(words: Words) -> Words:
    """Steele, Lea, Flood (2014), Fast Splittable Pseudorandom Number Generators, OOPSLA: the mixer of SplitMix64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
