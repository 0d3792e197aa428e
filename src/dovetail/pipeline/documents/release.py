"""Releasing documents through the private ledger: the same documents are drawn once, and further releases add up."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import polars as pl

from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.pipeline.progress import Progress, silent
from dovetail.pipeline.release_entry import LedgerEntry, ReleaseRequest
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.documents import Document
from dovetail.text.encoders.encoder import SentenceEncoder
from dovetail.text.guarantee import SentenceDP, add, multiply
from dovetail.text.protect import ReleasedDocuments, protect_documents

_NAME = "document's name\n"


@dataclass(frozen=True)
class DocumentRelease:
    """A recorded release of documents.

    Parameters
    ----------
    table : DataFrame
        Released.
    guarantee : SentenceDP
        Over every recorded release of these documents.
    history : tuple of LedgerEntry
        Those releases, this one included.
    reproduced : bool
        The same documents under the same terms were released before: this is that release again.
    drawn : ReleasedDocuments, optional
        Local counts of a fresh draw.
    whole_document : float, optional
        Epsilon of a whole document over all these releases; None where one of them declared no limit on sentences.
    """

    table: pl.DataFrame
    guarantee: SentenceDP
    history: tuple[LedgerEntry, ...]
    reproduced: bool
    drawn: ReleasedDocuments | None
    whole_document: float | None


def release_documents(
    documents: Sequence[Document],
    mechanism: DeepCandidate,
    encoder: SentenceEncoder,
    *,
    ledger: ReleaseLedger,
    rng: Entropy,
    most_sentences: int | None = None,
    new_release: bool = False,
    named: bool = True,
    progress: Progress = silent,
) -> DocumentRelease:
    """Protect documents and record what was drawn before anybody sees it.

    A document is known again by its sentences, and by its name where documents are `named` and not just numbered.

    Raises
    ------
    UnsupportedError
        Where some of these documents were released before and `new_release` was not asked for.
    OutputError
        Where the ledger cannot be read or written: then nothing is released.
    """
    drawn: list[ReleasedDocuments] = []

    def draw() -> pl.DataFrame:
        drawn.append(
            protect_documents(
                documents, mechanism, encoder, most_sentences=most_sentences, progress=progress, rng=rng
            )
        )
        return drawn[0].table

    request = _request(documents, mechanism, encoder, most=most_sentences, drawn=rng.provenance, named=named)
    if not new_release:
        _refuse_known(request, ledger)
    answer = ledger.answer(request, new_release=new_release, draw=draw)
    notes = [json.loads(entry.note) for entry in answer.history]
    both = list(zip(answer.history, notes, strict=True))
    parts = [
        SentenceDP(entry.epsilon, source=f"release {entry.number}").drawn_from(note["drawn"]) for entry, note in both
    ]
    total = mechanism.guarantee.drawn_from(rng.provenance) if len(parts) == 1 else reduce(SentenceDP.compose, parts)
    limits = [note["most_sentences"] for note in notes]
    wholes = [multiply(limit, entry.epsilon) for entry, limit in zip(answer.history, limits, strict=True) if limit]
    return DocumentRelease(
        answer.reports, total, answer.history, answer.reproduced, drawn[0] if drawn else None,
        whole_document=None if None in limits else add(*wholes),
    )  # fmt: skip


def _refuse_known(request: ReleaseRequest, ledger: ReleaseLedger) -> None:
    """UnsupportedError for documents that were released before, in this table or among others."""
    entries = ledger.entries()
    again = ledger.find(request.table, request.terms, entries)
    seen = ledger.known(request.rounds, entries)
    names = np.array([key.startswith(_NAME) for key in request.rounds], dtype=np.bool_)
    if again is None and (known := int(max(seen[names].sum(), seen[~names].sum()))):
        raise UnsupportedError(
            f"{known:,} of these {request.n:,} documents were released before; leave them out, or use --new-release "
            "if you mean to draw them again: epsilons add."
        )


def _request(
    documents: Sequence[Document],
    mechanism: DeepCandidate,
    encoder: SentenceEncoder,
    *,
    most: int | None,
    drawn: str,
    named: bool,
) -> ReleaseRequest:
    """The documents and the terms in canonical form; documents' keys are kept apart from people's in tables."""
    content = sorted((one.name, one.sentences) for one in documents)
    known = sorted({"document\n" + json.dumps(one.sentences) for one in documents if one.sentences})
    keys = known + ([f"{_NAME}{one.name}" for one in documents] if named else [])
    terms = {
        "candidates": mechanism.utility.candidates.digest,
        "encoder": encoder.name,
        "utility": repr(mechanism.utility),
        "spread": mechanism.utility.spread,
        "selection": mechanism.selection.name,
        "epsilon": repr(mechanism.budget.epsilon),
        "most_sentences": most,
        "provenance": drawn,
    }
    return ReleaseRequest(
        table=b"documents\n" + json.dumps(content).encode(),
        terms=b"documents\n" + json.dumps(terms, sort_keys=True).encode(),
        groups=b"",
        people=keys,
        epsilon=mechanism.budget.epsilon,
        alpha=math.inf,
        n=len(documents),
        shuffler="identity",
        rounds=keys,
        note=json.dumps({"most_sentences": most, "drawn": drawn}),
    )
