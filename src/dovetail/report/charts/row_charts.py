"""Charts with one row for each number: an estimate with its interval, or a number before and after.

A chart knows nothing about privacy and rounds nothing: whoever calls it brings the words.
"""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from dovetail.report.charts.axes import LinearAxis, TickFormat
from dovetail.report.charts.reference_line import ReferenceLine
from dovetail.report.charts.svg import (
    ROW,
    legend_height,
    svg_diamond,
    svg_dot,
    svg_legend,
    svg_line,
    svg_picture,
    svg_row_text,
)


class IntervalRow(NamedTuple):
    """One row of an interval chart: a dot with a whisker, and the truth where it is known."""

    label: str
    text: str
    value: float
    lower: float
    upper: float
    truth: float | None = None


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
) -> Markup:
    """Dots with whiskers, one row each; diamonds for the truth; a dashed line for a reference value."""
    known = [row.truth for row in rows if row.truth is not None]
    seen = [row.lower for row in rows] + [row.upper for row in rows] + [row.value for row in rows] + known
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
