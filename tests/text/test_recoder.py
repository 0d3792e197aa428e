"""The recoder: its slopes, what it is fitted to, and when it is kept."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.text.corpus import PUBLIC, HashedWords, documents, small_candidates

from dovetail.core.errors import DataError, ParameterError
from dovetail.text.candidates import Candidates, candidates_bytes, read_candidates
from dovetail.text.documents import Document, PublicDocuments
from dovetail.text.encoders import CallableEncoder, RecodedEncoder, SVDEncoder
from dovetail.text.evaluation import PublicClassifier
from dovetail.text.recoder import Adam, fit_recoder, loss_and_slopes
from dovetail.text.release import rehearse_documents

SVD = SVDEncoder.fit(PUBLIC, dimension=6)


def small_layers(draw: np.random.Generator, *sizes: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    return tuple((draw.standard_normal((a, b)), draw.standard_normal(b)) for a, b in pairwise(sizes))


def test_slopes_are_those_of_the_loss() -> None:
    draw = np.random.default_rng(4)
    layers = small_layers(draw, 3, 5, 4, 3, 2)
    rows, owners, member = draw.standard_normal((7, 3)), np.array([0, 0, 1, 1, 1, 2, 2]), np.array([0, 1, 1])
    _, slopes = loss_and_slopes(layers, rows, owners, member)
    for place, layer in enumerate(layers):
        for kind, part in enumerate(layer):
            for at in list(np.ndindex(part.shape))[:4]:
                ends = []
                for side in (-1e-6, 1e-6):
                    moved = [list(map(np.copy, one)) for one in layers]
                    moved[place][kind][at] += side
                    ends.append(loss_and_slopes(tuple(map(tuple, moved)), rows, owners, member)[0])
                assert slopes[place][kind][at] == pytest.approx((ends[1] - ends[0]) / 2e-6, rel=1e-4, abs=1e-7)


def test_steps_go_down() -> None:
    draw = np.random.default_rng(5)
    layers = small_layers(draw, 3, 5, 3, 2)
    given = draw.standard_normal((8, 3)), np.repeat(np.arange(4), 2), np.array([0, 1, 0, 1])
    state, before = replace(Adam.of(layers), rate=0.02), loss_and_slopes(layers, *given)[0]
    for _ in range(200):
        state, layers = state.step(layers, loss_and_slopes(layers, *given)[1])
    assert loss_and_slopes(layers, *given)[0] < before / 2


def hidden_topics(count: int, seed: int) -> list[Document]:
    """Documents of thirty sentences "topic noise"; the noise is loud."""
    draw = np.random.default_rng(seed)
    return [
        Document(str(place), tuple(f"{place % 3} {draw.integers(10**6)}" for _ in range(30)), str(place % 3))
        for place in range(count)
    ]


def loud(sentence: str) -> np.ndarray:
    """Three quiet numbers of the topic beside nine of loud noise."""
    topic, noise = map(int, sentence.split())
    return np.concatenate([0.5 * np.eye(3)[topic], np.random.default_rng(noise).standard_normal(9)])


@pytest.mark.exhaust
def test_a_recoder_is_kept_where_it_finds_what_noise_hides() -> None:
    encoder = CallableEncoder(loud, 12)
    trial = fit_recoder(PublicDocuments(hidden_topics(80, 1)), encoder, epsilon=0.3, clusters=3)
    assert trial.kept and trial.agreement > trial.agreement_before + 0.2 and trial.documents == 20
    assert isinstance(trial.encoder, RecodedEncoder) and trial.encoder.base is encoder


@pytest.mark.exhaust
def test_a_recoder_that_does_not_help_is_dropped() -> None:
    trial = fit_recoder(PUBLIC, HashedWords(), epsilon=20.0)
    assert not trial.kept and trial.encoder == HashedWords()


@pytest.fixture(scope="module")
def recoded() -> RecodedEncoder:
    return RecodedEncoder(SVD, small_layers(np.random.default_rng(1), 6, 8, 6))


def test_a_recoded_row_is_its_own_sentences(recoded: RecodedEncoder) -> None:
    sentences = [one for document in documents(4, sentences=5, seed=3) for one in document.sentences] + ["zzz"]
    together = recoded.encode(sentences)
    assert np.array_equal(together, np.concatenate([recoded.encode([one]) for one in sentences]))
    assert together[0].any() and not together[-1].any()  # a sentence without a known word stays without a say


def test_a_recoded_encoder_survives_its_file(recoded: RecodedEncoder, tmp_path: Path) -> None:
    made = Candidates.from_documents(PUBLIC, recoded, clusters=2)
    (tmp_path / "c.npz").write_bytes(candidates_bytes(made, recoded))
    found, encoder = read_candidates(tmp_path / "c.npz")
    assert found.digest == made.digest
    assert np.array_equal(encoder.encode(["the ship sails"]), recoded.encode(["the ship sails"]))


def test_no_fit_takes_private_documents() -> None:
    private = documents(20, sentences=9, seed=2)
    with pytest.raises(ParameterError, match="must be PublicDocuments"):
        fit_recoder(private, SVD, epsilon=3.0)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="at least 12 public documents"):
        fit_recoder(PublicDocuments(private[:5]), SVD, epsilon=3.0)


@pytest.mark.exhaust
def test_poisoned_private_documents_change_nothing_that_is_public(tmp_path: Path) -> None:
    def public_side(private: list[Document]) -> list[bytes]:
        """Everything that is fitted, in a process that also sees these private documents."""
        encoder = SVDEncoder.fit(PUBLIC, dimension=6)
        recoder = fit_recoder(PUBLIC, encoder, epsilon=1.0)
        found = small_candidates(encoder)
        list(
            rehearse_documents(private, found, encoder, epsilons=[3.0], utilities=["clipped"], repetitions=1, seed=1)
        )
        classifier = PublicClassifier.fit(found)
        return [
            candidates_bytes(found, recoder.encoder),
            np.float64([recoder.agreement, recoder.agreement_before]).tobytes(),
            classifier.model.coef_.tobytes(),
        ]

    innocent = documents(6, sentences=8, seed=9)
    poison = [Document(f"p{place}", ("ship oven " * 40,) * 50, "bread") for place in range(6)]
    assert public_side(innocent) == public_side(poison)
