"""A small training of encoders that repeat their data: deja vu over visits, layers, losses and confidence."""

import tomllib
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.dejavu_training.draw import drawn, examples
from studies.dejavu_training.pairs import LAYERS, Pair, every, make, place
from studies.record import command, picture, record

from dovetail.cli.progress import each
from dovetail.core.extras import require
from dovetail.memorize.dejavu.models import confidence_curve
from dovetail.memorize.dejavu.pairs import read_pair
from dovetail.memorize.dejavu.score import Partition, mcnemar, mcnemar_of, score

HOME = Path(__file__).parent
SHARES = (0.1, 0.2, 0.5)
TOY = {"images": 20, "public": 200, "neighbours": 10, "batch": 20, "visits": [5, 20]}


def main(full: bool, out: Path) -> pl.DataFrame:
    """Train every pair of the configuration, about an hour on one core; as a toy one pair for some seconds."""
    config = configuration(full)
    folder = out / "embeddings"
    folder.mkdir(parents=True, exist_ok=True)
    pairs = list(every(config)) if full else [Pair("vicreg", config["recipe"]["images"], 1)]
    rows = []
    for pair in each(pairs, "train and test a pair"):
        make(pair, config["recipe"], folder)
        rows += [
            attacked(pair, visit, layer, config["recipe"], folder)
            for visit in config["recipe"]["visits"]
            for layer in LAYERS
        ]
    table = pl.DataFrame(rows)
    table.write_csv(out / "dejavu_training.csv")
    picture(out / "dejavu_training.png", partial(drawn, table=table))
    picture(
        out / "dejavu_training_examples.png", partial(examples, pair=pairs[0], recipe=config["recipe"], folder=folder)
    )
    record(out, seed=pairs[0].seed, full=full)
    return table


def configuration(full: bool) -> dict[str, Any]:
    """What was fixed beforehand; smaller and shorter as a toy."""
    config = tomllib.loads((HOME / "config.toml").read_text())
    return config if full else {**config, "recipe": {**config["recipe"], **TOY}}


def attacked(pair: Pair, visit: int, layer: str, recipe: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the attack finds in one pair, one layer, after so many visits; both directions."""
    file = place(folder, pair, visit, layer)
    directions = read_pair(file).attack(neighbours=recipe["neighbours"])
    test = mcnemar_of(directions)
    row: dict[str, Any] = {
        "loss": pair.loss, "images": pair.images, "seed": pair.seed, "visits": visit, "layer": layer,
        "attacked": sum(each.n for each in directions),
        "target": float(np.mean([each.target.accuracy for each in directions])),
        "reference": float(np.mean([each.reference.accuracy for each in directions])),
        "score_20": score(directions, 0.2),
        **asdict(Partition.of(directions)),
        "only_target": test.memorized, "only_reference": test.misrepresented,
    }  # fmt: skip
    for share, one, two in confidence_curve(directions, SHARES):
        row |= {f"target_{share:.0%}": one, f"reference_{share:.0%}": two}
    return row | probe(file)


def probe(file: Path) -> dict[str, float]:
    """Accuracy of a linear probe on the whole images it was fitted to and on the public ones; mean of both models."""
    linear = require("sklearn.linear_model", extra="studies")
    found = np.load(file)
    scores = []
    for name in "ab":
        rows = {part: found[f"{part}_by_model_{name}"].astype(float) for part in (f"whole_{name}", "public")}
        mean, spread = rows[f"whole_{name}"].mean(axis=0), rows[f"whole_{name}"].std(axis=0) + 1e-6
        fitted = linear.LogisticRegression(C=0.1, max_iter=2000)
        fitted.fit((rows[f"whole_{name}"] - mean) / spread, found[f"labels_{name}"])
        scores.append([fitted.score((rows[part] - mean) / spread, found[f"labels_{label}"])
                       for part, label in ((f"whole_{name}", name), ("public", "public"))])  # fmt: skip
    train, test = np.mean(scores, axis=0)
    return {"probe_train": float(train), "probe_public": float(test)}


def endpoint(table: pl.DataFrame) -> tuple[int, int]:
    """Images that only the target, and only the reference, guesses: over the pairs fixed beforehand."""
    config = configuration(True)
    rows = table.filter(
        pl.col("seed").is_in(config["endpoint"]["pairs"]),
        loss=config["endpoint"]["loss"],
        layer=config["endpoint"]["layer"],
        images=config["recipe"]["images"],
        visits=config["recipe"]["visits"][-1],
    )
    return int(rows["only_target"].sum()), int(rows["only_reference"].sum())


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the claim says, seen in this table."""
    gap = table["target"] - table["reference"]
    counted = (table["memorized"] - table["misrepresented"]) / table["attacked"]
    claims = {"memorized less misrepresented images are the gap": bool((gap - counted).abs().max() < 1e-9)}
    config = configuration(True)
    if table.filter(pl.col("visits") == config["recipe"]["visits"][-1]).is_empty():
        return claims  # a toy
    only_target, only_reference = endpoint(table)
    below = config["endpoint"]["below"]
    last = table.filter(loss="vicreg", images=config["recipe"]["images"]).group_by("layer", "visits")
    gaps = {
        (layer, visits): value
        for layer, visits, value in last.agg((pl.col("target") - pl.col("reference")).mean()).rows()
    }
    first, final = config["recipe"]["visits"][0], config["recipe"]["visits"][-1]
    return {
        **claims,
        f"the endpoint, fixed beforehand, is below {below}: pooled exact McNemar p of memorized images": (
            only_target > only_reference and mcnemar(only_target, only_reference).p_value < below
        ),
        "more visits, more deja vu of the projector (figure 1.4, left)": gaps["projector", final]
        > gaps["projector", first],
        "the backbone shows less of it than the projector (figure 1.8, right)": (
            gaps["backbone", final] < gaps["projector", final]
        ),
    }


if __name__ == "__main__":
    command(main, __doc__)
