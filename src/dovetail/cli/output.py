"""Output of the verbs: printing, and files of reports that carry their own description."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dovetail.core.errors import DataError, OutputError, StorageError
from dovetail_protocol.terminal_text import is_harmless, printable

if TYPE_CHECKING:
    import polars as pl
    from rich.text import Text

    from dovetail.core.entropy import Entropy


Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")]
Seed = Annotated[
    int | None,
    typer.Option(help="Simulation only: reproducible draws that protect nobody; the result says so.", min=0),
]
Full = Annotated[bool, typer.Option("--full", help="Print everything, not only what matters first.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing result.")]

_METADATA = "dovetail"
_NUMERIC = frozenset("0123456789.+-−±≤≥≈<>∞–") | {""}  # how a cell with a number begins


def print_json(document: Any) -> None:
    """One JSON document on standard output; its form has a version, which comes first."""
    document = {"schema_version": 1, **document} if isinstance(document, dict) else document
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
    typer.echo("".join(map(_in_json, text)))


def foreign(text: str) -> Text:
    """A text that somebody else wrote, for a cell of a table: neither markup nor control characters work in it."""
    from rich.text import Text

    return Text(printable(text))


def _in_json(letter: str) -> str:
    return letter if letter == "\n" or is_harmless(letter) else json.dumps(letter)[1:-1]


class Facts(NamedTuple):
    """A table of two columns: what, and the number."""

    title: str
    rows: Mapping[str, str | Text]


class Grid(NamedTuple):
    """A table of words; columns of numbers are aligned right, and the row that was chosen is bold."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    chosen: int | None = None


class Paste(NamedTuple):
    """A line that people copy: it is never broken."""

    text: str


def show(document: Any, *blocks: Facts | Grid | Paste | str, as_json: bool) -> None:
    """Print what a verb found: the document for machines, or its tables and lines for people."""
    if as_json:
        print_json(document)
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table

    console = Console()
    for block in blocks:
        if isinstance(block, Facts):
            print_rows(*block)
        elif isinstance(block, Grid):
            table = Table(title=foreign(block.title), title_justify="left", title_style="bold")
            table.box, table.pad_edge = None, False
            for place, name in enumerate(block.columns):
                numbers = all(row[place][:1] in _NUMERIC for row in block.rows)
                table.add_column(name, justify="right" if numbers else "left", overflow="fold")
            for place, row in enumerate(block.rows):
                table.add_row(*map(foreign, row), style="bold" if place == block.chosen else "")
            console.print(table)
        elif isinstance(block, Paste):
            console.print(foreign(block.text), soft_wrap=True)
        else:
            words = block.lstrip(" ")
            indent = len(block) - len(words)
            console.print(Padding(foreign(words), (0, 0, 0, indent), expand=False) if indent else foreign(words))


def print_rows(title: str, rows: Mapping[str, str | Text]) -> None:
    """A two-column table: what, and the number."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=foreign(title), title_justify="left", show_header=False, title_style="bold")
    table.add_column(style="cyan")
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, foreign(value) if isinstance(value, str) else value)
    Console().print(table)


def print_summary(document: dict[str, Any], folder: Path, *, after: list[str], full: bool) -> None:
    """A privacy report in short or as a whole, where report.html is, and the command to go on with."""
    import shlex

    from rich.console import Console

    from dovetail.report.terminal import print_report, print_short

    place = folder / "report.html"
    if full:
        print_report(document, Console())
        typer.echo(f"Report: {place}")
    else:
        print_short(document, Console(), place=f"{place} (--full prints all of it)", after=shlex.join(after) or None)


@contextmanager
def after_writing(target: Path) -> Iterator[None]:
    """Say that results are complete where printing them fails."""
    try:
        yield
    except KeyboardInterrupt:
        raise StorageError(f"interrupted while printing; {target} is complete.") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"standard output cannot be written ({error.strerror}); {target} is complete.") from None


@contextmanager
def interruptible(kept: str) -> Iterator[None]:
    """Say what is kept, and how to go on, where work is interrupted that need not begin anew."""
    try:
        yield
    except KeyboardInterrupt:
        raise StorageError(f"interrupted; {kept}.") from None


def entropy_of(seed: int | None) -> Entropy:
    """The operating system's randomness, unless a simulation was asked for."""
    from dovetail.core.entropy import simulation, system_entropy

    return system_entropy() if seed is None else simulation(seed)


def write_reports(frame: pl.DataFrame, place: Path, description: dict[str, Any], *, force: bool) -> None:
    """Write Parquet at once or not at all; the file says how its reports were made."""
    if place.suffix.lower() not in (".parquet", ".pq"):
        raise OutputError(f"{place}: reports are written as Parquet, which keeps their description; use .parquet.")
    metadata = {_METADATA: json.dumps(description)}
    write_whole(place, lambda scratch: frame.write_parquet(scratch, metadata=metadata), force=force)


def check_free(place: Path | None, *, force: bool) -> None:
    """Refuse a file that could not be written, before the work is done."""
    if place is None:
        return
    if place.exists() and (place.is_dir() or not force):
        hint = "is a folder;" if place.is_dir() else "exists already; use --force to replace it, or"
        raise OutputError(f"{place}: {hint} name another place.")
    if not place.absolute().parent.is_dir():
        raise OutputError(f"{place}: there is no folder {place.parent}; make it, or name another place.")


def write_text(place: Path, text: str, *, force: bool) -> None:
    """Write a text at once or not at all."""
    write_whole(place, lambda scratch: scratch.write_bytes(text.encode()), force=force)


def write_whole(place: Path, write: Callable[[Path], object], *, force: bool) -> None:
    """Write a file at once or not at all."""
    from dovetail.ledger import files

    check_free(place, force=force)
    with files.write_whole(place, mode=0o600) as scratch:
        write(scratch)


def description_of(place: Path) -> dict[str, Any]:
    """How the reports of a Parquet file were made; empty where the file does not say."""
    import polars as pl

    if place.suffix.lower() not in (".parquet", ".pq"):
        return {}
    found = pl.read_parquet_metadata(place).get(_METADATA)
    if not found:
        return {}
    try:
        description = json.loads(found)
    except ValueError:
        description = None
    if not isinstance(description, dict) or description.get("schema_version") != 1:
        raise DataError(f"{place}: its description of the reports is damaged, or of another version of dovetail.")
    return description


# What verbs that draw a curve share: --csv and --plot, written whole or not at all.


Csv = Annotated[Path | None, typer.Option("--csv", help="Write the curve as CSV.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", help="Draw the curve as .png, .svg or .pdf (needs the extra `studies`).")
]


Table = dict[str, Any] | list[dict[str, Any]]  # columns by name, or rows


def check_places(*, csv: Path | None, plot: Path | None, force: bool, out: Path | None = None) -> None:
    """Refuse what could not be written, before the work is done."""
    if plot is not None:
        from dovetail.report.pictures import check_figure

        check_figure(plot)
    if plot is not None and plot == csv:
        raise OutputError(f"{plot}: cannot be both the table and the picture; name two places.")
    for place in (csv, plot, out):
        check_free(place, force=force)


def write_curve(
    table: Table, x: str, *, csv: Path | None, plot: Path | None, force: bool, **how: Any
) -> dict[str, str]:
    """Write the table and its picture (`how` goes to `line_figure`); what was written, by kind."""
    if csv is None and plot is None:
        return {}

    import polars as pl

    from dovetail.report.pictures import line_figure, save_figure

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
