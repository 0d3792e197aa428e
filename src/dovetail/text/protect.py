"""Many documents: each is encoded and replaced by a public candidate, by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.documents import Document
from dovetail.text.encoders.encoder import SentenceEncoder
from dovetail.text.integer_rows import UNIT, Rows

Progress = Callable[[str, int, int], None]  # step, done, total


@dataclass(frozen=True)
class ReleasedDocuments:
    """What leaves the house, and what stays.

    Parameters
    ----------
    table : DataFrame
        Released: `document` (name), `candidate` (index), `candidate_name`, `embedding` (d numbers).
    unread : int
        Private: sentences in which the encoder found no direction; they had no say.
    empty : int
        Private: documents without sentences; their candidates are uniform.
    """

    table: pl.DataFrame
    unread: int
    empty: int


@dataclass(frozen=True)
class Drawn:
    """One document's candidate, and its private counts: unread sentences, and whether it had none."""

    candidate: int
    unread: int
    empty: bool


class Journal(Protocol):
    """What was drawn before a run was cut off, by the place of the document; it keeps what is drawn."""

    def drawn(self, place: int) -> Drawn | None: ...

    def keep(self, place: int, drawn: Drawn) -> None: ...


def protect_documents(
    documents: Sequence[Document],
    mechanism: DeepCandidate,
    encoder: SentenceEncoder,
    *,
    most_sentences: int | None = None,
    progress: Progress = lambda step, done, total: None,
    journal: Journal | None = None,
    rng: Entropy | None = None,
) -> ReleasedDocuments:
    """Release one candidate for each document.

    Parameters
    ----------
    documents : sequence of Document
        Names must differ: a name that stands twice would be released twice.
    mechanism : DeepCandidate
    encoder : SentenceEncoder
        The one that made the candidates.
    most_sentences : int, optional
        A public limit; what is beyond is cut. The guarantee about whole documents is this many epsilons.
    journal : Journal, optional
        Private. Documents that it knows are not drawn afresh.

    Raises
    ------
    DataError
        For repeated names, no documents, or an encoder of another dimension.
    """
    source, candidates = entropy_or_system(rng), mechanism.utility.candidates
    _check(documents, encoder, candidates.d)
    found = []
    for place, document in enumerate(documents):
        progress("protect documents", place, len(documents))
        made = journal.drawn(place) if journal else None
        if made is None:
            made = _draw(mechanism, encoder.encode(document.first(most_sentences).sentences), source)
            if journal:
                journal.keep(place, made)
        found.append(made)
    progress("protect documents", len(documents), len(documents))
    chosen = [one.candidate for one in found]
    picked = np.array(chosen, dtype=np.int64)
    embedding = candidates.rows[picked].astype(np.float32) / UNIT
    table = pl.DataFrame(
        {
            "document": [one.name for one in documents],
            "candidate": picked,
            "candidate_name": [candidates.names[one] for one in chosen],
            "embedding": pl.Series(embedding, dtype=pl.Array(pl.Float32, candidates.d)),
        }
    )
    return ReleasedDocuments(table, sum(one.unread for one in found), sum(one.empty for one in found))


def _draw(mechanism: DeepCandidate, rows: Rows, rng: Entropy) -> Drawn:
    return Drawn(mechanism.release(rows, rng), int((~rows.any(axis=1)).sum()), not len(rows))


def _check(documents: Sequence[Document], encoder: SentenceEncoder, d: int) -> None:
    if not documents:
        raise DataError("there are no documents to protect.")
    if encoder.dimension != d:
        raise DataError(f"`encoder` must have {d} dimensions as the candidates do, got {encoder.dimension}.")
    names = [one.name for one in documents]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"document {twice!r} stands more than once; a second release adds its epsilon: give names.")
