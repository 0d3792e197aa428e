"""Axes of a chart: from numbers to places, with round ticks and their grid."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from dovetail.report.charts.svg import LEFT, RIGHT, svg_line, svg_text

TickFormat = Callable[[float], str]


class LinearAxis(NamedTuple):
    """A linear horizontal axis with round ticks."""

    low: float
    high: float
    marks: tuple[float, ...]

    @classmethod
    def around(cls, values: Sequence[float]) -> "LinearAxis":
        """The smallest axis with round ends that shows all values."""
        return cls(*round_ticks(min(values), max(values)))

    def __call__(self, value: float) -> float:
        return LEFT + 8 + (RIGHT - LEFT - 16) * (value - self.low) / (self.high - self.low)

    def grid(self, top: float, bottom: float, tick: TickFormat) -> Markup:
        """Vertical lines with their labels below."""
        parts = []
        for value in self.marks:
            side = "start" if value == self.marks[0] else "end" if value == self.marks[-1] else "middle"
            shift = {"start": -8.0, "middle": 0.0, "end": 8.0}[side]
            parts.append(svg_line("grid", self(value), top, self(value), bottom))
            parts.append(svg_text(f"tick {side}", self(value) + shift, bottom + 16, tick(value)))
        return Markup("").join(parts)


class VerticalAxis(NamedTuple):
    """A linear vertical axis with round ticks, from `top` down over `height`."""

    low: float
    high: float
    marks: tuple[float, ...]
    top: float
    height: float

    @classmethod
    def around(cls, values: Sequence[float], *, top: float, height: float) -> "VerticalAxis":
        """The smallest axis with round ends that shows all values."""
        return cls(*round_ticks(min(values), max(values)), top, height)

    def __call__(self, value: float) -> float:
        return self.top + self.height * (self.high - value) / (self.high - self.low)

    def grid(self, left: float, right: float, tick: TickFormat) -> Markup:
        """Horizontal lines with their labels at the left."""
        parts = []
        for value in self.marks:
            parts.append(svg_line("grid", left, self(value), right, self(value)))
            parts.append(svg_text("tick end", left - 6, self(value) + 4, tick(value)))
        return Markup("").join(parts)


class LogarithmicAxis(NamedTuple):
    """A logarithmic horizontal axis; `first` and `last` are powers of ten."""

    first: float
    last: float
    left: float
    right: float

    @classmethod
    def around(cls, values: Sequence[float], *, left: float, right: float) -> "LogarithmicAxis":
        """The axis from the smallest to the largest value."""
        return cls(math.log10(min(values)), math.log10(max(values)), left, right)

    def __call__(self, value: float) -> float:
        return self.left + (self.right - self.left) * (math.log10(value) - self.first) / (
            (self.last - self.first) or 1.0
        )

    def grid(self, top: float, bottom: float) -> Markup:
        """Vertical lines at powers of ten, few enough to be read, with their labels below."""
        parts, start = [], math.ceil(self.first - 1e-9)
        for power in range(start, math.floor(self.last + 1e-9) + 1, 1 + int(self.last - self.first) // 6):
            x = self(10.0**power)
            parts.append(svg_line("grid", x, top, x, bottom))
            parts.append(svg_text("tick middle", x, bottom + 16, format_power_of_ten(10.0**power)))
        return Markup("").join(parts)


def round_ticks(low: float, high: float) -> tuple[float, float, tuple[float, ...]]:
    """Round ends and three to seven round ticks that hold [low, high].

    Examples
    --------
    >>> round_ticks(0.0, 1.9)
    (0.0, 2.0, (0.0, 0.5, 1.0, 1.5, 2.0))
    """
    span, size = high - low, max(abs(low), abs(high))
    if span <= 1e-9 * size or span < 1e-100:  # one value, as far as the eye can tell
        span = size if size >= 1e-100 else 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if span / (power * factor) <= 5.1)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if first == last:
        first, last = first - 1, last + 1
    digits = max(0, 1 - math.floor(math.log10(step)))
    marks = tuple(round(place * step, digits) for place in range(first, last + 1))
    return marks[0], marks[-1], marks


def format_power_of_ten(value: float) -> str:
    """A power of ten in few letters: 10, 1k, 100k, 1M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
