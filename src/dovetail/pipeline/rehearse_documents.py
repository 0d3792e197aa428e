"""Rehearsing the release of documents: utilities and baselines side by side on documents whose classes are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError
from dovetail.pipeline.progress import Progress, silent
from dovetail.text.baselines.noise import L2Laplace, TruncationLaplace
from dovetail.text.candidates.candidates import Candidates, mean_row
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.documents import Document
from dovetail.text.encoders.encoder import SentenceEncoder
from dovetail.text.evaluate import ClassifierScore, PublicClassifier, random_guess
from dovetail.text.integer_rows import Rows

Release = Callable[[], NDArray[Any]]  # embeddings (n, d) of all documents, drawn afresh


@dataclass(frozen=True)
class RehearsedRelease:
    """One kind of release at one epsilon (None: not private), and the public classifier's score on it."""

    release: str
    epsilon: float | None
    score: ClassifierScore


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
    progress: Progress = silent,
) -> list[RehearsedRelease]:
    """Scores of the non-private mean, of guessing, and at each epsilon of each utility and of noisy means.

    Documents need classes; those without sentences are left out of a rehearsal.
    """
    rows = []
    for done, one in enumerate(documents):
        progress("encode documents", done, len(documents))
        rows.append(encoder.encode(one.sentences))
    progress("encode documents", len(documents), len(documents))
    kept = [place for place, one in enumerate(rows) if len(one)]
    if not kept:
        raise DataError("no document has a sentence; name the column of texts with --text.")
    sentences, truth = [rows[place] for place in kept], [str(documents[place].label) for place in kept]
    classifier, rng = PublicClassifier.fit(candidates), simulation(seed)
    releases = list(_releases(sentences, candidates, epsilons, utilities, selection, rng))
    found = [_guessing(truth)]
    for done, (name, epsilon, release) in enumerate(releases):
        progress("rehearse releases", done, len(releases))
        times = 1 if epsilon is None else repetitions
        found.append(RehearsedRelease(name, epsilon, classifier.score(release, truth, repetitions=times)))
    progress("rehearse releases", len(releases), len(releases))
    return found


def _guessing(truth: Sequence[str]) -> RehearsedRelease:
    accuracy, macro_f1 = random_guess(truth)
    return RehearsedRelease("guess by the classes' shares", None, ClassifierScore(macro_f1, 0.0, accuracy, 0.0, 1))


def _releases(
    sentences: Sequence[Rows],
    candidates: Candidates,
    epsilons: Sequence[float],
    utilities: Sequence[str],
    selection: str,
    rng: Entropy,
) -> Iterator[tuple[str, float | None, Release]]:
    yield "mean of the sentences, not private", None, lambda: np.stack([mean_row(one) for one in sentences])
    for epsilon in epsilons:
        for name in utilities:
            mechanism = DeepCandidate.of(candidates, epsilon=epsilon, utility=name, selection=selection)
            yield mechanism.utility.label, epsilon, _selecting(mechanism, sentences, rng)
        for baseline in (TruncationLaplace(candidates, epsilon), L2Laplace(epsilon)):
            yield baseline.label, epsilon, _noising(baseline, sentences, rng)


def _selecting(mechanism: DeepCandidate, sentences: Sequence[Rows], rng: Entropy) -> Release:
    rows = mechanism.utility.candidates.rows
    return lambda: rows[[mechanism.release(one, rng) for one in sentences]]


def _noising(baseline: TruncationLaplace | L2Laplace, sentences: Sequence[Rows], rng: Entropy) -> Release:
    return lambda: np.stack([baseline.release(one, rng) for one in sentences])
