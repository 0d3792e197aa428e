"""Rehearsing the release of documents: utilities and baselines side by side on documents whose classes are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.core.display.display import mute
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.pipeline.progress import Progress, silent
from dovetail.text.baselines.noise import L2Laplace, TruncationLaplace
from dovetail.text.baselines.word_metric import WordMetricNoise
from dovetail.text.candidates.candidates import Candidates, mean_row
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.documents import Document
from dovetail.text.encoders.encoder import SentenceEncoder
from dovetail.text.encoders.svd import SVDEncoder
from dovetail.text.evaluation.attacks import Attack, AttackSuccess, attack_documents
from dovetail.text.evaluation.classifier import (
    ClassifierScore,
    PublicClassifier,
    random_guess,
    same_class_share,
    score,
)
from dovetail.text.guarantee import UNIT
from dovetail.text.integer_rows import Rows

Release = Callable[[], NDArray[Any]]  # embeddings (n, d) of all documents, drawn afresh
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
    progress: Progress = silent,
) -> list[RehearsedRelease]:
    """Scores of the non-private mean, of guessing, and at each epsilon of each utility and of the baselines.

    Documents need classes; those without sentences are left out of a rehearsal. Word-level noise takes part where
    the encoder has words.

    Parameters
    ----------
    by_sentences : sequence of int
        First numbers of sentences of the parts that are scored by themselves, increasing.
    """
    rows = _encode(documents, encoder, progress)
    kept = [place for place, one in enumerate(rows) if len(one)]
    if not kept:
        raise DataError("no document has a sentence; name the column of texts with --text.")
    scene = _Scene([documents[one] for one in kept], [rows[one] for one in kept], candidates, encoder,
                   simulation(seed), _parts([len(rows[one]) for one in kept], by_sentences))  # fmt: skip
    classifier, found = PublicClassifier.fit(candidates), list(scene.guessing())
    releases = list(scene.releases(epsilons, utilities, selection))
    for done, (name, epsilon, unit, same_class, release) in enumerate(releases):
        progress("rehearse releases", done, len(releases))
        times = 1 if epsilon is None else whole("repetitions", repetitions, least=1)
        rounds = [np.array(classifier.predict(release())) for _ in range(times)]
        for part, places in scene.parts.items():
            made = score(scene.truth[places].tolist(), [one[places].tolist() for one in rounds])
            share = same_class if part == "all" else None
            found.append(RehearsedRelease(name, epsilon, unit, part, len(places), made, share))
    progress("rehearse releases", len(releases), len(releases))
    return found


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
    rng: Entropy
    parts: dict[str, NDArray[np.int64]]

    @cached_property
    def truth(self) -> NDArray[np.str_]:
        return np.array([str(one.label) for one in self.documents])

    def guessing(self) -> Iterator[RehearsedRelease]:
        for part, places in self.parts.items():
            accuracy, macro_f1 = random_guess(self.truth[places].tolist())
            made = ClassifierScore(macro_f1, 0.0, accuracy, 0.0, 1)
            yield RehearsedRelease("guess by the classes' shares", None, "", part, len(places), made)

    def releases(
        self, epsilons: Sequence[float], utilities: Sequence[str], selection: str
    ) -> Iterator[tuple[str, float | None, str, float | None, Release]]:
        yield "mean of the sentences, not private", None, "", None, lambda: self._means(self.rows)
        truth = self.truth.tolist()
        for epsilon in epsilons:
            for name in utilities:
                mechanism = DeepCandidate.of(self.candidates, epsilon=epsilon, utility=name, selection=selection)
                share = same_class_share(mechanism, self.rows, truth, best=DEEPEST)
                yield mechanism.utility.label, epsilon, UNIT, share, self._selecting(mechanism)
            for baseline in (TruncationLaplace(self.candidates, epsilon), L2Laplace(epsilon)):
                yield baseline.label, epsilon, UNIT, None, self._noising(baseline)
            if isinstance(self.encoder, SVDEncoder):
                words = WordMetricNoise(self.encoder, epsilon)
                yield words.label, epsilon, words.unit, None, self._wording(words)

    def _means(self, rows: Sequence[Rows]) -> NDArray[np.int16]:
        return np.stack([mean_row(one) for one in rows])

    def _selecting(self, mechanism: DeepCandidate) -> Release:
        return lambda: self.candidates.rows[[mechanism.release(one, self.rng) for one in self.rows]]

    def _noising(self, baseline: TruncationLaplace | L2Laplace) -> Release:
        return lambda: np.stack([baseline.release(one, self.rng) for one in self.rows])

    def _wording(self, words: WordMetricNoise) -> Release:
        def moved(one: Document) -> Rows:
            return self.encoder.encode(words.release(each, self.rng) for each in one.sentences)

        return lambda: self._means([moved(one) for one in self.documents])
