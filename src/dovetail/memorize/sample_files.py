"""Samples of a generator's data from files: tables, arrays, or folders of images, all of one kind."""

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

from dovetail.core.display import mute
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.extras import require
from dovetail.memorize.copying.mixed_types import MixedTypes
from dovetail.memorize.copying.result import WHY_FRESH
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
