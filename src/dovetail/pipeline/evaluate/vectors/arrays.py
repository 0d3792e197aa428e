"""From a table to people's vectors: a column of arrays in Parquet or a data frame, or arrays in .npy and .npz."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dovetail.core.checks import nearest
from dovetail.core.display.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.numeric.special import Reals
from dovetail.pipeline.config.sections import DataSection
from dovetail.pipeline.files.table import as_frame, as_text, read_table, refuse_duplicates, refuse_missing, rows_of

NUMPY = (".npy", ".npz")


@mute
@dataclass(frozen=True, eq=False)
class People:
    """Vectors (n, d) and names (n,), where there are some, in a random order that is not that of the table."""

    vectors: Reals
    names: list[str]

    @property
    def identity(self) -> bytes:
        """What tells these people and vectors from others, whatever their order."""
        names = self.names or [""] * len(self.vectors)
        rows = np.ascontiguousarray(self.vectors + 0.0)  # no zero has a sign
        prints = (sha256(name.encode() + b"\0" + row.tobytes()) for name, row in zip(names, rows, strict=True))
        return b"".join(sorted(one.digest() for one in prints))


def read_vectors(data: DataSection, dimension: int, rng: Entropy, *, table: Any = None) -> People:
    """Read and check the column of arrays; then permute the rows with `rng`.

    Raises
    ------
    DataError
        In one line, for a table without such a column, and for arrays that are missing, of another length, or that
        hold what is no finite number: counted, with the first places.
    """
    given, names = _given(data, table)
    vectors = _rectangle(given, data.private, dimension)
    if not len(vectors):
        raise DataError("the table has no rows.")
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if broken.size:
        raise DataError(
            f"{_called(data.private)}: {broken.size:,} of {len(vectors):,} arrays hold a missing, infinite or NaN "
            f"number (first at rows {rows_of(pl.Series(broken))}); leave these people out or correct the table."
        )
    if names is not None:
        if len(names) != len(vectors):
            raise DataError(f"person {data.person!r} names {len(names):,} people for {len(vectors):,} arrays.")
        try:
            refuse_duplicates(names)
        except DataError as error:  # which row is kept cannot be set here
            raise DataError(f"{str(error).partition(', or set')[0].rstrip('.')}.") from None
    order = rng.permutation(len(vectors))
    return People(vectors[order], [] if names is None else as_text(names[order]).to_list())


def _given(data: DataSection, table: Any) -> tuple[Any, pl.Series | None]:
    """The private column as it is, and that of names."""
    suffix = "" if data.path is None else Path(data.path).suffix.lower()
    if isinstance(table, np.ndarray) or (table is None and suffix in NUMPY):
        return _from_numpy(data, table)
    if table is None and data.path is not None and suffix not in (".parquet", ".pq") and Path(data.path).is_file():
        raise DataError(f"{data.path}: [vector] needs a column of arrays: save it as Parquet, .npy or .npz.")
    frame = read_table(data.path, written=data) if table is None else as_frame(table)
    for name in (data.private, data.person):
        if name is not None and name not in frame.columns:
            raise DataError(f"the table has no column {name!r}{nearest(name, frame.columns)}.")
    return frame[data.private], None if data.person is None else frame[data.person]


def _from_numpy(data: DataSection, table: Any) -> tuple[Any, pl.Series | None]:
    found = table
    if table is None:
        try:
            found = np.load(str(data.path), allow_pickle=False)
            if not isinstance(found, np.ndarray):
                with found:
                    found = {name: found[name] for name in found.files}
        except FileNotFoundError:
            raise DataError(f"{data.path}: no such file.") from None
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            raise DataError(f"{data.path}: is not readable as arrays of numbers, as numpy writes them.") from None
    if isinstance(found, np.ndarray):
        if data.person is not None:
            raise DataError(f"an array has no column {data.person!r}: leave out `person`, or use .npz or Parquet.")
        return found, None
    for name in (data.private, data.person):
        if name is not None and name not in found:
            raise DataError(f"{data.path}: has no array {name!r}{nearest(name, list(found))}.")
    return found[data.private], None if data.person is None else pl.Series(data.person, found[data.person])


def _rectangle(given: Any, name: str, dimension: int) -> Reals:
    """Vectors (n, dimension) as floats; numbers that are missing become NaN."""
    if isinstance(given, np.ndarray):
        return _of_array(given, name, dimension)
    kind = given.dtype
    inner = getattr(kind, "inner", None)
    if inner is None or not inner.is_numeric():
        plain = "; of plain numbers declare `lower` and `upper` in [data] instead" if kind.is_numeric() else ""
        raise DataError(
            f"{_called(name)} has type {kind}: [vector] needs arrays of numbers, such as List(Float64){plain}."
        )
    refuse_missing(given, _called(name))
    lists = given.arr.to_list() if isinstance(kind, pl.Array) else given
    lengths = lists.list.len().to_numpy()
    _refuse_lengths(lengths, name, dimension)
    flat = lists.explode().cast(pl.Float64).to_numpy()
    return np.asarray(flat, dtype=np.float64).reshape(len(lengths), dimension)


def _of_array(given: np.ndarray, name: str, dimension: int) -> Reals:
    if given.dtype.kind not in "iuf" or given.ndim != 2:
        raise DataError(
            f"{_called(name)} must be an array of numbers, a row for each person; got shape {given.shape} of "
            f"{given.dtype}."
        )
    _refuse_lengths(np.full(len(given), given.shape[1]), name, dimension)
    return given.astype(np.float64)


def _refuse_lengths(lengths: np.ndarray, name: str, dimension: int) -> None:
    wrong = np.flatnonzero(lengths != dimension)
    if not wrong.size:
        return
    seen = np.unique(lengths)
    if seen.size == 1:
        raise DataError(f"{_called(name)}: arrays have {seen[0]:,} numbers, and `dimension` is {dimension:,}.")
    raise DataError(
        f"{_called(name)}: {wrong.size:,} of {len(lengths):,} arrays do not have {dimension:,} numbers (first at "
        f"rows {rows_of(pl.Series(wrong))}; lengths from {seen[0]:,} to {seen[-1]:,}); all must be equally long."
    )


def _called(name: str) -> str:
    return f"private column {name!r}"
