"""Samples of a generator's data from files: tables as points of mixed types, arrays, or folders of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.checks import nearest
from dovetail.core.display import mute
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.extras import require
from dovetail.memorize.copying.cells import Partition
from dovetail.memorize.copying.result import LEAST, WHY_FRESH
from dovetail.table.csv_text import WrittenOtherwise
from dovetail.table.reader import read_table

Points = NDArray[np.float64]  # (n, d)

TABLES, ARRAYS = (".csv", ".data", ".parquet", ".pq"), (".npy", ".npz")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
SIXTEEN_BITS = 65_535
MOST_NUMBERS = 500_000_000  # 4 GiB of doubles


@mute
@dataclass(frozen=True, eq=False)
class Samples:
    """The samples as points, and their rows as people see them: data frames or pictures (n, h, w[, 3]).

    Parameters
    ----------
    kind : "table", "array" or "images"
    points, shown : by name: "train", "fresh", "holdout", and `generated_key` of each generated sample
    mixed : how rows of tables become points
    described : what distances mean, in a sentence
    """

    kind: str
    points: dict[str, Points]
    shown: dict[str, Any]
    mixed: MixedTypes | None
    described: str


def read_samples(
    train: Path,
    fresh: Path | None,
    generated: Sequence[Path],
    *,
    holdout: Path | None = None,
    ignore: Sequence[str] = (),
    categories: Sequence[str] = (),
    array: str | None = None,
    image_shape: tuple[int, ...] | None = None,
) -> Samples:
    """Read all samples; they must be of one kind.

    Parameters
    ----------
    ignore, categories : column names
        Of tables: columns that are no data, such as row numbers; numbers that are names of things.
    array : str, optional
        Which array of an .npz file.
    image_shape : tuple, optional
        Of flat arrays whose rows are pictures: (height, width) or (height, width, 3).

    Raises
    ------
    DataError, UnsupportedError
        One line: what, where, what to do.
    """
    if fresh is None:
        raise UnsupportedError(f"--fresh is missing: {WHY_FRESH}.")
    places = {"train": train, "fresh": fresh, **({"holdout": holdout} if holdout else {})}
    places |= {generated_key(place): place for place in generated}
    kind = _kind(train)
    for place in places.values():
        if _kind(place) != kind:
            raise DataError(f"{place}: must be of the same kind as {train}, which is {_ARTICLE[kind]}.")
    if kind == "table" and image_shape is not None:
        raise UnsupportedError(f"--image-shape is for arrays whose rows are pictures; {train} is a table.")
    if kind == "table":
        return _tables({name: _table(place) for name, place in places.items()}, ignore, categories)
    if ignore or categories:
        raise UnsupportedError(f"--ignore and --categories are for columns of tables; {train} is {_ARTICLE[kind]}.")
    raw = {name: _images(place) if kind == "images" else _array(place, array) for name, place in places.items()}
    for name, one in raw.items():
        if one.shape[1:] != raw["train"].shape[1:]:
            sizes = tuple(" x ".join(str(side) for side in each.shape[1:]) for each in (one, raw["train"]))
            raise DataError(f"{places[name]}: rows are {sizes[0]}, those of {train} {sizes[1]}; they must agree.")
    points = {name: np.asarray(one, dtype=np.float64).reshape(len(one), -1) for name, one in raw.items()}
    shown = {name: _pictures(one, image_shape) for name, one in raw.items()}
    scale = "pixels from 0 to 1" if kind == "images" else "the numbers as they are"
    return Samples(kind, points, shown, None, scale)


def generated_key(place: Path) -> str:
    """The name of a generated sample: none that another sample has, whatever its file is called."""
    return f"generated {place}"


_ARTICLE = {"table": "a table", "array": "an array", "images": "a folder of images"}


def _kind(place: Path) -> str:
    if place.is_dir():
        return "images"
    if not place.exists():
        raise DataError(f"{place}: no such file.")
    suffix = place.suffix.lower()
    if suffix in TABLES:
        return "table"
    if suffix in ARRAYS:
        return "array"
    raise DataError(
        f"{place}: must be .csv, .parquet, .npy, .npz or a folder of images, got {suffix or 'no suffix'!r}."
    )


def _table(place: Path) -> pl.DataFrame:
    """Here no [data] says how a file is written, so errors must not name it."""
    try:
        table = read_table(str(place))
    except WrittenOtherwise as error:
        raise DataError(error.plain) from None
    if not table.height:
        raise DataError(f"{place}: the table has no rows.")
    return table


def _tables(tables: dict[str, pl.DataFrame], ignore: Sequence[str], categories: Sequence[str]) -> Samples:
    mixed = MixedTypes.fit(tables["train"], tables["fresh"], ignore=ignore, categories=categories)
    points = {name: mixed.points(table, name) for name, table in tables.items()}
    names = [column.name for column in mixed.columns]
    return Samples("table", points, {name: table.select(names) for name, table in tables.items()}, mixed,
                   mixed.described())  # fmt: skip


def _array(place: Path, name: str | None) -> NDArray[Any]:
    try:
        with place.open("rb") as file:
            found = _loaded(place, np.load(file, allow_pickle=False), name)
    except DataError:
        raise
    except (OSError, ValueError, EOFError, BadZipFile, ZlibError):
        raise DataError(f"{place}: is no array of numbers; save it with numpy.save or savez.") from None
    real = np.issubdtype(found.dtype, np.number) and not np.issubdtype(found.dtype, np.complexfloating)
    if found.ndim < 2 or not (real or found.dtype == np.bool_):
        raise DataError(f"{place}: must be rows of numbers, got {found.ndim} dimensions of {found.dtype}.")
    if not found.size:
        raise DataError(f"{place}: holds no numbers, its array is {' x '.join(map(str, found.shape))}.")
    if found.size > MOST_NUMBERS:
        raise DataError(
            f"{place}: {found.size:,} numbers are more than {MOST_NUMBERS:,}; use an embedding, or fewer rows."
        )
    return np.asarray(found)


def _loaded(place: Path, found: Any, name: str | None) -> NDArray[Any]:
    if isinstance(found, np.ndarray):
        return found
    names = list(found.files)
    if name is None and len(names) != 1:
        raise DataError(f"{place}: holds the arrays {', '.join(names)}; name one with --array.")
    if (name or names[0]) not in names:
        raise DataError(f"{place}: holds no array {name!r}, but {', '.join(names)}.")
    return np.asarray(found[name or names[0]])


def _images(folder: Path) -> NDArray[np.float64]:
    image = require("PIL.Image", extra="memorize")
    places = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGES)
    if not places:
        raise DataError(f"{folder}: holds no images ({', '.join(IMAGES)}).")
    rows: list[NDArray[np.float32]] = []
    for place in places:
        try:
            with image.open(place) as file:
                rows.append(_pixels(place, file))
        except (OSError, ValueError) as error:
            raise DataError(f"{place}: is no image that can be read ({str(error).splitlines()[0]}).") from None
        if rows[-1].shape != rows[0].shape:
            sizes = tuple(" x ".join(str(side) for side in one.shape) for one in (rows[-1], rows[0]))
            raise DataError(f"{place}: is {sizes[0]}, {places[0].name} is {sizes[1]}; scale images alike beforehand.")
        if rows[0].size * len(places) > MOST_NUMBERS:
            raise DataError(
                f"{folder}: {len(places):,} images of {rows[0].size:,} numbers are too many; scale them down."
            )
    return np.stack(rows).astype(np.float64)


def _pixels(place: Path, file: Any) -> NDArray[np.float32]:
    """From 0 to 1: grey (h, w), of 8 or 16 bits, or colours (h, w, 3)."""
    if file.mode.startswith("I"):  # a conversion would clip to 255
        grey = np.asarray(file, dtype=np.float64)
        if grey.min() < 0 or grey.max() > SIXTEEN_BITS:
            raise DataError(f"{place}: must have pixels of 8 or 16 bits, got values up to {grey.max():.0f}.")
        return np.asarray(grey / SIXTEEN_BITS, dtype=np.float32)
    if file.mode == "F":
        raise DataError(f"{place}: must have pixels of 8 or 16 bits, got fractions; give them as an array.")
    shown = file.convert("L" if file.mode in ("1", "L") else "RGB")
    return np.asarray(np.asarray(shown) / 255.0, dtype=np.float32)


def _pictures(rows: NDArray[Any], shape: tuple[int, ...] | None) -> NDArray[Any] | None:
    """Rows that can be looked at, or None."""
    if shape is not None:
        if int(np.prod(shape)) != rows[0].size:
            raise DataError(f"--image-shape must hold {rows[0].size:,} numbers, got {' x '.join(map(str, shape))}.")
        return rows.reshape(-1, *shape)
    if rows.ndim == 3 and min(rows.shape[1:]) >= 4:
        return rows
    return rows if rows.ndim == 4 and rows.shape[3] in (1, 3) else None


# Rows of a table as points: numbers in standard deviations of the training sample, categories as one of many.
#
# A category that differs adds 2 to the squared distance: as much as two independent draws of a scaled number differ
# on average. A category that neither the training nor the fresh sample knows differs from all of theirs.

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
        """Number of coordinates of a column: categories have one for the unknown besides."""
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
        _same_columns(train, fresh)
        names = [name for name in train.columns if name not in ignore]
        if not names:
            raise DataError("train: no column is left to compare.")
        columns = tuple(_column(train[name], fresh[name], name in categories) for name in names)
        return cls(columns, tuple(ignore))

    @property
    def widths(self) -> list[int]:
        """Number of coordinates of each column."""
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
        """Say in a sentence how distances are taken."""
        numbers = sum(column.categories is None for column in self.columns)
        parts = [f"{numbers} numbers in standard deviations of the training sample"] if numbers else []
        if others := len(self.columns) - numbers:
            parts.append(f"{others} categories, each difference adding 2 to the square")
        return "Euclidean over " + " and ".join(parts)


def _same_columns(train: pl.DataFrame, fresh: pl.DataFrame) -> None:
    missing = [name for name in train.columns if name not in fresh.columns]
    extra = [name for name in fresh.columns if name not in train.columns]
    if missing or extra:
        said = [f"lacks {missing[0]!r}"] if missing else []
        said += [f"has {extra[0]!r} besides"] if extra else []
        raise DataError(f"fresh: columns differ from the training table: {' and '.join(said)}.")


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
