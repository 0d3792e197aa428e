"""The mean of people's vectors, each shortened to a public length."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray

from dovetail.core.checks import positive, refuse, whole
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question, Values
from dovetail.randomize.sampling.vector_randomizer import (
    PIECE,
    VectorRandomizer,
    relative_lengths,
    shortened,
)
from dovetail_protocol.asked import Symbol

NO_TRUTH = Missing("how many vectors were shortened, and how far off the mean is, would tell of private values")
FINE = 42  # bits behind the point in which a rehearsal adds true coordinates
BAND = 10  # bits of length of the vectors that it adds in one unit
SHORTEST, LONGEST = 1e-100, 1e100  # between them squares of lengths are doubles
FURTHEST = 2.0**1000  # lengths of clip beyond which a coordinate counts as that


def check_clip(clip: float) -> float:
    """`clip`, or ParameterError where squares of such lengths are no doubles."""
    if not SHORTEST <= positive("clip", clip) <= LONGEST:
        raise refuse("clip", f"from {SHORTEST:g} to {LONGEST:g}", clip)
    return clip


@final
@dataclass(frozen=True)
class Vector(Question):
    """The mean of vectors, such as gradients, profiles and embeddings, for exactly these people.

    Each person shortens her vector to Euclidean length `clip`: what is learned is the mean of shortened vectors.

    Parameters
    ----------
    dimension : int, 1 to 65,536
        Numbers of each vector.
    clip : float, from 1e-100 to 1e100
        Chosen before vectors are seen.

    Raises
    ------
    ParameterError
        For another dimension or length.

    Examples
    --------
    >>> asked = Vector(3, 1.0)
    >>> asked.labels, asked.truth(np.array([[0.0, 0.5, 0.0], [0.0, 0.0, 4.0]]))
    (['coordinate 0', 'coordinate 1', 'coordinate 2'], [0.0, 0.25, 0.5, 1, 1.5])

    Source
    ------
    docs/theory/several-questions.md.
    """

    dimension: int
    clip: float
    name: ClassVar[str] = "vector"
    label: ClassVar[str] = "the mean of vectors"
    measure: ClassVar[str] = "mean"
    needs = "vector"
    hidden: ClassVar[Missing | None] = Missing(
        "answers are vectors of numbers, of which no list of guesses can be made"
    )
    of_numbers: ClassVar[bool] = False
    of_arrays: ClassVar[bool] = True
    drowns: ClassVar[bool] = False  # means of gradients add over releases

    @dataclass
    class Settings:
        """Of a configuration.

        Parameters
        ----------
        dimension
            How many numbers a vector has.
        clip
            Euclidean length to which longer vectors are shortened.
        """

        dimension: Annotated[int, Ge(1), Le(65_536)]
        clip: Annotated[float, Gt(0)]

    def __post_init__(self) -> None:
        whole("dimension", self.dimension, least=1, most=1 << 16)
        check_clip(self.clip)

    @classmethod
    def of(cls, data: Any, categories: Sequence[str] | None, **settings: Any) -> Self:
        return cls(**settings)

    @property
    def column(self) -> dict[str, Any]:
        return {}

    @property
    def domain(self) -> dict[str, Any]:
        return {"d": self.dimension, "radius": self.clip}

    @property
    def labels(self) -> list[str]:
        return [f"coordinate {place}" for place in range(self.dimension)]

    @property
    def span(self) -> tuple[float, float] | None:
        return -math.inf, math.inf

    def device_symbols(self, names: Sequence[str], k: int | None) -> tuple[Symbol, ...] | None:
        return () if k is None else None

    def learned(self, noise: Noise, tally: Tally, people: People) -> Estimate:
        return noise.mean(tally, people)

    def beside(self, noise: Noise, found: Estimate, truth: Sequence[float] | None) -> Mapping[str, Any]:
        """Errors of the whole mean in Euclidean length, and of one coordinate; in a rehearsal the truth.

        `error` and `coordinate_error` bound root mean squares of what randomizing brings in, `error95` its length
        with probability 95 %, `bias` the length of the bias. `off` is the length by which this rehearsal's estimate
        is off the mean of shortened vectors, `clipping` that by which shortening moved the mean.
        """
        made, n = _of_vectors(noise), int(found.n)
        told: dict[str, Any] = dict.fromkeys(("off", "clipped", "clipping"), NO_TRUTH)
        if truth is not None:
            *mean, clipped, clipping = truth
            told = {"off": math.dist(found.value, mean), "clipped": clipped, "clipping": clipping}
        return {
            "vector": {
                "error": made.error(n), "coordinate_error": made.coordinate_error(n), "error95": made.error95(n),
                "bias": made.bias, "length": float(np.linalg.norm(found.value)), **told,
            }
        }  # fmt: skip

    def notes(self, beside: Mapping[str, Any], *, n: int, mode: str) -> tuple[str, ...]:
        lines = (
            f"The length to which vectors are shortened, {self.clip:g}, was chosen before they were seen.",
            "What is estimated is the mean of shortened vectors: long ones pull less than they would.",
        )
        if mode == "release":
            return (
                *lines,
                "How many vectors were shortened is not told: that would be an exact count of private values.",
            )
        clipped, moved = beside["vector"]["clipped"], beside["vector"]["clipping"]
        return (*lines, (
            f"In this rehearsal {clipped:,} of {n:,} vectors ({100 * clipped / n:.3g}%) were longer than that and "
            f"were shortened, which moved their mean by {moved:.3g} in Euclidean length."
        ))  # fmt: skip

    def error(self, noise: Noise, people: People) -> float:
        """Euclidean, of the whole mean."""
        return noise.error(people)

    def error95(self, noise: Noise, people: People) -> float | None:
        return _of_vectors(noise).error95(people.n)

    def planned_beside(self, noise: Noise, people: People) -> Mapping[str, float]:
        made = _of_vectors(noise)
        return {"coordinate_error": made.coordinate_error(people.n), "bias": made.bias}

    def noise_ratio(self, noise: Noise, people: People) -> float:
        """Of the whole mean, in Euclidean length, over `clip`, which no mean is longer than."""
        return _of_vectors(noise).error95(people.n) / self.clip

    def truth(self, values: Values) -> list[float]:
        return self.recalled(self.known(values))

    def known(self, values: Values) -> Counter[str]:
        """Sums of shortened coordinates, and of what shortening took off, in fixed units: in any order the same."""
        count, shift = max(1, PIECE // self.dimension), -math.frexp(self.clip)[1]
        held, taken = _nothing(self.dimension), _nothing(self.dimension)
        clipped = 0
        for start in range(0, len(values), count):
            rows = values[start : start + count]
            short = self.clip * shortened(rows, self.clip)
            long = relative_lengths(rows, self.clip) > 1.0
            clipped += int(np.count_nonzero(long))
            held += _added(short, shift)
            taken += _added(rows[long] - short[long], shift)
        found = Counter({"n": len(values), "clipped": clipped})
        found.update({f"held {place}": int(total) for place, total in enumerate(held)})
        found.update({f"taken {place}": int(total) for place, total in enumerate(taken)})
        return found

    def recalled(self, counted: Mapping[str, int]) -> list[float]:
        n, shift = counted["n"], math.frexp(self.clip)[1]

        def mean(name: str) -> list[float]:
            totals = (counted.get(f"{name} {place}", 0) for place in range(self.dimension))
            return [math.ldexp(float(Fraction(total, n << FINE)), shift) for total in totals]

        return [*mean("held"), counted.get("clipped", 0), math.hypot(*mean("taken"))]

    def described(self, private: str) -> dict[str, Any]:
        return {"kind": "vector", "dimension": self.dimension, "clip": self.clip}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(3, 1.0),)


def _of_vectors(noise: Noise) -> VectorRandomizer:
    """The randomizer of each device, which tells the errors of a whole vector."""
    made: object = noise.randomizer
    assert isinstance(made, VectorRandomizer)
    return made


def _nothing(d: int) -> NDArray[np.object_]:
    return np.zeros(d, dtype=object)


def _added(rows: NDArray[np.float64], shift: int) -> NDArray[np.object_]:
    """The sum (d,) of rows times 2^shift, in units of 2^-42: each is rounded by its own size, so that sums add."""
    total = _nothing(rows.shape[1])
    with np.errstate(all="ignore"):
        scaled = np.clip(np.ldexp(rows, shift), -FURTHEST, FURTHEST)
    bands = np.maximum(0, -(-np.frexp(scaled)[1] // BAND))
    for band in np.unique(bands).tolist():
        here = np.where(bands == band, np.ldexp(scaled, FINE - BAND * band), 0.0)
        total += np.rint(here).astype(np.int64).sum(axis=0).astype(object) << (BAND * band)
    return total
