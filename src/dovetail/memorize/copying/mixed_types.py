"""Rows of a table as points: numbers in standard deviations of the training sample, categories as one of many.

A category that differs adds 2 to the squared distance: as much as two independent draws of a scaled number differ on
average. A category that neither the training nor the fresh sample knows differs from all of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.checks import nearest
from dovetail.core.errors import DataError
from dovetail.memorize.copying.cells import Partition
from dovetail.memorize.copying.result import LEAST

Points = NDArray[np.float64]  # (n, d)

MOST_CATEGORIES = 2_000
MOST_UNKNOWN = 0.5  # share of rows whose category neither T nor P holds


@dataclass(frozen=True)
class Column:
    """One column: its mean and standard deviation in T, or the categories that T and P know."""

    name: str
    mean: float = 0.0
    deviation: float = 1.0
    categories: tuple[str, ...] | None = None

    @property
    def width(self) -> int:
        """How many numbers stand for it: categories have one for the unknown besides."""
        return 1 if self.categories is None else len(self.categories) + 1


@dataclass(frozen=True)
class MixedTypes:
    """The map from tables to points, fitted to the training table; only the list of categories looks at P too."""

    columns: tuple[Column, ...]
    ignored: tuple[str, ...] = ()

    @classmethod
    def fit(
        cls, train: pl.DataFrame, fresh: pl.DataFrame, *, ignore: Sequence[str] = (), categories: Sequence[str] = ()
    ) -> MixedTypes:
        """A column is a number where every value of T and P is one, unless it is named among the `categories`.

        Raises
        ------
        DataError
            For columns that differ between the tables, constant ones, and those with too many categories.
        """
        for name in (*ignore, *categories):
            if name not in train.columns:
                raise DataError(f"train: has no column {name!r}{nearest(name, train.columns)}.")
        _same_columns(train, fresh, "fresh")
        names = [name for name in train.columns if name not in ignore]
        if not names:
            raise DataError("train: no column is left to compare.")
        columns = tuple(_column(train[name], fresh[name], name in categories) for name in names)
        return cls(columns, tuple(ignore))

    @property
    def widths(self) -> list[int]:
        """How many numbers stand for each column."""
        return [column.width for column in self.columns]

    def points(self, table: pl.DataFrame, what: str) -> Points:
        """The points (n, d) of a table with these columns."""
        for column in self.columns:
            if column.name not in table.columns:
                raise DataError(f"{what}: has no column {column.name!r}{nearest(column.name, table.columns)}.")
        known = {*self.ignored, *(column.name for column in self.columns)}
        if extra := [name for name in table.columns if name not in known]:
            raise DataError(f"{what}: has the column {extra[0]!r}, which the training table lacks; leave it out.")
        return np.column_stack([_coordinates(table[column.name], column, what) for column in self.columns])

    def cells_of(self, name: str) -> Partition:
        """The partition whose cells are the categories of one column."""
        start = 0
        for column in self.columns:
            if column.name == name:
                if column.categories is None:
                    raise DataError(
                        f"train: column {name!r} is a number; cells are categories (--categories {name})."
                    )
                place = slice(start, start + column.width)
                return lambda points: np.asarray(points[:, place].argmax(axis=1), dtype=np.int64)
            start += column.width
        raise DataError(f"train: has no column {name!r}{nearest(name, [column.name for column in self.columns])}.")

    def described(self) -> str:
        """How distances are taken, in a sentence."""
        numbers = sum(column.categories is None for column in self.columns)
        parts = [f"{numbers} numbers in standard deviations of the training sample"] if numbers else []
        if others := len(self.columns) - numbers:
            parts.append(f"{others} categories, each difference adding 2 to the square")
        return "Euclidean over " + " and ".join(parts)


def _same_columns(train: pl.DataFrame, other: pl.DataFrame, what: str) -> None:
    missing = [name for name in train.columns if name not in other.columns]
    extra = [name for name in other.columns if name not in train.columns]
    if missing or extra:
        said = [f"lacks {missing[0]!r}"] if missing else []
        said += [f"has {extra[0]!r} besides"] if extra else []
        raise DataError(f"{what}: columns differ from the training table: {' and '.join(said)}.")


def _column(train: pl.Series, fresh: pl.Series, category: bool) -> Column:
    _refuse_missing(train, "train")
    _refuse_missing(fresh, "fresh")
    numbers = None if category else _numbers(train)
    if not category and numbers is None:
        _refuse_stray_text(train)
    if numbers is not None:
        if _numbers(fresh) is None:
            raise DataError(_text_among_numbers(fresh, "fresh"))
        with np.errstate(over="ignore"):
            deviation = float(numbers.std())
        if not np.isfinite(deviation):
            raise DataError(f"train: column {train.name!r} holds numbers too large to be squared; ignore it.")
        if np.ptp(numbers) == 0.0:
            raise DataError(f"train: column {train.name!r} is constant, which gives no scale; ignore it.")
        return Column(train.name, float(numbers.mean()), deviation)
    known = pl.concat([_text(train), _text(fresh)]).unique().sort().to_list()
    if len(known) == 1:
        raise DataError(f"train: column {train.name!r} is constant, which tells nothing apart; ignore it.")
    if len(known) > MOST_CATEGORIES:
        raise DataError(
            f"train: column {train.name!r} has {len(known):,} different texts, more than {MOST_CATEGORIES:,}; ignore "
            "it if it is a name or a number of a row."
        )
    return Column(train.name, categories=tuple(known))


def _coordinates(values: pl.Series, column: Column, what: str) -> Points:
    _refuse_missing(values, what)
    if column.categories is None:
        numbers = _numbers(values)
        if numbers is None:
            raise DataError(_text_among_numbers(values, what))
        return ((numbers - column.mean) / column.deviation)[:, None]
    codes = _text(values).replace_strict(
        list(column.categories), range(len(column.categories)), default=len(column.categories), return_dtype=pl.Int64
    )
    _refuse_unknown(values, codes.to_numpy() == len(column.categories), what)
    return np.asarray(np.eye(len(column.categories) + 1)[codes.to_numpy()], dtype=np.float64)


def _numbers(values: pl.Series) -> NDArray[np.float64] | None:
    """Finite numbers, or None where one value is none."""
    found = _parsed(values)
    if found is None or found.null_count() or not found.is_finite().all():
        return None
    return np.asarray(found.to_numpy(), dtype=np.float64)


def _parsed(values: pl.Series) -> pl.Series | None:
    """Numbers, null where a value is none; None for what holds no numbers at all, such as dates."""
    stripped: Any = values.str.strip_chars() if values.dtype == pl.String else values
    if not (values.dtype.is_numeric() or values.dtype in (pl.String, pl.Boolean)):
        return None
    found: pl.Series = stripped.cast(pl.Float64, strict=False)
    return found


def _stray(values: pl.Series) -> tuple[int, Any, int]:
    """Row (from 1) and value of the first that is no finite number, and how many are none."""
    found = _parsed(values)
    bad = pl.Series([True] * len(values)) if found is None else ~found.is_finite().fill_null(False)
    row = int(bad.arg_true()[0])
    return row + 1, values[row], int(bad.sum())


def _text_among_numbers(values: pl.Series, what: str) -> str:
    row, value, count = _stray(values)
    return (
        f"{what}: column {values.name!r} holds {str(value)[:40]!r} in row {row:,}, where the training sample holds "
        f"numbers (such values: {count:,}); correct them, or name the column a category (--categories {values.name})."
    )


def _refuse_stray_text(train: pl.Series) -> None:
    """Numbers with a few texts among them would be compared as categories: 3.1 as far from 3.2 as from 9."""
    found = _parsed(train)
    if found is None:
        return
    row, value, count = _stray(train)
    if count <= len(train) / 2:
        raise DataError(
            f"train: column {train.name!r} holds {str(value)[:40]!r} in row {row:,} among numbers ({count:,} of "
            f"{len(train):,} values); correct them, or name the column a category (--categories {train.name})."
        )


def _text(values: pl.Series) -> pl.Series:
    """Names, alike for 1, 1.0 and "1.00", and for true, True and TRUE: files write values in their own ways."""
    found = values.cast(pl.String).str.strip_chars()
    plain = found.str.replace(r"^([+-]?\d+)\.0*$", "$1").str.replace(r"^([+-]?\d+\.\d*[1-9])0+$", "$1")
    lower = plain.str.to_lowercase()
    return (
        pl.select(pl.when(lower.is_in(["true", "false"])).then(lower).otherwise(plain)).to_series().alias(values.name)
    )


def _refuse_unknown(values: pl.Series, unknown: NDArray[np.bool_], what: str) -> None:
    """Rows of unknown categories are far from all others, so a column that is written otherwise hides every copy."""
    if len(unknown) >= LEAST and unknown.mean() > MOST_UNKNOWN:
        row = int(np.flatnonzero(unknown)[0])
        raise DataError(
            f"{what}: column {values.name!r} holds {str(values[row])[:40]!r} in row {row + 1:,}, which the training "
            f"and fresh samples do not know (such values: {int(unknown.sum()):,} of {len(unknown):,}); that hides "
            "copies: write them alike, or ignore the column."
        )


def _refuse_missing(values: pl.Series, what: str) -> None:
    absent = values.is_null() | (values.is_nan() if values.dtype.is_float() else values.is_null())
    if values.dtype == pl.String:
        absent = absent | values.str.strip_chars().str.to_lowercase().is_in(["", "nan"])
    if absent.any():
        rows = absent.arg_true()
        raise DataError(
            f"{what}: column {values.name!r} lacks {len(rows):,} values (first row {int(rows[0]) + 1}); drop or fill "
            "them in all samples alike, or ignore the column."
        )
