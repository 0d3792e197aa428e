"""Releasing documents through the private ledger: the same documents are drawn once, and further releases add up."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from unicodedata import category, normalize

import numpy as np
import polars as pl

from dovetail.account.amplify import amplify
from dovetail.core.checks import share
from dovetail.core.display.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.pipeline.documents.journal import DocumentJournal
from dovetail.pipeline.progress import Progress, silent
from dovetail.pipeline.release_entry import LedgerEntry, ReleaseRequest
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.documents import Document
from dovetail.text.encoders.encoder import SentenceEncoder
from dovetail.text.guarantee import SentenceDP, add, multiply
from dovetail.text.protect import ReleasedDocuments, protect_documents

_MOST_EPSILON = 700.0  # beyond it no shuffle is computed, and none would help
_NAME = "document's name\n"
_WORDS = re.compile(r"\w+|[^\w\s]")  # a mark is a word: splitters cut beside marks and blanks
_SELECTORS = frozenset(map(chr, (0x34F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))


@mute
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
    shuffled: bool = False,
    progress: Progress = silent,
) -> DocumentRelease:
    """Protect documents and record what was drawn before anybody sees it.

    A document is known again by its words, in whatever case, order or form of Unicode, however it is split or cut by
    `most_sentences`; and by its name where documents are `named` and not just numbered. One with another word is
    another document. A run that was cut off goes on where it was: what it had drawn stays
    drawn. With `shuffled` rows lose their names and are permuted uniformly, so that nobody knows whose embedding is
    whose.

    Raises
    ------
    UnsupportedError
        Where some of these documents were released before and `new_release` was not asked for.
    OutputError
        Where the ledger cannot be read or written: then nothing is released.
    """
    request = _request(
        documents, mechanism, encoder, most=most_sentences, drawn=rng.provenance, named=named, shuffled=shuffled
    )
    if not new_release:
        _refuse_known(request, ledger)
    drawn: list[ReleasedDocuments] = []
    journal = _journal(request, documents, ledger) if rng.provenance == "device" else None

    def draw() -> pl.DataFrame:
        made = protect_documents(
            documents, mechanism, encoder, most_sentences=most_sentences, progress=progress, journal=journal, rng=rng
        )
        drawn.append(made)
        return shuffle_rows(made.table, rng) if shuffled else made.table

    finished = False
    try:
        answer = ledger.answer(request, new_release=new_release, draw=draw)
        finished = True
    finally:
        if journal is not None:
            journal.close(finished=finished)
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


@dataclass(frozen=True)
class ShuffledDocuments:
    """What a uniform shuffle adds to the promise about whole documents; usually nothing.

    Parameters
    ----------
    local : float, nats
        Epsilon of a whole document before the shuffle: all its sentences, not one.
    central : float, nats
        After the shuffle, at `delta`.
    delta : float
    documents : int
        Of different people.
    """

    local: float
    central: float
    delta: float
    documents: int

    @property
    def gains(self) -> bool:
        """Whether it takes a hundredth off."""
        return self.central < 0.99 * self.local


def amplify_documents(
    guarantee: SentenceDP, *, most_sentences: int, documents: int, delta: float
) -> ShuffledDocuments:
    """Amplification by shuffling, from the epsilon of documents of at most `most_sentences` sentences.

    The epsilon of a sentence is no start for it: documents of different people differ in all their sentences.

    Raises
    ------
    ParameterError
        For a delta outside [0, 1).
    """
    local = guarantee.whole_document(most_sentences).epsilon
    share("delta", delta)
    central = local if local > _MOST_EPSILON else min(local, amplify(local, n=documents, delta=delta).epsilon)
    return ShuffledDocuments(local, central, delta, documents)


def shuffle_rows(table: pl.DataFrame, rng: Entropy) -> pl.DataFrame:
    """The rows in a uniform order, without the documents' names."""
    order = rng.permutation(table.height)
    return table.drop("document")[order]


def _journal(request: ReleaseRequest, documents: Sequence[Document], ledger: ReleaseLedger) -> DocumentJournal:
    """Of these documents in this order under these terms, since the last release."""
    last = max((entry.number for entry in ledger.entries()), default=0)
    order = json.dumps([[one.name, one.sentences] for one in documents])
    return DocumentJournal.of(ledger, json.dumps([last, order]).encode() + request.terms)


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


def _content(document: Document) -> str:
    """The sorted words of a text: the same however it is written, split, or its sentences are ordered.

    Letters are compared by Unicode's compatibility form without case, and without what nobody sees: format characters
    such as zero-width spaces and soft hyphens, and variation selectors.
    """
    text = normalize("NFKC", "\n".join(document.sentences))
    text = "".join(one for one in text if category(one) != "Cf" and one not in _SELECTORS)
    text = normalize("NFKC", text.casefold())  # what is left may join to other letters
    return " ".join(sorted(_WORDS.findall(text)))


def _request(
    documents: Sequence[Document],
    mechanism: DeepCandidate,
    encoder: SentenceEncoder,
    *,
    most: int | None,
    drawn: str,
    named: bool,
    shuffled: bool,
) -> ReleaseRequest:
    """The documents and the terms in canonical form; documents' keys are kept apart from people's in tables."""
    content = sorted((one.name, one.sentences) for one in documents)
    known = sorted({f"document\n{_content(one)}" for one in documents if one.sentences})
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
        **({"shuffled": True} if shuffled else {}),
    }
    return ReleaseRequest(
        table=b"documents\n" + json.dumps(content).encode(),
        terms=b"documents\n" + json.dumps(terms, sort_keys=True).encode(),
        groups=b"",
        people=keys,
        epsilon=mechanism.budget.epsilon,
        alpha=math.inf,
        n=len(documents),
        shuffler="uniform" if shuffled else "identity",
        rounds=keys,
        note=json.dumps({"most_sentences": most, "drawn": drawn}),
    )
