"""One named bound on the central epsilon: its value with the theorem behind it, or why it says nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from dovetail.core.certified import Bracket
from dovetail.core.checks import refuse


@dataclass(frozen=True)
class Bound:
    """Bound of one theorem for one question.

    Parameters
    ----------
    name : str
        Short and stable, such as "stronger clones" or "Bennett (k-RR)".
    epsilon : float or None, nats
        An upper bound on the central epsilon; None where the theorem says nothing.
    source : str
        The theorem.
    reason : str
        Why there is no value: out of regime, or not below the local epsilon.
    lower : float or None, nats
        Numerical lower end of the same theorem's own value, where it is a numerical bound.
    """

    name: str
    epsilon: float | None
    source: str
    reason: str = ""
    lower: float | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "lower"):
            value = getattr(self, name)
            if value is not None and not value >= 0.0:
                raise refuse(name, "at least 0", value)

    @classmethod
    def inapplicable(cls, name: str, reason: str, *, source: str) -> Bound:
        """The bound that does not apply."""
        return cls(name, None, source, reason)


class DominatingPair(Protocol):
    """A pair or law with n built in that dominates a shuffled collection.

    Laws: delta falls in epsilon; `epsilon(delta).upper` is a point at which the upper end of delta was evaluated and
    found at most `delta`; both ends of a bracket enclose this law's own value.
    """

    def delta(self, epsilon: float, /) -> Bracket:
        """Ends of delta(epsilon)."""
        ...

    def epsilon(self, delta: float, /) -> Bracket:
        """Ends of the smallest epsilon with delta(epsilon) <= delta."""
        ...


# Root bracketing by evaluated points only: for thresholds in epsilon, epsilon0 and n.


QUICK, MOST_TURNS = 20, 120
FIRST = 1e-4  # how exactly the first point is taken


def bracket_root(
    function: Callable[[float], float], guess: float, *, steepness: float, most: float, tolerance: float
) -> tuple[float, float]:
    """Points low < high with function(low) > 0 >= function(high), both evaluated, apart by at most `tolerance` high.

    `function` does not grow, up to rounding; function(0) > 0 >= function(most) is the caller's word, and those two
    points are returned unevaluated where nothing better is found. From `guess` Newton steps across the threshold,
    then secants through the last two points, kept off both ends; from turn 20 on growing steps and bisection.

    Parameters
    ----------
    guess, most : float, above 0
    steepness : float, above 0
        About -d function / d log x near the threshold; a wrong one costs time only.
    tolerance : float
        Relative width of the answer.
    """
    low, high = 0.0, most
    x, stride = first_point(guess, most), 0.0
    previous: tuple[float, float] | None = None
    for turn in range(MOST_TURNS):
        value = function(x)
        low, high = (x, high) if value > 0.0 else (low, x)
        if high - low <= tolerance * high or high < 1e-290:  # below, nothing is left to find
            break
        root = _secant(previous, (x, value))
        previous, here = (x, value), x
        if low == 0.0 or high == most:  # one side is still unseen
            if turn > 4:
                stride = min(2.0 * stride, 30.0)
            elif root > 0.0:
                stride = max(min(1.02 * abs(math.log(root / here)), 1.0), tolerance)
            else:
                stride = _first_stride(value, steepness, tolerance)
            x = here * math.exp(stride if value > 0.0 else -stride)
            x = x if x < most else 0.5 * (low + most)
        elif turn < QUICK and low < root < high:
            edge = 0.4 * tolerance * high
            x = min(max(root, low + edge), high - edge)
        else:
            x = math.sqrt(low) * math.sqrt(high) if high > 4.0 * low else 0.5 * (low + high)
        x = _coarse(x, tolerance)
    return low, high


def bisect(keeps: Callable[[float], bool], fails: float, kept: float, *, tolerance: float) -> float:
    """A point that was seen to keep, or `kept`, so near one that was not: relative to the larger one of the two."""
    while abs(kept - fails) > tolerance * max(kept, fails):
        middle = 0.5 * (fails + kept)
        fails, kept = (fails, middle) if keeps(middle) else (middle, kept)
    return kept


def largest_exceeding(
    lower: Callable[[float], float],
    delta: float,
    *,
    most: float,
    guess: float,
    steepness: float | None = None,
    tolerance: float = 1e-6,
) -> float:
    """The largest epsilon found at which lower(epsilon) > delta was evaluated; 0 when lower(0) <= delta.

    `most`, unevaluated, when `delta` is 0.
    """
    if delta == 0.0:
        return most
    value, slope = cache(lower), steepness or 2.0 * math.log(1.0 / delta) + 1.0
    start = first_point(guess, most)
    if is_zero(value, delta, start, steepness=slope, tolerance=tolerance):
        return 0.0
    return bracket_root(lambda e: log_ratio(value(e), delta), start, steepness=slope, most=most, tolerance=tolerance)[
        0
    ]


def is_zero(
    value: Callable[[float], float], delta: float, start: float, *, steepness: float, tolerance: float
) -> bool:
    """True if value(0) <= delta; asked at 0 only where the first two points of `bracket_root` leave it open."""
    short = log_ratio(value(start), delta)
    second = _coarse(start * math.exp(-_first_stride(short, steepness, tolerance)), tolerance)
    if short > 0.0 or value(second) > delta:
        return False
    return value(0.0) <= delta


def _first_stride(value: float, steepness: float, tolerance: float) -> float:
    """Distance, in the log, of the second point from the first."""
    return max(min(1.02 * abs(value) / steepness, 1.0), tolerance)


def first_point(guess: float, most: float) -> float:
    """First point at which `bracket_root` looks."""
    return _coarse(min(max(guess, 1e-300), most * (1.0 - 1e-12)), FIRST)


def _coarse(x: float, tolerance: float) -> float:
    """x less at most a 32nd of the tolerance: the same points, and so answers, where processors round differently."""
    part, exponent = math.frexp(x)
    steps = 64.0 / 2.0 ** math.floor(math.log2(tolerance))
    return math.ldexp(math.floor(part * steps) / steps, exponent)


def log_ratio(value: float, target: float) -> float:
    """log(value / target), finite also at value 0: what a search for a threshold in delta runs on."""
    return math.log(max(value, 1e-320)) - math.log(target)


def _secant(first: tuple[float, float] | None, second: tuple[float, float]) -> float:
    """Root of the line through two points; 0 where it does not fall."""
    if first is None or not (second[0] - first[0]) * (second[1] - first[1]) < 0.0:
        return 0.0
    return max(0.0, second[0] - second[1] * (second[0] - first[0]) / (second[1] - first[1]))
