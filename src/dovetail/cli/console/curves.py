"""What verbs that draw a curve share: --csv and --plot, written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dovetail.cli.console.output import write_whole
from dovetail.core.errors import OutputError

Csv = Annotated[Path | None, typer.Option("--csv", help="Write the curve as CSV.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", help="Draw the curve as .png, .svg or .pdf (needs the extra `studies`).")
]


Table = dict[str, Any] | list[dict[str, Any]]  # columns by name, or rows


def check_places(*, csv: Path | None, plot: Path | None, force: bool, out: Path | None = None) -> None:
    """Refuse what could not be written, before the work is done."""
    if plot is not None:
        from dovetail.report.charts.matplotlib_figure import check_figure

        check_figure(plot)
    if plot is not None and plot == csv:
        raise OutputError(f"{plot}: cannot be both the table and the picture; name two places.")
    for place in (csv, plot, out):
        if place is not None and place.exists() and not force:
            raise OutputError(f"{place}: exists already; use --force to replace it, or name another place.")
        if place is not None and not place.absolute().parent.is_dir():
            raise OutputError(f"{place}: there is no folder {place.parent}; make it, or name another place.")


def write_curve(
    table: Table, x: str, *, csv: Path | None, plot: Path | None, force: bool, **how: Any
) -> dict[str, str]:
    """Write the table and its picture (`how` goes to `line_figure`); what was written, by kind."""
    if csv is None and plot is None:
        return {}

    import polars as pl

    from dovetail.report.charts.matplotlib_figure import line_figure, save_figure

    frame = pl.DataFrame(table)
    if plot is not None:  # first, so that what can go wrong leaves nothing behind
        kind = plot.suffix
        write_whole(
            plot,
            lambda scratch: save_figure(scratch, lambda pyplot: line_figure(pyplot, frame, x, **how), kind=kind),
            force=force,
        )
    if csv is not None:
        write_whole(csv, frame.write_csv, force=force)
    return {name: str(place) for name, place in (("csv", csv), ("plot", plot)) if place is not None}
