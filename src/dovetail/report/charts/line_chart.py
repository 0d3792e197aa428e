"""Curves over a linear axis, as inline SVG, with one marked place on the axis."""

from collections.abc import Sequence

from markupsafe import Markup

from dovetail.report.charts.axes import TickFormat, VerticalAxis, round_ticks
from dovetail.report.charts.curve_chart import HEIGHT, LEFT, RIGHT, NamedCurve, drawn_curves
from dovetail.report.charts.reference_line import ReferenceLine
from dovetail.report.charts.svg import legend_height, svg_legend, svg_line, svg_picture, svg_text


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
    named = [(curve.kind, curve.label) for curve in curves]
    top = legend_height(named) + (16 if mark else 0)
    bottom = top + HEIGHT
    places = [x for curve in curves for x in curve.x]
    low, high, marks = round_ticks(min(places), max(places))
    up = VerticalAxis.around([0.0, *(y for curve in curves for y in curve.y)], top=top, height=HEIGHT)

    def place(x: float) -> float:
        return LEFT + (RIGHT - LEFT) * (x - low) / (high - low)

    parts = [svg_legend(named), up.grid(LEFT, RIGHT, tick)]
    for value in marks:
        side = "end" if value == marks[-1] else "middle"
        parts.append(svg_line("grid", place(value), top, place(value), bottom))
        parts.append(svg_text(f"tick {side}", place(value), bottom + 16, across(value)))
    parts.append(svg_text("tick middle", (LEFT + RIGHT) / 2, bottom + 32, axis))
    parts += drawn_curves(curves, mark, place, up, ends=(top, bottom))
    return svg_picture(bottom + 40, title, description, parts)
