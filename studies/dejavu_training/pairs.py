"""Pairs of models and what they make of the attacked images: files that `dovetail memorize dejavu` reads."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from studies.dejavu_training.images import Images, World, balanced, corners

Arrays = dict[str, np.ndarray[Any, Any]]
LAYERS = ("backbone", "projector")


@dataclass(frozen=True)
class Pair:
    """Two models of one loss, one trained on A and one on B."""

    loss: str
    images: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.loss}-{self.images}-{self.seed}"


def data(pair: Pair, public: int) -> tuple[dict[str, Images], Arrays]:
    """Images and labels of A, B and the public set; the loss has no part in it."""
    rng = np.random.default_rng([pair.seed, pair.images])
    world = World.of(rng)
    labels = {name: balanced(n, rng) for name, n in (("a", pair.images), ("b", pair.images), ("public", public))}
    return {name: world.images(labels[name], rng) for name in labels}, labels


def make(pair: Pair, recipe: dict[str, Any], folder: Path) -> None:
    """Train both models and write embeddings after each number of visits; what is written already is kept."""
    if all(place(folder, pair, visit, LAYERS[-1]).exists() for visit in recipe["visits"]):
        return
    from studies.dejavu_training.network import train

    images, labels = data(pair, recipe["public"])
    models = [
        train(images[name], labels[name], loss=pair.loss, seed=10 * pair.seed + number, batch=recipe["batch"],
              rate=recipe["rate"], visits=recipe["visits"])
        for number, name in enumerate("ab")
    ]  # fmt: skip
    for (visit, one), (_, two) in zip(*models, strict=True):
        for layer in LAYERS:
            found: Arrays = {f"labels_{name}": labels[name] for name in labels}
            for model, trainer in (("model_a", one), ("model_b", two)):
                for name in ("a", "b"):
                    found[f"{name}_by_{model}"] = trainer.embed(corners(images[name]), layer)
                    found[f"whole_{name}_by_{model}"] = trainer.embed(images[name], layer)
                found[f"public_by_{model}"] = trainer.embed(images["public"], layer)
            small = {key: value.astype(np.float32) if value.ndim == 2 else value for key, value in found.items()}
            np.savez(place(folder, pair, visit, layer), **small)


def place(folder: Path, pair: Pair, visit: int, layer: str) -> Path:
    """The file of a pair after so many visits."""
    return folder / f"{pair.name}-{visit}-{layer}.npz"


def every(config: dict[str, Any]) -> Iterator[Pair]:
    """The pairs of the endpoint first, then those beside."""
    endpoint, recipe, beside = config["endpoint"], config["recipe"], config["beside"]
    for seed in endpoint["pairs"]:
        yield Pair(endpoint["loss"], recipe["images"], seed)
    for seed in beside["pairs"]:
        for loss in beside["losses"]:
            yield Pair(loss, recipe["images"], seed)
        for n in beside["images"]:
            yield Pair(endpoint["loss"], n, seed)
