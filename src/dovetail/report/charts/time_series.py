"""A series over time as inline SVG: estimates with their interval, gaps where there are none."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from dovetail.report.charts.axes import TickFormat, VerticalAxis, round_ticks
from dovetail.report.charts.svg import (
    RIGHT as EDGE,
)
from dovetail.report.charts.svg import (
    legend_height,
    svg_dot,
    svg_legend,
    svg_line,
    svg_path,
    svg_picture,
    svg_text,
)

MOST_SINGLE_POINTS = 30  # points that are drawn one by one
HEIGHT, LEFT, RIGHT = 190.0, 44.0, EDGE - 6


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
    across: str,
) -> Markup:
    """A line with its band (whiskers where there are few points), and a dashed line for the truth.

    Parameters
    ----------
    points : in order of x, at least one with a value
    names : what the estimate and the truth are called
    across : what the horizontal axis shows
    """
    known = [point for point in points if point.value is not None]
    truths = [point.truth for point in known if point.truth is not None]
    shown = [("curve-main", names[0])] + ([("curve-other", names[1])] if truths else [])
    top = legend_height(shown) + 6
    bottom = top + HEIGHT
    x = _TimeAxis(points[0].x, points[-1].x)
    y = VerticalAxis.around(
        [end for point in known for end in (point.lower, point.upper)] + truths, top=top, height=HEIGHT
    )
    parts = [svg_legend(shown), y.grid(LEFT, RIGHT, tick)]
    parts += [svg_text("tick middle", x(value), bottom + 16, f"{value:,g}") for value in _times(x.first, x.last)]
    parts.append(svg_text("tick middle", (LEFT + RIGHT) / 2, bottom + 32, across))
    for run in _runs(points):
        parts += _draw_run(run, x, y, many=len(points) > MOST_SINGLE_POINTS)
    return svg_picture(bottom + 40, title, description, parts)


class _TimeAxis(NamedTuple):
    """A linear horizontal axis over time; a single time lies in the middle."""

    first: float
    last: float

    def __call__(self, time: float) -> float:
        share = (time - self.first) / (self.last - self.first) if self.last > self.first else 0.5
        return LEFT + 6 + (RIGHT - LEFT - 12) * share


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
