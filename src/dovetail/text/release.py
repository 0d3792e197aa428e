"""Releasing documents through the private ledger: the same documents are drawn once, and further releases add up."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial, reduce
from hashlib import sha256
from pathlib import Path
from typing import Any, Self, get_args
from unicodedata import category, normalize

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.account.amplify import amplify
from dovetail.core.certified import round_up_sum
from dovetail.core.checks import share, whole
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, OutputError, ParameterError, StorageError, UnsupportedError
from dovetail.core.progress import Progress, silent
from dovetail.ledger.files import LineJournal
from dovetail.ledger.releases import LedgerEntry, ReleaseLedger, ReleaseRequest
from dovetail.text.candidates import Candidates, mean_row
from dovetail.text.deep_candidate import PRIVACY_UNIT as UNIT
from dovetail.text.deep_candidate import (
    DeepCandidate,
    Drawn,
    ReleasedDocuments,
    SentenceDP,
    protect_documents,
)
from dovetail.text.documents import Document
from dovetail.text.encoders import Rows, SentenceEncoder, SVDEncoder
from dovetail.text.evaluation import (
    Attack,
    AttackSuccess,
    ClassifierScore,
    L2Laplace,
    PublicClassifier,
    TruncationLaplace,
    WordMetricNoise,
    attack_documents,
    random_guess,
    same_class_share,
    score,
)
from dovetail.text.sampler import Levels

# A private journal of what was drawn: a run that was cut off goes on, and draws no document twice.


_FOLDER = "unfinished"


@dataclass
class DocumentJournal:
    """Candidates of the documents of one request, in their order, in a file beside the releases of a ledger.

    Nothing of it has been seen by anybody: it is private until the release is recorded, and then it is removed.

    Parameters
    ----------
    lines : LineJournal
    """

    lines: LineJournal
    _known: dict[int, Drawn] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, ledger: ReleaseLedger, request: bytes) -> Self:
        """The journal of this request, in canonical form; after another release it is another request.

        Raises
        ------
        StorageError
            Where it cannot be read.
        """
        lines = LineJournal(ledger.folder / _FOLDER / f"{ledger.fingerprint(request)}.jsonl")
        known: dict[int, Drawn] = {}
        try:
            for place, candidate, unread, empty in lines.read():
                known.setdefault(place, Drawn(candidate, unread, empty))  # the first draw counts
        except (OSError, ValueError, TypeError) as error:
            raise _broken(lines.place, error) from None
        return cls(lines, known)

    def drawn(self, place: int) -> Drawn | None:
        return self._known.get(place)

    def keep(self, place: int, drawn: Drawn) -> None:
        """Written before the next document is drawn."""
        try:
            self.lines.place.parent.mkdir(mode=0o700, exist_ok=True)
            self.lines.append([place, drawn.candidate, drawn.unread, drawn.empty])
        except OSError as error:
            raise _broken(self.lines.place, error) from None

    def remove(self) -> None:
        """Forget what is recorded elsewhere."""
        self.lines.place.unlink(missing_ok=True)


def _broken(place: Path, error: Exception) -> StorageError:
    return StorageError(
        f"{place}: the journal of an unfinished release cannot be used ({error}); nothing was released."
    )


_MOST_EPSILON = 700.0  # beyond it no shuffle is computed, and none would help
_NAME = "document's name\n"
_WORDS = re.compile(r"[^\W_]+|[^\w\s]|_")  # a mark by itself: splitters cut beside marks and blanks
_PUNCTUATION = frozenset(("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sk"))  # of no say beside words
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

    answer = ledger.answer(request, new_release=new_release, draw=draw)
    if journal is not None:
        journal.remove()  # the ledger has it now
    notes = [json.loads(entry.note) for entry in answer.history]
    both = list(zip(answer.history, notes, strict=True))
    parts = [
        SentenceDP(entry.epsilon, source=f"release {entry.number}").drawn_from(note["drawn"]) for entry, note in both
    ]
    total = mechanism.guarantee.drawn_from(rng.provenance) if len(parts) == 1 else reduce(SentenceDP.compose, parts)
    limits = [note["most_sentences"] for note in notes]
    whole = None if None in limits else round_up_sum((entry.epsilon for entry in answer.history), times=limits)
    return DocumentRelease(
        answer.reports, total, answer.history, answer.reproduced, drawn[0] if drawn else None, whole_document=whole
    )  # fmt: skip


@dataclass(frozen=True)
class ShuffledDocuments:
    """Guarantee about whole documents after a uniform shuffle; usually it adds nothing.

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
        """True if it takes a hundredth off."""
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
    """The journal of these documents in this order under these terms, since the last release."""
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
    """The sorted words of a text: the same however it is written, punctuated, split, or its sentences are ordered.

    Letters are compared by Unicode's compatibility form without case, and without what nobody sees: format characters
    such as zero-width spaces and soft hyphens, and variation selectors.
    """
    text = normalize("NFKC", "\n".join(document.sentences))
    text = "".join(one for one in text if category(one) != "Cf" and one not in _SELECTORS)
    text = normalize("NFKC", text.casefold())  # what is left may join to other letters
    words = sorted(_WORDS.findall(text))
    return " ".join([one for one in words if category(one[0]) not in _PUNCTUATION] or words)


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


# Rehearsing the release of documents: utilities and baselines side by side on documents whose classes are known.


Release = Callable[[], NDArray[Any]]  # embeddings (n, d) of all documents, drawn afresh
RowName = tuple[str, float | None, str]  # release, epsilon, sentences
_Prepared = tuple[float | None, Release]  # with the share of a document's own class among the best candidates
_GUESSING = "guess by the classes' shares"
DEEPEST = 10  # best candidates of which the share of a document's own class is told


@dataclass(frozen=True)
class RehearsedRelease:
    """One kind of release at one epsilon, and the public classifier's score on it.

    Parameters
    ----------
    release : str
    epsilon : float, optional
        None: not private.
    unit : str
        What epsilon is for; releases of different units are incomparable at the same epsilon.
    sentences : str
        Numbers of sentences of the documents that are scored, such as "5-9"; "all".
    documents : int
    score : ClassifierScore
    same_class : float, optional
        Of the ten best candidates by a utility, the share of the document's own class; without privacy.
    """

    release: str
    epsilon: float | None
    unit: str
    sentences: str
    documents: int
    score: ClassifierScore
    same_class: float | None = None


def rehearse_documents(
    documents: Sequence[Document],
    candidates: Candidates,
    encoder: SentenceEncoder,
    *,
    epsilons: Sequence[float],
    utilities: Sequence[str],
    selection: str = "permute-and-flip",
    repetitions: int = 5,
    seed: int,
    by_sentences: Sequence[int] = (),
    most_documents: int | None = None,
    known: Collection[RowName] = (),
    progress: Progress = silent,
) -> Iterator[RehearsedRelease]:
    """Scores of the non-private mean, of guessing, and at each epsilon of each utility and of the baselines.

    Each comes as soon as it is computed, and depends on nothing else that is asked for. Documents need classes; those
    without sentences are left out of a rehearsal. Word-level noise takes part where the encoder has words.

    Parameters
    ----------
    by_sentences : sequence of int
        First numbers of sentences of the parts that are scored by themselves, increasing.
    most_documents : int, optional
        Of more documents so many are chosen at random and scored; default all.
    known : collection of (release, epsilon, sentences)
        Rows that were computed before, and are left out.
    """
    if most_documents is not None and len(documents) > whole("most_documents", most_documents, least=1):
        chosen = np.sort(simulation(seed).permutation(len(documents))[:most_documents])
        documents = [documents[place] for place in chosen.tolist()]
    rows = _encode(documents, encoder, progress)
    kept = [place for place, one in enumerate(rows) if len(one)]
    if not kept:
        raise DataError("no document has a sentence; name the column of texts with --text.")
    scene = _Scene([documents[one] for one in kept], [rows[one] for one in kept], candidates, encoder, seed,
                   _parts([len(rows[one]) for one in kept], by_sentences), progress)  # fmt: skip
    classifier = PublicClassifier.fit(candidates)
    yield from (row for row in scene.guessing() if (row.release, row.epsilon, row.sentences) not in known)
    for name, epsilon, unit, prepare in scene.releases(epsilons, utilities, selection):
        missing = {part: places for part, places in scene.parts.items() if (name, epsilon, part) not in known}
        if not missing:
            continue
        same_class, release = prepare()
        times = 1 if epsilon is None else whole("repetitions", repetitions, least=1)
        rounds = []
        for done in range(times):
            progress(name if epsilon is None else f"{name}, epsilon {epsilon:g}: draw", done, times)
            rounds.append(np.array(classifier.predict(release())))
        for part, places in missing.items():
            made = score(scene.truth[places].tolist(), [one[places].tolist() for one in rounds])
            share = same_class if part == "all" else None
            yield RehearsedRelease(name, epsilon, unit, part, len(places), made, share)


@mute
@dataclass
class RehearsedRows:
    """The rows of a rehearsal in the order in which they were computed, and in a file where they outlive the process.

    Parameters
    ----------
    rows : list of RehearsedRelease
    lines : LineJournal, optional
    """

    rows: list[RehearsedRelease]
    lines: LineJournal | None

    @classmethod
    def of(
        cls, place: Path | None, documents: Sequence[Document], candidates: Candidates, setting: Mapping[str, Any]
    ) -> Self:
        """Those that a file has of the same rehearsal; epsilons and utilities may be others.

        Raises
        ------
        OutputError
            Where it cannot be read or written, or has other rows.
        """
        if place is None:
            return cls([], None)
        content = [(one.name, one.label, one.sentences) for one in documents]
        wanted = sha256(json.dumps([content, candidates.digest, setting], sort_keys=True).encode()).hexdigest()
        lines, head = LineJournal(place), {"rehearsal": wanted}
        try:
            found = lines.read()
            if not found and (not place.exists() or place.stat().st_size == 0):
                lines.append(head)
                found = [head]
        except (OSError, UnicodeDecodeError) as error:
            raise OutputError(f"{place}: cannot keep rows ({getattr(error, 'strerror', 'no text')}).") from None
        if not found or found[0] != head:
            raise OutputError(f"{place}: has no rows of these documents under these settings; name another file.")
        return cls(
            [RehearsedRelease(**{**one, "score": ClassifierScore(**one["score"])}) for one in found[1:]], lines
        )

    @property
    def known(self) -> set[RowName]:
        """Names of the rows that were computed."""
        return {(one.release, one.epsilon, one.sentences) for one in self.rows}

    def keep(self, row: RehearsedRelease) -> None:
        """One more row, written before the next is computed."""
        if self.lines is not None:
            try:
                self.lines.append(asdict(row))
            except OSError as error:
                raise StorageError(f"{self.lines.place}: could not be written ({error.strerror}).") from None
        self.rows.append(row)


def rehearse_attacks(
    documents: Sequence[Document],
    candidates: Candidates,
    encoder: SentenceEncoder,
    *,
    epsilons: Sequence[float],
    utility: str = "clipped",
    selection: str = "permute-and-flip",
    possible: int = 10,
    most_documents: int = 50,
    seed: int,
    progress: Progress = silent,
) -> list[tuple[float, AttackSuccess]]:
    """Inversion and membership at each epsilon, on the same documents and sentences."""
    rows = _encode(documents, encoder, progress)
    found: list[tuple[float, AttackSuccess]] = []
    for epsilon in epsilons:
        mechanism = DeepCandidate.of(candidates, epsilon=epsilon, utility=utility, selection=selection)
        for attack in get_args(Attack):
            progress("attack sentences", len(found), 2 * len(epsilons))
            found.append((epsilon, attack_documents(
                rows, mechanism, attack=attack, possible=possible, most_documents=most_documents,
                rng=simulation(seed),
            )))  # fmt: skip
    progress("attack sentences", len(found), len(found))
    return found


def _encode(documents: Sequence[Document], encoder: SentenceEncoder, progress: Progress) -> list[Rows]:
    rows = []
    for done, one in enumerate(documents):
        progress("encode documents", done, len(documents))
        rows.append(encoder.encode(one.sentences))
    progress("encode documents", len(documents), len(documents))
    return rows


def _parts(lengths: Sequence[int], by_sentences: Sequence[int]) -> dict[str, NDArray[np.int64]]:
    """Places of all documents, and of those of each range of numbers of sentences that has some."""
    if list(by_sentences) != sorted(set(by_sentences)) or any(one < 1 for one in by_sentences):
        raise ParameterError(
            f"`by_sentences` must be increasing whole numbers, at least 1, got {list(by_sentences)}."
        )
    found = {"all": np.arange(len(lengths))}
    for low, high in zip(by_sentences, [*by_sentences[1:], 0], strict=True) if by_sentences else ():
        name = f"{low}-{high - 1}" if high > low + 1 else str(low) if high else f"{low} and more"
        places = np.flatnonzero([low <= one and (not high or one < high) for one in lengths])
        found |= {name: places} if places.size else {}
    return found


@mute
@dataclass(frozen=True, eq=False)
class _Scene:
    """Documents with sentences, as rows; and every release of them."""

    documents: list[Document]
    rows: list[Rows]
    candidates: Candidates
    encoder: SentenceEncoder
    seed: int
    parts: dict[str, NDArray[np.int64]]
    progress: Progress

    @cached_property
    def truth(self) -> NDArray[np.str_]:
        return np.array([str(one.label) for one in self.documents])

    def guessing(self) -> Iterator[RehearsedRelease]:
        for part, places in self.parts.items():
            accuracy, macro_f1 = random_guess(self.truth[places].tolist())
            made = ClassifierScore(macro_f1, 0.0, accuracy, 0.0, 1)
            yield RehearsedRelease(_GUESSING, None, "", part, len(places), made)

    def releases(
        self, epsilons: Sequence[float], utilities: Sequence[str], selection: str
    ) -> Iterator[tuple[str, float | None, str, Callable[[], _Prepared]]]:
        yield "mean of the sentences, not private", None, "", lambda: (None, lambda: self._means(self.rows))
        for epsilon in epsilons:
            for name in utilities:
                mechanism = DeepCandidate.of(self.candidates, epsilon=epsilon, utility=name, selection=selection)
                yield mechanism.utility.label, epsilon, UNIT, partial(self._selecting, mechanism)
            for baseline in (TruncationLaplace(self.candidates, epsilon), L2Laplace(epsilon)):
                yield baseline.label, epsilon, UNIT, partial(self._noising, baseline)
            if isinstance(self.encoder, SVDEncoder):
                words = WordMetricNoise(self.encoder, epsilon)
                yield words.label, epsilon, words.unit, partial(self._wording, words)

    def _rng(self, name: str, epsilon: float) -> Entropy:
        """Random numbers of one release alone, so that its scores are the same wherever a rehearsal begins."""
        digest = sha256(f"{self.seed}\0{name}\0{epsilon!r}".encode()).digest()
        return simulation(int.from_bytes(digest[:8], "little"))

    def _means(self, rows: Sequence[Rows]) -> NDArray[np.int16]:
        return np.stack([mean_row(one) for one in rows])

    def _levels(self, mechanism: DeepCandidate) -> list[Levels]:
        """Levels of the candidates for every document, once for all draws."""
        step = f"{mechanism.utility.label}, epsilon {mechanism.budget.epsilon:g}: score candidates"
        found = []
        for done, one in enumerate(self.rows):
            self.progress(step, done, len(self.rows))
            found.append(mechanism.levels(one))
        return found

    def _selecting(self, mechanism: DeepCandidate) -> _Prepared:
        levels, rng = self._levels(mechanism), self._rng(mechanism.utility.label, mechanism.budget.epsilon)
        share = same_class_share(mechanism, levels, self.truth.tolist(), best=DEEPEST)
        return share, lambda: self.candidates.rows[[mechanism.draw(one, rng) for one in levels]]

    def _noising(self, baseline: TruncationLaplace | L2Laplace) -> _Prepared:
        rng = self._rng(baseline.label, baseline.epsilon)
        return None, lambda: np.stack([baseline.release(one, rng) for one in self.rows])

    def _wording(self, words: WordMetricNoise) -> _Prepared:
        rng = self._rng(words.label, words.epsilon)

        def moved(one: Document) -> Rows:
            return self.encoder.encode(words.release(each, rng) for each in one.sentences)

        return None, lambda: self._means([moved(one) for one in self.documents])
