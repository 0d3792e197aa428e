"""`dovetail memorize dejavu`: does an encoder tell from a crop what only its training images could have taught it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dovetail.cli.console.output import Force, Json, print_json, write_whole
from dovetail.cli.console.progress import progress_bar
from dovetail.core.errors import OutputError


def register(app: typer.Typer) -> None:
    """Add the verb to the group."""
    app.command("dejavu")(_dejavu)


def _dejavu(
    pairs: Annotated[
        list[Path], typer.Argument(help="One file for each pair of models: .npz, .parquet, or a folder of .npy.")
    ],
    neighbours: Annotated[int, typer.Option(help="K of the attack.", min=1)] = 100,
    share: Annotated[
        float, typer.Option(help="p of the headline score(p): of the images, the most confident.")
    ] = 0.2,
    distance: Annotated[str, typer.Option(help="euclidean (as published) or cosine.")] = "euclidean",
    draws: Annotated[int, typer.Option(help="Of the bootstrap and of the permutation.", min=100)] = 2000,
    seed: Annotated[int, typer.Option(help="A test is a simulation: reproducible draws.", min=0)] = 1,
    report: Annotated[Path | None, typer.Option(help="HTML file with the result as a page.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Guess the class of training images from crops without the object, with their own model and with another.

    A file holds embeddings, row by row: labels_a and a_by_model_a, a_by_model_b (crops of A by model A, which trained
    on A, and by model B, which did not); labels_public and public_by_model_a, public_by_model_b (a public set with
    labels); for the other direction labels_b, b_by_model_a, b_by_model_b. Instead of a public set `classes`: the
    arrays are then a classifier's logits. One model alone: labels_controls and controls_by_model_a, crops of images
    that nobody trained on, and, to sharpen it, a_by_classifier and controls_by_classifier (guessed labels). Parquet:
    a row for each image with set (a, b, controls, public), label, model_a, model_b (lists), classifier.

    `interval` is that of `score`; `gap` is the difference of both accuracies with its own.

    Example: dovetail memorize dejavu pair1.npz pair2.npz --neighbours 30 --report dejavu.html
    """
    from dovetail.memorize.dejavu.document import dejavu_document
    from dovetail.memorize.dejavu.pair_files import read_pair

    if report is not None and report.is_dir():
        raise OutputError(f"{report}: is a folder; name a file.")
    if report is not None and not report.absolute().parent.is_dir():
        raise OutputError(f"{report}: its folder does not exist; name another place.")
    if report is not None and report.exists() and not force:
        raise OutputError(f"{report}: exists already; use --force to replace it, or name another place.")
    with progress_bar(hidden=as_json) as progress:
        document = dejavu_document(
            [read_pair(place) for place in pairs], share=share, neighbours=neighbours, draws=draws, seed=seed,
            distance=distance, progress=progress,  # type: ignore[arg-type]
        )  # fmt: skip
    if report is not None:
        from dovetail.report.render.result_page import render_result
        from dovetail.report.sections.dejavu import dejavu_page

        text = render_result(dejavu_page(document))
        write_whole(report, lambda scratch: _write(scratch, text), force=force)
        document["files"] = {"report": str(report)}
    print_json(document) if as_json else _show(document)


def _write(scratch: Path, text: str) -> None:
    scratch.write_text(text, encoding="utf-8")


def _show(document: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table as Grid

    from dovetail.report.sections.dejavu import dejavu_tables

    console = Console(soft_wrap=True)
    console.print(document["verdict"], style="bold", markup=False, highlight=False)
    for caption, table in dejavu_tables(document):
        grid = Grid(title=caption, title_justify="left", title_style="bold")
        for place, column in enumerate(table.columns):
            grid.add_column(column, justify="right" if place else "left")
        for row in table.rows:
            grid.add_row(*row)
        console.print(grid)
    for line in (*document["warnings"], *document["limits"]):
        console.print(f"- {line}", markup=False, highlight=False)
