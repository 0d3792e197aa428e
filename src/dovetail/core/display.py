"""Displays of values: up to three lines of text, and HTML that needs nothing else and escapes all words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from dovetail.core.extras import require
from dovetail_protocol.terminal_text import printable

if TYPE_CHECKING:
    import polars as pl


Kind = TypeVar("Kind")

MOST_ROWS = 24  # of a table in a notebook

# colours are the notebook's own, so that they are right by day and by night
_BOX = "max-width:52em;border-left:3px solid rgba(128,128,128,.6);padding:.2em 0 .2em .9em;margin:.4em 0"
_GRID = "border-collapse:collapse;font-size:inherit;margin:.4em 0;font-variant-numeric:tabular-nums;border:none"
_CELL = "padding:.2em 1.2em .2em 0;vertical-align:top;background:none;border:none;white-space:normal"
_NAME = "text-align:left;font-weight:400;opacity:.8;white-space:nowrap"
_LINE = "border-bottom:1px solid rgba(128,128,128,.4)"


@dataclass(frozen=True)
class Grid:
    """A table of texts; the first `names` columns are names, the others numbers.

    Parameters
    ----------
    columns : texts (c,)
    rows : texts (r, c)
    names : int
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1


@dataclass(frozen=True)
class Display:
    """Words by which a value shows itself.

    Parameters
    ----------
    brief : str
        One to three lines, for `repr`.
    title : str
    lead : texts
        Sentences below the title.
    facts : pairs of texts
        What, and how much.
    grid : Grid, optional
        The first rows are shown, and it says how many more there are.
    notes : texts
        What should be known besides, such as the source.
    warnings : texts
        What takes the promise away.
    """

    brief: str
    title: str
    lead: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    grid: Grid | None = None
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()

    def text(self) -> str:
        """`brief`, with nothing in it that moves a cursor."""
        return "\n".join(map(printable, self.brief.splitlines()))

    def html(self) -> str:
        """A fragment without script, style sheet, font or picture; every text in it is escaped."""
        parts = [f'<div style="font-weight:600">{_safe(self.title)}</div>', *map(_warning, self.warnings)]
        parts += [f'<div style="margin-top:.2em">{_safe(sentence)}</div>' for sentence in self.lead]
        if self.facts:
            parts.append(f'<table style="{_GRID}"><tbody>{"".join(map(_fact, self.facts))}</tbody></table>')
        if self.grid is not None:
            parts.append(_table(self.grid))
        parts += [f'<div style="opacity:.8">{_safe(note)}</div>' for note in self.notes if note]
        return f'<div style="{_BOX}">{"".join(parts)}</div>'


def displayed_by(show: Callable[[Any], Display]) -> Callable[[type[Kind]], type[Kind]]:
    """Let instances show what `show` says of them: `repr` in a terminal, `_repr_html_` in a notebook.

    >>> @displayed_by(lambda one: Display(brief="Coin: heads", title="A <coin>"))
    ... class Coin: ...
    >>> Coin(), "A &lt;coin&gt;" in Coin()._repr_html_()
    (Coin: heads, True)
    """

    def decorate(kind: type[Kind]) -> type[Kind]:
        kind.__repr__ = lambda self: show(self).text()  # type: ignore[method-assign]
        kind._repr_html_ = lambda self: show(self).html()  # type: ignore[attr-defined]
        return kind

    return decorate


def mute(kind: type[Kind]) -> type[Kind]:
    """Let instances that hold people's data show their kind alone, wherever they are printed, logged or raised.

    >>> @mute
    ... class Answers:
    ...     values = [1, 2]
    >>> Answers(), str(Answers())
    (Answers(not shown: holds private data), 'Answers(not shown: holds private data)')
    """
    kind.__repr__ = lambda self: f"{kind.__name__}(not shown: holds private data)"  # type: ignore[method-assign]
    return kind


def _safe(text: str) -> str:
    return escape(printable(text))


def _fact(fact: tuple[str, str]) -> str:
    name, value = fact
    return (
        f'<tr style="background:none"><th scope="row" style="{_CELL};{_NAME}">{_safe(name)}</th>'
        f'<td style="{_CELL};text-align:left">{_safe(value)}</td></tr>'
    )


def _warning(text: str) -> str:
    return f'<div style="border-left:3px solid #c60;padding-left:.6em"><b>But:</b> {_safe(text)}</div>'


def _table(grid: Grid) -> str:
    head = "".join(_cell('th scope="col"', text, place, grid) for place, text in enumerate(grid.columns))
    rows = [
        "".join(_cell("td" if place else 'th scope="row"', text, place, grid) for place, text in enumerate(row))
        for row in grid.rows[:MOST_ROWS]
    ]
    body = "".join(f'<tr style="background:none">{row}</tr>' for row in rows)
    table = f'<table style="{_GRID}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    more = len(grid.rows) - MOST_ROWS
    return table + (f'<div style="opacity:.8">and {more:,} more rows</div>' if more > 0 else "")


def _cell(kind: str, text: str, place: int, grid: Grid) -> str:
    side = "left" if place < grid.names else "right"
    return f'<{kind} style="{_CELL};{_LINE};text-align:{side};font-weight:400">{_safe(text)}</{kind[:2]}>'


# How many decimals an error leaves to a number, and which way a number is rounded to them.


_MOST = 12
_UNKNOWN = 6
_EXACT = Context(prec=800)  # holds every double


def decimals_of(error: Any) -> int:
    """Number of decimals that show two digits of an error; 6 where there is none.

    >>> [decimals_of(error) for error in (0.012, 3.4, 0.0, 250.0)]
    [3, 1, 6, 0]
    """
    size = abs(float(error))
    if not (isfinite(size) and size):
        return _UNKNOWN
    return min(_MOST, max(0, 1 - Decimal(repr(size)).adjusted()))


def toward(value: Any, digits: int, rounding: str) -> str:
    """`value` with so many decimals, rounded as `decimal` names it: ends of intervals outwards, losses up.

    >>> toward(0.1234, 3, "ROUND_CEILING"), toward(-0.1234, 3, "ROUND_FLOOR"), toward(float("inf"), 3, "ROUND_UP")
    ('0.124', '-0.124', '∞')
    """
    number = float(value)
    if not isfinite(number):
        return {"inf": "∞", "-inf": "-∞"}.get(str(number), "–")
    rounded = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), rounding=rounding, context=_EXACT)
    return f"{rounded if rounded else abs(rounded):,f}"


# What people lose, in digits: rounded up, the same digits in terminal, notebook, report and plan.
#
# Losses have three significant digits. A guess is shown in percent with as many decimals as two digits of its gain
# over the blind guess need, from two to four, so that a gain of a thousandth of a point does not look like none.


DIGITS = 3
EXACT = Context(prec=800)  # holds every double
_FEWEST, _MOST_DIGITS = 2, 4
_LEAST_DIGITS, _LEAST_GAIN = 3, Decimal("0.001")  # points; what gains less is shown as no more than this


def upward(value: float) -> str:
    """A privacy loss, to be read as "at most": three significant digits, rounded up.

    >>> upward(0.12301), upward(2.0), upward(1e-6), upward(float("inf"))
    ('0.124', '2', '10⁻⁶', '∞')
    """
    return _significant(float(value), ROUND_CEILING)


def downward(value: float) -> str:
    """Format a lower bound: three significant digits, rounded down."""
    return _significant(float(value), ROUND_FLOOR)


class Guess(NamedTuple):
    """A guess at one person's value: both chances in percent, the gain in percentage points and as a factor."""

    best: str
    blind: str
    points: str
    times: str


def guess_in_words(best: float, blind: float) -> Guess:
    """The chance of the best guess and its gain, rounded up, beside the chance of the blind guess.

    >>> guess_in_words(0.34528, 1 / 3)
    Guess(best='34.53%', blind='33.33%', points='1.2', times='1.0359')
    >>> guess_in_words(0.2000123, 0.2)
    Guess(best='20.0013%', blind='20%', points='0.0013', times='1.0001')
    >>> guess_in_words(0.6775054981, 0.6775054979)
    Guess(best='67.76%', blind='67.76%', points='0.001', times='1.0001')
    """
    high, low = (Decimal(repr(float(chance))).scaleb(2) for chance in (best, blind))
    gain = max(high - low, Decimal(0))
    decimals = min(_MOST_DIGITS, max(_FEWEST, 1 - gain.adjusted())) if gain else _FEWEST
    times = Decimal(repr(float(best) / float(blind))) if low else Decimal(1)
    points = decimals
    if 0 < gain < _LEAST_GAIN:  # no one sees such a difference between two shares
        gain, low, decimals, points = _LEAST_GAIN, high, _FEWEST, _LEAST_DIGITS
    return Guess(
        strip(quantize(high, decimals, ROUND_CEILING)) + "%",
        strip(quantize(low, decimals, ROUND_CEILING if low == high else ROUND_HALF_EVEN)) + "%",
        strip(quantize(gain, points, ROUND_CEILING)),
        strip(quantize(times, 4, ROUND_CEILING)),
    )


def chance_in_words(chance: float) -> str:
    """A chance to be read as "at most": in percent from a hundredth on, else as 1 in so many; three digits.

    >>> chance_in_words(0.36788), chance_in_words(5.456e-05), chance_in_words(1.0)
    ('36.8%', '1 in 18,300', '100%')
    """
    exact = Decimal(repr(float(chance)))
    if exact >= Decimal("0.01"):
        return strip(quantize(exact.scaleb(2), 1, ROUND_CEILING)) + "%"
    many = EXACT.divide(Decimal(1) + Decimal("1e-12"), exact)  # one of 985 is a double above 1 / 985
    return f"1 in {strip(quantize(many, 2 - many.adjusted(), ROUND_FLOOR))}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """So many things in words: `one` of them, or `many`, by default the same word with an s.

    >>> counted(1, "row"), counted(2, "row"), counted(6366, "person", "people"), counted(1, "value is", "values are")
    ('1 row', '2 rows', '6,366 people', '1 value is')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def error_in_words(error: float, *, share: bool) -> str:
    """Format the error of an estimate: two significant digits, rounded up; of a share in percent.

    >>> error_in_words(0.0201, share=True), error_in_words(12.31, share=False)
    ('2.1%', '13')
    """
    if not math.isfinite(error):
        return "∞"
    exact = Decimal(repr(float(error))).scaleb(2 if share else 0)
    decimals = max(0, 1 - exact.adjusted()) if exact else 0
    return f"{strip(quantize(exact, decimals, ROUND_CEILING))}{'%' if share else ''}"


def quantize(value: Decimal, digits: int, rounding: str) -> Decimal:
    """`value` with so many decimals."""
    return value.quantize(Decimal(1).scaleb(-digits), rounding=rounding, context=EXACT)


def strip(value: Decimal) -> str:
    """A number with separators and without the zeros at its end."""
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _significant(number: float, rounding: str) -> str:
    if math.isinf(number):
        return "∞"
    exact = Decimal(repr(number))
    if not exact:
        return "0"
    power = exact.adjusted()
    if -4 <= power < 6:
        return strip(quantize(exact, max(0, DIGITS - 1 - power), rounding))
    mantissa = quantize(exact.scaleb(-power), DIGITS - 1, rounding)
    if mantissa == 10:
        mantissa, power = Decimal(1), power + 1
    exponent = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{exponent}" if mantissa == 1 else f"{strip(mantissa)} × 10{exponent}"


# Figures of one style, readable in print and colour-blind safe, drawn by matplotlib (extra `studies`).


# Okabe and Ito (2008), Color Universal Design; every line also has a dash or a marker of its own
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MOST_BARS = 60
_LINE_INCHES = 26  # letters of a row's name in one line


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
    shown = list(marks[:MOST_BARS])
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
    return 1.4 + 0.36 * min(rows, MOST_BARS)


def _name(text: str) -> str:
    """A name in two lines at most, as it is: matplotlib would read dollars as formulas."""
    from textwrap import wrap

    lines = wrap(printable(text), _LINE_INCHES) or [""]
    cut = lines if len(lines) <= 2 else [lines[0], lines[1][: _LINE_INCHES - 2] + " …"]
    return "\n".join(cut).replace("$", r"\$")


# Estimates as rows: for a line of text, a table in a notebook, a data frame and a figure.


_BRIEF = 4  # numbers in a line of text
_LEVEL = 0.95


class Estimated(Protocol):
    """A number, k numbers, g groups of one, or (g, k), with error, interval and names."""

    @property
    def value(self) -> Any: ...
    @property
    def standard_error(self) -> Any: ...
    @property
    def n(self) -> Any: ...
    @property
    def labels(self) -> tuple[str, ...] | None: ...
    @property
    def groups(self) -> tuple[str, ...] | None: ...
    def interval(self, level: float = 0.95) -> tuple[Any, Any]: ...


class Row(NamedTuple):
    """One number of an estimate."""

    group: str | None
    label: str | None
    value: float
    standard_error: float
    low: float
    high: float
    n: int

    @property
    def name(self) -> str:
        """Group and label, as far as there are any."""
        return ", ".join(part for part in (self.group, self.label) if part is not None)


def rows_of(estimate: Estimated, level: float) -> list[Row]:
    """Every number, group by group."""
    value = np.asarray(estimate.value)
    low, high = estimate.interval(level)
    parts = np.broadcast_arrays(value, estimate.standard_error, low, high)
    numbers = zip(*(part.ravel().tolist() for part in parts), strict=True)
    people = np.broadcast_to(_per_number(estimate), value.shape).ravel().tolist()
    return [
        Row(group, label, centre, error, start, end, int(n))
        for (group, label), (centre, error, start, end), n in zip(_names(estimate), numbers, people, strict=True)
    ]


def to_frame(estimate: Estimated, level: float) -> pl.DataFrame:
    """One line for each number; `group` and `label` where there are any."""
    import polars as pl

    rows = rows_of(estimate, level)
    named = {name: [getattr(row, name) for row in rows] for name in Row._fields}
    return pl.DataFrame({name: found for name, found in named.items() if any(one is not None for one in found)})


def show_estimate(estimate: Any) -> Display:
    """Words by which an estimate shows itself."""
    kind, reports = type(estimate).__name__, _reports(estimate)
    if np.asarray(estimate.value).size == 0:
        return Display(f"{kind} of no values from {reports}", f"{kind} from {reports}")
    rows = rows_of(estimate, _LEVEL)
    digits = decimals_of(np.median([row.standard_error for row in rows]))
    few = [f"{row.name}: {_number(row, digits)}".removeprefix(": ") for row in rows[:_BRIEF]]
    more = f", and {len(rows) - _BRIEF:,} more" if len(rows) > _BRIEF else ""
    brief = f"{kind} from {reports} (± standard error)\n{', '.join(few)}{more}"
    named = [name for name in ("group", "label") if getattr(rows[0], name) is not None]
    bias = float(np.max(getattr(estimate, "bias_bound", 0.0)))
    return Display(
        brief=brief,
        title=f"{kind} from {reports}",
        grid=Grid(
            (
                *("value" if name == "label" else name for name in named),
                "estimate",
                "95 % interval",
                "standard error",
            ),
            [tuple(getattr(row, name) for name in named) + _cells(row, digits) for row in rows],
            names=len(named),
        ),
        notes=(f"Intervals allow for a bias of at most {toward(bias, digits + 1, 'ROUND_CEILING')}.",)
        if bias > 0.0
        else (),
    )


def draw_estimate(estimate: Estimated, level: float) -> Any:
    """A figure of the estimate with its intervals."""
    rows = rows_of(estimate, level)
    marks = [Mark(row.name, row.value, row.low, row.high) for row in rows]

    def draw(pyplot: Any) -> Any:
        figure, axis = pyplot.subplots(figsize=(6.4, height_of(len(marks))), layout="constrained")
        what = f"estimate with {100 * level:g} % interval"
        draw_marks(axis, marks, title=f"From {_reports(estimate)}", what=what)
        return figure

    return draw_figure(draw)


def _number(row: Row, digits: int) -> str:
    return f"{toward(row.value, digits, 'ROUND_HALF_EVEN')} ± {toward(row.standard_error, digits, 'ROUND_CEILING')}"


def _cells(row: Row, digits: int) -> tuple[str, str, str]:
    ends = toward(row.low, digits, "ROUND_FLOOR"), toward(row.high, digits, "ROUND_CEILING")
    value, error = toward(row.value, digits, "ROUND_HALF_EVEN"), toward(row.standard_error, digits, "ROUND_CEILING")
    return value, f"{ends[0]} to {ends[1]}", error


def _reports(estimate: Estimated) -> str:
    least, most = int(np.min(estimate.n)), int(np.max(estimate.n))
    if np.ndim(estimate.n) == 0:
        return f"{least:,} reports"
    size = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f"{np.size(estimate.n):,} groups of {size} reports"


def _per_number(estimate: Estimated) -> Any:
    """Reports behind each number."""
    n, shape = np.asarray(estimate.n), np.shape(estimate.value)
    return n.reshape(n.shape + (1,) * (len(shape) - n.ndim))


def _names(estimate: Estimated) -> Iterator[tuple[str | None, str | None]]:
    """Group and label of each number, in the order of the array: those that were given, or numbers from 0."""
    shape, grouped = np.shape(estimate.value), np.ndim(estimate.n)
    for place in np.ndindex(*shape):
        group = ", ".join(map(str, place[:grouped])) if grouped else None
        label = ", ".join(map(str, place[grouped:])) if len(shape) > grouped else None
        if estimate.groups is not None and grouped == 1:
            group = estimate.groups[place[0]]
        if estimate.labels is not None and len(shape) == grouped + 1:
            label = estimate.labels[place[-1]]
        yield group, label
