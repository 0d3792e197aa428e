"""The mechanism: a document goes in, one public candidate comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.certified import round_up_sum
from dovetail.core.checks import not_negative_or_infinite, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.guarantee import Caveated, LocalDP
from dovetail.core.progress import Progress, silent
from dovetail.text.candidates import Candidates
from dovetail.text.documents import Document
from dovetail.text.encoders import UNIT, Rows, SentenceEncoder, check_rows
from dovetail.text.sampler import IntegerBudget, Levels, Selection
from dovetail.text.utilities import SELECTIONS, UTILITIES, Utility, best_variant, choose

# Sentence privacy as a value: how much one released embedding tells about one sentence of its document.


PRIVACY_UNIT = "one sentence, replaced by any other sentence"
NOT_PROTECTED = (
    "that a document was sent at all",
    "what is public: the encoder, the candidates and every parameter",
    "how many sentences there are: one more or one less costs half of epsilon",
    "a change of text that moves boundaries of sentences: it counts once for each sentence that it changes",
    "copies: documents of the same sentences in one release count as documents of different people",
)


@dataclass(frozen=True)
class SentenceDP(Caveated):
    r"""Guarantee of a released document embedding about any one sentence of the document.

    .. math:: \Pr[M(x) \in O] \le e^{\epsilon} \Pr[M(x') \in O]
              \quad \text{for all } O \text{ and all lists } x, x' \text{ of } k \text{ sentences that differ in one}

    The unit is the sentence after splitting. It is incomparable with word-level metric privacy, which promises less
    for words that are close and says nothing of the rest of a sentence.

    Parameters
    ----------
    epsilon : float, at least 0, nats
    source : str
        The construction behind it.
    unit : str
        What is replaced in a neighbouring document.
    not_protected : tuple of str
        What is told whatever epsilon is.
    caveats : tuple of str
        What takes the promise away, such as simulated randomness.

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), Sentence-level Privacy for Document Embeddings, ACL, Definition 3.1.
    """

    epsilon: float
    source: str = ""
    unit: str = PRIVACY_UNIT
    not_protected: tuple[str, ...] = NOT_PROTECTED
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        not_negative_or_infinite("epsilon", self.epsilon)

    def implies(self, other: object) -> bool:
        """True if this guarantee implies `other`, about the same unit."""
        same = isinstance(other, SentenceDP) and other.unit == self.unit
        return same and not self.caveats and self.epsilon <= other.epsilon  # type: ignore[attr-defined]

    def compose(self, other: SentenceDP) -> SentenceDP:
        """Two releases of the same document: epsilons add (basic composition, Dwork et al. 2006)."""
        if other.unit != self.unit:
            raise UnsupportedError(f"Guarantees about {self.unit!r} and {other.unit!r} do not add; state each.")
        return replace(
            self,
            epsilon=round_up_sum([self.epsilon, other.epsilon]),
            source=f"basic composition of [{self.source}] and [{other.source}]",
            caveats=tuple(dict.fromkeys(self.caveats + other.caveats)),
        )

    def sentences(self, changed: int) -> float:
        """Epsilon between documents that differ in `changed` sentences (group privacy); words changed in one
        sentence count as that one sentence.

        >>> SentenceDP(2.0).sentences(3)
        6.0
        """
        return round_up_sum([self.epsilon], times=[whole("changed", changed, least=0)])

    def whole_document(self, most_sentences: int) -> LocalDP:
        """Epsilon of one release for a whole document of at most `most_sentences` sentences.

        This, and not the epsilon of a sentence, is what amplification by shuffling starts from.
        """
        return LocalDP(
            self.sentences(whole("most_sentences", most_sentences, least=1)),
            source=f"group privacy over {most_sentences} sentences of [{self.source}]",
            caveats=self.caveats,
        )


@dataclass(frozen=True, eq=False)
class DeepCandidate:
    r"""Releases one of m public candidates for a private document, near its sentences.

    .. math:: \Pr[i] \propto \exp(\epsilon U_i / C) \quad \text{in exact whole numbers}

    The released candidate is the document's embedding; whatever is done with it costs nothing more.

    Parameters
    ----------
    utility : Utility
        How good candidates are; it knows the candidates.
    selection : Selection
        How one is drawn.
    budget : IntegerBudget
        Epsilon for one replaced sentence.

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), Algorithm 3; utilities and exact selection are ours.
    """

    utility: Utility = field(repr=False)
    selection: Selection
    budget: IntegerBudget

    @classmethod
    def of(
        cls,
        candidates: Candidates,
        *,
        epsilon: float,
        utility: str = "clipped",
        selection: str = "permute-and-flip",
    ) -> DeepCandidate:
        """The mechanism by its names.

        Parameters
        ----------
        candidates : Candidates
        epsilon : float in (0, 700], nats
            For one replaced sentence.
        utility : str
            clipped, approval, votes, inner, depth, or, for comparison, published. Its parameters are chosen by a
            rehearsal on public documents.
        selection : str
            permute-and-flip for one release of a document, exponential for several.
        """
        made, budget = choose("utility", utility, UTILITIES).of(candidates), IntegerBudget.of(epsilon)
        return cls(best_variant(made, budget), choose("selection", selection, SELECTIONS)(), budget)

    @property
    def guarantee(self) -> SentenceDP:
        """Pure sentence privacy, for randomness of the operating system."""
        return SentenceDP(self.budget.epsilon, source=f"{self.selection.source} over {self.utility.label}")

    def release(self, sentences: Rows, rng: Entropy | None = None) -> int:
        """The index of the released candidate for a document of these sentence rows (k, d); k may be 0."""
        return self.draw(self.levels(sentences), entropy_or_system(rng))

    def draw(self, levels: Levels, rng: Entropy) -> int:
        """The same for a document whose `levels` are known."""
        return self.utility.members(self.selection.draw(levels, self.budget, rng), rng)

    def levels(self, sentences: Rows) -> Levels:
        """Steps of each choice below the best: private, as the sentences are."""
        check_rows("sentences", sentences, dimension=self.utility.candidates.d)
        speaking = sentences[sentences.any(axis=1)]  # a zero row has no direction, and no say
        return self.budget.levels(self.utility.scores(speaking), self.utility.spread)

    def probabilities(self, sentences: Rows) -> NDArray[np.float64]:
        """The law of the choices for this document: private, for tests and rehearsals."""
        return self.selection.probabilities(self.levels(sentences), self.budget)


# Many documents: each is encoded and replaced by a public candidate, by itself.


@dataclass(frozen=True)
class ReleasedDocuments:
    """Released embeddings, and counts that stay private.

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
    """Journal of what was drawn before a run was cut off, by the place of the document."""

    def drawn(self, place: int) -> Drawn | None: ...

    def keep(self, place: int, drawn: Drawn) -> None: ...


def protect_documents(
    documents: Sequence[Document],
    mechanism: DeepCandidate,
    encoder: SentenceEncoder,
    *,
    most_sentences: int | None = None,
    progress: Progress = silent,
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
