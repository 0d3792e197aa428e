"""`dovetail text evaluate`: what released embeddings are good for, on documents whose classes are known."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import Force, Json, print_json
from dovetail.cli.console.progress import progress_bar
from dovetail.cli.text.options import (
    CandidatesFile,
    DocumentOptions,
    Epsilons,
    MostSentences,
    ReportFile,
    SelectionName,
    UtilityName,
    check_report,
    numbers,
    write_report,
)
from dovetail.core.errors import DataError, ParameterError


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("evaluate")(flatten(_evaluate))


def _evaluate(
    documents: Annotated[Path, typer.Argument(help="Documents with classes, for a rehearsal: nothing is released.")],
    candidates: CandidatesFile,
    columns: DocumentOptions,
    epsilon: Epsilons = "1,3,10",
    utility: UtilityName = "clipped,approval,votes",
    selection: SelectionName = "permute-and-flip",
    most_sentences: MostSentences = None,
    repetitions: Annotated[int, typer.Option(help="Fresh draws.", min=1)] = 5,
    by_sentences: Annotated[
        str | None, typer.Option(help="Scores by length as well: first numbers of sentences, such as 1,5,10,20.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the simulation.", min=0)] = 1,
    report: ReportFile = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Macro-F1 and accuracy of a public classifier on released embeddings, beside the non-private ones.

    A rehearsal on simulated randomness: its scores tell of these documents, so use documents that may be told of.

    Example: dovetail text evaluate labelled.jsonl --label archive --candidates candidates.npz --epsilon 3,10
    """
    from dovetail.pipeline.documents.rehearse import rehearse_documents
    from dovetail.text.candidates.candidate_files import read_candidates

    if columns.label is None:
        raise ParameterError("--label must name the column of classes.")
    check_report(report, force=force)
    public, encoder = read_candidates(candidates)
    private = columns.read(documents, most_sentences)
    if any(one.label is None for one in private):
        raise DataError(f"{documents}: every document must have a class in {columns.label!r}.")
    with progress_bar(hidden=as_json) as progress:
        rows = rehearse_documents(
            private, public, encoder, epsilons=numbers("epsilon", epsilon),
            utilities=[one.strip() for one in utility.split(",")], selection=selection, repetitions=repetitions,
            seed=seed, progress=progress,
            by_sentences=[_whole(one) for one in (by_sentences or "").split(",") if one],
        )  # fmt: skip
    document: dict[str, Any] = {
        "documents": len(private), "candidates": public.m, "rows": [asdict(one) for one in rows],
    }  # fmt: skip
    write_report(report, document, force=force)
    print_json(document) if as_json else _print(document["rows"])


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ParameterError(f"--by-sentences must be whole numbers separated by commas, got {text!r}.") from None


def _print(rows: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    parts = len({row["sentences"] for row in rows}) > 1
    table = Table(title="Released embeddings", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    columns = ["release", *(["sentences"] if parts else []), "epsilon", "macro-F1", "±", "accuracy", "same class"]
    for name in columns:
        first = name == "release"
        table.add_column(name, justify="left" if first else "right", min_width=24 if first else None)
    for row in rows:
        epsilon = "-" if row["epsilon"] is None else f"{row['epsilon']:g}"
        made, share = row["score"], row["same_class"]
        table.add_row(
            row["release"], *([row["sentences"]] if parts else []), epsilon, f"{made['macro_f1']:.3f}",
            f"{made['macro_f1_deviation']:.3f}", f"{made['accuracy']:.3f}", "" if share is None else f"{share:.2f}",
        )  # fmt: skip
    Console().print(table)
    typer.echo("same class: of a document's ten best candidates, without privacy, the share of its own class")
    others = (f"{row['release']}: epsilon is for {row['unit']}" for row in rows if "incomparable" in row["unit"])
    for line in dict.fromkeys(others):
        typer.echo(line)
