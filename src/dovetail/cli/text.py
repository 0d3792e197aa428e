"""`dovetail text`: sentence privacy of documents; options and printing, no mechanism."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dovetail.cli.options import add_verbs, as_share, verb_group
from dovetail.cli.output import (
    Facts,
    Force,
    Grid,
    Json,
    Seed,
    check_free,
    entropy_of,
    interruptible,
    show,
    write_text,
    write_whole,
)
from dovetail.cli.progress import progress_bar, tell
from dovetail.core.checks import share
from dovetail.core.display import upward
from dovetail.core.errors import DataError, OutputError, ParameterError

if TYPE_CHECKING:
    import polars as pl

    from dovetail.text.deep_candidate import DeepCandidate, SentenceDP
    from dovetail.text.documents import Document
    from dovetail.text.recoder import RecoderTrial
    from dovetail.text.release import DocumentRelease


# Options that the verbs on documents share.


CandidatesFile = Annotated[Path, typer.Option("--candidates", help="File made by `dovetail text candidates`.")]
Epsilon = Annotated[float, typer.Option(help="For one replaced sentence, nats.")]
UtilityName = Annotated[
    str, typer.Option("--utility", help="clipped, approval, votes, inner, depth, or, to compare, published.")
]
SelectionName = Annotated[
    str, typer.Option("--selection", help="permute-and-flip, or exponential for several releases of a document.")
]
MostSentences = Annotated[
    int | None, typer.Option(help="Public limit on the sentences of a document; the rest is cut.", min=1)
]


Epsilons = Annotated[str, typer.Option("--epsilon", help="One or more epsilons, separated by commas.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="HTML file with all tables and a picture.")]


@dataclass(frozen=True)
class DocumentOptions:
    """Where a file has its documents."""

    text: Annotated[
        str | None, typer.Option(help="Column of texts, or of lists of sentences; usual names are found.")
    ] = None
    name: Annotated[str | None, typer.Option(help="Column of public names; default: row numbers.")] = None
    label: Annotated[str | None, typer.Option(help="Column of classes, where they are known.")] = None
    language: Annotated[str, typer.Option(help="ISO code of the language, for the splitter.")] = "en"
    drop_bad: Annotated[
        bool, typer.Option("--drop-bad", help="Leave out rows that hold no document, and say how many.")
    ] = False

    def read(self, place: Path, most_sentences: int | None = None) -> Sequence[Document]:
        """The documents of a file, cut to a public number of sentences; what is left out is said."""
        from dovetail.text.documents import read_documents

        table = read_documents(place, text=self.text, name=self.name, label=self.label, language=self.language,
                               most_sentences=most_sentences, drop_bad=self.drop_bad)  # fmt: skip
        for line in table.notes:
            typer.echo(line, err=True)
        return table.documents


def numbers(name: str, text: str) -> list[float]:
    """Numbers of an option, or a ParameterError that names it."""
    try:
        return [float(one) for one in text.split(",")]
    except ValueError:
        raise ParameterError(f"--{name} must be numbers separated by commas, got {text!r}.") from None


def write_report(place: Path | None, document: dict[str, Any], *, force: bool) -> None:
    """The HTML page of a document, where one is asked for; the document then names it."""
    if place is None:
        return
    from dovetail.report.html import render_text

    write_text(place, render_text(document), force=force)
    document["files"] = {**document.get("files", {}), "report": str(place)}


# `dovetail text candidates`: public documents become the candidates of every release.


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
    from dovetail.text.candidates import Candidates, candidates_bytes
    from dovetail.text.documents import PublicDocuments
    from dovetail.text.encoders import SentenceEncoder, SentenceModel, SVDEncoder
    from dovetail.text.recoder import fit_recoder

    tell("read the public documents")
    texts = PublicDocuments(documents.read(public))
    tell(f"fit {encoder} to {len(texts.documents):,} documents")
    fitted: SentenceEncoder = SVDEncoder.fit(texts, dimension=dimension) if encoder == "svd" else SentenceModel()
    trial = None if recode is None else fit_recoder(texts, fitted, epsilon=recode)
    fitted = fitted if trial is None else trial.encoder
    tell("embed the candidates")
    made = Candidates.from_documents(
        texts, fitted, fewest_sentences=fewest_sentences, clusters=clusters, projections=projections
    )
    content = candidates_bytes(made, fitted)
    write_whole(out, lambda scratch: scratch.write_bytes(content), force=force)
    document = {
        "candidates": made.m, "documents": len(texts.documents), "dimension": made.d, "encoder": fitted.name,
        "classes": len(set(made.labels or ())), "digest": made.digest, "files": {"candidates": str(out)},
    }  # fmt: skip
    if trial is not None:
        document["recoder"] = {
            "kept": trial.kept, "agreement": trial.agreement, "agreement_before": trial.agreement_before,
            "documents": trial.documents,
        }  # fmt: skip
    rows = {
        "candidates": f"{made.m:,} of {len(texts.documents):,} public documents, in {out}",
        "encoder": f"{fitted.name}, {made.d} numbers for a sentence",
        "classes": str(document["classes"] or "none (--label COLUMN names them)"),
        **({} if trial is None else {"recoder": _recoder(trial)}),
    }
    show(document, Facts("Candidates", rows), as_json=as_json)


def _recoder(trial: RecoderTrial) -> str:
    return (
        f"{'kept' if trial.kept else 'not kept'}: {trial.documents} held-out public documents agree "
        f"{trial.agreement:.2f} with it, {trial.agreement_before:.2f} without"
    )


# `dovetail text plan`: which epsilon selects a good candidate.


def _plan(
    candidates: Annotated[int, typer.Option(help="How many candidates there are.", min=1)],
    depth: Annotated[
        float, typer.Option(help="Lead of good candidates: as much as this many sentences can move.", min=0)
    ],
    probability: Annotated[
        float, typer.Option(parser=as_share, help="How surely a good candidate shall be released.")
    ] = 0.95,
    epsilon: Annotated[float | None, typer.Option(help="Asks how many good candidates it takes.")] = None,
    good: Annotated[
        int | None, typer.Option(help="Good candidates; asks which epsilon it takes. [default: 1]", min=1)
    ] = None,
    utility: UtilityName = "clipped",
    selection: SelectionName = "permute-and-flip",
    as_json: Json = False,
) -> None:
    """How many candidates must be good for an epsilon, or which epsilon finds some that are.

    Answers hold for the whole numbers by which `protect` draws: they ask a little more than the rule in real numbers
    of the paper's table. Good candidates lead all others by --depth sentences: in depth or votes,
    or by that many times the most that one sentence can move any other utility. For votes, candidates are clusters.
    --epsilon asks for b, --good (one, where neither is given) for epsilon, both for the probability.

    Example: dovetail text plan --candidates 5000 --depth 5 --probability 0.95 --epsilon 3
    """
    from dovetail.core.checks import probability as check_probability
    from dovetail.text.plan import drawn_probability, fewest_good, least_epsilon
    from dovetail.text.utilities import SELECTIONS, UTILITIES, choose

    choose("utility", utility, UTILITIES)
    choose("selection", selection, SELECTIONS)
    check_probability("probability", probability)
    setting: dict[str, Any] = {"candidates": candidates, "lead": depth, "selection": selection}
    tell("weigh budgets and good candidates")
    if epsilon is None:
        b = 1 if good is None else good
        spent = least_epsilon(good=b, sure=probability, **setting)
    else:
        spent = epsilon
        b = fewest_good(epsilon=spent, sure=probability, **setting) if good is None else good
    reached = drawn_probability(epsilon=spent, good=b, **setting)
    document = {
        "b": b, "epsilon": spent, "probability": reached, "candidates": candidates, "depth": depth,
        "utility": utility, "selection": selection,
    }  # fmt: skip
    rows = {
        "good candidates": f"{b:,} of {candidates:,}, leading by {depth:g} sentences",
        "epsilon of a sentence": upward(spent),
        "a good one is released with probability": f"{reached:.4f}",
    }
    show(document, Facts("Plan", rows), as_json=as_json)


# `dovetail text evaluate`: what released embeddings are good for, on documents whose classes are known.


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
    scored: Annotated[
        int, typer.Option(help="Documents that are scored at most, chosen at random; that bounds the time.", min=1)
    ] = 500,
    seed: Annotated[int, typer.Option(help="Of the simulation.", min=0)] = 1,
    rows: Annotated[
        Path | None,
        typer.Option(help="File (.jsonl) that keeps each row once it is computed; called again, goes on."),
    ] = None,
    report: ReportFile = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Macro-F1 and accuracy of a public classifier on released embeddings, beside the non-private ones.

    A rehearsal on simulated randomness: its scores tell of these documents, so use documents that may be told of.

    Interrupted, it prints what it has. With --rows nothing is lost when it is killed either, and more epsilons or
    utilities may be asked for later.

    Example: dovetail text evaluate labelled.jsonl --label archive --candidates candidates.npz --epsilon 3,10
    """
    from dovetail.text.candidates import read_candidates
    from dovetail.text.release import RehearsedRows, rehearse_documents

    if columns.label is None:
        raise ParameterError("--label must name the column of classes.")
    check_free(report, force=force)
    public, encoder = read_candidates(candidates)
    private = columns.read(documents, most_sentences)
    if any(one.label is None for one in private):
        raise DataError(f"{documents}: every document must have a class in {columns.label!r}.")
    setting: dict[str, Any] = {
        "selection": selection, "repetitions": repetitions, "seed": seed, "most_documents": scored,
        "by_sentences": [_whole(one) for one in (by_sentences or "").split(",") if one],
    }  # fmt: skip
    found, interrupted = RehearsedRows.of(rows, private, public, setting), False
    try:
        with progress_bar(hidden=as_json) as progress:
            for row in rehearse_documents(
                private, public, encoder, epsilons=numbers("epsilon", epsilon),
                utilities=[one.strip() for one in utility.split(",")], known=found.known,
                progress=progress, **setting,
            ):  # fmt: skip
                found.keep(row)
    except KeyboardInterrupt:
        if not found.rows:
            raise
        interrupted = True
        typer.echo("interrupted: what was computed until then follows", err=True)
    document: dict[str, Any] = {
        "documents": len(private), "scored": min(len(private), scored), "candidates": public.m,
        "interrupted": interrupted, "rows": [asdict(one) for one in found.rows],
    }  # fmt: skip
    write_report(report, document, force=force)
    show(document, *_evaluation(document["rows"]), as_json=as_json)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ParameterError(f"--by-sentences must be whole numbers separated by commas, got {text!r}.") from None


def _evaluation(rows: list[dict[str, Any]]) -> Iterator[str | Grid]:
    parts = len({row["sentences"] for row in rows}) > 1
    cells = []
    for row in rows:
        made, share = row["score"], row["same_class"]
        epsilon = "-" if row["epsilon"] is None else f"{row['epsilon']:g}"
        cells.append((
            row["release"], *([row["sentences"]] if parts else []), epsilon,
            f"{made['macro_f1']:.3f}", f"{made['macro_f1_deviation']:.3f}", f"{made['accuracy']:.3f}",
            "" if share is None else f"{share:.2f}",
        ))  # fmt: skip
    heads = ("release", *(["sentences"] if parts else []), "epsilon", "macro-F1", "±", "accuracy", "same class")
    yield Grid("Released embeddings", heads, cells)
    yield "same class: of a document's ten best candidates, without privacy, the share of its own class"
    others = (f"{row['release']}: epsilon is for {row['unit']}" for row in rows if "incomparable" in row["unit"])
    yield from dict.fromkeys(others)


# `dovetail text attack`: how often a released embedding gives a sentence away.


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
    from dovetail.text.candidates import read_candidates
    from dovetail.text.release import rehearse_attacks

    check_free(report, force=force)
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
    show(document, *_attack_blocks(document["attacks"]), as_json=as_json)


def _attack_blocks(rows: list[dict[str, Any]]) -> Iterator[str | Grid]:
    shares = ("chance", "nearest", "best", "best_error", "bound")
    cells = [
        (row["attack"], str(row["possible"]), f"{row['epsilon']:g}", *(f"{row[name]:.3f}" for name in shares))
        for row in rows
    ]
    heads = ("attack", "of", "epsilon", "chance", "nearest", "best", "±", "bound")
    yield Grid("A sentence of a document", heads, cells)
    yield "best: knows the mechanism and every other sentence; bound: what epsilon implies for anybody"


# `dovetail text protect`: private documents become public embeddings.


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
    delta: Annotated[
        float, typer.Option(parser=as_share, help="--shuffle: delta of what it adds for whole documents.")
    ] = 1e-6,
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
    from dovetail.ledger.releases import ReleaseLedger
    from dovetail.text.candidates import read_candidates
    from dovetail.text.deep_candidate import DeepCandidate
    from dovetail.text.documents import MOST_SENTENCES
    from dovetail.text.release import release_documents

    _check_place(out, force=force)
    check_free(report, force=force)
    share("delta", delta)
    public, encoder = read_candidates(candidates)
    mechanism = DeepCandidate.of(public, epsilon=epsilon, utility=utility, selection=selection)
    limit = None if most_sentences is None else MOST_SENTENCES  # the ledger knows documents before they are cut
    private = columns.read(documents, limit)
    kept = "no file was written; what was drawn is in the ledger, and the same command goes on from there"
    with interruptible(kept if seed is None else "nothing was written"), progress_bar(hidden=as_json) as progress:
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
    show(document, Facts("Protected", {**lines, **_alone(made)}), as_json=as_json)


def _check_place(out: Path, *, force: bool) -> None:
    if out.suffix.lower() not in (".parquet", ".jsonl", ".csv"):
        raise OutputError(f"{out}: must end in .parquet, .jsonl or .csv.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise OutputError(f"{out}: its folder is missing or cannot be written; nothing was released.")
    check_free(out, force=force)


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
    from dovetail.text.release import amplify_documents

    if most_sentences is None:
        return {"value": None, "reason": "amplification starts from whole documents; give --most-sentences"}
    made = amplify_documents(guarantee, most_sentences=most_sentences, documents=documents, delta=delta)
    return {**asdict(made), "gains": made.gains, "unit": "one whole document among those of different people"}


def _lines(document: dict[str, Any]) -> dict[str, str]:
    """Put the guarantee in words, for terminal and page."""
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
    """Local counts: for anybody who has the documents, and on no page."""
    if made.drawn is None or not (made.drawn.unread or made.drawn.empty):
        return {}
    return {
        "for you alone": f"{made.drawn.unread:,} sentences without a known word had no say; "
        f"{made.drawn.empty:,} empty documents"
    }


app = verb_group(
    "text",
    """Sentence privacy of documents: a document is released as one public embedding that hides any one sentence.

    In order: candidates (from public documents), plan (which epsilon is enough), evaluate and attack (what released
    embeddings are good for, and what they give away), protect (private documents).
    """,
)
add_verbs(
    app, {"candidates": _candidates, "plan": _plan, "evaluate": _evaluate, "attack": _attack, "protect": _protect}
)

VERBS = {"text": app}
