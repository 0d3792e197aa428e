"""Pictures as files: one style, readable in print and colour-blind safe, drawn by matplotlib (extra `studies`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dovetail.core.display.figure import figure_style
from dovetail.core.errors import OutputError
from dovetail.core.extras import require

if TYPE_CHECKING:
    import polars as pl

KINDS = (".pdf", ".png", ".svg")


def save_figure(place: Path, draw: Callable[[Any], Any], *, kind: str | None = None) -> None:
    """Save the figure that draw(pyplot) returns.

    Parameters
    ----------
    place : Path
    draw : function of matplotlib.pyplot that returns a figure
    kind : str, optional
        ".pdf", ".png" or ".svg"; default the ending of `place`.

    Raises
    ------
    OutputError
        When the kind is none of these.
    MissingExtraError
        Without matplotlib.
    """
    ending = kind or place.suffix
    check_figure(Path(f"figure{ending}"))
    with figure_style() as pyplot:
        figure = draw(pyplot)
        figure.savefig(place, format=ending[1:].lower(), bbox_inches="tight", dpi=150)
        pyplot.close(figure)


def check_figure(place: Path) -> None:
    """Refuse what could not be drawn, before the work is done."""
    if place.suffix.lower() not in KINDS:
        raise OutputError(f"{place}: a picture is one of {', '.join(KINDS)}; name it so.")
    require("matplotlib", extra="studies").use("Agg")


def line_figure(
    pyplot: Any, table: pl.DataFrame, x: str, *, labels: dict[str, str], y: str, log_x: bool, log_y: bool, title: str
) -> Any:
    """One line for each column of `table` named in `labels` against column `x`; gaps where a value is null."""
    import polars as pl

    figure, axis = pyplot.subplots(figsize=(6.4, 4.2))
    for column, label in labels.items():
        axis.plot(table[x].to_numpy(), table[column].cast(pl.Float64).to_numpy(), label=label)
    axis.set(xlabel=x, ylabel=y, title=title)
    if log_x:
        axis.set_xscale("log")
    if log_y:
        axis.set_yscale("log")
    axis.legend(fontsize="small")
    return figure
