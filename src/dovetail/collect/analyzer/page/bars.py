"""Shares as horizontal bars with their intervals, as inline SVG in the style of the privacy report."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from dovetail.report.charts.axes import LinearAxis, TickFormat
from dovetail.report.charts.row_charts import IntervalRow
from dovetail.report.charts.svg import LEFT, RIGHT, ROW, legend_height, svg_legend, svg_line, svg_picture, svg_text


def bar_chart(rows: Sequence[IntervalRow], *, title: str, description: str, tick: TickFormat) -> Markup:
    """A bar from zero to each value, a whisker for its interval; a value below zero has no bar."""
    axis = LinearAxis.around(
        [0.0, *(row.value for row in rows), *(row.upper for row in rows), *(row.lower for row in rows)]
    )
    named = [("bar", "share"), ("whisker", "interval")]
    top = legend_height(named)
    bottom = top + ROW * len(rows)
    parts = [svg_legend(named), axis.grid(top, bottom, tick)]
    for place, row in enumerate(rows):
        y = top + ROW * place + 26
        room = 46 - len(row.text)
        label = row.label if len(row.label) <= room else row.label[: room - 1] + "…"
        parts.append(svg_text("label start", LEFT, y - 10, label) + svg_text("value end", RIGHT, y - 10, row.text))
        parts.append(svg_line("bar", axis(0.0), y, axis(max(0.0, row.value)), y))
        parts.append(svg_line("whisker", axis(row.lower), y, axis(row.upper), y))
        parts += [svg_line("whisker", axis(end), y - 4, axis(end), y + 4) for end in (row.lower, row.upper)]
    return svg_picture(bottom + 24, title, description, parts)
