"""The privacy report on a terminal."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table as Grid
from rich.text import Text

from dovetail.report.charts import printable
from dovetail.report.number_format import ABSENT, Document, display_name, missing_reason
from dovetail.report.rounds import budget_table, series_table, window_table
from dovetail.report.sentences import banner, is_stream, mode_sentence, summarize_metrics
from dovetail.report.tables import (
    Table,
    attack_table,
    comparison_table,
    estimate_table,
    group_table,
    learnability_table,
    question_parts,
    summary,
)
from dovetail.report.verdict import verdict

LONGEST = 30  # rows of a table on the terminal


def print_report(document: Document, console: Console) -> None:
    """Print the privacy report: compact, in plain words, 80 columns are enough.

    Parameters
    ----------
    document : dict
        A privacy report as loaded from report.json.
    console : rich.console.Console
    """
    console.print(_words(document["title"], style="bold"))
    if warning := banner(document):
        console.print(Panel(_words(warning, style="bold"), style="yellow"))
    else:
        console.print(_words(mode_sentence(document)))
    for line in verdict(document):
        console.print(_words(f"{line.name}:", style="bold"), _words(line.words))
    console.print()
    console.print(_words(" ".join(summary(document))))
    console.print()
    console.print(_metric_grid(document))
    several = question_parts(document)
    for part in several:
        _print_table(part.name, part.table, console)
        if part.groups.columns:
            _print_table(f"{part.name} by group", part.groups, console)
        _print_list(f"What {part.name} tells", part.lines, console)
    if not several:
        _print_table("What was learned", estimate_table(document), console)
    if is_stream(document):
        _print_table("Round by round", series_table(document), console)
        _print_table("Windows", window_table(document), console)
        _print_table("What the rounds cost", budget_table(document), console)
    elif not several:
        _print_table("Groups", group_table(document), console)
        _print_table("What attackers got", attack_table(document), console)
        _print_table("What the order tells about groups", learnability_table(document), console)
    if document.get("comparison"):
        _print_table("The same collection with other shufflers", comparison_table(document), console)
    _print_list("What each step promises", [_step(step) for step in document["steps"]], console)
    _print_list("Assumptions", [str(line) for line in document["assumptions"]], console)
    if "made" in document:
        _print_list("Made", _made(document), console)
    _print_list(
        "Files", [f"{display_name(key)}: {_file(value)}" for key, value in document["files"].items()], console
    )


def _made(document: Document) -> list[str]:
    """When, by which version, and the digests by which table and configuration are known again."""
    found = [f"on {document['made']} by Dovetail {document['version']}"]
    for key, value in document["digests"].items():
        found.append(f"SHA-256 of the {key}: {_file(value)}")
    return found


def _metric_grid(document: Document) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, show_lines=True, pad_edge=False, expand=False)
    grid.add_column("metric", style="bold", max_width=16, overflow="fold")
    grid.add_column("number", justify="right", max_width=14, overflow="fold")
    grid.add_column("what it means", overflow="fold")
    for metric in summarize_metrics(document):
        meaning = _words(metric.meaning, style="" if metric.headline else "dim")
        for line in metric.lines:
            meaning.append(f"\n• {printable(line)}")
        for caveat in metric.caveats:
            meaning.append(f"\nBut: {printable(caveat)}", style="yellow")
        if metric.source:
            meaning.append(f"\n{printable(metric.source)}", style="dim")
        grid.add_row(_words(metric.name), _words(metric.headline or ABSENT, style="bold cyan"), meaning)
    return grid


def _print_table(heading: str, table: Table, console: Console) -> None:
    console.print(_words(heading, style="bold"))
    if table.rows:
        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
        for place, column in enumerate(table.columns):
            left = place == 0 or column in ("group", "answer", "missing rounds")
            grid.add_column(_words(column), justify="left" if left else "right", overflow="fold")
        for row in table.rows[:LONGEST]:
            grid.add_row(*(_words(cell) for cell in row))
        console.print(grid)
        if len(table.rows) > LONGEST:
            console.print(_words(f"{len(table.rows) - LONGEST} more rows in the report file.", style="dim"))
    for note in table.notes:
        console.print(_words(note, style="dim"))
    console.print()


def _print_list(heading: str, lines: Sequence[str], console: Console) -> None:
    console.print(_words(heading, style="bold"))
    for line in lines:
        grid = Grid.grid(padding=(0, 1))
        grid.add_row("•", _words(line))
        console.print(grid)
    console.print()


def _step(step: Document) -> str:
    return f"{step['stage']}: {step['what']} Promise: {step['guarantee']} [{step['theorem']}]"


def _file(value: Any) -> str:
    return str(value) if missing_reason(value) is None else f"none: {missing_reason(value)}"


def _words(text: str, style: str = "") -> Text:
    return Text(printable(text), style=style, overflow="fold")
