"""What the test needs of a pair of models: embeddings of attacked images, of controls and of the public set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import floats, whole
from dovetail.core.display.display import mute
from dovetail.core.errors import DataError
from dovetail.memorize.dejavu.inference import (
    LabelInference,
    clean_labels,
    infer_by_logits,
    infer_by_neighbours,
    smallest_class,
)
from dovetail.memorize.dejavu.neighbours import Distance
from dovetail.memorize.dejavu.one_model import Excess, OneModel, against_controls, excess
from dovetail.memorize.dejavu.score import Attacked

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
    """

    labels: Mapping[str, ArrayLike]
    embeddings: Mapping[tuple[str, str], ArrayLike]
    classes: ArrayLike | None = None
    classifier: Mapping[str, ArrayLike] = field(default_factory=dict)

    @property
    def has_reference(self) -> bool:
        """Whether there is a second model that saw none of A."""
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
        """What a reader of the result should know."""
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
