"""Table 1.9 b and figure 1.4, right, in small: deja vu by loss and by number of images, one pair of models each.

Toy photographs, networks and attack of `dejavu_training`; pairs with a seed of their own, 1,000 visits of each image.
"""

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from studies.dejavu_training.pairs import LAYERS, Pair, make
from studies.dejavu_training.run import attacked, configuration
from studies.record import command, picture, record

from dovetail.cli.progress import each
from dovetail.memorize.dejavu.score import mcnemar

LOSSES, SIZES = ("vicreg", "simclr", "barlow", "byol"), (40, 160)  # VICReg with 80 images is in both
SEED, VISITS = 201, (300, 1_000)
LABELS = {"vicreg": "VICReg", "simclr": "SimCLR", "barlow": "Barlow Twins", "byol": "BYOL"}


def main(full: bool, out: Path) -> pl.DataFrame:
    """Train each pair, about five minutes of one core in all; as a toy one tiny pair of SimCLR."""
    recipe = {**configuration(full)["recipe"], **({"visits": list(VISITS)} if full else {})}
    folder = out / "embeddings"
    folder.mkdir(parents=True, exist_ok=True)
    images = recipe["images"]
    pairs = [Pair(loss, images, SEED) for loss in LOSSES] + [Pair("vicreg", size, SEED) for size in SIZES]
    rows = []
    for pair in each(pairs if full else pairs[1:2], "train and test a pair"):
        make(pair, {**recipe, "batch": min(recipe["batch"], pair.images)}, folder)
        rows += [attacked(pair, visit, layer, recipe, folder) for visit in recipe["visits"] for layer in LAYERS]
    table = pl.DataFrame(rows).with_columns(
        p=pl.struct("only_target", "only_reference").map_elements(_p, return_dtype=pl.Float64)
    )
    table.write_csv(out / "dejavu_losses.csv")
    picture(out / "dejavu_losses.png", partial(drawn, table=table))
    record(out, seed=SEED, full=full)
    return table


def _p(counts: Any) -> float:
    return mcnemar(counts["only_target"], counts["only_reference"]).p_value


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What holds in this table; which loss or size shows most is told, and no claim."""
    gap = table["target"] - table["reference"]
    counted = (table["memorized"] - table["misrepresented"]) / table["attacked"]
    claims = {"memorized less misrepresented images are the gap": bool((gap - counted).abs().max() < 1e-9)}
    last = table.filter(pl.col("visits") == VISITS[-1])
    if last.is_empty():
        return claims  # a toy
    wide = last.with_columns(gap=pl.col("target") - pl.col("reference"))
    gaps = {layer: wide.filter(layer=layer).sort("loss", "images")["gap"].to_numpy() for layer in LAYERS}
    sizes = wide.filter(loss="vicreg", layer="projector")
    return {
        **claims,
        "every pair's projector tells more of its own images than of others": bool((gaps["projector"] > 0.0).all()),
        "in every pair the backbone shows less of it": bool((gaps["projector"] > gaps["backbone"]).all()),
        "VICReg shows it at 40, 80 and 160 images: exact McNemar p below .01": sizes.height == 3
        and bool((sizes["p"] < 0.01).all()),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Accuracy of target and reference by loss, and by number of images for VICReg."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.8), sharey=True)
    last = table.filter(pl.col("visits") == table["visits"].max(), layer="projector")
    many = int(last["images"].sort()[len(last) // 2])
    parts = (
        (last.filter(images=many), "loss", LABELS), (last.filter(loss=last["loss"][0]).sort("images"), "images", {})
    )  # fmt: skip
    for place, (part, column, names) in zip(axes, parts, strict=True):
        ticks = [names.get(one, str(one)) for one in part[column].to_list()]
        for shift, name in ((-0.2, "target"), (0.2, "reference")):
            place.bar([number + shift for number in range(len(ticks))], part[name], width=0.4, label=name)
        place.set_xticks(range(len(ticks)), ticks)
        place.set_ylabel("accuracy from the corner")
        place.legend()
    axes[1].set_xlabel("images in each of A and B")
    figure.suptitle("Deja vu by loss (80 images) and by number of images (VICReg), projector")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)
