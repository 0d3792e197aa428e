"""Figure 2.5's point in small: a variational autoencoder that over-fits copies in some cells before it does overall.

T 1,000 MNIST images, P 2,000 others of the first 10,000, in the order of a permutation [0]; 2,000 images are
generated after each number of epochs. Distances between 32 principal components of T, in the place of the paper's
autoencoder.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.copying_digits.run import COMPONENTS, images
from studies.record import command, picture, record

from dovetail.cli.progress import each
from dovetail.core.entropy import simulation
from dovetail.core.extras import require
from dovetail.memorize.copying.data_copying import CopyingTest

LATENTS, EPOCHS = (2, 8), (10, 30, 100, 300, 600)
TOY_LATENTS, TOY_EPOCHS = (2,), (2, 4)
TRAINED = 1_000
SHOWN = 10


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write copying_vae.csv and its pictures; about three minutes of one core, seconds as a toy."""
    shown: dict[str, Any] = {}
    table = pl.DataFrame(list(rows(full, shown)))
    table.write_csv(out / "copying_vae.csv")
    picture(out / "copying_vae.png", lambda pyplot: drawn(pyplot, table))
    picture(out / "copying_vae_nearest.png", lambda pyplot: beside(pyplot, shown))
    record(out, seed=0, full=full)
    return table


def rows(full: bool, shown: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One row for each model after each number of epochs; `shown` gets the nearest copies of the last one of two."""
    from studies.copying_vae.network import train

    pixels = images()[simulation(0).permutation(10_000)]
    seen, fresh = pixels[:TRAINED], pixels[6_000:8_000]
    project = require("sklearn.decomposition", extra="memorize").PCA(COMPONENTS, random_state=0).fit(seen)
    prepared = CopyingTest.prepare(project.transform(seen), project.transform(fresh))
    for latent in each(LATENTS if full else TOY_LATENTS, "train and test"):
        epochs = EPOCHS if full else TOY_EPOCHS
        for epoch, model, on_train, on_fresh in train(seen, fresh, latent=latent, epochs=epochs, seed=1):
            made = model.sample(len(fresh))
            result = prepared.test(project.transform(made), baselines=False)
            if latent == 2:
                pairs = result.nearest[:SHOWN]
                shown |= {"epoch": epoch, "made": made[[one.generated for one in pairs]],
                          "train": seen[[one.train for one in pairs]]}  # fmt: skip
            cells = result.cells.cells
            yield {
                "latent": latent, "epochs": epoch, "bound_train": on_train, "bound_fresh": on_fresh,
                "z": result.overall.z, "delta": result.overall.delta, "c_t": result.cells.c_t,
                "worst_cell": min(cell.p_holm for cell in cells),
                "copied_cells": sum(cell.p_holm < 0.05 for cell in cells),
                "underfitted_cells": sum(cell.test.z > 3.0 for cell in cells), "cells": len(cells),
                "covered": result.cells.covered_fresh, "tail": result.tail.p,
                "singled_out": result.paired.p, "membership": result.membership.auc, "verdict": result.verdict,
            }  # fmt: skip


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What figure 2.5 is to show."""
    two = table.filter(latent=2).sort("epochs")
    if two["epochs"][-1] != EPOCHS[-1]:
        return {"the toy runs": table.height == len(TOY_EPOCHS)}
    gap = (two["bound_train"] - two["bound_fresh"]).to_list()
    some = table.filter((pl.col("z") > 3.0) & (pl.col("worst_cell") < 1e-5))
    first, last = two.row(0, named=True), two.row(-1, named=True)
    return {
        "the likelihood of training images leaves that of fresh ones behind": gap == sorted(gap) and gap[-1] > 100,
        "a model under-fits overall and copies in a cell": some.height >= 1 and some["c_t"].max() > 0,  # type: ignore[operator]
        "early on nothing is found": first["verdict"] == "nothing found",
        "over-fitted, most cells are copied and the verdict is copying": last["copied_cells"] > last["cells"] / 2
        and last["verdict"] == "copying",
        "members stand out more and more": two["membership"][-1] > 0.53 > two["membership"][0],
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """C_T and the worst cell over epochs, beside the bounds on training and fresh images."""
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 3.6))
    for latent, part in ((one, table.filter(latent=one).sort("epochs")) for one in sorted(table["latent"].unique())):
        axes[0].plot(part["epochs"], part["bound_train"], marker="o", label=f"training, code of {latent}")
        axes[0].plot(
            part["epochs"], part["bound_fresh"], marker="o", linestyle="--", label=f"fresh, code of {latent}"
        )
        axes[1].plot(part["epochs"], part["c_t"], marker="o", label=f"C_T, code of {latent}")
        axes[1].plot(part["epochs"], part["z"], marker="o", linestyle=":", label=f"Z, code of {latent}")
        share = part["copied_cells"] / part["cells"]
        axes[2].plot(part["epochs"], share, marker="o", label=f"code of {latent}")
    axes[1].axhline(0.0, color="grey", linewidth=0.8)
    for place, name in zip(axes, ("lower bound, nats", "below 0: copying", "share of cells copied"), strict=True):
        place.set_xscale("log")
        place.set_xlabel("epochs")
        place.set_ylabel(name)
        place.legend(fontsize=7)
    figure.suptitle("Variational autoencoders of 1,000 MNIST images")
    figure.tight_layout()
    return figure


def beside(pyplot: Any, shown: dict[str, Any]) -> Any:
    """Generated images above the training image nearest to each."""
    figure, axes = pyplot.subplots(2, len(shown["made"]), figsize=(len(shown["made"]), 2.6), squeeze=False)
    for line, part in zip(axes, (shown["made"], shown["train"]), strict=True):
        for place, image in zip(line, part, strict=True):
            place.imshow(np.reshape(image, (28, 28)), cmap="gray_r", vmin=0.0, vmax=1.0)
            place.axis("off")
    figure.suptitle(f"Code of 2 numbers, {shown['epoch']} epochs: generated, and nearest training image", fontsize=9)
    return figure


if __name__ == "__main__":
    command(main, __doc__)
