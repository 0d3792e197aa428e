"""Small public candidate sets on which every document can be listed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import numpy as np

from dovetail.text.candidates import Candidates
from dovetail.text.encoders import UNIT, Rows

SENTENCES = np.array(  # a grid of the disc, corners and middle included
    [(x, y) for x, y in product((-4096, -2048, 0, 2048, 4096), repeat=2) if x * x + y * y <= UNIT * UNIT],
    dtype=np.int16,
)


def candidates(rows: list[tuple[int, int]], **changed: object) -> Candidates:
    """Candidates in the plane with all public parameters."""
    table = np.array(rows, dtype=np.int16)
    given: dict[str, object] = {
        "rows": table, "names": tuple(map(str, range(len(rows)))), "labels": None, "half_range": 3 * UNIT * UNIT // 2,
        "approved": max(1, len(rows) // 2), "centres": table[:2], "clusters": np.arange(len(rows)) % 2,
        "projections": np.array([(4096, 0), (2896, 2896), (-1000, 3000)], dtype=np.int16),
        "samples": table[:0], "owners": np.zeros(0, dtype=np.int64),
    }  # fmt: skip
    return Candidates(**(given | changed))  # type: ignore[arg-type]


PAIR = candidates([(4096, 0), (-4096, 0)])
CROSS = candidates([(4096, 0), (-4096, 0), (0, 4096), (0, 0)])
UNEVEN = candidates([(4000, 800), (3900, 900), (-2000, 3500), (100, -4000), (2896, -2896)], half_range=5_000_000)
SETS = {"pair": PAIR, "cross": CROSS, "uneven": UNEVEN}


def documents(k: int, sentences: Rows = SENTENCES) -> Iterator[tuple[int, ...]]:
    """Every multiset of k sentences, as places in the grid."""
    return combinations_with_replacement(range(len(sentences)), k)


def neighbours(document: tuple[int, ...], sentences: Rows = SENTENCES) -> Iterator[tuple[int, ...]]:
    """The document with one sentence replaced by any other."""
    for place in range(len(document)):
        for other in range(len(sentences)):
            yield tuple(sorted((*document[:place], other, *document[place + 1 :])))
