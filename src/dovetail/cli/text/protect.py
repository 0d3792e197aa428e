"""`dovetail text protect`: private documents become public embeddings."""

from __future__ import annotations

import os
from dataclasses import asdict
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
    write_whole,
)
from dovetail.cli.console.progress import progress_bar
from dovetail.cli.text.options import (
    CandidatesFile,
    DocumentOptions,
    Epsilon,
    MostSentences,
    ReportFile,
    SelectionName,
    UtilityName,
    check_report,
    write_report,
)
from dovetail.core.checks import share
from dovetail.core.display.losses import upward
from dovetail.core.errors import OutputError

if TYPE_CHECKING:
    import polars as pl

    from dovetail.pipeline.documents.release import DocumentRelease
    from dovetail.text.deep_candidate import DeepCandidate
    from dovetail.text.guarantee import SentenceDP


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
    shuffled: Annotated[
        bool, typer.Option("--shuffle", help="Release rows without names in a uniform order, for a collection.")
    ] = False,
    delta: Annotated[float, typer.Option(help="--shuffle: delta of what it adds for whole documents.")] = 1e-6,
    report: ReportFile = None,
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Release one public embedding for each private document, such that any one sentence is hidden.

    The guarantee is for one sentence replaced by any other. It is not epsilon for the whole document: for that
    multiply by the sentences that a document may have (--most-sentences).

    A run that is cut off goes on where it was when it is called again, and draws nothing twice.

    Example: dovetail text protect letters.csv --candidates candidates.npz --epsilon 10 --out released.parquet
    """
    from dovetail.pipeline.documents.release import release_documents
    from dovetail.pipeline.release_ledger import ReleaseLedger
    from dovetail.text.candidates.candidate_files import read_candidates
    from dovetail.text.deep_candidate import DeepCandidate
    from dovetail.text.documents import MOST_SENTENCES

    _check_place(out, force=force)
    check_report(report, force=force)
    share("delta", delta)
    public, encoder = read_candidates(candidates)
    mechanism = DeepCandidate.of(public, epsilon=epsilon, utility=utility, selection=selection)
    limit = None if most_sentences is None else MOST_SENTENCES  # the ledger knows documents before they are cut
    private = columns.read(documents, limit)
    with progress_bar(hidden=as_json) as progress:
        made = release_documents(
            private, mechanism, encoder, ledger=ReleaseLedger.default() if ledger is None else ReleaseLedger(ledger),
            rng=entropy_of(seed), most_sentences=most_sentences, new_release=new_release, progress=progress,
            named=columns.name is not None, shuffled=shuffled,
        )  # fmt: skip
    write_whole(out, lambda scratch: _write(made.table, scratch, out.suffix.lower()), force=force)
    document = _document(made, mechanism, out)
    if shuffled:
        document["shuffle"] = _amplified(mechanism.guarantee, most_sentences, len(private), delta)
    lines = _lines(document)
    if report is not None:
        write_report(report, {**document, "guarantee_lines": lines}, force=force)
        document["files"]["report"] = str(report)
    print_json(document) if as_json else print_rows("Protected", {**lines, **_alone(made)})


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


def _amplified(guarantee: SentenceDP, most_sentences: int | None, documents: int, delta: float) -> dict[str, Any]:
    from dovetail.pipeline.documents.release import amplify_documents

    if most_sentences is None:
        return {"value": None, "reason": "amplification starts from whole documents; give --most-sentences"}
    made = amplify_documents(guarantee, most_sentences=most_sentences, documents=documents, delta=delta)
    return {**asdict(made), "gains": made.gains, "unit": "one whole document among those of different people"}


def _lines(document: dict[str, Any]) -> dict[str, str]:
    """What is promised, in words, for terminal and page."""
    whole = document["whole_document_epsilon"]
    rows = {
        "documents": f"{document['documents']:,} in {document['files']['released']}",
        "guarantee": f"epsilon {upward(document['epsilon'])} for {document['unit']}",
        "of a whole document": whole.get("reason")
        or f"epsilon {upward(whole['value'])}, also where a shuffle starts from",
        "not protected": "; ".join(document["not_protected"]),
        "selection": f"{document['selection']} by {document['utility']} among {document['candidates']:,} candidates",
    }
    if "shuffle" in document:
        rows["shuffle"] = _shuffle_line(document["shuffle"])
    if document["caveats"]:
        rows["caution"] = "; ".join(document["caveats"])
    if document["reproduced"]:
        rows["ledger"] = "released before under these terms: the same embeddings again, nothing more is spent"
    elif document["releases"] > 1:
        rows["ledger"] = f"release {document['releases']} of some of these documents; epsilons add up above"
    return rows


def _shuffle_line(made: dict[str, Any]) -> str:
    if "reason" in made:
        return f"rows have no names and a uniform order; {made['reason']}"
    if not made["gains"]:
        return (
            "rows have no names and a uniform order; as usual this adds nothing to epsilon "
            f"{upward(made['local'])} of whole documents, which differ in many sentences"
        )
    return (
        f"epsilon {upward(made['central'])} instead of {upward(made['local'])} for {made['unit']}, at delta "
        f"{made['delta']:g}"
    )


def _alone(made: DocumentRelease) -> dict[str, str]:
    """Local counts: for whoever has the documents, and on no page."""
    if made.drawn is None or not (made.drawn.unread or made.drawn.empty):
        return {}
    return {
        "for you alone": f"{made.drawn.unread:,} sentences without a known word had no say; "
        f"{made.drawn.empty:,} empty documents"
    }
