"""The second pass: every report is drawn beside its sort key, and travels without its person.

Where it goes, what travels beside it and who ends up where is the arrangement's to say (`scale.orders`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.entropy.keyed import KeyedEntropy, keyed_prints
from dovetail.core.errors import StorageError
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.pipeline.files.report_columns import Analyst, to_columns
from dovetail.scale.engines.engine import Blobs, Summary
from dovetail.scale.orders.arrangement import Arrangement, Codes, Keys, Marks, labels_of
from dovetail.scale.passes.census import add_totals, by_part
from dovetail.scale.passes.rows import Reader
from dovetail.scale.secrets import Sealer, Secret
from dovetail.scale.storage import digest_of, write_whole

_KEYS = 16  # bytes


@dataclass(frozen=True)
class PackReports:
    """Randomizes a batch and packs (key, marks, report) by partition."""

    reader: Reader
    secret: Secret
    randomizer: Analyst
    layout: Arrangement

    def __call__(self, frame: pl.DataFrame) -> Blobs:
        rows, layout, sealer = self.reader.exactly(frame), self.layout, Sealer(self.secret)
        keys = keyed_prints(self.secret.of("order"), rows.ids)
        own = KeyedEntropy(self.secret.of(f"randomize {self.randomizer.name}"), rows.ids)
        reports = narrow(self.randomizer, self.randomizer.randomize(rows.values, own))
        parts, marks = layout.send(rows, keys, self.secret)
        columns: list[NDArray[Any]] = [keys, *marks, reports]
        blobs = []
        for part, chosen in by_part(parts):
            content = b"".join(column.take(chosen, axis=0).tobytes() for column in columns)
            blobs.append((part, sealer.seal(content, part)))
        totals = {"n": rows.n, "fingerprint": str(self.reader.fingerprint(rows))}
        return [*blobs, (layout.parts, sealer.seal(json.dumps(totals).encode(), layout.parts))]


@dataclass(frozen=True)
class UnpackReports:
    """Puts a partition into its order, forgets the keys, and writes its reports, the public labels beside them."""

    secret: Secret
    randomizer: Analyst
    layout: Arrangement
    categories: tuple[str, ...] | None
    columns: tuple[str, ...]
    folder: str
    description: str

    def __call__(self, part: int, blobs: list[bytes]) -> Summary:
        sealer, layout = Sealer(self.secret), self.layout
        contents = [sealer.open(blob, part) for blob in blobs]
        if part == layout.parts:
            return add_totals([json.loads(content) for content in contents])
        shape = narrow(self.randomizer, self.randomizer.randomize(_nobody(self.randomizer)))
        keys, marks, reports = _join(
            [_split(content, shape, layout.marks) for content in contents], shape, layout.marks
        )
        order, labels = layout.order(part, keys, marks, self.secret)
        frame = self._frame(labels, reports[order])
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

    def _frame(self, labels: Codes, reports: Reports) -> pl.DataFrame:
        wide = np.dtype(np.int64) if reports.ndim == 1 else reports.dtype
        columns = to_columns(self.randomizer, reports.astype(wide, copy=False), _listed(self.categories))
        if not self.columns:
            return columns
        names = labels_of(self.columns, pl.Series(self.layout.names, dtype=pl.String))
        return pl.DataFrame([*names[labels], *columns])


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


def _split(content: bytes, shape: Reports, kinds: tuple[np.dtype[Any], ...]) -> tuple[Keys, Marks, Reports]:
    """The columns of a blob, which stand one after the other."""
    width = shape.itemsize * (1 if shape.ndim == 1 else shape.shape[1])
    n = len(content) // (_KEYS + sum(kind.itemsize for kind in kinds) + width)
    keys = np.frombuffer(content, dtype=np.uint64, count=2 * n).reshape(-1, 2)
    marks, offset = [], _KEYS * n
    for kind in kinds:
        marks.append(np.frombuffer(content, dtype=kind, count=n, offset=offset))
        offset += kind.itemsize * n
    reports = np.frombuffer(content, dtype=shape.dtype, offset=offset)
    return keys, tuple(marks), reports.reshape(n, *shape.shape[1:])


def _join(
    pieces: list[tuple[Keys, Marks, Reports]], shape: Reports, kinds: tuple[np.dtype[Any], ...]
) -> tuple[Keys, Marks, Reports]:
    empty = np.empty((0, 2), dtype=np.uint64), tuple(np.empty(0, dtype=kind) for kind in kinds), shape
    keys, marks, reports = zip(*(pieces or [empty]), strict=True)
    return (
        np.concatenate(keys),
        tuple(np.concatenate(one) for one in zip(*marks, strict=True)),
        np.concatenate(reports),
    )


def _listed(categories: tuple[str, ...] | None) -> list[str] | None:
    return None if categories is None else list(categories)
