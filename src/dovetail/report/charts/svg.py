"""Small charts as inline SVG: pure functions from numbers and ready-made labels to markup.

A chart knows nothing about privacy and rounds nothing: whoever calls it brings the words. Colours are
classes of the page's style sheet; every distinction is also one of shape or dash. Each chart is drawn
360 units wide, so that its letters stay readable on a phone.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

WIDTH = 360.0
LEFT = 10.0
RIGHT = WIDTH - 10.0
ROW = 38.0
LETTERS = 46  # of a row's label and its numbers together

Format = Callable[[float], str]


class Interval(NamedTuple):
    """One row of an interval chart: a dot with a whisker, and the truth where it is known."""

    label: str
    text: str
    value: float
    lower: float
    upper: float
    truth: float | None = None


class Change(NamedTuple):
    """One row of a change chart: a number before and after; `after` is None where nothing is known."""

    label: str
    text: str
    before: float
    after: float | None


class Curve(NamedTuple):
    """A named curve over n; `kind` is its class in the style sheet."""

    label: str
    kind: str
    x: Sequence[float]
    y: Sequence[float]


class Level(NamedTuple):
    """A named horizontal or vertical line."""

    label: str
    kind: str
    value: float


def interval_chart(
    rows: Sequence[Interval],
    *,
    title: str,
    description: str,
    tick: Format,
    reference: Level | None = None,
    names: tuple[str, str] = ("estimate with interval", "truth"),
) -> Markup:
    """Dots with whiskers, one row each; diamonds for the truth; a dashed line for a reference value."""
    known = [row.truth for row in rows if row.truth is not None]
    seen = [row.lower for row in rows] + [row.upper for row in rows] + [row.value for row in rows] + known
    axis = Axis.around(seen + ([reference.value] if reference else []))
    named = [("estimate", names[0])] + ([("truth", names[1])] if known else [])
    named += [(reference.kind, reference.label)] if reference else []
    top = legend_height(named)
    bottom = top + ROW * len(rows)
    parts = [legend(named), axis.grid(top, bottom, tick)]
    if reference:
        parts.append(line(reference.kind, axis(reference.value), top, axis(reference.value), bottom))
    for place, row in enumerate(rows):
        y = top + ROW * place + 26
        parts.append(_row_text(row.label, row.text, y - 12))
        parts.append(line("whisker", axis(row.lower), y, axis(row.upper), y))
        parts += [line("whisker", axis(end), y - 4, axis(end), y + 4) for end in (row.lower, row.upper)]
        parts.append(dot("estimate", axis(row.value), y))
        if row.truth is not None:
            parts.append(_diamond(axis(row.truth), y))
    return svg(bottom + 24, title, description, parts)


def change_chart(
    rows: Sequence[Change],
    *,
    title: str,
    description: str,
    tick: Format,
    names: tuple[str, str],
) -> Markup:
    """From an open dot (before) to a full one (after), one row each, from zero."""
    axis = Axis.around([0.0] + [row.before for row in rows] + [row.after for row in rows if row.after is not None])
    named = [("before", names[0]), ("estimate", names[1])]
    top = legend_height(named)
    bottom = top + ROW * len(rows)
    parts = [legend(named), axis.grid(top, bottom, tick)]
    for place, row in enumerate(rows):
        y = top + ROW * place + 26
        parts.append(_row_text(row.label, row.text, y - 12))
        if row.after is not None:
            parts.append(line("whisker", axis(row.after), y, axis(row.before), y))
        parts.append(dot("before", axis(row.before), y))
        if row.after is not None:
            parts.append(dot("estimate", axis(row.after), y))
    return svg(bottom + 24, title, description, parts)


def curve_chart(
    curves: Sequence[Curve],
    *,
    title: str,
    description: str,
    tick: Format,
    levels: Sequence[Level] = (),
    mark: Level | None = None,
) -> Markup:
    """Curves over a logarithmic axis, horizontal levels, and one marked place on the axis."""
    named = [(curve.kind, curve.label) for curve in curves] + [(level.kind, level.label) for level in levels]
    top = legend_height(named) + 16
    height, left, right = 170.0, 48.0, RIGHT - 6
    places = [x for curve in curves for x in curve.x] + ([mark.value] if mark else [])
    first, last = math.log10(min(places)), math.log10(max(places))
    values = [y for curve in curves for y in curve.y] + [level.value for level in levels]
    low, high, marks = nice(min(values), max(values))

    def across(x: float) -> float:
        return left + (right - left) * (math.log10(x) - first) / ((last - first) or 1.0)

    def up(y: float) -> float:
        return top + height * (high - y) / ((high - low) or 1.0)

    parts = [legend(named)]
    for value in marks:
        parts.append(line("grid", left, up(value), right, up(value)))
        parts.append(text("tick end", left - 6, up(value) + 4, tick(value)))
    for power in range(math.ceil(first - 1e-9), math.floor(last + 1e-9) + 1):
        if (power - math.ceil(first - 1e-9)) % (1 + int(last - first) // 6) == 0:
            parts.append(line("grid", across(10.0**power), top, across(10.0**power), top + height))
            parts.append(text("tick middle", across(10.0**power), top + height + 16, short(10.0**power)))
    parts.append(text("tick middle", (left + right) / 2, top + height + 32, "number of people (logarithmic)"))
    parts += [line(level.kind, left, up(level.value), right, up(level.value)) for level in levels]
    for curve in curves:
        points = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in zip(curve.x, curve.y, strict=True))
        parts.append(Markup('<polyline class="{}" points="{}"/>').format(curve.kind, points))
    if mark:
        x = across(mark.value)
        parts.append(line("mark", x, top, x, top + height))
        side = "end" if x > (left + right) / 2 else "start"
        parts.append(text(f"label {side}", x, top - 5, mark.label))
    return svg(top + height + 40, title, description, parts)


class Axis(NamedTuple):
    """A linear horizontal axis with round ticks."""

    low: float
    high: float
    marks: tuple[float, ...]

    @classmethod
    def around(cls, values: Sequence[float]) -> "Axis":
        """The smallest axis with round ends that shows all values."""
        return cls(*nice(min(values), max(values)))

    def __call__(self, value: float) -> float:
        return LEFT + 8 + (RIGHT - LEFT - 16) * (value - self.low) / (self.high - self.low)

    def grid(self, top: float, bottom: float, tick: Format) -> Markup:
        """Vertical lines with their labels below."""
        parts = []
        for value in self.marks:
            side = "start" if value == self.marks[0] else "end" if value == self.marks[-1] else "middle"
            shift = {"start": -8.0, "middle": 0.0, "end": 8.0}[side]
            parts.append(line("grid", self(value), top, self(value), bottom))
            parts.append(text(f"tick {side}", self(value) + shift, bottom + 16, tick(value)))
        return Markup("").join(parts)


def nice(low: float, high: float) -> tuple[float, float, tuple[float, ...]]:
    """Round ends and three to seven round ticks that hold [low, high].

    Examples
    --------
    >>> nice(0.0, 1.9)
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


def short(value: float) -> str:
    """A power of ten in few letters: 10, 1k, 100k, 1M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def printable(text: str) -> str:
    """The text with control characters made visible: they are not XML and may steer a terminal."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def svg(height: float, title: str, description: str, parts: Sequence[Markup]) -> Markup:
    """A picture as wide as all others."""
    return Markup(
        '<svg class="chart" role="img" viewBox="0 0 {:g} {:g}" aria-label="{}">'
        "<title>{}</title><desc>{}</desc>{}</svg>"
    ).format(WIDTH, height, printable(title), printable(title), printable(description), Markup("").join(parts))


def line(kind: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    """A straight line; `kind` is its class."""
    return Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(kind, x1, y1, x2, y2)


def text(kind: str, x: float, y: float, words: str) -> Markup:
    """Words at a place; `kind` is their class."""
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(kind, x, y, printable(words))


def _row_text(label: str, numbers: str, y: float) -> Markup:
    room = max(8, LETTERS - len(numbers))
    cut = label if len(label) <= room else label[: room - 1] + "…"
    return text("label start", LEFT, y, cut) + text("value end", RIGHT, y, numbers)


def dot(kind: str, x: float, y: float) -> Markup:
    """A dot; `kind` is its class."""
    return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="4.5"/>').format(kind, x, y)


def _diamond(x: float, y: float) -> Markup:
    return Markup('<path class="truth" d="M{:.1f} {:.1f}l5 5l-5 5l-5 -5z"/>').format(x, y - 5)


def legend_height(items: Sequence[tuple[str, str]]) -> float:
    """Room that a legend needs."""
    return 8.0 + 17.0 * len(items)


def legend(items: Sequence[tuple[str, str]]) -> Markup:
    """One line for each mark: its class and what it stands for."""
    parts = []
    for place, (kind, words) in enumerate(items):
        y = 10.0 + 17.0 * place
        if kind == "truth":
            parts.append(_diamond(LEFT + 10, y))
        elif kind in ("estimate", "before"):
            parts.append(dot(kind, LEFT + 10, y))
        else:
            parts.append(line(kind, LEFT, y, LEFT + 20, y))
        parts.append(text("legend start", LEFT + 28, y + 4, words))
    return Markup("").join(parts)
