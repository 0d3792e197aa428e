"""What a value shows of itself: up to three lines of text, and HTML that needs nothing else and escapes all words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeVar

from dovetail_protocol.terminal_text import printable

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
    """What a value shows of itself, in words.

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
