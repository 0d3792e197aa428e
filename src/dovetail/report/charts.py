"""Charts as inline SVG: curves, rows of estimates with their intervals, series over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import wrap
from typing import NamedTuple

from markupsafe import Markup

# Elements of inline SVG: lines, dots, words, a legend, and the picture that holds them.
#
# Colours are classes of the page's style sheet; every distinction is also one of shape or dash. Each picture is drawn
# 360 units wide, so that its letters stay readable on a phone.


WIDTH = 360.0
LEFT = 10.0
RIGHT = WIDTH - 10.0
ROW = 38.0
LETTERS = 46  # of a row's label and its numbers together


def svg_picture(height: float, title: str, description: str, parts: Sequence[Markup]) -> Markup:
    """A picture as wide as all others."""
    return Markup(
        '<svg class="chart" role="img" viewBox="0 0 {:g} {:g}" aria-label="{}">'
        "<title>{}</title><desc>{}</desc>{}</svg>"
    ).format(WIDTH, height, printable(title), printable(title), printable(description), Markup("").join(parts))


def svg_line(kind: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    """A straight line; `kind` is its class."""
    return Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(kind, x1, y1, x2, y2)


def svg_text(kind: str, x: float, y: float, words: str) -> Markup:
    """Words at a place; `kind` is their class."""
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(kind, x, y, printable(words))


def svg_row_text(label: str, numbers: str, y: float) -> Markup:
    """A row's label at the left and its numbers at the right; a label that is too long is cut."""
    room = max(8, LETTERS - len(numbers))
    cut = label if len(label) <= room else label[: room - 1] + "…"
    return svg_text("label start", LEFT, y, cut) + svg_text("value end", RIGHT, y, numbers)


def svg_dot(kind: str, x: float, y: float) -> Markup:
    """A dot; `kind` is its class."""
    return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="4.5"/>').format(kind, x, y)


def svg_diamond(x: float, y: float) -> Markup:
    """The mark of the truth."""
    return Markup('<path class="truth" d="M{:.1f} {:.1f}l5 5l-5 5l-5 -5z"/>').format(x, y - 5)


def svg_path(kind: str, style: str, points: Sequence[tuple[float, float]]) -> Markup:
    """A polyline or a polygon; `style` is its class."""
    where = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<{0} class="{1}" points="{2}"/>').format(Markup(kind), style, where)


def legend_height(items: Sequence[tuple[str, str]]) -> float:
    """Room that a legend needs."""
    return 8.0 + 17.0 * len(items)


def svg_legend(items: Sequence[tuple[str, str]]) -> Markup:
    """One line for each mark: its class and what it stands for."""
    parts = []
    for place, (kind, words) in enumerate(items):
        y = 10.0 + 17.0 * place
        if kind == "truth":
            parts.append(svg_diamond(LEFT + 10, y))
        elif kind in ("estimate", "before"):
            parts.append(svg_dot(kind, LEFT + 10, y))
        else:
            parts.append(svg_line(kind, LEFT, y, LEFT + 20, y))
        parts.append(svg_text("legend start", LEFT + 28, y + 4, words))
    return Markup("").join(parts)


def printable(text: str) -> str:
    """The text with control characters made visible: they are not XML and may steer a terminal."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


# Axes of a chart: from numbers to places, with round ticks and their grid.


TickFormat = Callable[[float], str]


class LinearAxis(NamedTuple):
    """A linear horizontal axis with round ticks."""

    low: float
    high: float
    marks: tuple[float, ...]

    @classmethod
    def around(cls, values: Sequence[float]) -> LinearAxis:
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
    def around(cls, values: Sequence[float], *, top: float, height: float) -> VerticalAxis:
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
    def around(cls, values: Sequence[float], *, left: float, right: float) -> LogarithmicAxis:
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


# A value that a chart is read against.


class ReferenceLine(NamedTuple):
    """A named horizontal or vertical line."""

    label: str
    kind: str
    value: float


# Curves over the number of people, or another logarithmic axis, as inline SVG, with levels and one mark.


CURVE_HEIGHT, CURVE_LEFT, CURVE_RIGHT = 170.0, 48.0, RIGHT - 6


class NamedCurve(NamedTuple):
    """A named curve over n; `kind` is its class in the style sheet."""

    label: str
    kind: str
    x: Sequence[float]
    y: Sequence[float]


def curve_chart(
    curves: Sequence[NamedCurve],
    *,
    title: str,
    description: str,
    tick: TickFormat,
    levels: Sequence[ReferenceLine] = (),
    mark: ReferenceLine | None = None,
    axis: str = "number of people (logarithmic)",
) -> Markup:
    """Curves over a logarithmic axis, horizontal levels, and one marked place on the axis."""
    named = [(curve.kind, curve.label) for curve in curves] + [(level.kind, level.label) for level in levels]
    top = legend_height(named) + 16
    bottom = top + CURVE_HEIGHT
    places = [x for curve in curves for x in curve.x] + ([mark.value] if mark else [])
    values = [y for curve in curves for y in curve.y] + [level.value for level in levels]
    across = LogarithmicAxis.around(places, left=CURVE_LEFT, right=CURVE_RIGHT)
    up = VerticalAxis.around(values, top=top, height=CURVE_HEIGHT)
    parts = [svg_legend(named), up.grid(CURVE_LEFT, CURVE_RIGHT, tick), across.grid(top, bottom)]
    parts.append(svg_text("tick middle", (CURVE_LEFT + CURVE_RIGHT) / 2, bottom + 32, axis))
    parts += [svg_line(level.kind, CURVE_LEFT, up(level.value), CURVE_RIGHT, up(level.value)) for level in levels]
    parts += drawn_curves(curves, mark, across, up, ends=(top, bottom))
    return svg_picture(bottom + 40, title, description, parts)


def drawn_curves(
    curves: Sequence[NamedCurve],
    mark: ReferenceLine | None,
    across: LogarithmicAxis | Callable[[float], float],
    up: VerticalAxis,
    *,
    ends: tuple[float, float],
) -> list[Markup]:
    """The curves, and a vertical line between the `ends` at the marked place."""
    parts = [
        svg_path("polyline", curve.kind, [(across(x), up(y)) for x, y in zip(curve.x, curve.y, strict=True)])
        for curve in curves
    ]
    if mark:
        x = across(mark.value)
        side = "end" if x > (CURVE_LEFT + CURVE_RIGHT) / 2 else "start"
        parts += [svg_line("mark", x, ends[0], x, ends[1]), svg_text(f"label {side}", x, ends[0] - 5, mark.label)]
    return parts


# Curves over a linear axis, as inline SVG, with one marked place on the axis.


def line_chart(
    curves: Sequence[NamedCurve],
    *,
    title: str,
    description: str,
    axis: str,
    tick: TickFormat,
    across: TickFormat,
    mark: ReferenceLine | None = None,
) -> Markup:
    """Curves from zero upward over a linear axis that is named `axis`; `tick` writes heights, `across` places."""
    named = [(curve.kind, curve.label) for curve in curves if curve.label]
    top = legend_height(named) + (16 if mark else 0)
    bottom = top + CURVE_HEIGHT
    places = [x for curve in curves for x in curve.x]
    low, high, marks = round_ticks(min(places), max(places))
    up = VerticalAxis.around([0.0, *(y for curve in curves for y in curve.y)], top=top, height=CURVE_HEIGHT)

    def place(x: float) -> float:
        return CURVE_LEFT + (CURVE_RIGHT - CURVE_LEFT) * (x - low) / (high - low)

    parts = [svg_legend(named), up.grid(CURVE_LEFT, CURVE_RIGHT, tick)]
    for value in marks:
        side = "end" if value == marks[-1] else "middle"
        parts.append(svg_line("grid", place(value), top, place(value), bottom))
        parts.append(svg_text(f"tick {side}", place(value), bottom + 16, across(value)))
    parts.append(svg_text("tick middle", (CURVE_LEFT + CURVE_RIGHT) / 2, bottom + 32, axis))
    parts += drawn_curves(curves, mark, place, up, ends=(top, bottom))
    return svg_picture(bottom + 40, title, description, parts)


# Charts with one row for each number: an estimate with its interval, or a number before and after.
#
# A chart knows nothing about privacy and rounds nothing: whoever calls it brings the words.


class IntervalRow(NamedTuple):
    """One row of an interval chart: a dot with a whisker, and the truth where it is known."""

    label: str
    text: str
    value: float
    lower: float
    upper: float
    truth: float | None = None

    def within_shares(self) -> IntervalRow:
        """The row of a share, which lies between 0 and 1: a whisker that reaches further is drawn that far only."""
        return self._replace(lower=max(self.lower, min(self.value, 0.0)), upper=min(self.upper, max(self.value, 1.0)))


CUT = "drawn from 0% to 100% only"  # in the title of a chart whose whiskers reach further


def chance_chart(rows: Sequence[tuple[str, str, float]], *, title: str, description: str, tick: TickFormat) -> Markup:
    """A bar from 0 to 1 for each chance: its label, its number in words, and the number."""
    axis, bottom = LinearAxis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0)), 8 + ROW * len(rows)
    parts = [axis.grid(8, bottom, tick)]
    for place, (label, text, chance) in enumerate(rows):
        y = 8 + ROW * place + 26
        parts.append(svg_row_text(label, text, y - 10))
        parts.append(svg_line("bar", axis(0.0), y, axis(chance), y))
    return svg_picture(bottom + 24, title, description, parts)


HEAT_LEFT = 120.0  # where the squares of a heat map begin
MOST_LETTERS = 60  # of a line below it


def heat_chart(
    rows: Sequence[str],
    heat: Mapping[tuple[int, int], float],
    *,
    columns: Sequence[str] = (),
    title: str,
    description: str,
) -> Markup:
    """A square for each row and column of `heat`, the darker the nearer it is to 1; a table has the numbers.

    Without `columns` of their own those are the rows again, by number.
    """
    side = min(26.0, (RIGHT - HEAT_LEFT) / len(columns or rows))
    bottom = 8 + side * len(rows)
    named = [f"{place} {label}" for place, label in enumerate(columns, 1)]
    parts = [
        svg_text("label start", LEFT, 8 + side * (row + 0.5) + 4, name if len(name) <= 16 else f"{name[:15]}…")
        for row, name in enumerate(rows if columns else [f"{place} {label}" for place, label in enumerate(rows, 1)])
    ]
    for column in range(len(columns or rows)):
        parts.append(svg_text("tick middle", HEAT_LEFT + side * (column + 0.5), bottom + 14, str(column + 1)))
    for (row, column), dark in heat.items():
        parts.append(
            Markup(
                '<rect class="heat" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill-opacity="{:.3f}"/>'
            ).format(HEAT_LEFT + side * column, 8 + side * row, side, side, min(1.0, max(0.0, dark)))
        )
    told = wrap(" · ".join(named), MOST_LETTERS)
    parts += [svg_text("tick start", LEFT, bottom + 32 + 14 * place, line) for place, line in enumerate(told)]
    return svg_picture(bottom + 22 + (8 + 14 * len(told) if told else 0), title, description, parts)


class ChangeRow(NamedTuple):
    """One row of a change chart: a number before and after; `after` is None where nothing is known."""

    label: str
    text: str
    before: float
    after: float | None


def interval_chart(
    rows: Sequence[IntervalRow],
    *,
    title: str,
    description: str,
    tick: TickFormat,
    reference: ReferenceLine | None = None,
    names: tuple[str, str] = ("estimate with interval", "truth"),
    least: float | None = None,
) -> Markup:
    """Dots with whiskers, one row each; diamonds for the truth; a dashed line for a reference value.

    `least` is a number that the axis shows in any case.
    """
    known = [row.truth for row in rows if row.truth is not None]
    seen = [row.lower for row in rows] + [row.upper for row in rows] + [row.value for row in rows] + known
    seen += [] if least is None else [least]
    axis = LinearAxis.around(seen + ([reference.value] if reference else []))
    named = [("estimate", names[0])] + ([("truth", names[1])] if known else [])
    named += [(reference.kind, reference.label)] if reference else []
    top = legend_height(named)
    bottom = top + ROW * len(rows)
    parts = [svg_legend(named), axis.grid(top, bottom, tick)]
    if reference:
        parts.append(svg_line(reference.kind, axis(reference.value), top, axis(reference.value), bottom))
    for place, row in enumerate(rows):
        y = top + ROW * place + 26
        parts.append(svg_row_text(row.label, row.text, y - 12))
        parts.append(svg_line("whisker", axis(row.lower), y, axis(row.upper), y))
        parts += [svg_line("whisker", axis(end), y - 4, axis(end), y + 4) for end in (row.lower, row.upper)]
        parts.append(svg_dot("estimate", axis(row.value), y))
        if row.truth is not None:
            parts.append(svg_diamond(axis(row.truth), y))
    return svg_picture(bottom + 24, title, description, parts)


def change_chart(
    rows: Sequence[ChangeRow],
    *,
    title: str,
    description: str,
    tick: TickFormat,
    names: tuple[str, str],
) -> Markup:
    """From an open dot (before) to a full one (after), one row each, from zero."""
    axis = LinearAxis.around(
        [0.0] + [row.before for row in rows] + [row.after for row in rows if row.after is not None]
    )
    named = [("before", names[0]), ("estimate", names[1])]
    top = legend_height(named)
    bottom = top + ROW * len(rows)
    parts = [svg_legend(named), axis.grid(top, bottom, tick)]
    for place, row in enumerate(rows):
        y = top + ROW * place + 26
        parts.append(svg_row_text(row.label, row.text, y - 12))
        if row.after is not None:
            parts.append(svg_line("whisker", axis(row.after), y, axis(row.before), y))
        parts.append(svg_dot("before", axis(row.before), y))
        if row.after is not None:
            parts.append(svg_dot("estimate", axis(row.after), y))
    return svg_picture(bottom + 24, title, description, parts)


# A series over time as inline SVG: estimates with their interval, gaps where there are none.


MOST_SINGLE_POINTS = 30  # points that are drawn one by one
SERIES_HEIGHT, SERIES_LEFT, SERIES_RIGHT = 190.0, 44.0, RIGHT - 6


class TimePoint(NamedTuple):
    """An estimate at a time; `value` is None where there is none."""

    x: float
    value: float | None
    lower: float = 0.0
    upper: float = 0.0
    truth: float | None = None


def time_series_chart(
    points: Sequence[TimePoint],
    *,
    title: str,
    description: str,
    tick: TickFormat,
    names: tuple[str, str],
) -> Markup:
    """A line with its band (whiskers where there are few points), and a dashed line for the truth.

    Parameters
    ----------
    points : in order of x, at least one with a value
    names : what the estimate and the truth are called
    """
    known = [point for point in points if point.value is not None]
    truths = [point.truth for point in known if point.truth is not None]
    shown = [("curve-main", names[0])] + ([("curve-other", names[1])] if truths else [])
    top = legend_height(shown) + 6
    bottom = top + SERIES_HEIGHT
    x = _TimeAxis(points[0].x, points[-1].x)
    y = VerticalAxis.around(
        [end for point in known for end in (point.lower, point.upper)] + truths, top=top, height=SERIES_HEIGHT
    )
    parts = [svg_legend(shown), y.grid(SERIES_LEFT, SERIES_RIGHT, tick)]
    parts += [svg_text("tick middle", x(value), bottom + 16, f"{value:,g}") for value in _times(x.first, x.last)]
    parts.append(svg_text("tick middle", (SERIES_LEFT + SERIES_RIGHT) / 2, bottom + 32, "round"))
    for run in _runs(points):
        parts += _draw_run(run, x, y, many=len(points) > MOST_SINGLE_POINTS)
    return svg_picture(bottom + 40, title, description, parts)


class _TimeAxis(NamedTuple):
    """A linear horizontal axis over time; a single time lies in the middle."""

    first: float
    last: float

    def __call__(self, time: float) -> float:
        share = (time - self.first) / (self.last - self.first) if self.last > self.first else 0.5
        return SERIES_LEFT + 6 + (SERIES_RIGHT - SERIES_LEFT - 12) * share


def _draw_run(run: Sequence[TimePoint], x: _TimeAxis, y: VerticalAxis, *, many: bool) -> Iterator[Markup]:
    """Points without a gap: a band where there are many, otherwise whiskers; then the estimates and the truth."""
    if many:
        edge = [(x(point.x), y(point.upper)) for point in run]
        yield svg_path("polygon", "band", edge + [(x(point.x), y(point.lower)) for point in reversed(run)])
    else:
        yield from (svg_line("whisker", x(point.x), y(point.lower), x(point.x), y(point.upper)) for point in run)
    estimates = [(x(point.x), y(point.value or 0.0)) for point in run]
    yield svg_path("polyline", "curve-main", estimates)
    if not many or len(run) == 1:
        yield from (svg_dot("estimate", *place) for place in estimates)
    truth = [(x(point.x), y(point.truth)) for point in run if point.truth is not None]
    if truth:
        yield svg_path("polyline", "curve-other", truth)


def _runs(points: Sequence[TimePoint]) -> list[list[TimePoint]]:
    """Stretches without a gap."""
    return [list(run) for known, run in groupby(points, lambda point: point.value is not None) if known]


def _times(first: float, last: float) -> list[float]:
    """Round stamps inside the axis, few enough to be read; whole ones where both ends are, as of months."""
    if last <= first:
        return [first]
    whole = float(first).is_integer() and float(last).is_integer()
    marks = [mark for mark in round_ticks(first, last)[2] if float(mark).is_integer() or not whole]
    inside = [mark for mark in marks if first <= mark <= last]
    return inside if len(inside) >= 2 else [first, last]
