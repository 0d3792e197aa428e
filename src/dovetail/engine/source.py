"""The table as many files: a Parquet file, folder or glob, read in batches that fit into memory."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from dovetail.core.checks import nearest
from dovetail.core.errors import DataError
from dovetail.table.data_section import DataSection
from dovetail.table.reader import is_plain

_SUFFIXES = (".parquet", ".pq")
_FEW = 1 << 17  # rows that are packed at once: their columns stay in the cache, and memory is used again
_BLOB = 1 << 11  # rows of a blob at least, on average
PLACE = "\x1fplace"  # column beside those that are read


@dataclass(frozen=True)
class Batch:
    """Some rows of a file."""

    file: str
    start: int
    rows: int
    before: int = 0  # rows of the table before the first one

    def pieces(self, columns: Sequence[str], few: int) -> Iterator[pl.DataFrame]:
        """These columns of these rows, and where each row stands in the table, so many rows at a time."""
        places = pl.int_range(self.before, self.before + self.rows, dtype=pl.Int64).alias(PLACE)
        return self.read(list(columns)).with_columns(places).iter_slices(few)

    def read(self, columns: list[str]) -> pl.DataFrame:
        """These columns of these rows; DataError when they are gone."""
        try:
            frame = pl.scan_parquet(self.file).select(columns).slice(self.start, self.rows).collect()
        except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException):
            raise DataError(
                f"{self.file}: cannot be read any more, or is damaged; nothing was released. Replace it, run again."
            ) from None
        if frame.height != self.rows:
            raise DataError(f"{self.file}: has other rows than when the job began; nothing was released.")
        return frame


@dataclass(frozen=True)
class Source:
    """The files of a table, all of one schema.

    Parameters
    ----------
    files : paths with their numbers of rows
    columns : names of the columns that are read
    kinds : their types
    """

    files: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    kinds: tuple[pl.DataType, ...]

    @classmethod
    def of(cls, data: DataSection, further: Sequence[str] = ()) -> Source:
        """The files that [data] names, looked at but not read.

        Raises
        ------
        DataError
            For no files, a file that is no Parquet, a missing column, and files of different schemas.
        """
        wanted = [name for name in (data.person, data.private, *further, *data.public) if name]
        paths = _paths(data.path)
        seen = [(path, *_header(path, wanted)) for path in paths]
        for (first, schema, _), (path, other, _) in pairwise(seen):
            for name in wanted:
                if schema[name] != other[name]:
                    raise DataError(
                        f"{path}: column {name!r} has type {other[name]}, but {schema[name]} in {first}; all files "
                        "of a table must have one schema."
                    )
        if not sum(rows for *_, rows in seen):
            raise DataError(f"{data.path}: the table has no rows.")
        kinds = tuple(seen[0][1][name] for name in wanted)
        return cls(tuple((path, rows) for path, _, rows in seen), tuple(wanted), kinds)

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(rows for _, rows in self.files)

    def require_answers(self, arrays: Collection[str] = ()) -> None:
        """DataError where a column holds anything but a text, number, date or boolean in each row, or an array."""
        for name, kind in zip(self.columns, self.kinds, strict=True):
            if not is_plain(kind) and name not in arrays:
                where = self.files[0][0]
                raise DataError(f"{where}: column {name!r} has type {kind}; use text, numbers, dates or booleans.")

    def batches(self, most: int) -> Iterator[Batch]:
        """All rows, at most so many at a time, none from two files."""
        before = 0
        for file, rows in self.files:
            for start in range(0, rows, most):
                yield Batch(file, start, min(most, rows - start), before + start)
            before += rows


def few_rows(parts: int) -> int:
    """How many rows are packed at once for so many partitions.

    >>> few_rows(1), few_rows(1000)
    (131072, 2048000)
    """
    return max(_FEW, _BLOB * parts)


def _paths(path: str | None) -> list[str]:
    if path is None:
        raise DataError("`path` is missing in [data]: name a Parquet file, a folder of them, or a glob.")
    if "://" in path:
        raise DataError(f"{path}: is an address, and processes read files; use --engine spark or copy the table.")
    try:
        found = _found(path)
    except OSError as error:
        _unreadable(error, path)
    if not found:
        raise DataError(f"{path}: no Parquet files there; name a Parquet file, a folder of them, or a glob.")
    other = [one for one in found if Path(one).suffix not in _SUFFIXES]
    if other:
        raise DataError(f"{other[0]}: must be a .parquet file to be read on several processes; convert it first.")
    return found


def _found(path: str) -> list[str]:
    """Files of a folder or glob in order, without hidden ones and marks such as `_SUCCESS`."""
    place = Path(path)
    if place.is_dir():
        every = (Path(folder, name) for folder, _, names in os.walk(place, onerror=_raise) for name in names)
        return sorted(str(one) for one in every if one.suffix in _SUFFIXES and not _hidden(one.relative_to(place)))
    if place.exists():
        return [path]
    for above in reversed(place.parents):  # a glob passes over folders that it may not read, without a word
        for folder in glob.glob(str(above), recursive=True):  # noqa: PTH207 - a Path takes no absolute pattern
            if Path(folder).is_dir():
                os.scandir(folder).close()
    matching = glob.glob(path, recursive=True)  # noqa: PTH207
    return sorted(one for one in matching if Path(one).is_file() and not _hidden(Path(Path(one).name)))


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _raise(error: OSError) -> NoReturn:
    raise error


def _unreadable(error: OSError, path: str) -> NoReturn:
    raise DataError(
        f"{error.filename or path}: cannot be read ({error.strerror or error}), so the table would not be whole; "
        "give this user the right to read it, or name another `path`."
    ) from None


def _header(path: str, wanted: list[str]) -> tuple[Any, int]:
    try:
        schema = pl.read_parquet_schema(path)
        rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
    except PermissionError as error:
        _unreadable(error, path)
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException):
        raise DataError(
            f"{path}: is not readable as Parquet, or was cut off; replace it, or take it out of the table."
        ) from None
    for name in wanted:
        if name not in schema:
            raise DataError(f"{path}: has no column {name!r}{nearest(name, list(schema))}.")
    return schema, rows
