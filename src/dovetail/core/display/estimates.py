"""Estimates as rows: for a line of text, a table in a notebook, a data frame and a figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from dovetail.core.display.decimals import decimals_of, toward
from dovetail.core.display.display import Display, Grid
from dovetail.core.display.figure import Mark, draw_figure, draw_marks, height_of

if TYPE_CHECKING:
    import polars as pl

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
    """What an estimate shows of itself."""
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
