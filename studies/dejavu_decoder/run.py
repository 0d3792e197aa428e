"""Figures 1.1, 1.6, 1.7 and A.9 in small: decode what stood in a training image from the embedding of its background.

As in section 1.5 the decoder learns to draw public images from their backbone embeddings; of a crop it is given the
mean backbone embedding of the public images that are nearest to the crop between projections.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from studies.dejavu_sweeps.network import INPUT, Encoder, train, whole
from studies.dejavu_sweeps.run import peripheries
from studies.dejavu_training.images import CLASSES, PATTERN, SIDE, Images, World, balanced, corners
from studies.perceptron import Network, Rows
from studies.record import command, picture, record

from dovetail.cli.progress import each
from dovetail.core.extras import require
from dovetail.memorize.dejavu.score import mcnemar

SEEDS, IMAGES, PUBLIC, VISITS = (601, 602, 603), 40, 1500, 1000
RECIPE: dict[str, Any] = {"loss": "simclr", "setting": 0.15, "hidden": (128, 128), "convolution": True}
NEIGHBOURS, WIDTH, BATCH, STEPS = 10, 256, 100, 1500
WAYS = ("vote", "periphery", "periphery, backbone alone", "corner", "whole image")  # the first one draws nothing
SHOWN, BELOW = 8, 0.001


def main(full: bool, out: Path) -> pl.DataFrame:
    """Three pairs of models with their decoders, a minute of one core; as a toy one pair for a few steps."""
    sizes = (PUBLIC, VISITS, STEPS) if full else (300, 20, 40)
    rows, shown = [], []
    for seed in each(SEEDS if full else SEEDS[:1], "train a pair and its decoders"):
        found, pictures = reconstructed(seed, *sizes)
        rows += found
        shown.append(pictures)
    table = pl.DataFrame(rows)
    table.write_csv(out / "dejavu_decoder.csv")
    picture(out / "dejavu_decoder.png", lambda pyplot: drawn(pyplot, table, shown[0]))
    record(out, seed=SEEDS[0], full=full)
    return table


def reconstructed(seed: int, public: int, visits: int, steps: int) -> tuple[list[dict[str, Any]], dict[str, Rows]]:
    """A row for each image and way: the class that each model's reconstruction shows. And images of A to draw."""
    rng = np.random.default_rng(seed)
    world = World.of(rng)
    labels = {name: balanced(n, rng) for name, n in (("a", IMAGES), ("b", IMAGES), ("public", public))}
    images = {name: world.images(labels[name], rng) for name in labels}
    models = {
        name: Decoder(
            train(images[name], labels[name], **RECIPE, steps=visits, seed=10 * seed + number),
            whole(images["public"]), steps=steps, seed=10 * seed + number,
        )
        for number, name in enumerate("ab")
    }  # fmt: skip
    rows, shown = [], {"image": whole(images["a"])}
    for name, other in ("ab", "ba"):
        ceiling = np.mean(shown_class(models[name].decode(models[name].known), world) == labels["public"])
        for way in WAYS:
            seen = shown_of(images[name], labels[name], world, way)
            owners = {"target": models[name], "reference": models[other]}
            if way == "vote":
                classes = {who: model.voted(seen, labels["public"]) for who, model in owners.items()}
            else:
                made = {who: model.reconstruct(seen, way) for who, model in owners.items()}
                classes = {who: shown_class(made[who], world) for who in made}
            rows += [
                {"seed": seed, "set": name, "row": row, "way": way, "label": int(label),
                 **{who: int(classes[who][row]) for who in classes}, "public_right": float(ceiling)}
                for row, label in enumerate(labels[name])
            ]  # fmt: skip
            if name == "a" and way == "periphery":
                shown |= {"seen": seen} | made
    return rows, shown


class Decoder:
    """Draws images from backbone embeddings of one encoder, by a perceptron that public images taught."""

    def __init__(self, encoder: Encoder, public: Rows, *, steps: int, seed: int) -> None:
        self.encoder, self.public = encoder, public
        found = encoder.embed(public, backbone=True)
        self.mean, self.spread = found.mean(axis=0), found.std(axis=0) + 1e-6
        self.known = self.condition(public)
        rng = np.random.default_rng(seed)
        self.network = Network((found.shape[1], WIDTH, public.shape[1]), rng)
        for _ in range(steps):
            chosen = rng.integers(len(public), size=BATCH)
            layers = self.network.forward(self.known[chosen])
            wrong = layers[-1] - public[chosen]
            self.network.step(layers, 2.0 * wrong / wrong.size, rate=1e-3)

    def condition(self, rows: Rows) -> Rows:
        """Backbone embeddings, each column as wide as that of the public images."""
        return (self.encoder.embed(rows, backbone=True) - self.mean) / self.spread

    def reconstruct(self, rows: Rows, way: str) -> Rows:
        """From the embedding of a whole image itself; of a crop from the mean of the public images near to it."""
        if way == "whole image":
            return self.decode(self.condition(rows))
        near = self.nearest(rows, backbone=way.endswith("backbone alone"))  # where the projector is withheld
        return self.decode(self.known[near].mean(axis=1))

    def voted(self, rows: Rows, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """The commonest class of the public images near to each crop; of several that of the nearest image."""
        votes = labels[self.nearest(rows)]
        first = (votes[:, :, None] == votes[:, None, :]).sum(axis=2).argmax(axis=1)
        return np.asarray(votes[np.arange(len(votes)), first])

    def nearest(self, rows: Rows, *, backbone: bool = False) -> NDArray[np.int64]:
        """Places of the nearest public images, the nearest first."""
        near = require("sklearn.neighbors", extra="studies").NearestNeighbors(n_neighbors=NEIGHBOURS)
        near.fit(self.encoder.embed(self.public, backbone=backbone))
        found = near.kneighbors(self.encoder.embed(rows, backbone=backbone), return_distance=False)
        return np.asarray(found)

    def decode(self, condition: Rows) -> Rows:
        """Images as rows."""
        return self.network.forward(condition)[-1]


def shown_of(images: Images, labels: NDArray[np.int64], world: World, way: str) -> Rows:
    """What of the images the adversary sees."""
    if way == "whole image":
        return whole(images)
    return whole(corners(images)) if way == "corner" else peripheries(images, labels, world)


def shown_class(rows: Rows, world: World) -> NDArray[np.int64]:
    """The class whose pattern correlates most with some part of each image."""
    side = PATTERN * INPUT // SIDE
    seen = sliding_window_view(rows.reshape(-1, INPUT, INPUT, 3), (side, side), axis=(1, 2))  # type: ignore[call-overload]
    parts = _unit(seen.transpose(0, 1, 2, 4, 5, 3).reshape(len(rows), -1, 3 * side**2))
    phases = [world.patterns[:, :, down::2, across::2] for down in (0, 1) for across in (0, 1)]
    wanted = _unit(np.stack([one.transpose(0, 2, 3, 1).reshape(CLASSES, -1) for one in phases], axis=1))
    return np.asarray(
        (parts @ wanted.reshape(-1, wanted.shape[-1]).T)
        .max(axis=1)
        .reshape(-1, CLASSES, 4)
        .max(axis=2)
        .argmax(axis=1)
    )


def _unit(rows: Any) -> Any:
    centred = rows - rows.mean(axis=-1, keepdims=True)
    return centred / (np.linalg.norm(centred, axis=-1, keepdims=True) + 1e-9)


def counts(table: pl.DataFrame, way: str) -> tuple[int, int]:
    """Images whose class the target's reconstruction alone shows, and the reference's alone."""
    right = table.filter(way=way).select(
        target=pl.col("target") == pl.col("label"), reference=pl.col("reference") == pl.col("label")
    )
    return right.filter(pl.col("target") & ~pl.col("reference")).height, right.filter(
        ~pl.col("target") & pl.col("reference")
    ).height


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """The endpoint, fixed after a pilot with another seed and before these pairs, and what makes it tell."""
    if table["seed"].n_unique() < len(SEEDS):
        return {"the toy has a row for each image, set and way": table.height == 2 * IMAGES * len(WAYS)}
    only_target, only_reference = counts(table, "periphery")
    reference = table.filter(way="periphery").select((pl.col("reference") == pl.col("label")).mean()).item()
    return {
        f"the endpoint is below {BELOW}: exact McNemar p of classes shown by one model's reconstructions alone": (
            only_target > only_reference and mcnemar(only_target, only_reference).p_value < BELOW
        ),
        "decoders show the class of most public images from their own embeddings": table["public_right"].min() > 0.5,  # type: ignore[operator]
        "of a background that it has not seen a model shows the class little more often than by chance": (
            reference < 2.5 / CLASSES
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame, shown: dict[str, Rows]) -> Any:
    """The first images of A that the own model alone gives away, and what either model makes of them."""
    rows = table.filter(pl.col("seed") == table["seed"][0], way="periphery", set="a")
    alone = (rows["target"] == rows["label"]) & (rows["reference"] != rows["label"])
    chosen = [*rows.filter(alone)["row"], *rows.filter(~alone)["row"]][:SHOWN]
    low, high = (float(np.quantile(shown["image"], share)) for share in (0.01, 0.99))
    lines = {"image": "image", "seen": "its periphery", "target": "own model", "reference": "other model"}
    figure, panels = pyplot.subplots(len(lines), SHOWN, figsize=(1.3 * SHOWN, 1.4 * len(lines)))
    for line, (name, label) in zip(panels, lines.items(), strict=True):
        for axis, row in zip(line, chosen, strict=True):
            image = shown[name][row].reshape(INPUT, INPUT, 3)
            axis.imshow(np.clip((image - low) / (high - low), 0.0, 1.0))
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(label, fontsize="small")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)
