"""Fitting a recoder to public documents, and keeping it only if held-out public documents say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import privacy_budget, whole
from dovetail.core.errors import DataError
from dovetail.core.extras import require
from dovetail.text.candidates import Candidates, mean_row
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.documents import Document, PublicDocuments, refuse_private
from dovetail.text.encoders import UNIT, Rows, SentenceEncoder, calm_fit, stack
from dovetail.text.recoder import Adam, Doubles, Layers, RecodedEncoder, loss_and_slopes

Members = NDArray[np.int64]  # (n,), the cluster of each document

CLUSTERS = 50
_WIDTH, _HIDDEN = 256, 3  # numbers in a hidden layer, and how many of these
_BATCH, _EPOCHS, _PATIENCE = 32, 60, 4
_FIT_SEED = 0  # public


@dataclass(frozen=True)
class RecoderTrial:
    """What held-out public documents said of a recoder.

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
    utility: str = "clipped",
    clusters: int = CLUSTERS,
    fewest_sentences: int = 2,
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
    utility : str
    clusters : int, at least 2
        Of document means, by k-means.
    fewest_sentences : int
        Shorter documents are left out.

    Raises
    ------
    DataError
        For fewer than twelve documents.

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), section 3.4.3; early stop and the choice by held-out documents are ours.
    """
    privacy_budget("epsilon", epsilon)
    public = [one for one in refuse_private(documents).documents if len(one.sentences) >= fewest_sentences]
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
        _agreement(one, public[:cut], public[cut:], truth, epsilon=epsilon, utility=utility)
        for one in (encoder, recoded)
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
    utility: str,
) -> Doubles:
    """For each held-out document the expected share of released candidates of its class."""
    made = Candidates.from_documents(PublicDocuments(_numbered(public)), encoder, fewest_sentences=1)
    mechanism = DeepCandidate.of(made, epsilon=epsilon, utility=utility, selection="exponential")
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
