"""The utility of released embeddings: a public classifier, tried on them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import privacy_budget, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.extras import require
from dovetail.text.candidates import Candidates
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.documents import PublicDocuments, refuse_private
from dovetail.text.encoders import UNIT, Rows, SentenceEncoder, SVDEncoder, calm_fit, inner_products, words_of
from dovetail.text.sampler import Levels

_FIT_SEED = 0


@dataclass(frozen=True)
class ClassifierScore:
    """Macro-F1 and accuracy over repetitions of the mechanism's randomness: means and standard deviations."""

    macro_f1: float
    macro_f1_deviation: float
    accuracy: float
    accuracy_deviation: float
    repetitions: int


@dataclass(frozen=True)
class PublicClassifier:
    """Logistic regression fitted to the public candidates and their labels."""

    model: Any

    @classmethod
    def fit(cls, candidates: Candidates) -> PublicClassifier:
        """Fit to labelled candidates; DataError where they have no labels, or one class."""
        if candidates.labels is None or len(set(candidates.labels)) < 2:
            raise DataError("the candidates must have labels of at least 2 classes; make them with --label COLUMN.")
        logistic = require("sklearn.linear_model", extra="text").LogisticRegression(
            C=10.0, max_iter=1000, class_weight="balanced", random_state=_FIT_SEED
        )
        with calm_fit():
            return cls(logistic.fit(candidates.rows / UNIT, list(candidates.labels)))

    def predict(self, rows: NDArray[Any]) -> list[str]:
        """Classes of embeddings (n, d), in whole numbers of 1/4096."""
        return [str(one) for one in self.model.predict(np.asarray(rows) / UNIT)]


def nearest_sentences(
    released: NDArray[Any], public: PublicDocuments, encoder: SentenceEncoder, *, count: int = 5
) -> list[tuple[str, float]]:
    """Read a released embedding as the public sentences that are closest to it, the closest first, with cosines.

    A decoder without a model: it says of a release what public texts say near it. What is released is a public
    document's embedding, and this reads nothing else, so it costs no privacy.

    Parameters
    ----------
    released : int16 array (d,)
        A row of `Candidates`, the one that was released.
    public : PublicDocuments
        Whose distinct sentences are looked at.
    encoder : SentenceEncoder
        The one that the candidates were made with.
    count : int, at least 1

    Source
    ------
    Meehan (2023), The Primacy of Applied Privacy, section 3.6, plans a decoder; nearest neighbours are ours.
    """
    texts = list(dict.fromkeys(refuse_private(public).sentences))
    if not texts:
        raise DataError("`public` must hold at least one sentence, got none.")
    row = np.asarray(released)
    if row.shape != (encoder.dimension,):
        raise DataError(f"`released` must be one embedding of {encoder.dimension} numbers, got shape {row.shape}.")
    rows = encoder.encode(texts).astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1) * max(float(np.linalg.norm(row)), 1.0)
    cosines = rows @ row / np.where(lengths > 0.0, lengths, 1.0)
    order = np.argsort(-cosines, kind="stable")[: whole("count", count, least=1)]
    return [(texts[place], float(cosines[place])) for place in order]


def score(truth: Sequence[str], rounds: Sequence[Sequence[str]]) -> ClassifierScore:
    """Scores of the classes that were predicted in each repetition, for documents whose classes are `truth`."""
    metrics = require("sklearn.metrics", extra="text")
    f1 = [metrics.f1_score(list(truth), list(one), average="macro", zero_division=0) for one in rounds]
    hits = [metrics.accuracy_score(list(truth), list(one)) for one in rounds]
    return ClassifierScore(float(np.mean(f1)), float(np.std(f1)), float(np.mean(hits)), float(np.std(hits)), len(f1))


def same_class_share(
    mechanism: DeepCandidate, documents: Sequence[Levels], truth: Sequence[str], *, best: int
) -> float:
    """Share of candidates of the document's own class among its `best` best ones by their levels, without privacy.

    The ceiling of a utility: what it would release without noise. Clusters count by the shares of their members.
    """
    public = mechanism.utility.candidates
    labels = np.array(public.labels)
    total = 0.0
    for levels, own in zip(documents, truth, strict=True):
        if len(levels) != public.m:
            levels = levels[public.clusters]
        last = np.partition(levels, min(best, public.m) - 1)[min(best, public.m) - 1]
        surely, tied = levels < last, levels == last  # of equal ones any may be among the best
        left = min(best, public.m) - int(surely.sum())
        mine = labels == own
        total += float((mine & surely).sum() + left * (mine & tied).sum() / tied.sum()) / min(best, public.m)
    return total / len(documents)


def random_guess(truth: Sequence[str]) -> tuple[float, float]:
    r"""Accuracy and macro-F1 in expectation of guessing classes by their shares.

    .. math:: \sum_i q_i^2 \quad \text{and about} \quad \frac{1}{c} \sum_i q_i

    The accuracy is what the paper draws beside macro-F1, another metric.
    """
    _, counts = np.unique(list(truth), return_counts=True)
    shares = counts / counts.sum()
    return float(shares @ shares), float(shares.mean())


# Which of these sentences was in the document? Embedding inversion beside chance and beside what epsilon allows.


@dataclass(frozen=True)
class InversionSuccess:
    """Success of an attacker who knows all sentences but one at naming that one, among L equally likely ones.

    Parameters
    ----------
    chance : float
        1/L.
    nearest : float
        Names the sentence nearest to the released candidate.
    best : float
        Bayes-optimal: knows the mechanism and the other sentences; exact up to the law's quadrature.
    bound : float
        e^epsilon / (e^epsilon + L - 1): nothing that keeps epsilon can be inverted more often.
    """

    chance: float
    nearest: float
    best: float
    bound: float


def inversion_success(mechanism: DeepCandidate, known: Rows, possible: Rows) -> InversionSuccess:
    r"""Success of naming one unknown sentence, exact over the mechanism's own randomness.

    .. math:: V = \frac{1}{L} \sum_o \max_{s} \Pr[M(x_{-1}, s) = o]

    Parameters
    ----------
    mechanism : DeepCandidate
    known : int16 array (k - 1, d)
        The sentences that the attacker knows.
    possible : int16 array (L, d)
        What the last one may be, L at least 2.

    Source
    ------
    Smith (2009), On the Foundations of Quantitative Information Flow, Definition 3; bound: the Bayes capacity of
    epsilon-private channels.
    """
    if len(possible) < 2:
        raise ParameterError(f"`possible` must hold at least 2 sentences, got {len(possible)}.")
    law = np.array([mechanism.probabilities(np.concatenate([known, one[None, :]])) for one in possible])
    size = len(possible)
    shape = mechanism.utility.candidates.rows
    if law.shape[1] == len(shape):
        nearest = inner_products(shape, possible).argmax(axis=1)
    else:  # clusters: the released candidate tells no more than its cluster
        nearest = inner_products(mechanism.utility.candidates.centres, possible).argmax(axis=1)
    return InversionSuccess(
        chance=1.0 / size,
        nearest=float(law[nearest, np.arange(law.shape[1])].sum() / size),
        best=float(law.max(axis=0).sum() / size),
        bound=1.0 / (1.0 + (size - 1) * math.exp(-mechanism.budget.epsilon)),
    )


# Attacks on releases of documents: whose sentence was it, and was this sentence in it?


Attack = Literal["inversion", "membership"]


@dataclass(frozen=True)
class AttackSuccess:
    """Mean success of an attack over documents, exact over the mechanism's randomness in each.

    Parameters
    ----------
    attack : str
        inversion: which of `possible` sentences was in the document? membership: was this one, or another?
    possible : int
        Sentences among which the attacker chooses; one of them was in the document, each equally likely.
    chance : float
    nearest : float
        Names the sentence nearest to the released embedding.
    best : float
        Knows the mechanism and all other sentences: the most that anybody reaches.
    best_error : float
        Standard error of `best` over documents.
    bound : float
        What epsilon implies: nobody reaches more in any document.
    documents : int
    """

    attack: Attack
    possible: int
    chance: float
    nearest: float
    best: float
    best_error: float
    bound: float
    documents: int


def attack_documents(
    documents: Sequence[Rows],
    mechanism: DeepCandidate,
    *,
    attack: Attack,
    possible: int = 10,
    most_documents: int = 50,
    rng: Entropy,
) -> AttackSuccess:
    r"""Attack one sentence of each of some documents, with sentences of other documents as alternatives.

    .. math:: \Pr[\text{right}] \le \frac{e^\epsilon}{e^\epsilon + L - 1}, \qquad L = 2 \text{ for membership}

    Parameters
    ----------
    documents : sequence of int16 arrays (k, d)
    mechanism : DeepCandidate
    attack : str
        inversion or membership.
    possible : int, at least 2
        L, for inversion.
    most_documents : int, at least 1
        Documents that are attacked, the first ones that have sentences.
    rng : Entropy
        Chooses sentences; a simulation.
    """
    size = 2 if attack == "membership" else whole("possible", possible, least=2)
    targets = _targets(documents, size, most_documents, rng)
    found = [inversion_success(mechanism, known, choices) for known, choices in targets]
    if not found:
        raise DataError(f"there must be documents with sentences, and {size - 1} different sentences in others.")
    best = np.array([one.best for one in found])
    return AttackSuccess(
        attack, size, found[0].chance, float(np.mean([one.nearest for one in found])), float(best.mean()),
        float(best.std() / np.sqrt(len(best))), found[0].bound, len(found),
    )  # fmt: skip


def _targets(documents: Sequence[Rows], size: int, most: int, rng: Entropy) -> Iterator[tuple[Rows, Rows]]:
    """Known part of each attacked document, and what its last sentence may be: its own one and others'."""
    read = [one[one.any(axis=1)] for one in documents]
    owners = np.repeat(np.arange(len(read)), [len(one) for one in read])
    pool = np.concatenate([*read]) if read else np.zeros((0, 1), dtype=np.int16)
    for place in [one for one in range(len(read)) if len(read[one])][:most]:
        own = read[place]
        target = int(rng.below(len(own), 1)[0])
        others = np.unique(pool[owners != place], axis=0)
        others = others[(others != own[target]).any(axis=1)]
        if len(others) < size - 1:
            continue
        picked = others[rng.permutation(len(others))[: size - 1]]
        yield np.delete(own, target, axis=0), np.concatenate([own[target : target + 1], picked])


# Uniform numbers in floating point, for mechanisms that are compared with and never released.


def open_uniforms(rng: Entropy, count: int) -> NDArray[np.float64]:
    """`count` numbers inside (0, 1), multiples of 2^-53 plus half a step."""
    return np.asarray(((rng.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)


# Noise added to the mean embedding: box truncation with Laplace noise, and the L2 Laplace mechanism.


@dataclass(frozen=True)
class TruncationLaplace:
    r"""Sentences clipped to a public box, averaged, with Laplace noise in every dimension.

    .. math:: \bar s_i + \mathrm{Lap}(d\, w_i / (k \epsilon))

    Parameters
    ----------
    candidates : Candidates
        The box: their central three quarters in each dimension.
    epsilon : float, nats
        For one replaced sentence; every dimension gets epsilon / d. k is public.

    Source
    ------
    Meehan (2023), The Primacy of Applied Privacy, section 3.5.3.
    """

    label: ClassVar[str] = "clipped to a box, Laplace noise"

    candidates: Candidates
    epsilon: float

    def release(self, sentences: Rows, rng: Entropy) -> NDArray[np.float64]:
        """A noisy mean (d,), in whole numbers of 1/4096; simulations only."""
        epsilon = privacy_budget("epsilon", self.epsilon)
        low, high = np.quantile(self.candidates.rows, [0.125, 0.875], axis=0)
        mean = np.clip(sentences, low, high).mean(axis=0)
        scale = mean.size * (high - low) / (len(sentences) * epsilon)
        flat = 2.0 * open_uniforms(rng, mean.size) - 1.0
        return np.asarray(mean - scale * np.sign(flat) * np.log1p(-np.abs(flat)))


@dataclass(frozen=True)
class L2Laplace:
    r"""The mean of unit sentences with noise of density proportional to exp(-k epsilon |z| / 2).

    .. math:: |z| \sim \mathrm{Gamma}(d,\ 2/(k \epsilon)), \text{ direction uniform; sensitivity } 2/k

    Source
    ------
    Chaudhuri, Monteleoni, Sarwate (2011), Differentially Private Empirical Risk Minimization, section 3.2.
    """

    label: ClassVar[str] = "L2 Laplace noise"

    epsilon: float

    def release(self, sentences: Rows, rng: Entropy) -> NDArray[np.float64]:
        """A noisy mean (d,), in whole numbers of 1/4096; simulations only."""
        from scipy.special import gammaincinv, ndtri

        epsilon, d = privacy_budget("epsilon", self.epsilon), sentences.shape[1]
        drawn = open_uniforms(rng, d + 1)
        direction = ndtri(drawn[:d])
        radius = gammaincinv(d, drawn[d]) * 2.0 / (len(sentences) * epsilon)
        return np.asarray(sentences.mean(axis=0) + UNIT * radius * direction / np.linalg.norm(direction))


# Word-level metric privacy: every word is moved in its embedding space. Another unit than the sentence's.


@dataclass(frozen=True, eq=False)
class WordMetricNoise:
    r"""Each known word becomes the vocabulary word nearest to its vector plus noise.

    .. math:: \Pr[z] \propto e^{-\epsilon |z|}, \qquad \text{guarantee: } \epsilon\, |\phi(w) - \phi(w')|
              \text{ for each word}

    Its epsilon is for each unit of distance between two words, with the number of words known: incomparable with
    sentence privacy at the same number, and weaker where words are close.

    Source
    ------
    Feyisetan, Balle, Drake, Diethe (2020), Privacy- and Utility-Preserving Textual Analysis via Calibrated
    Multivariate Perturbations, WSDM, Algorithm 1.
    """

    label: ClassVar[str] = "words moved by metric noise"
    unit: ClassVar[str] = "one word, epsilon times its distance to another: no sentence privacy, incomparable"

    encoder: SVDEncoder
    epsilon: float

    def __post_init__(self) -> None:
        privacy_budget("epsilon", self.epsilon)

    def release(self, sentence: str, rng: Entropy) -> str:
        """The sentence with every known word replaced, unknown words dropped; simulations only."""
        from scipy.special import gammaincinv, ndtri

        places = [place for word in words_of(sentence) if (place := self._places.get(word)) is not None]
        if not places:
            return ""
        d = self.encoder.dimension
        drawn = open_uniforms(rng, len(places) * (d + 1)).reshape(len(places), d + 1)
        directions = ndtri(drawn[:, :d])
        radii = gammaincinv(d, drawn[:, d:]) / self.epsilon
        noisy = self._vectors[places] + radii * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        nearest = (noisy.astype(np.float32) @ self._vectors.T - self._halves).argmax(axis=1)
        return " ".join(self.encoder.vocabulary[one] for one in nearest)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.encoder.vocabulary)}

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        """Unit vectors of all words, so that distances are at most 2."""
        vectors = self.encoder.components
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return np.asarray(unit, dtype=np.float32)

    @cached_property
    def _halves(self) -> NDArray[np.float32]:
        return np.asarray((self._vectors**2).sum(axis=1) / 2)
