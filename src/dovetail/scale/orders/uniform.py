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
    order = np.lexsort((keys[:, 0], codes)) if several else np.argsort(np.ascontiguousarray(keys[:, 0]))
    first = keys[order, 0]
    if (first[1:] == first[:-1]).any():  # of 2^64, so hardly ever
        order = np.lexsort((keys[:, 1], keys[:, 0], codes))
        refuse_twins(keys[order])
    return np.asarray(order)
