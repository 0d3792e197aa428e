"""A series over time as inline SVG: estimates with their interval, gaps where there are none."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from dovetail.report.charts.svg import RIGHT, Format, dot, legend, legend_height, line, nice, svg, text

FEW = 30  # points that are drawn one by one
HEIGHT, LEFT = 190.0, 44.0


class Point(NamedTuple):
    """An estimate at a time; `value` is None where there is none."""

    x: float
    value: float | None
    lower: float = 0.0
    upper: float = 0.0
    truth: float | None = None


def series_chart(
    points: Sequence[Point],
    *,
    title: str,
    description: str,
    tick: Format,
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
    low, high, marks = nice(
        min([point.lower for point in known] + truths), max([point.upper for point in known] + truths)
    )
    shown = [("curve-main", names[0])] + ([("curve-other", names[1])] if truths else [])
    top, right = legend_height(shown) + 6, RIGHT - 6
    first, last = points[0].x, points[-1].x

    def right_of(x: float) -> float:
        return LEFT + 6 + (right - LEFT - 12) * ((x - first) / (last - first) if last > first else 0.5)

    def above(y: float) -> float:
        return top + HEIGHT * (high - y) / (high - low)

    parts = [legend(shown)]
    for value in marks:
        parts.append(line("grid", LEFT, above(value), right, above(value)))
        parts.append(text("tick end", LEFT - 6, above(value) + 4, tick(value)))
    for value in _times(first, last):
        parts.append(text("tick middle", right_of(value), top + HEIGHT + 16, f"{value:,g}"))
    parts.append(text("tick middle", (LEFT + right) / 2, top + HEIGHT + 32, across))
    for run in _runs(points):
        where = [right_of(point.x) for point in run]
        if len(points) > FEW:
            edge = [*zip(where, (above(point.upper) for point in run), strict=True)]
            edge += reversed([*zip(where, (above(point.lower) for point in run), strict=True)])
            parts.append(_path("polygon", "band", edge))
        else:
            for x, point in zip(where, run, strict=True):
                parts.append(line("whisker", x, above(point.lower), x, above(point.upper)))
        parts.append(
            _path("polyline", "curve-main", [*zip(where, (above(p.value or 0.0) for p in run), strict=True)])
        )
        if len(points) <= FEW or len(run) == 1:
            parts += [dot("estimate", x, above(p.value or 0.0)) for x, p in zip(where, run, strict=True)]
        known_truth = [(x, above(p.truth)) for x, p in zip(where, run, strict=True) if p.truth is not None]
        if known_truth:
            parts.append(_path("polyline", "curve-other", known_truth))
    return svg(top + HEIGHT + 40, title, description, parts)


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """Stretches without a gap."""
    return [list(run) for known, run in groupby(points, lambda point: point.value is not None) if known]


def _times(first: float, last: float) -> list[float]:
    """Round stamps inside the axis, few enough to be read; whole ones where both ends are, as of months."""
    if last <= first:
        return [first]
    whole = float(first).is_integer() and float(last).is_integer()
    marks = [mark for mark in nice(first, last)[2] if float(mark).is_integer() or not whole]
    inside = [mark for mark in marks if first <= mark <= last]
    return inside if len(inside) >= 2 else [first, last]


def _path(kind: str, style: str, points: Sequence[tuple[float, float]]) -> Markup:
    where = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<{0} class="{1}" points="{2}"/>').format(Markup(kind), style, where)
