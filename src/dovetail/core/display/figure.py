"""Figures of one style, readable in print and colour-blind safe, drawn by matplotlib (extra `studies`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from dovetail.core.extras import require
from dovetail_protocol.terminal_text import printable

# Okabe and Ito (2008), Color Universal Design; every line also has a dash or a marker of its own
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MOST_ROWS = 60
_LINE = 26  # letters of a row's name in one line


class Mark(NamedTuple):
    """One row of a figure: a dot with a whisker, and the truth where it is known."""

    name: str
    value: float
    low: float
    high: float
    truth: float | None = None


@contextmanager
def figure_style() -> Iterator[Any]:
    """matplotlib.pyplot in this style.

    Raises
    ------
    MissingExtraError
        Without matplotlib.
    """
    pyplot = require("matplotlib.pyplot", extra="studies")
    cycler = require("cycler", extra="studies").cycler
    style = {
        "axes.prop_cycle": cycler(color=COLOURS) + cycler(linestyle=DASHES),
        "axes.grid": True,
        "grid.alpha": 0.3,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.hashsalt": "dovetail",  # the same picture is the same file
    }
    with pyplot.rc_context(style):
        yield pyplot


def draw_figure(draw: Callable[[Any], Any]) -> Any:
    """The figure that draw(pyplot) returns; pyplot forgets it, so that a notebook shows it once."""
    with figure_style() as pyplot:
        figure = draw(pyplot)
        pyplot.close(figure)
    return figure


def draw_marks(axis: Any, marks: Sequence[Mark], *, title: str, what: str) -> None:
    """Dots with whiskers, the first row above; diamonds for the truth; the title says what was left out."""
    shown = list(marks[:MOST_ROWS])
    rows = range(len(shown))
    values = [one.value for one in shown]
    away = [[one.value - one.low for one in shown], [one.high - one.value for one in shown]]
    axis.errorbar(values, rows, xerr=away, fmt="o", capsize=3, color=COLOURS[0], label=what)
    known = [(one.truth, row) for row, one in zip(rows, shown, strict=True) if one.truth is not None]
    if known:
        axis.plot(*zip(*known, strict=True), linestyle="", marker="D", fillstyle="none", color=COLOURS[1],
                  markersize=9, label="truth")  # fmt: skip
    axis.set_yticks(list(rows), [_name(one.name) for one in shown])
    axis.set_ylim(len(shown) - 0.5, -0.5)
    axis.set_title(
        title if len(shown) == len(marks) else f"{title} (first {len(shown)} of {len(marks):,})", loc="left"
    )
    axis.set_xlabel(what)
    axis.locator_params(axis="x", nbins=5)
    if known:
        axis.legend(fontsize="small", loc="best")


def height_of(rows: int) -> float:
    """Inches for so many rows."""
    return 1.4 + 0.36 * min(rows, MOST_ROWS)


def _name(text: str) -> str:
    """A name in two lines at most, as it is: matplotlib would read dollars as formulas."""
    from textwrap import wrap

    lines = wrap(printable(text), _LINE) or [""]
    cut = lines if len(lines) <= 2 else [lines[0], lines[1][: _LINE - 2] + " …"]
    return "\n".join(cut).replace("$", r"\$")
