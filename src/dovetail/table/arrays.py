"""From a table to people's vectors: a column of arrays in Parquet or a data frame, or arrays in .npy and .npz."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import nearest
from dovetail.core.display import counted
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.extras import pl
from dovetail.core.special import Reals
from dovetail.table.data_section import DataSection
from dovetail.table.reader import (
    Survey,
    columns_of,
    is_plain,
    is_text_file,
    numeric,
    refuse_duplicates,
    refuse_missing,
    table_of,
)
from dovetail.table.spelling import at_rows, names_of

NUMPY = (".npy", ".npz")


def read_arrays(
    data: DataSection, rng: Entropy, *, dimension: int, table: Any = None, numbers: Sequence[str] = ()
) -> Survey:
    """Read and check the column of arrays and the public ones; then permute the rows with `rng`.

    Raises
    ------
    DataError
        In one line, for a table without such a column, and for arrays that are missing, of another length, or that
        hold what is no finite number: counted, with the first places.
    """
    given, frame = _given(data, table)
    vectors = _rectangle(given, data.private, dimension)
    if not len(vectors):
        raise DataError("the table has no rows.")
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if broken.size:
        raise DataError(
            f"{_called(data.private)}: {broken.size:,} of {counted(len(vectors), 'array')} "
            f"{'holds' if broken.size == 1 else 'hold'} a missing, "
            f"infinite or NaN number ({at_rows(pl.Series(broken))}); leave these people out or correct the table."
        )
    if frame.width and frame.height != len(vectors):
        raise DataError(
            f"person {data.person!r} names {counted(frame.height, 'person', 'people')} for "
            f"{counted(len(vectors), 'array')}."
        )
    if data.person is not None:
        try:
            refuse_duplicates(frame[data.person])
        except DataError as error:  # which row is kept cannot be set here
            raise DataError(f"{str(error).partition(', or set')[0].rstrip('.')}.") from None
    for name in data.public:
        refuse_missing(frame[name], f"public column {name!r}")
    for name in numbers:
        numeric(frame[name])
    order = rng.permutation(len(vectors))
    vectors, shuffled = vectors[order], frame[order] if frame.width else frame
    people = shuffled.select([] if data.person is None else [data.person])
    return Survey(
        vectors, shuffled.select(data.public), None, identity=people, people=people, prints=_prints(vectors, people)
    )


def _prints(vectors: Reals, people: pl.DataFrame) -> bytes:
    """Digest of these people with their vectors, whatever their order."""
    names = names_of(people.to_series()).to_list() if people.width else [""] * len(vectors)
    rows = np.ascontiguousarray(vectors + 0.0)  # no zero has a sign
    found = (sha256(name.encode() + b"\0" + row.tobytes()) for name, row in zip(names, rows, strict=True))
    return b"".join(sorted(one.digest() for one in found))


def _given(data: DataSection, table: Any) -> tuple[Any, pl.DataFrame]:
    """The private column as it is, and the others."""
    suffix = "" if data.path is None else Path(data.path).suffix.lower()
    if isinstance(table, np.ndarray) or (table is None and suffix in NUMPY):
        return _from_numpy(data, table)
    if table is None and data.path is not None and is_text_file(data.path):
        raise DataError(f"{data.path}: [vector] needs a column of arrays: save it as Parquet, .npy or .npz.")
    frame = columns_of(table_of(data, table), data, arrays=True)[0]
    return frame[data.private], frame.drop(data.private)


def _from_numpy(data: DataSection, table: Any) -> tuple[Any, pl.DataFrame]:
    found, others = table, [*([data.person] if data.person else []), *data.public]
    if table is None:
        try:
            with Path(str(data.path)).open("rb") as file:
                found = np.load(file, allow_pickle=False)
                if not isinstance(found, np.ndarray):
                    found = {name: found[name] for name in found.files}
        except FileNotFoundError:
            raise DataError(f"{data.path}: no such file.") from None
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            raise DataError(f"{data.path}: is not readable as arrays of numbers, as numpy writes them.") from None
    if isinstance(found, np.ndarray):
        for name in others:
            key = "person" if name == data.person else "public"
            raise DataError(f"an array has no column {name!r}: leave out `{key}`, or use .npz or Parquet.")
        return found, pl.DataFrame()
    for name in (data.private, *others):
        if name not in found:
            raise DataError(f"{data.path}: has no array {name!r}{nearest(name, list(found))}.")
        if not isinstance(found[name], np.ndarray):
            raise DataError(f"{data.path}: {name!r} is not an array as numpy writes them.")
    try:
        return found[data.private], pl.DataFrame([_column(name, found[name]) for name in others])
    except pl.exceptions.PolarsError:
        raise DataError(f"{data.path}: its arrays of people and public columns differ in length.") from None


def _column(name: str, given: np.ndarray) -> pl.Series:
    """An array of people or of what is public: one text, number, date or boolean for each person."""
    if given.ndim == 1 and given.dtype.kind in "biufUM":
        with suppress(ValueError, TypeError, pl.exceptions.PolarsError):  # days and seconds are no unit of theirs
            column = pl.Series(name, given.astype("M8[us]") if given.dtype.kind == "M" else given)
            if is_plain(column.dtype):
                return column
    raise DataError(
        f"column {name!r} must be an array of one text, number or date for each person; got shape {given.shape} of "
        f"{given.dtype}."
    )


def rows_of_arrays(column: pl.Series, name: str, dimension: int) -> tuple[Reals, NDArray[np.bool_]]:
    """Rows (n, dimension), and which of them are in order; DataError for a column of anything else."""
    lists = _lists(column, name)
    good = (lists.list.len() == dimension).fill_null(False).to_numpy()
    rows = np.full((len(lists), dimension), np.nan)
    if good.any():
        rows[good] = _flat(lists.filter(pl.Series(good)), dimension)
    good = good & np.isfinite(rows).all(axis=1)
    rows[~good] = 0.0
    return rows, good


def _rectangle(given: Any, name: str, dimension: int) -> Reals:
    """Vectors (n, dimension) as floats; numbers that are missing become NaN."""
    if isinstance(given, np.ndarray):
        return _of_array(given, name, dimension)
    lists = _lists(given, name)
    refuse_missing(given, _called(name))
    _refuse_lengths(lists.list.len().to_numpy(), name, dimension)
    return _flat(lists, dimension)


def _lists(column: pl.Series, name: str) -> pl.Series:
    """A column of lists of numbers."""
    kind = column.dtype
    inner = getattr(kind, "inner", None)
    if inner is None or not inner.is_numeric():
        plain = "; of plain numbers declare `lower` and `upper` in [data] instead" if kind.is_numeric() else ""
        raise DataError(
            f"{_called(name)} has type {kind}: [vector] needs arrays of numbers, such as List(Float64){plain}."
        )
    return column.arr.to_list() if isinstance(kind, pl.Array) else column


def _flat(lists: pl.Series, dimension: int) -> Reals:
    flat = lists.explode().cast(pl.Float64).to_numpy()
    return np.asarray(flat, dtype=np.float64).reshape(-1, dimension)


def _of_array(given: np.ndarray, name: str, dimension: int) -> Reals:
    if given.dtype.kind not in "iuf" or given.ndim != 2:
        raise DataError(
            f"{_called(name)} must be an array of numbers, a row for each person; got shape {given.shape} of "
            f"{given.dtype}."
        )
    _refuse_lengths(np.full(len(given), given.shape[1]), name, dimension)
    with np.errstate(over="ignore"):  # what is beyond a double is refused as infinite
        return given.astype(np.float64)


def _refuse_lengths(lengths: np.ndarray, name: str, dimension: int) -> None:
    wrong = np.flatnonzero(lengths != dimension)
    if not wrong.size:
        return
    seen = np.unique(lengths)
    if seen.size == 1:
        raise DataError(
            f"{_called(name)}: arrays have {counted(int(seen[0]), 'number')}, and `dimension` is {dimension:,}."
        )
    raise DataError(
        f"{_called(name)}: {wrong.size:,} of {len(lengths):,} arrays {'does' if wrong.size == 1 else 'do'} not "
        f"have {counted(dimension, 'number')} "
        f"({at_rows(pl.Series(wrong))}; lengths from {seen[0]:,} to {seen[-1]:,}); all must be equally long."
    )


def _called(name: str) -> str:
    return f"private column {name!r}"
