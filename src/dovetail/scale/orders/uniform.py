"""Uniform orders, of everybody or within public groups.

Sorting distinct, exchangeable keys by any fixed total order gives a uniform permutation. The order here is (group,
key); partitions are ranges of it, so their number and sizes change nothing. Keys are AES-256 of the person's id: they
are distinct, and the order is uniform up to the advantage against AES.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.scale.orders.arrangement import Arrangement, Codes, Keys, Marks, codes_of, refuse_twins
from dovetail.scale.passes.rows import Rows
from dovetail.scale.secrets import Secret


@dataclass(frozen=True)
class Layout(Arrangement):
    """Which rows of the release lie in which partition: equal shares of the order (group, key).

    Parameters
    ----------
    n : int
    parts : int
    groups : people in each public group, in order; empty: everybody is in one
    """

    n: int
    parts: int
    groups: dict[str, int] = field(default_factory=dict)

    @cached_property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.groups)

    @cached_property
    def _sizes(self) -> NDArray[np.uint64]:
        return np.array(list(self.groups.values()) or [self.n], dtype=np.uint64)

    @cached_property
    def _starts(self) -> NDArray[np.uint64]:
        return np.cumsum(self._sizes) - self._sizes

    @property
    def marks(self) -> tuple[np.dtype[Any], ...]:
        return (np.dtype(np.uint32),) if self.groups else ()

    def part(self, codes: Codes, keys: Keys) -> NDArray[np.int64]:
        """The partition of each row: it never falls along (group, key)."""
        within = (keys[:, 0] >> np.uint64(32)) * self._sizes[codes] >> np.uint64(32)
        return ((self._starts[codes] + within) * np.uint64(self.parts) // np.uint64(self.n)).astype(np.int64)

    def send(self, rows: Rows, keys: Keys, secret: Secret) -> tuple[NDArray[np.int64], Marks]:
        codes = codes_of(self.names, rows.groups, rows.n)
        return self.part(codes, keys), ((codes.astype(np.uint32),) if self.groups else ())

    def order(self, part: int, keys: Keys, marks: Marks, secret: Secret) -> tuple[NDArray[np.int64], Codes]:
        codes = marks[0].astype(np.int64) if marks else np.zeros(len(keys), dtype=np.int64)
        order = sorted_order(codes, keys)
        return order, codes[order]


def sorted_order(codes: Codes, keys: Keys) -> NDArray[np.int64]:
    """The order of (group, key); DataError where two keys are equal, because one person stands in two rows."""
    several = bool(codes.size) and int(codes.max()) != int(codes.min())
    order, unsure = _lexical(codes, keys[:, 0]) if several else upper_order(keys[:, 0])
    rows = order[unsure]  # hardly ever any
    rows = rows[np.lexsort((keys[rows, 1], keys[rows, 0], codes[rows]))]
    order[unsure] = rows
    refuse_twins(keys[rows])
    return order


def _lexical(codes: Codes, words: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.lexsort((words, codes))
    return order, _runs(words[order])


def upper_order(words: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An order by the upper bits of words, and the places, in runs of equal bits, that the lower bits decide.

    A row's number takes the place of the lower bits, so that one sort of plain numbers does, several times faster
    than one that carries rows along.

    >>> upper_order(np.array([7, 5, 6], dtype=np.uint64) << np.uint64(61))
    (array([1, 2, 0]), array([], dtype=int64))
    """
    if not words.size:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    least = words.min()
    room, below = 64 - int(words.max() - least).bit_length(), int(words.size - 1).bit_length()
    lower = np.uint64((1 << below) - 1)
    marked = (((words - least) << np.uint64(min(room, 63))) & ~lower) | np.arange(words.size, dtype=np.uint64)
    marked.sort()
    return (marked & lower).astype(np.int64), _runs(marked >> np.uint64(below))


def _runs(ordered: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The places of numbers that are equal to a neighbour."""
    same = np.append(False, ordered[1:] == ordered[:-1])
    return np.flatnonzero(same | np.append(same[1:], False))
