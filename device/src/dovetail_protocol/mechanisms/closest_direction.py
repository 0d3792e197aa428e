"""A vector, of which a random direction is reported that is likelier the closest one."""

from dataclasses import dataclass
from math import cos, log, pi, sin, sqrt
from typing import Any, ClassVar, final

from dovetail_protocol.checks import positive, privacy_budget, refuse, whole
from dovetail_protocol.exact_thresholds import Words, krr_masses
from dovetail_protocol.mechanism import Mechanism, exactly, numbers, pack
from dovetail_protocol.mechanisms.krr import respond

MOST_COORDINATES = 1 << 16
MOST_DRAWN = 1 << 24  # normal numbers that a device makes for one report, each in about half a microsecond
_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


@final
@dataclass(frozen=True)
class ClosestDirection(Mechanism):
    """The device's side of `dovetail.randomize.vectors.closest_direction`: one of 2 m random directions.

    Parameters
    ----------
    d : int, 1 to 65,536
        Coordinates.
    radius : float, above 0
        Vectors longer than that in Euclidean norm are shortened to it.
    epsilon : float, above 0 and at most 700, nats
    axes : int, 1 to 4,096
        m, pairs of opposite directions that are drawn; m (d + 1) at most 2^24.

    Notes
    -----
    A report is an int of 64 bits: a drawn number, whose lowest bit says which of its two directions is meant.
    Whatever the vector is, one of 2 m drawn directions is held, and k-ary response, by whole numbers, picks the
    report. Floating-point numbers decide which one is held, nothing else: the promise does not rest on them. The
    analyst computes the same directions to seven digits, so that means are right to as many.

    Examples
    --------
    >>> noise = ClosestDirection(d=3, radius=1.0, epsilon=2.0, axes=4)
    >>> noise.report_bytes, noise.decode(noise.encode(7))
    (8, 7)
    """

    d: int
    radius: float
    epsilon: float
    axes: int
    name: ClassVar[str] = "closest_direction"

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole("d", self.d, least=1, most=MOST_COORDINATES))
        object.__setattr__(self, "radius", positive("radius", self.radius))
        object.__setattr__(self, "epsilon", privacy_budget("epsilon", self.epsilon))
        object.__setattr__(self, "axes", whole("axes", self.axes, least=1, most=4096))
        if self.axes * (self.d + 1) > MOST_DRAWN:
            most = MOST_DRAWN // (self.d + 1)
            raise refuse("axes", f"at most {most:,} for {self.d:,} coordinates on a device", self.axes)
        _ = self.masses  # refused if the budget is too small

    @property
    def masses(self) -> tuple[int, int]:
        """(keep, lie) of the response that picks one of the 2 m directions."""
        return krr_masses(2 * self.axes, self.epsilon)

    @property
    def report_bytes(self) -> int:
        return 8

    def check(self, value: Any) -> tuple[float, ...]:
        return numbers(value, self.d)

    def randomize(self, value: Any, words: Words) -> int:
        lifted = self.lifted(self.check(value))
        drawn = [words.word() & ~1 for _ in range(self.axes)]
        symbol = respond(closest(drawn, lifted), 2 * self.axes, masses=self.masses, words=words)
        return drawn[symbol >> 1] | symbol & 1

    def lifted(self, vector: tuple[float, ...]) -> list[float]:
        """The vector over the radius, shortened to length 1, and one coordinate more that makes it as long."""
        peak = max(map(abs, vector)) or 1.0
        length = sqrt(sum((x / peak) ** 2 for x in vector)) or 1.0
        scale = min(peak / self.radius, 1.0 / length)
        short = [x / peak * scale for x in vector]
        return [*short, sqrt(max(0.0, 1.0 - sum(x * x for x in short)))]

    def encode(self, report: Any) -> bytes:
        return pack(report, 1 << 64)

    def decode(self, data: bytes) -> int:
        return int.from_bytes(exactly(data, 8))


def closest(drawn: list[int], lifted: list[float]) -> int:
    """Twice the place of the number whose direction is closest to this one, plus 1 where the opposite one is."""
    inner = [_inner(word, lifted) for word in drawn]
    place = max(range(len(drawn)), key=lambda place: abs(inner[place]))
    return 2 * place + (inner[place] < 0.0)


def _inner(word: int, lifted: list[float]) -> float:
    """The inner product with normal coordinates of a word: SplitMix64 of word and place, then Box-Muller."""
    half, total, seed = (len(lifted) + 1) // 2, 0.0, _mixed(word)
    for place in range(half):
        bits = _mixed((seed + (place + 1) * _GOLDEN) & _MASK)
        angle = (bits >> 32) * (2.0 * pi / 4294967296.0)
        along = cos(angle) * lifted[place]
        if half + place < len(lifted):
            along += sin(angle) * lifted[half + place]
        total += along * sqrt(-2.0 * log(((bits & 0xFFFFFFFF) + 0.5) / 4294967296.0))
    return total


def _mixed(word: int) -> int:
    """Steele, Lea, Flood (2014), Fast Splittable Pseudorandom Number Generators, OOPSLA: the mixer of SplitMix64."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _MASK
    return word ^ word >> 31
