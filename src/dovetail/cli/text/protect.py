"""`dovetail text protect`: private documents become public embeddings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import (
    Force,
    Json,
    Seed,
    entropy_of,
    print_json,
    print_rows,
    progress_bar,
    write_whole,
)
from dovetail.cli.text.options import (
    CandidatesFile,
    DocumentOptions,
    Epsilon,
    MostSentences,
    SelectionName,
    UtilityName,
)
from dovetail.core.errors import OutputError
from dovetail.core.guarantee import rounded_up

if TYPE_CHECKING:
    import polars as pl

    from dovetail.pipeline.documents.release import DocumentRelease
    from dovetail.text.deep_candidate import DeepCandidate


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("protect")(flatten(_protect))


def _protect(
    documents: Annotated[Path, typer.Argument(help="Private documents: .jsonl, .csv or .parquet.")],
    candidates: CandidatesFile,
    epsilon: Epsilon,
    out: Annotated[Path, typer.Option(help="Released embeddings: .parquet, .jsonl or .csv.")],
    columns: DocumentOptions,
    utility: UtilityName = "clipped",
    selection: SelectionName = "permute-and-flip",
    most_sentences: MostSentences = None,
    ledger: Annotated[Path | None, typer.Option(help="Private folder that remembers releases.")] = None,
    new_release: Annotated[
        bool, typer.Option("--new-release", help="Draw again although these documents were released: epsilons add.")
    ] = False,
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Release one public embedding for each private document, such that any one sentence is hidden.

    The guarantee is for one sentence replaced by any other. It is not epsilon for the whole document: for that
    multiply by the sentences that a document may have (--most-sentences).

    Example: dovetail text protect letters.csv --candidates candidates.npz --epsilon 10 --out released.parquet
    """
    from dovetail.pipeline.documents.release import release_documents
    from dovetail.pipeline.release_ledger import ReleaseLedger
    from dovetail.text.candidates.candidate_files import read_candidates
    from dovetail.text.deep_candidate import DeepCandidate

    _check_place(out, force=force)
    public, encoder = read_candidates(candidates)
    mechanism = DeepCandidate.of(public, epsilon=epsilon, utility=utility, selection=selection)
    private = columns.read(documents, most_sentences)
    with progress_bar(hidden=as_json) as progress:
        made = release_documents(
            private, mechanism, encoder, ledger=ReleaseLedger.default() if ledger is None else ReleaseLedger(ledger),
            rng=entropy_of(seed), most_sentences=most_sentences, new_release=new_release, progress=progress,
            named=columns.name is not None,
        )  # fmt: skip
    write_whole(out, lambda scratch: _write(made.table, scratch, out.suffix.lower()), force=force)
    document = _document(made, mechanism, out)
    print_json(document) if as_json else _print(document, made)


def _check_place(out: Path, *, force: bool) -> None:
    if out.suffix.lower() not in (".parquet", ".jsonl", ".csv"):
        raise OutputError(f"{out}: must end in .parquet, .jsonl or .csv.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise OutputError(f"{out}: its folder is missing or cannot be written; nothing was released.")
    if out.exists() and (out.is_dir() or not force):
        raise OutputError(f"{out}: exists already; use --force to replace it, or name another place.")


def _write(table: pl.DataFrame, place: Path, kind: str) -> None:
    import polars as pl

    if kind == ".parquet":
        table.write_parquet(place)
    elif kind == ".jsonl":
        table.write_ndjson(place)
    else:
        numbers = pl.col("embedding").arr.to_list().cast(pl.List(pl.String)).list.join(" ")
        table.with_columns(numbers).write_csv(place)


def _document(made: DocumentRelease, mechanism: DeepCandidate, out: Path) -> dict[str, Any]:
    whole = (
        {"value": None, "reason": "a release declared no limit on sentences; give --most-sentences"}
        if made.whole_document is None
        else {"value": made.whole_document}
    )
    return {
        "epsilon": made.guarantee.epsilon,
        "unit": made.guarantee.unit,
        "not_protected": list(made.guarantee.not_protected),
        "caveats": list(made.guarantee.caveats),
        "source": made.guarantee.source,
        "whole_document_epsilon": whole,
        "utility": mechanism.utility.name,
        "selection": mechanism.selection.name,
        "sensitivity": mechanism.utility.sensitivity,
        "candidates": mechanism.utility.candidates.m,
        "documents": made.table.height,
        "releases": len(made.history),
        "reproduced": made.reproduced,
        "files": {"released": str(out)},
    }


def _print(document: dict[str, Any], made: DocumentRelease) -> None:
    whole = document["whole_document_epsilon"]
    rows = {
        "documents": f"{document['documents']:,} in {document['files']['released']}",
        "guarantee": f"epsilon {rounded_up(document['epsilon'])} for {document['unit']}",
        "of a whole document": whole.get("reason")
        or f"epsilon {rounded_up(whole['value'])}, also where a shuffle starts from",
        "not protected": "; ".join(document["not_protected"]),
        "selection": f"{document['selection']} by {document['utility']} among {document['candidates']:,} candidates",
    }
    if document["caveats"]:
        rows["caution"] = "; ".join(document["caveats"])
    if made.reproduced:
        rows["ledger"] = "released before under these terms: the same embeddings again, nothing more is spent"
    elif document["releases"] > 1:
        rows["ledger"] = f"release {document['releases']} of some of these documents; epsilons add up above"
    if made.drawn is not None and (made.drawn.unread or made.drawn.empty):
        rows["for you alone"] = (
            f"{made.drawn.unread:,} sentences without a known word had no say; {made.drawn.empty:,} empty documents"
        )
    print_rows("Protected", rows)
