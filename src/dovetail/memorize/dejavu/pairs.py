"""Embeddings by a pair of models, as the test needs them: of attacked images, controls and the public set."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import floats, nearest, whole
from dovetail.core.display import mute
from dovetail.core.errors import DataError, OutputError, ParameterError
from dovetail.ledger.files import write_whole
from dovetail.memorize.dejavu.inference import (
    Distance,
    LabelInference,
    clean_labels,
    infer_by_logits,
    infer_by_neighbours,
    smallest_class,
)
from dovetail.memorize.dejavu.models import Excess, OneModel, against_controls, excess
from dovetail.memorize.dejavu.score import Attacked, Partition

MODELS = ("a", "b")
SETS = ("a", "b", "controls", "public")
_SAYS = {"a": "set A", "b": "set B", "controls": "the controls", "public": "the public set"}

Encoder = Callable[[Any], ArrayLike]


@mute
@dataclass(frozen=True)
class Pair:
    """Labels of each set of images and their embeddings by each model.

    Parameters
    ----------
    labels : set -> array (n,)
        Sets: `a` and `b` (training images of model A and of model B, as crops without the object), `controls` (crops
        of images that nobody trained on) and `public`.
    embeddings : (set, model) -> float array (n, d)
        By model `a` and model `b`. Without a public set these are logits and `classes` names their columns.
    classes : array (C,), optional
    classifier : set -> array (n,)
        What a classifier of the correlation guesses for the images of `a` and of `controls`.
    names : set -> array (n,), optional
        What the images are called where single ones are named; otherwise by their rows.
    """

    labels: Mapping[str, ArrayLike]
    embeddings: Mapping[tuple[str, str], ArrayLike]
    classes: ArrayLike | None = None
    classifier: Mapping[str, ArrayLike] = field(default_factory=dict)
    names: Mapping[str, ArrayLike] = field(default_factory=dict)

    @property
    def has_reference(self) -> bool:
        """True if there is a second model that saw none of A."""
        return ("a", "b") in self.embeddings

    def infer(
        self, images: str, model: str, *, neighbours: int = 100, distance: Distance = "euclidean"
    ) -> LabelInference:
        """Guess the classes of a set of images with one model."""
        rows, labels = self._of(images, model)
        try:
            if self.classes is not None:
                return infer_by_logits(rows, labels, classes=self.classes)
            public, given = self._of("public", model)
            return infer_by_neighbours(
                rows, labels, public=public, public_labels=given, neighbours=neighbours, distance=distance
            )
        except DataError as error:
            raise DataError(f"{_SAYS[images]} by model {model.upper()}: {error}") from None

    def attack(self, *, neighbours: int = 100, distance: Distance = "euclidean") -> list[Attacked]:
        """Images of A with A's model as the target, and those of B, where they are given, with B's."""
        settings: dict[str, Any] = {"neighbours": neighbours, "distance": distance}
        both = [("a", "b"), ("b", "a")] if "b" in self.labels else [("a", "b")]
        return [Attacked(self.infer(own, own, **settings), self.infer(own, other, **settings)) for own, other in both]

    def attack_alone(self, *, neighbours: int = 100, distance: Distance = "euclidean") -> OneModel | Excess | None:
        """Model A alone: against controls; without them its excess over the classifier; without that nothing.

        Compared within classes where every class of A has two images and two controls at least.
        """
        settings: dict[str, Any] = {"neighbours": neighbours, "distance": distance}
        target = self.infer("a", "a", **settings).correct
        right = {name: self._classifier_right(name) for name in self.classifier}
        if "controls" not in self.labels:
            return excess(target, right["a"]) if "a" in right else None
        both = (right["a"], right["controls"]) if right.keys() >= {"a", "controls"} else None
        controls = self.infer("controls", "a", **settings).correct
        labels = (self.labels["a"], self.labels["controls"]) if self._has_strata() else None
        return against_controls(target, controls, classifier=both, labels=labels)

    def distinct_rows(self, images: str) -> frozenset[bytes]:
        """The embeddings of a set by model A as bytes; none where they repeat, so that equal rows say nothing."""
        rows = np.asarray(self.embeddings.get((images, "a"), ()))
        distinct = frozenset(row.tobytes() for row in rows)
        return distinct if len(distinct) >= 0.9 * len(rows) else frozenset()

    def warnings(self, neighbours: int) -> list[str]:
        """Warnings for a reader of the result."""
        if "public" not in self.labels or self.classes is not None:
            return []
        least = smallest_class(np.asarray(self.labels["public"]))
        if neighbours <= least:
            return []
        return [
            f"{neighbours} neighbours are more than the {least} public images of the rarest class, which can hardly "
            "win a majority."
        ]

    def _has_strata(self) -> bool:
        classes, mine = np.unique(np.asarray(self.labels["a"]), return_counts=True)
        theirs = np.array([(np.asarray(self.labels["controls"]) == one).sum() for one in classes])
        return bool(min(mine.min(), theirs.min()) >= 2)

    def _classifier_right(self, name: str) -> NDArray[np.float64]:
        labels = np.asarray(self.labels[name])
        guesses = clean_labels(f"classifier of {_SAYS[name]}", self.classifier[name], len(labels))
        return np.asarray(guesses.astype(str) == labels.astype(str), dtype=np.float64)

    def _of(self, images: str, model: str) -> tuple[ArrayLike, ArrayLike]:
        if images not in self.labels:
            raise DataError(f"`labels` must be given for {_SAYS[images]}, got none.")
        if (images, model) not in self.embeddings:
            raise DataError(f"`embeddings` must be given for {_SAYS[images]} by model {model.upper()}, got none.")
        return self.embeddings[images, model], self.labels[images]


def embed_pair(
    encoders: Mapping[str, Encoder],
    images: Mapping[str, Sequence[Any]],
    labels: Mapping[str, ArrayLike],
    *,
    batch: int = 256,
    classes: ArrayLike | None = None,
) -> Pair:
    """A pair from any encoders: functions from a list of images to rows of numbers.

    Parameters
    ----------
    encoders : model -> function
        `a`, and `b` for the reference. Each is called with at most `batch` images and returns an array (batch, d).
    images : set -> sequence
        `a`, `b` and `controls`: crops without the object (`dovetail.memorize.crops`); `public`: whole images. What an
        image is, is between the caller and the encoder.
    labels : set -> array
    batch : int
    classes : array, optional
        For classifiers, whose rows are logits: what each column stands for; no public set is needed.
    """
    step = whole("batch", batch, least=1)
    found = {
        (name, model): _embed(encoder, shown, step, f"{_SAYS.get(name, name)} by model {model.upper()}")
        for name, shown in images.items()
        for model, encoder in encoders.items()
    }
    return Pair(labels, found, classes)


def _embed(encoder: Encoder, images: Sequence[Any], batch: int, where: str) -> NDArray[np.float64]:
    parts = []
    for start in range(0, len(images), batch):
        some = images[start : start + batch]
        rows = floats(f"embeddings of {where}", encoder(some))
        if rows.ndim != 2 or len(rows) != len(some):
            raise DataError(f"`encoder` must return one row for each of {len(some)} images, got shape {rows.shape}.")
        parts.append(rows)
    if not parts or len({part.shape[1] for part in parts}) > 1:
        raise DataError(f"`encoder` must return rows of one length for {where}, and there must be an image.")
    return np.concatenate(parts)


# Pairs of models in files: .npz, a folder of .npy, or Parquet with one row for each image.


KEYS = (
    *(f"labels_{name}" for name in SETS),
    *(f"{name}_by_model_{model}" for name in SETS for model in MODELS),
    *(f"{name}_by_classifier" for name in ("a", "controls")),
    *(f"names_{name}" for name in MODELS),
    "classes",
)
COLUMNS = ("set", "label", "model_a", "model_b", "classifier", "image")
_Arrays = dict[str, Any]


def read_pair(place: str | Path) -> Pair:
    """The embeddings of one pair of models.

    An .npz file, or a folder of .npy files, with arrays of these names:

    * ``labels_a``, ``labels_public`` (n,): whole numbers or texts; ``labels_b`` for the other direction,
      ``labels_controls`` for the test with one model;
    * ``a_by_model_a``, ``a_by_model_b``, ``public_by_model_a``, ``public_by_model_b``, ``b_by_model_a``,
      ``b_by_model_b``, ``controls_by_model_a`` (n, d): embeddings, row by row as the labels;
    * ``classes`` (C,) instead of a public set: the arrays are logits, and these their columns;
    * ``a_by_classifier``, ``controls_by_classifier`` (n,): labels that a classifier of the correlation guesses;
    * ``names_a``, ``names_b`` (n,): what the images are called, for the list of those that are memorized.

    Other arrays in the file are left alone. A Parquet file has a row for each image: ``set`` (a, b, controls or
    public), ``label``, ``model_a`` and ``model_b`` (lists of numbers), and ``classifier`` and ``image`` (its name)
    where there are such.

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
    arrays |= {f"names_{name}": np.asarray(names) for name, names in pair.names.items()}
    if pair.classes is not None:
        arrays["classes"] = np.asarray(pair.classes)
    with write_whole(place) as scratch:
        np.savez(scratch, **arrays)


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
    names = {name: arrays[key] for name in MODELS if (key := f"names_{name}") in arrays and name in labels}
    for name, given in names.items():
        if len(given) != len(labels[name]):
            raise DataError(
                f"{place}: names_{name} must name each of the {len(labels[name])} images, got {len(given)}."
            )
    return Pair(labels, embeddings, arrays.get("classes"), classifier, names)


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
        if "image" in frame.columns and name in MODELS:
            arrays[f"names_{name}"] = _labels(place, part["image"], name)
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


# Encoders with planted memorization: a table of answers with exact counts, so the attack has one right result.


_Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Planted:
    r"""Two encoders, each of which remembers a share rho of its training images and guesses q of the others right.

    Right answers on other images are independent of the reference's, which is right on q of all:

    .. math::
        \text{target} = \rho + (1 - \rho) q, \quad \text{score}(1) = \rho (1 - q), \quad
        \text{memorized} = \rho (1 - q) + (1 - \rho) q (1 - q), \quad
        \text{misrepresented} = (1 - \rho) q (1 - q)

    The encoder is sure (all K neighbours agree) of what it remembers, and unsure of all else; so score(p) is 1 - q
    for every p up to rho.

    Parameters
    ----------
    images : int
        In each of A and B.
    remembered, accuracy : Fraction, or text such as "1/4"
        rho and q; every count must come out whole.
    classes : int, at least 3
    neighbours : int, at least 5
        K of the attack, and the size of each cluster of the public set.
    """

    images: int
    remembered: Fraction | str
    accuracy: Fraction | str
    classes: int = 10
    neighbours: int = 10

    def __post_init__(self) -> None:
        whole("images", self.images, least=1)
        whole("classes", self.classes, least=3)
        whole("neighbours", self.neighbours, least=5)
        for name in ("remembered", "accuracy"):
            value = Fraction(getattr(self, name))
            if not 0 <= value <= 1:
                raise ParameterError(f"`{name}` must be from 0 to 1, got {value}.")
        if any(count.denominator > 1 for count in self._counts()):
            raise ParameterError(
                f"`images` must make every count whole at remembered {self.remembered} and accuracy {self.accuracy}, "
                f"got {self.images}."
            )

    @property
    def partition(self) -> Partition:
        """Exact counts for one direction."""
        known, lost, both, one, other, neither = (float(count) for count in self._counts())
        return Partition(known + both, lost + one, other, neither)

    def pair(self) -> Pair:
        """Embeddings of both directions."""
        labels = np.arange(self.images) % self.classes
        target, reference, sure = self._answers()
        codes = {"own": self._code(labels, target, sure), "other": self._code(labels, reference, np.zeros_like(sure))}
        public, given = self._public()
        rows = {
            (name, model): codes["own" if name == model else "other"] for name in ("a", "b") for model in ("a", "b")
        }
        return Pair(
            {"a": labels, "b": labels, "public": given},
            {**rows, ("public", "a"): public, ("public", "b"): public},
        )

    def _counts(self) -> tuple[Fraction, ...]:
        """Remembered and guessed by the reference; remembered alone; others: both, target, reference, neither."""
        n, rho, q = Fraction(self.images), Fraction(self.remembered), Fraction(self.accuracy)
        rest = (1 - rho) * n
        return (rho * q * n, rho * (1 - q) * n, q * q * rest, q * (1 - q) * rest, q * (1 - q) * rest,
                (1 - q) ** 2 * rest)  # fmt: skip

    def _answers(self) -> tuple[NDArray[np.bool_], ...]:
        """For each image: is the target right, is the reference, is the target sure."""
        kinds = [(1, 1, 1), (1, 0, 1), (1, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 0)]
        table = np.repeat(np.array(kinds, dtype=bool), [int(count) for count in self._counts()], axis=0)
        return table[:, 0], table[:, 1], table[:, 2]

    def _code(self, labels: _Codes, right: NDArray[np.bool_], sure: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The centre of the cluster whose majority is the answer; a wrong answer is the next class."""
        answer = np.where(right, labels, (labels + 1) % self.classes)
        return np.eye(2 * self.classes)[np.where(sure, answer, self.classes + answer)]

    def _public(self) -> tuple[NDArray[np.float64], _Codes]:
        """Two clusters of K rows for each class: one of that class alone, one with a bare majority of it."""
        others = (self.neighbours - 1) // 3
        rows, labels = [], []
        for code in range(self.classes):
            pure = np.full(self.neighbours, code)
            mixed = pure.copy()
            mixed[:others], mixed[others : 2 * others] = (code + 1) % self.classes, (code + 2) % self.classes
            rows += [code] * self.neighbours + [self.classes + code] * self.neighbours
            labels += [pure, mixed]
        return np.eye(2 * self.classes)[rows], np.concatenate(labels)
