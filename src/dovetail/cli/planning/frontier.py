"""`dovetail plan-shuffle --frontier`: what alpha buys and what it costs, before anything is collected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.console.output import print_json, write_whole
from dovetail.cli.console.progress import tell
from dovetail.core.errors import ParameterError

if TYPE_CHECKING:
    from dovetail.plan.compare.shuffle_frontier import Frontier
    from dovetail.shuffle.groups.groups import Groups


@dataclass(frozen=True)
class FrontierOptions:
    """A list of alphas instead of one."""

    frontier: Annotated[
        str | None,
        typer.Option(help="Instead of --alpha: alphas to compare, separated by commas, such as 1,4,16; simulated."),
    ] = None
    epsilon: Annotated[float, typer.Option(help="With --frontier: local epsilon of the simulated reports.")] = 2.0
    agree: Annotated[
        float, typer.Option(help="With --frontier: share of a region that holds its value, above 0.5.")
    ] = 0.8
    report: Annotated[Path | None, typer.Option(help="With --frontier: write a page (HTML) with the curves.")] = None

    def alphas(self) -> list[float]:
        """The list as numbers."""
        try:
            return [float(part) for part in str(self.frontier).split(",")]
        except ValueError:
            raise ParameterError(
                f"`--frontier` must be numbers separated by commas, got {self.frontier!r}."
            ) from None


def show_frontier(
    asked: FrontierOptions, groups: Groups, points: Any, *, shuffler: str, force: bool, as_json: bool
) -> None:
    """Compute, print and write the frontier."""
    from dovetail.plan.compare.shuffle_frontier import shuffle_frontier
    from dovetail.report.document import to_jsonable
    from dovetail.report.render.result_page import render_result
    from dovetail.report.sections.plans.shuffle_frontier import frontier_page

    if asked.report is not None and (not asked.report.parent.is_dir() or (asked.report.exists() and not force)):
        write_whole(asked.report, lambda scratch: None, force=force)  # refuses before the work
    found = shuffle_frontier(
        groups,
        asked.alphas(),
        epsilon=asked.epsilon,
        points=points,
        shuffler=shuffler,
        agree=asked.agree,
        progress=tell,
    )
    document = found.document()
    if asked.report is not None:
        text = render_result(frontier_page(document, found.sentence))

        def write(scratch: Path) -> None:
            scratch.write_text(text, encoding="utf-8")

        write_whole(asked.report, write, force=force)
    if as_json:
        files = {} if asked.report is None else {"files": {"report": str(asked.report)}}
        print_json(to_jsonable({**document, "sentence": found.sentence, **files}))
        return
    _print(found, document)


def _print(found: Frontier, document: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from dovetail.report.sections.plans.shuffle_frontier import frontier_table

    shown, console = frontier_table(document), Console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in shown.columns:
        table.add_column(name, justify="left" if name in ("shuffler", "verdict") else "right", overflow="fold")
    for row in shown.rows:
        table.add_row(*row)
    console.print(
        f"{found.n:,} people in {found.regions} regions; simulated values, {100.0 * found.agree:g} % of a region "
        f"agree; epsilon {found.epsilon:g}; a blind guess is right for {100.0 * found.chance:.1f} %.",
        markup=False, highlight=False,
    )  # fmt: skip
    console.print(table)
    for line in (*shown.notes, found.sentence[:1].upper() + found.sentence[1:]):
        console.print(line, markup=False, highlight=False)
