"""Curves over the number of people, or another logarithmic axis, as inline SVG, with levels and one mark."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from dovetail.report.charts.axes import LogarithmicAxis, TickFormat, VerticalAxis
from dovetail.report.charts.reference_line import ReferenceLine
from dovetail.report.charts.svg import (
    RIGHT as EDGE,
)
from dovetail.report.charts.svg import (
    legend_height,
    svg_legend,
    svg_line,
    svg_path,
    svg_picture,
    svg_text,
)

HEIGHT, LEFT, RIGHT = 170.0, 48.0, EDGE - 6


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
    bottom = top + HEIGHT
    places = [x for curve in curves for x in curve.x] + ([mark.value] if mark else [])
    values = [y for curve in curves for y in curve.y] + [level.value for level in levels]
    across = LogarithmicAxis.around(places, left=LEFT, right=RIGHT)
    up = VerticalAxis.around(values, top=top, height=HEIGHT)
    parts = [svg_legend(named), up.grid(LEFT, RIGHT, tick), across.grid(top, bottom)]
    parts.append(svg_text("tick middle", (LEFT + RIGHT) / 2, bottom + 32, axis))
    parts += [svg_line(level.kind, LEFT, up(level.value), RIGHT, up(level.value)) for level in levels]
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
        side = "end" if x > (LEFT + RIGHT) / 2 else "start"
        parts += [svg_line("mark", x, ends[0], x, ends[1]), svg_text(f"label {side}", x, ends[0] - 5, mark.label)]
    return parts
