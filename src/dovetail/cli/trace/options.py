"""Options that the verbs on traces share: which columns are what, and what to do with points that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dovetail.pipeline.trace.trace_table import TraceTable


@dataclass(frozen=True)
class TraceOptions:
    """How a table of traces is read."""

    trace: Annotated[str | None, typer.Option(help="Column that names the trace; usual names are found.")] = None
    person: Annotated[str | None, typer.Option(help="Column that says whose it is.")] = None
    time: Annotated[str | None, typer.Option(help="Column of times: Unix seconds or ISO text.")] = None
    latitude: Annotated[str | None, typer.Option(help="Column of latitudes, degrees.")] = None
    longitude: Annotated[str | None, typer.Option(help="Column of longitudes, degrees.")] = None
    drop_bad: Annotated[
        bool, typer.Option("--drop-bad", help="Leave out points that cannot be read, and say how many.")
    ] = False

    def read(self, place: Path) -> TraceTable:
        """The traces of a file; what is left out is said beside the result."""
        from dovetail.pipeline.trace.trace_table import TraceColumns, read_traces

        columns = TraceColumns(self.trace, self.person, self.time, self.latitude, self.longitude)
        table = read_traces(place, columns, drop_bad=self.drop_bad)
        for line in table.left_out:
            typer.echo(f"left out: {line}", err=True)
        return table
