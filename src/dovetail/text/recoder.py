"""A recoder: public layers on top of an encoder that keep clusters of public documents and move them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import privacy_budget, whole
from dovetail.core.errors import DataError
from dovetail.core.extras import require
from dovetail.text.candidates import Candidates, mean_row
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.documents import Document, PublicDocuments, refuse_private
from dovetail.text.encoders import (
    UNIT,
    Doubles,
    Layers,
    RecodedEncoder,
    Rows,
    SentenceEncoder,
    calm_fit,
    forward,
    stack,
)

# The layers are a multilayer perceptron: its slopes, and steps down them.


def loss_and_slopes(
    layers: Layers, rows: Doubles, owners: NDArray[np.int64], member: NDArray[np.int64]
) -> tuple[float, Layers]:
    r"""Cross-entropy of clusters, predicted by the last layer from the mean of a document's recoded unit rows.

    .. math:: -\frac{1}{n} \sum_x \log \mathrm{softmax}_{c(x)} \Bigl(L\, \tfrac{1}{k} \sum_{s \in x}
              \tfrac{H(s)}{|H(s)|}\Bigr)

    Parameters
    ----------
    rows : float array (k, d)
        Sentences of all documents.
    owners : int array (k,)
        The document of each, from 0 to n - 1, each at least once.
    member : int array (n,)
        The cluster of each document.
    """
    *hidden, (weights, biases) = layers
    values = forward(tuple(hidden), rows)
    length = np.maximum(np.linalg.norm(values[-1], axis=1, keepdims=True), 1e-12)
    unit, sizes = values[-1] / length, np.bincount(owners)[:, None]
    means = _by_owner(unit, owners, len(member)) / sizes
    logits = means @ weights + biases
    logits -= logits.max(axis=1, keepdims=True)
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    each = np.arange(len(member))
    loss = -float(np.log(np.maximum(chances[each, member], 1e-300)).mean())
    chances[each, member] -= 1.0
    slope = chances / len(member)
    slopes = [(means.T @ slope, slope.sum(axis=0))]
    turn = (slope @ weights.T / sizes)[owners]
    turn = (turn - unit * (unit * turn).sum(axis=1, keepdims=True)) / length
    for place in range(len(hidden) - 1, -1, -1):
        slopes.append((values[place].T @ turn, turn.sum(axis=0)))
        turn = turn @ hidden[place][0].T * (values[place] > 0)
    return loss, tuple(slopes[::-1])


def _by_owner(rows: Doubles, owners: NDArray[np.int64], count: int) -> Doubles:
    total = np.zeros((count, rows.shape[1]))
    np.add.at(total, owners, rows)
    return total


@dataclass(frozen=True, eq=False)
class Adam:
    """Steps with momentum, each scaled by its slope's size.

    Source
    ------
    Kingma, Ba (2015), Adam: A Method for Stochastic Optimization, ICLR, Algorithm 1.
    """

    first: tuple[Doubles, ...]
    second: tuple[Doubles, ...]
    steps: int = 0
    rate: float = 1e-3

    @classmethod
    def of(cls, layers: Layers) -> Self:
        """At the start, for parameters of these shapes."""
        nothing = tuple(np.zeros_like(part) for layer in layers for part in layer)
        return cls(nothing, nothing)

    def step(self, layers: Layers, slopes: Layers) -> tuple[Self, Layers]:
        """The state and the parameters after one step."""
        flat = [part for layer in slopes for part in layer]
        first = tuple(0.9 * old + 0.1 * new for old, new in zip(self.first, flat, strict=True))
        second = tuple(0.999 * old + 0.001 * new**2 for old, new in zip(self.second, flat, strict=True))
        done = self.steps + 1
        moves = [
            self.rate * (one / (1 - 0.9**done)) / (np.sqrt(two / (1 - 0.999**done)) + 1e-8)
            for one, two in zip(first, second, strict=True)
        ]
        moved = [part - move for part, move in zip((p for layer in layers for p in layer), moves, strict=True)]
        state = type(self)(first, second, done, self.rate)
        return state, tuple(zip(moved[::2], moved[1::2], strict=True))


# Fitting a recoder to public documents, and keeping it only if held-out public documents say so.


CLUSTERS = 50
_WIDTH, _HIDDEN = 256, 3  # numbers in a hidden layer, and how many of these
_BATCH, _EPOCHS, _PATIENCE = 32, 60, 4
_FIT_SEED = 0  # public


@dataclass(frozen=True)
class RecoderTrial:
    """Trial of a recoder on held-out public documents.

    Parameters
    ----------
    encoder : SentenceEncoder
        The recoded one where it is kept, else the one that was given.
    kept : bool
    agreement, agreement_before : float
        Expected share of released candidates of the held-out documents' own class (or cluster, where documents have
        no classes), with the recoder and without.
    documents : int
        How many public documents were held out.
    """

    encoder: SentenceEncoder
    kept: bool
    agreement: float
    agreement_before: float
    documents: int


def fit_recoder(
    documents: PublicDocuments,
    encoder: SentenceEncoder,
    *,
    epsilon: float,
    clusters: int = CLUSTERS,
) -> RecoderTrial:
    r"""Fit H to the clusters of three quarters of the public documents; keep it if the last quarter agrees better.

    .. math:: \min_{H, L} \sum_x \mathrm{crossentropy}\Bigl(L\, \tfrac{1}{k} \sum_{s \in x} H(g(s)),\ c(x)\Bigr)

    Parameters
    ----------
    documents : PublicDocuments
        Nothing else is ever fitted to. Better means by more than the standard error of the difference.
    encoder : SentenceEncoder
        G; stays as it is.
    epsilon : float, nats
        For which the choice is made: a recoder may help at one and hurt at another.
    clusters : int, at least 2
        Of document means, by k-means.

    Raises
    ------
    DataError
        For fewer than twelve documents.

    Source
    ------
    Meehan (2023), The Primacy of Applied Privacy, section 3.4.3; early stop and the choice by held-out
    documents are ours.
    """
    privacy_budget("epsilon", epsilon)
    public = [one for one in refuse_private(documents).documents if len(one.sentences) >= 2]
    if len(public) < 12:
        raise DataError(f"a recoder needs at least 12 public documents of some sentences, got {len(public)}.")
    public = [public[place] for place in np.random.default_rng(_FIT_SEED).permutation(len(public))]
    rows = [encoder.encode(one.sentences) for one in public]
    cut = 3 * len(public) // 4
    member = _clusters(rows, min(whole("clusters", clusters, least=2), cut // 4 + 1))
    layers = _train(rows[:cut], member[:cut], rows[cut:], member[cut:])
    recoded = RecodedEncoder(encoder, layers)
    truth = member if any(one.label is None for one in public) else _numbers([str(one.label) for one in public])
    before, after = (
        _agreement(one, public[:cut], public[cut:], truth, epsilon=epsilon) for one in (encoder, recoded)
    )
    gain = after - before
    kept = bool(gain.mean() > gain.std() / np.sqrt(gain.size))  # by more than its standard error
    return RecoderTrial(recoded if kept else encoder, kept, float(after.mean()), float(before.mean()), gain.size)


def _clusters(rows: Sequence[Rows], clusters: int) -> NDArray[np.int64]:
    """Public k-means of document means."""
    means = stack((mean_row(one) for one in rows), rows[0].shape[1]).astype(np.float64)
    with calm_fit():
        fitted = (
            require("sklearn.cluster", extra="text").KMeans(clusters, n_init=4, random_state=_FIT_SEED).fit(means)
        )
    return np.asarray(fitted.labels_, dtype=np.int64)


def _numbers(labels: Sequence[str]) -> NDArray[np.int64]:
    return np.unique(list(labels), return_inverse=True)[1].astype(np.int64)


def _train(
    rows: Sequence[Rows], member: NDArray[np.int64], held: Sequence[Rows], theirs: NDArray[np.int64]
) -> Layers:
    """Adam on batches of documents until the held-out loss has not fallen for four epochs; the best layers."""
    draw = np.random.default_rng(_FIT_SEED)
    sizes = [rows[0].shape[1]] + [_WIDTH] * _HIDDEN + [rows[0].shape[1], int(max(member.max(), theirs.max())) + 1]
    layers: Layers = tuple(
        (draw.standard_normal((one, other)) * np.sqrt(2.0 / one), np.zeros(other)) for one, other in pairwise(sizes)
    )
    state, best, kept, waited = Adam.of(layers), np.inf, layers, 0
    for _ in range(_EPOCHS):
        order = draw.permutation(len(rows))
        for start in range(0, len(rows), _BATCH):
            batch = order[start : start + _BATCH]
            _, slopes = loss_and_slopes(layers, *_together([rows[one] for one in batch]), member[batch])
            state, layers = state.step(layers, slopes)
        loss, _ = loss_and_slopes(layers, *_together(held), theirs)
        best, kept, waited = (loss, layers, 0) if loss < best else (best, kept, waited + 1)
        if waited == _PATIENCE:
            break
    return kept[:-1]


def _together(rows: Sequence[Rows]) -> tuple[Doubles, NDArray[np.int64]]:
    """Sentences (k, d) of documents, and the document of each."""
    return np.concatenate(rows) / UNIT, np.repeat(np.arange(len(rows)), [len(one) for one in rows])


def _agreement(
    encoder: SentenceEncoder,
    public: Sequence[Document],
    held: Sequence[Document],
    truth: NDArray[np.int64],
    *,
    epsilon: float,
) -> Doubles:
    """For each held-out document the expected share of released candidates of its class."""
    made = Candidates.from_documents(PublicDocuments(_numbered(public)), encoder, fewest_sentences=1)
    mechanism = DeepCandidate.of(made, epsilon=epsilon, utility="clipped", selection="exponential")
    classes = truth[[int(name) for name in made.names]]
    found = []
    for one, own in zip(held, truth[len(public) :], strict=True):
        law = mechanism.probabilities(encoder.encode(one.sentences))
        if len(law) != made.m:  # clusters, with a uniform candidate of each
            law = (law / np.bincount(made.clusters))[made.clusters]
        found.append(float(law[classes == own].sum()))
    return np.array(found)


def _numbered(documents: Sequence[Document]) -> list[Document]:
    return [Document(str(place), one.sentences, one.label) for place, one in enumerate(documents)]
