"""`dovetail text attack`: how often a released embedding gives a sentence away."""

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


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("attack")(flatten(_attack))


def _attack(
    documents: Annotated[Path, typer.Argument(help="Documents for a rehearsal: nothing is released.")],
    candidates: CandidatesFile,
    columns: DocumentOptions,
    epsilon: Epsilons = "1,3,10",
    utility: UtilityName = "clipped",
    selection: SelectionName = "permute-and-flip",
    most_sentences: MostSentences = None,
    possible: Annotated[int, typer.Option(help="Inversion: sentences from which one is named.", min=2)] = 10,
    attacked: Annotated[int, typer.Option(help="Documents that are attacked, at most.", min=1)] = 50,
    seed: Annotated[int, typer.Option(help="Of the choice of sentences.", min=0)] = 1,
    report: ReportFile = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Success of naming a sentence of a document (inversion) and of telling whether it was there (membership).

    Beside chance, and beside the bound that epsilon implies. nearest: names what lies nearest to the released
    embedding. best: knows the mechanism and every other sentence; nobody does better. Exact over the mechanism's
    randomness, a mean over documents.

    Example: dovetail text attack labelled.jsonl --candidates candidates.npz --epsilon 3,10
    """
    from dovetail.pipeline.documents.rehearse import rehearse_attacks
    from dovetail.text.candidates.candidate_files import read_candidates

    check_report(report, force=force)
    public, encoder = read_candidates(candidates)
    private = columns.read(documents, most_sentences)
    with progress_bar(hidden=as_json) as progress:
        rows = rehearse_attacks(
            private, public, encoder, epsilons=numbers("epsilon", epsilon), utility=utility, selection=selection,
            possible=possible, most_documents=attacked, seed=seed, progress=progress,
        )  # fmt: skip
    document: dict[str, Any] = {
        "candidates": public.m, "utility": utility, "selection": selection,
        "attacks": [{"epsilon": spent, **asdict(one)} for spent, one in rows],
    }  # fmt: skip
    write_report(report, document, force=force)
    print_json(document) if as_json else _print(document["attacks"])


def _print(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="A sentence of a document", title_justify="left", title_style="bold")
    for name in ("attack", "of", "epsilon", "chance", "nearest", "best", "±", "bound"):
        table.add_column(name, justify="left" if name == "attack" else "right")
    for row in rows:
        shares = (f"{row[name]:.3f}" for name in ("chance", "nearest", "best", "best_error", "bound"))
        table.add_row(row["attack"], str(row["possible"]), f"{row['epsilon']:g}", *shares)
    table.caption = "best: knows the mechanism and every other sentence; bound: what epsilon implies for anybody"
    table.caption_justify = "left"
    Console().print(table)
