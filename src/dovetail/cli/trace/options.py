"""Options that the verbs on traces share: which columns are what, and what to do with points that cannot be read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.output import write_whole
from dovetail.core.errors import DataError

if TYPE_CHECKING:
    from dovetail.trace.plan import TracePlan
    from dovetail.trace.prior import TracePrior
    from dovetail.trace.table import TraceTable


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
        from dovetail.trace.table import TraceColumns, read_traces

        columns = TraceColumns(self.trace, self.person, self.time, self.latitude, self.longitude)
        table = read_traces(place, columns, drop_bad=self.drop_bad)
        for line in table.left_out:
            typer.echo(f"left out: {line}", err=True)
        return table


# Files that the verbs pass on: a fitted prior and a plan, as JSON.


def read_json(place: Path) -> Any:
    """The document of a file."""
    try:
        return json.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{place}: cannot be read ({error.strerror}).") from None
    except ValueError:
        raise DataError(f"{place}: is no JSON document.") from None


def read_prior(place: Path) -> TracePrior:
    """A prior as `fit` writes it."""
    from dovetail.trace.prior import TracePrior

    try:
        return TracePrior.from_dict(read_json(place))
    except DataError as error:
        raise DataError(f"{place}: {error}" if not str(error).startswith(str(place)) else str(error)) from None


def read_plan(place: Path) -> TracePlan:
    """A plan as `plan` writes it."""
    from dovetail.trace.plan import TracePlan

    try:
        return TracePlan.from_dict(read_json(place))
    except DataError as error:
        raise DataError(f"{place}: {error}" if not str(error).startswith(str(place)) else str(error)) from None


def write_json(document: dict[str, Any], place: Path, *, force: bool) -> None:
    """A document as a file, at once or not at all."""

    def write(scratch: Path) -> None:
        scratch.write_text(json.dumps(document, indent=1, allow_nan=False))

    write_whole(place, write, force=force)
