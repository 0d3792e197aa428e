"""The second pass: every report is drawn beside its sort key, and travels without its person.

Sorting distinct, exchangeable keys by any fixed total order gives a uniform permutation. The order here is (group,
key); partitions are ranges of it, so their number and sizes change nothing. Keys are AES-256 of the person's id: they
are distinct, and the order is uniform up to the advantage against AES.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.entropy.keyed import KeyedEntropy, keyed_prints
from dovetail.core.errors import DataError, StorageError
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.pipeline.files.report_columns import Analyst, to_columns
from dovetail.scale.engines.engine import Blobs, Summary
from dovetail.scale.passes.census import add_totals, by_part
from dovetail.scale.passes.rows import Reader
from dovetail.scale.secrets import Sealer, Secret
from dovetail.scale.storage import digest_of, write_whole

_KEYS = 16  # bytes


@dataclass(frozen=True)
class Layout:
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
    def _sizes(self) -> NDArray[np.uint64]:
        return np.array(list(self.groups.values()) or [self.n], dtype=np.uint64)

    @cached_property
    def _starts(self) -> NDArray[np.uint64]:
        return np.cumsum(self._sizes) - self._sizes

    def codes(self, groups: pl.Series | None, n: int) -> NDArray[np.int64]:
        """The number of each row's group."""
        if groups is None:
            return np.zeros(n, dtype=np.int64)
        codes = groups.replace_strict(list(self.groups), range(len(self.groups)), default=None, return_dtype=pl.Int64)
        if codes.null_count():
            raise DataError("the table has changed while it was read; nothing was released.")
        return codes.to_numpy()

    def part(self, codes: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The partition of each row: it never falls along (group, key)."""
        within = (keys[:, 0] >> np.uint64(32)) * self._sizes[codes] >> np.uint64(32)
        return ((self._starts[codes] + within) * np.uint64(self.parts) // np.uint64(self.n)).astype(np.int64)


@dataclass(frozen=True)
class PackReports:
    """Randomizes a batch and packs (group, key, report) by partition."""

    reader: Reader
    secret: Secret
    randomizer: Analyst
    layout: Layout

    def __call__(self, frame: pl.DataFrame) -> Blobs:
        rows, layout, sealer = self.reader.exactly(frame), self.layout, Sealer(self.secret)
        keys = keyed_prints(self.secret.of("order"), rows.ids)
        own = KeyedEntropy(self.secret.of(f"randomize {self.randomizer.name}"), rows.ids)
        reports = narrow(self.randomizer, self.randomizer.randomize(rows.values, own))
        codes = layout.codes(rows.groups, rows.n)
        columns: list[NDArray[Any]] = [keys, *([codes.astype(np.uint32)] if layout.groups else []), reports]
        blobs = []
        for part, chosen in by_part(layout.part(codes, keys)):
            content = b"".join(np.ascontiguousarray(column[chosen]).tobytes() for column in columns)
            blobs.append((part, sealer.seal(content, part)))
        totals = {"n": rows.n, "fingerprint": str(self.reader.fingerprint(rows))}
        return [*blobs, (layout.parts, sealer.seal(json.dumps(totals).encode(), layout.parts))]


@dataclass(frozen=True)
class UnpackReports:
    """Sorts a partition by (group, key), forgets the keys, and writes its reports."""

    secret: Secret
    randomizer: Analyst
    layout: Layout
    categories: tuple[str, ...] | None
    group: str | None
    folder: str
    description: str

    def __call__(self, part: int, blobs: list[bytes]) -> Summary:
        sealer, layout = Sealer(self.secret), self.layout
        contents = [sealer.open(blob, part) for blob in blobs]
        if part == layout.parts:
            return add_totals([json.loads(content) for content in contents])
        shape = narrow(self.randomizer, self.randomizer.randomize(_nobody(self.randomizer)))
        keys, codes, reports = _join(
            [_split(content, shape, grouped=bool(layout.groups)) for content in contents], shape
        )
        order = sorted_order(codes, keys)
        frame = self._frame(codes[order], reports[order])
        target = Path(self.folder) / f"part-{part:05d}.parquet"
        with write_whole(target) as place:
            try:
                frame.write_parquet(place, metadata={"dovetail": self.description})
            except pl.exceptions.PolarsError as error:
                raise StorageError(f"{target.parent}: cannot be written ({error}); nothing was released.") from None
        return {
            "name": target.name,
            "rows": frame.height,
            "bytes": target.stat().st_size,
            "sha256": digest_of(target),
        }

    def _frame(self, codes: NDArray[np.int64], reports: Reports) -> pl.DataFrame:
        wide = np.dtype(np.int64) if reports.ndim == 1 else reports.dtype
        columns = to_columns(self.randomizer, reports.astype(wide, copy=False), _listed(self.categories))
        if self.group is None:
            return columns
        names = pl.Series(self.group, list(self.layout.groups), dtype=pl.String)
        return pl.DataFrame([names.gather(pl.Series(codes)), *columns])


def sorted_order(codes: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The order of (group, key); DataError where two keys are equal, because one person stands in two rows."""
    several = bool(codes.size) and int(codes.max()) != int(codes.min())
    order = np.lexsort((keys[:, 0], codes)) if several else np.argsort(np.ascontiguousarray(keys[:, 0]))
    first = keys[order, 0]
    if (first[1:] == first[:-1]).any():  # of 2^64, so hardly ever
        order = np.lexsort((keys[:, 1], keys[:, 0], codes))
        if (keys[order[1:]] == keys[order[:-1]]).all(axis=1).any():
            raise DataError("a person stands in two rows; nothing was released.")
    return np.asarray(order)


def narrow(randomizer: Analyst, reports: Reports) -> Reports:
    """Reports in the fewest bytes that hold every report of this randomizer."""
    if reports.ndim > 1 or isinstance(randomizer, NumericRandomizer):
        return reports
    return reports.astype(np.min_scalar_type((1 << randomizer.report_bits) - 1))


def report_bytes(randomizer: Analyst) -> int:
    """Bytes of a report while it travels."""
    shape = narrow(randomizer, randomizer.randomize(_nobody(randomizer)))
    return shape.itemsize * (1 if shape.ndim == 1 else shape.shape[1])


def _nobody(randomizer: Analyst) -> NDArray[Any]:
    return np.empty(0, dtype=np.float64 if isinstance(randomizer, NumericRandomizer) else np.int64)


def _split(content: bytes, shape: Reports, *, grouped: bool) -> tuple[Any, Any, Any]:
    width = shape.itemsize * (1 if shape.ndim == 1 else shape.shape[1])
    n = len(content) // (_KEYS + 4 * grouped + width)
    keys = np.frombuffer(content, dtype=np.uint64, count=2 * n).reshape(-1, 2)
    codes = np.frombuffer(content, dtype=np.uint32, count=n, offset=_KEYS * n) if grouped else np.zeros(n, np.uint32)
    reports = np.frombuffer(content, dtype=shape.dtype, offset=(_KEYS + 4 * grouped) * n)
    return keys, codes, reports.reshape(n, *shape.shape[1:])


def _join(pieces: list[tuple[Any, Any, Any]], shape: Reports) -> tuple[Any, NDArray[np.int64], Reports]:
    if not pieces:
        return np.empty((0, 2), dtype=np.uint64), np.empty(0, dtype=np.int64), shape
    keys, codes, reports = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return keys, codes.astype(np.int64), reports


def _listed(categories: tuple[str, ...] | None) -> list[str] | None:
    return None if categories is None else list(categories)
