"""A small public corpus of two topics, and an encoder that needs no library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dovetail.text.candidates import Candidates
from dovetail.text.documents import Document, PublicDocuments
from dovetail.text.encoders import SentenceEncoder

SEA = "ship sails wind harbour tide captain anchor storm coast whale net deck wave salt island"
BREAD = "oven flour dough yeast crust bake knead loaf butter salt table grain mill warm knife"
TOPICS = {"sea": SEA.split(" "), "bread": BREAD.split(" ")}


@dataclass(frozen=True)
class HashedWords(SentenceEncoder):
    """Counts of words hashed into 24 places."""

    name = "hashed"

    @property
    def dimension(self) -> int:
        return 24

    def vector(self, sentence: str) -> NDArray[np.float64]:
        return np.bincount([crc32(one.encode()) % 24 for one in sentence.lower().split()], minlength=24).astype(float)

    def state(self) -> dict[str, Any]:
        return {}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        return cls()


def documents(count: int, *, sentences: int, seed: int, prefix: str = "d") -> list[Document]:
    """Documents of four-word sentences, topics in turn."""
    draw, made = np.random.default_rng(seed), []
    for number in range(count):
        label = list(TOPICS)[number % 2]
        lines = (" ".join(draw.choice(TOPICS[label], 4)) + "." for _ in range(sentences))
        made.append(Document(f"{prefix}{number}", tuple(lines), label))
    return made


PUBLIC = PublicDocuments(documents(60, sentences=9, seed=1))


def small_candidates(encoder: SentenceEncoder | None = None) -> Candidates:
    return Candidates.from_documents(PUBLIC, encoder or HashedWords(), clusters=2)
