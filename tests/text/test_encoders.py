"""Encoders: a row is its own sentence's, and nothing private is ever fitted to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.text.corpus import PUBLIC, HashedWords, documents, small_candidates

from dovetail.core.errors import DataError, ParameterError
from dovetail.text.candidates import Candidates
from dovetail.text.documents import MOST_CHARACTERS, Document, PublicDocuments, clean, split_sentences
from dovetail.text.encoders import UNIT, CallableEncoder, SVDEncoder, integer_row

SVD = SVDEncoder.fit(PUBLIC, dimension=8)


@pytest.mark.parametrize("encoder", [HashedWords(), SVD], ids=["hashed", "svd"])
def test_a_row_does_not_change_with_the_other_sentences(encoder: HashedWords | SVDEncoder) -> None:
    sentences = [one for document in documents(6, sentences=5, seed=3) for one in document.sentences]
    together = encoder.encode(sentences)
    alone = np.concatenate([encoder.encode([one]) for one in sentences])
    backwards = encoder.encode(sentences[::-1])[::-1]
    assert np.array_equal(together, alone) and np.array_equal(together, backwards)
    assert together.any()


def test_a_batch_with_shared_statistics_would_be_caught_by_that_law() -> None:
    class Centred(HashedWords):
        def batch(self, sentences: list[str]) -> np.ndarray:
            table = np.array([self.vector(one) for one in sentences])
            return table - table.mean(axis=0)  # what normalising a batch does

    encoder, sentences = Centred(), list(PUBLIC.documents[0].sentences)
    assert not np.array_equal(encoder.batch(sentences)[:1], encoder.batch(sentences[:1]))


@pytest.mark.parametrize("strange", [[np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0], [1e308, 1e308]])
def test_a_vector_without_a_finite_direction_is_a_zero_row_or_a_unit_row(strange: list[float]) -> None:
    row = integer_row(strange, unit_norm=True)
    assert int((row.astype(int) ** 2).sum()) <= UNIT * UNIT
    assert not row.any() or np.isfinite(strange).all()


def test_rows_never_exceed_the_unit_sphere(rng: object) -> None:
    draw = np.random.default_rng(5)
    for vector in draw.standard_normal((300, 7)):
        row = integer_row(vector, unit_norm=True).astype(int)
        assert int((row**2).sum()) <= UNIT * UNIT
    assert integer_row([1.0, 0.0], unit_norm=True).tolist() == [UNIT, 0]
    assert not integer_row([1.0, 0.001], unit_norm=False).all()


@pytest.mark.parametrize("fit", [SVDEncoder.fit, lambda given: Candidates.from_documents(given, SVD)])
def test_private_documents_cannot_be_fitted_to(fit: Callable[[object], object]) -> None:
    with pytest.raises(ParameterError, match="must be PublicDocuments"):
        fit(documents(20, sentences=9, seed=2))


def test_an_encoder_that_is_not_deterministic_is_refused() -> None:
    draw = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="same vector each time"):
        small_candidates(CallableEncoder(lambda sentence: draw.standard_normal(4), 4))


def test_an_encoder_of_another_shape_is_refused() -> None:
    with pytest.raises(DataError, match=r"must return vectors \(4,\), got \(5,\)"):
        small_candidates(CallableEncoder(lambda sentence: np.ones(5), 4))


def test_an_encoder_that_fails_names_no_sentence() -> None:
    def fails(sentence: str) -> list[float]:
        raise ValueError(f"cannot read {sentence}")

    with pytest.raises(DataError, match=r"failed on a sentence \(ValueError\)") as told:
        CallableEncoder(fails, 4).encode(["a secret."])
    assert "secret" not in str(told.value) and told.value.__cause__ is None and told.value.__suppress_context__


def test_public_documents_without_enough_words_are_called_so() -> None:
    same = PublicDocuments([Document(str(number), ("one two.",)) for number in range(20)])
    with pytest.raises(DataError, match="20 public documents with 2 words in common are too few"):
        SVDEncoder.fit(same)


def test_equal_candidates_count_once_and_one_alone_is_refused() -> None:
    same = [Document(str(number), ("one two three.",) * 9) for number in range(5)]
    with pytest.raises(DataError, match="at least 2 different candidates, got 1"):
        Candidates.from_documents(PublicDocuments(same), HashedWords())
    with pytest.raises(DataError, match="only 0 of 5 public documents have 10 sentences"):
        Candidates.from_documents(PublicDocuments(same), HashedWords(), fewest_sentences=10)


def test_sentences_are_split_trimmed_and_cut() -> None:
    assert split_sentences("Dr. Smith  sails. The wind\nturns.") == ("Dr. Smith sails.", "The wind turns.")
    assert clean(["  ", "a" * 5000]) == ("a" * MOST_CHARACTERS,)
    assert split_sentences("") == ()
    with pytest.raises(DataError, match="zero bytes"):
        split_sentences("PK\0\3")
