"""`dovetail text candidates`: public documents become the candidates of every release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import Force, Json, print_json, print_rows, write_whole
from dovetail.cli.text.options import DocumentOptions

if TYPE_CHECKING:
    from dovetail.text.candidates.recoder_fit import RecoderTrial


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("candidates")(flatten(_candidates))


def _candidates(
    public: Annotated[Path, typer.Argument(help="Public documents: .jsonl, .csv or .parquet.")],
    out: Annotated[Path, typer.Option(help="File (.npz) for candidates and encoder.")],
    documents: DocumentOptions,
    encoder: Annotated[
        Literal["svd", "minilm"],
        typer.Option(help="svd: fitted to these documents; minilm: a sentence model (extra `text-model`)."),
    ] = "svd",
    dimension: Annotated[int, typer.Option(help="svd: numbers of an embedding.", min=2, max=1024)] = 128,
    fewest_sentences: Annotated[int, typer.Option(help="Shorter documents give no candidate.", min=1)] = 8,
    clusters: Annotated[int, typer.Option(help="For the utility votes.", min=1)] = 20,
    projections: Annotated[int, typer.Option(help="For the utility depth.", min=1)] = 10,
    recode: Annotated[
        float | None,
        typer.Option(help="Train a recoder, kept if held-out documents agree better at this epsilon."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Encode public documents into candidates, one of which stands for each private document later.

    Everything in the file is public; no private document may be among these. With --label the classifier of
    `evaluate` and the choice of parameters use the classes.

    Example: dovetail text candidates public.jsonl --text abstract --label archive --out candidates.npz
    """
    from dovetail.text.candidates.candidate_files import candidates_bytes
    from dovetail.text.candidates.candidates import Candidates
    from dovetail.text.candidates.recoder_fit import fit_recoder
    from dovetail.text.documents import PublicDocuments
    from dovetail.text.encoders.encoder import SentenceEncoder
    from dovetail.text.encoders.sentence_model import SentenceModel
    from dovetail.text.encoders.svd import SVDEncoder

    texts = PublicDocuments(documents.read(public))
    fitted: SentenceEncoder = SVDEncoder.fit(texts, dimension=dimension) if encoder == "svd" else SentenceModel()
    trial = None if recode is None else fit_recoder(texts, fitted, epsilon=recode)
    fitted = fitted if trial is None else trial.encoder
    made = Candidates.from_documents(
        texts, fitted, fewest_sentences=fewest_sentences, clusters=clusters, projections=projections
    )
    content = candidates_bytes(made, fitted)

    def write(scratch: Path) -> None:
        scratch.write_bytes(content)

    write_whole(out, write, force=force)
    document = {
        "candidates": made.m, "documents": len(texts.documents), "dimension": made.d, "encoder": fitted.name,
        "classes": len(set(made.labels or ())), "digest": made.digest, "files": {"candidates": str(out)},
    }  # fmt: skip
    if trial is not None:
        document["recoder"] = {
            "kept": trial.kept, "agreement": trial.agreement, "agreement_before": trial.agreement_before,
            "documents": trial.documents,
        }  # fmt: skip
    if as_json:
        print_json(document)
    else:
        said = {} if trial is None else {"recoder": _recoder(trial)}
        print_rows("Candidates", {
            "candidates": f"{made.m:,} of {len(texts.documents):,} public documents, in {out}",
            "encoder": f"{fitted.name}, {made.d} numbers for a sentence",
            "classes": str(document["classes"] or "none (--label COLUMN names them)"), **said,
        })  # fmt: skip


def _recoder(trial: RecoderTrial) -> str:
    return (
        f"{'kept' if trial.kept else 'not kept'}: {trial.documents} held-out public documents agree "
        f"{trial.agreement:.2f} with it, {trial.agreement_before:.2f} without"
    )
