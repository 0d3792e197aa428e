"""Releasing documents through the private ledger: the same documents are drawn once, and further releases add up."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import polars as pl

from dovetail.core.entropy import Entropy
from dovetail.pipeline.progress import Progress, silent
from dovetail.pipeline.release_entry import LedgerEntry, ReleaseRequest
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.documents import Document
from dovetail.text.encoders.encoder import SentenceEncoder
from dovetail.text.guarantee import SentenceDP
from dovetail.text.protect import ReleasedDocuments, protect_documents


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
    """

    table: pl.DataFrame
    guarantee: SentenceDP
    history: tuple[LedgerEntry, ...]
    reproduced: bool
    drawn: ReleasedDocuments | None


def release_documents(
    documents: Sequence[Document],
    mechanism: DeepCandidate,
    encoder: SentenceEncoder,
    *,
    ledger: ReleaseLedger,
    rng: Entropy,
    most_sentences: int | None = None,
    new_release: bool = False,
    progress: Progress = silent,
) -> DocumentRelease:
    """Protect documents and record what was drawn before anybody sees it.

    Raises
    ------
    UnsupportedError
        Where these documents were released under other terms and `new_release` was not asked for.
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

    request = _request(documents, mechanism, encoder, most_sentences, rng.provenance)
    answer = ledger.answer(request, new_release=new_release, draw=draw)
    parts = [SentenceDP(entry.epsilon, source=f"release {entry.number}") for entry in answer.history]
    total = mechanism.guarantee if len(parts) == 1 else reduce(SentenceDP.compose, parts)
    return DocumentRelease(
        answer.reports,
        total.drawn_from(rng.provenance),
        answer.history,
        answer.reproduced,
        drawn[0] if drawn else None,
    )


def _request(
    documents: Sequence[Document], mechanism: DeepCandidate, encoder: SentenceEncoder, most: int | None, drawn: str
) -> ReleaseRequest:
    """The documents and the terms in canonical form; names are kept apart from those of people in tables."""
    content = sorted((one.name, one.sentences) for one in documents)
    terms = {
        "candidates": mechanism.utility.candidates.digest,
        "encoder": encoder.name,
        "utility": mechanism.utility.name,
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
        people=[f"document\n{one.name}" for one in documents],
        epsilon=mechanism.budget.epsilon,
        alpha=math.inf,
        n=len(documents),
        shuffler="identity",
    )
