"""Pairs of models in files: .npz, a folder of .npy, or Parquet with one row for each image."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dovetail.core.checks import nearest
from dovetail.core.errors import DataError, OutputError, StorageError
from dovetail.memorize.dejavu.embeddings import MODELS, SETS, Pair

KEYS = (
    *(f"labels_{name}" for name in SETS),
    *(f"{name}_by_model_{model}" for name in SETS for model in MODELS),
    *(f"{name}_by_classifier" for name in ("a", "controls")),
    "classes",
)
COLUMNS = ("set", "label", "model_a", "model_b", "classifier")
_Arrays = dict[str, Any]


def read_pair(place: str | Path) -> Pair:
    """The embeddings of one pair of models.

    An .npz file, or a folder of .npy files, with arrays of these names:

    * ``labels_a``, ``labels_public`` (n,): whole numbers or texts; ``labels_b`` for the other direction,
      ``labels_controls`` for the test with one model;
    * ``a_by_model_a``, ``a_by_model_b``, ``public_by_model_a``, ``public_by_model_b``, ``b_by_model_a``,
      ``b_by_model_b``, ``controls_by_model_a`` (n, d): embeddings, row by row as the labels;
    * ``classes`` (C,) instead of a public set: the arrays are logits, and these their columns;
    * ``a_by_classifier``, ``controls_by_classifier`` (n,): labels that a classifier of the correlation guesses.

    Other arrays in the file are left alone. A Parquet file has a row for each image: ``set`` (a, b, controls or
    public), ``label``, ``model_a`` and ``model_b`` (lists of numbers), and ``classifier`` where there is one.

    Raises
    ------
    DataError
        For what is missing, unreadable, or of different lengths; names the file and the array.
    """
    place = Path(place)
    if not place.exists():
        raise DataError(f"{place}: no such file or folder.")
    suffix = place.suffix.lower()
    if place.is_dir():
        arrays = _folder(place)
    elif suffix == ".npz":
        arrays = _npz(place)
    elif suffix in (".parquet", ".pq"):
        arrays = _parquet(place)
    else:
        raise DataError(f"{place}: must be .npz, .parquet or a folder of .npy, got {suffix or 'no suffix'!r}.")
    return _pair(place, arrays)


def write_pair(pair: Pair, place: str | Path) -> None:
    """Write a pair as .npz, whole or not at all, as `read_pair` reads it."""
    place = Path(place)
    if place.suffix.lower() != ".npz":
        raise OutputError(f"{place}: must end in .npz.")
    arrays: _Arrays = {f"labels_{name}": np.asarray(labels) for name, labels in pair.labels.items()}
    arrays |= {f"{name}_by_model_{model}": np.asarray(rows) for (name, model), rows in pair.embeddings.items()}
    arrays |= {f"{name}_by_classifier": np.asarray(guesses) for name, guesses in pair.classifier.items()}
    if pair.classes is not None:
        arrays["classes"] = np.asarray(pair.classes)
    scratch = place.with_name(f".{place.name}.part")
    try:
        with scratch.open("wb") as file:
            np.savez(file, **arrays)
        scratch.replace(place)
    except OSError as error:
        raise StorageError(f"{place}: could not be written ({error.strerror}); nothing was left.") from None
    finally:
        scratch.unlink(missing_ok=True)


def _pair(place: Path, arrays: _Arrays) -> Pair:
    for name, value in arrays.items():
        if value.dtype.kind == "O":
            raise DataError(f"{place}: {name} must hold numbers or texts, got Python objects; save it as an array.")
    wanted = ["labels_a", "a_by_model_a"] + ([] if "classes" in arrays else ["labels_public", "public_by_model_a"])
    if any(name in arrays for name in ("a_by_model_b", "labels_b")):
        wanted += ["a_by_model_b"] + ([] if "classes" in arrays else ["public_by_model_b"])
    wanted += ["b_by_model_a", "b_by_model_b"] if "labels_b" in arrays else []
    wanted += ["controls_by_model_a"] if "labels_controls" in arrays else []
    for name in wanted:
        if name not in arrays:
            raise DataError(
                f"{place}: has no array {name}{nearest(name, arrays)}; its arrays must be called {_called()}."
            )
    for name in ("b", "controls"):
        lone = [key for key in arrays if key.startswith(f"{name}_by_")]
        if lone and f"labels_{name}" not in arrays:
            raise DataError(f"{place}: {lone[0]} needs labels_{name}; without them it would say nothing.")
    labels = {name: arrays[f"labels_{name}"] for name in SETS if f"labels_{name}" in arrays}
    embeddings = {
        (name, model): arrays[key]
        for name in SETS
        for model in MODELS
        if (key := f"{name}_by_model_{model}") in arrays and name in labels
    }
    for (name, model), rows in embeddings.items():
        if len(rows) != len(labels[name]):
            raise DataError(
                f"{place}: {name}_by_model_{model} must have a row for each of the {len(labels[name])} "
                f"labels_{name}, got {len(rows)}."
            )
    classifier = {name: arrays[key] for name in ("a", "controls") if (key := f"{name}_by_classifier") in arrays}
    return Pair(labels, embeddings, arrays.get("classes"), classifier)


def _called() -> str:
    return "labels_a, a_by_model_a, public_by_model_a, .. (see --help)"


def _npz(place: Path) -> _Arrays:
    try:
        with np.load(place, allow_pickle=False) as file:
            return {name: _plain(place, name, lambda key=name: file[key]) for name in file.files if name in KEYS}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{place}: cannot be read as .npz ({_first(error)}).") from None


def _folder(place: Path) -> _Arrays:
    files = [file for file in sorted(place.glob("*.npy")) if file.stem in KEYS]
    return {
        file.stem: _plain(place, file.stem, lambda file=file: np.load(file, allow_pickle=False)) for file in files
    }


def _plain(place: Path, name: str, load: Any) -> Any:
    try:
        found = load()
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"{place}: {name} cannot be read ({_first(error)}); save it as an array.") from None
    if not found.ndim:
        raise DataError(f"{place}: {name} must have a row for each image, got a single value.")
    return found


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def _parquet(place: Path) -> _Arrays:
    try:
        frame = pl.read_parquet(place)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{place}: cannot be read as Parquet ({_first(error)}).") from None
    for column in ("set", "label", "model_a"):
        if column not in frame.columns:
            raise DataError(f"{place}: has no column {column!r}{nearest(column, frame.columns)}.")
    strange = set(frame["set"].to_list()) - set(SETS)
    if strange:
        raise DataError(f"{place}: column set must hold a, b, controls or public, got {min(map(str, strange))!r}.")
    arrays: _Arrays = {}
    for name in SETS:
        part = frame.filter(pl.col("set") == name)
        if not part.height:
            continue
        arrays[f"labels_{name}"] = _labels(place, part["label"], name)
        for model in MODELS:
            column = f"model_{model}"
            if column in frame.columns and not part[column].is_null().all():
                arrays[f"{name}_by_{column}"] = _rows(place, part[column], name)
        if "classifier" in frame.columns and not part["classifier"].is_null().all() and name in ("a", "controls"):
            arrays[f"{name}_by_classifier"] = _labels(place, part["classifier"], name)
    return arrays


def _labels(place: Path, column: pl.Series, name: str) -> Any:
    if column.null_count():
        raise DataError(f"{place}: column {column.name} must be filled in every row of set {name}.")
    return (
        np.asarray([str(one) for one in column]) if column.dtype in (pl.String, pl.Categorical) else column.to_numpy()
    )


def _rows(place: Path, column: pl.Series, name: str) -> Any:
    rows: Iterable[Any] = column.to_list()
    try:
        return np.asarray([list(row) for row in rows], dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"{place}: column {column.name} must hold lists of numbers of one length in set {name}."
        ) from None
