"""Figures 2.2 and 2.3 a to c on moons: a kernel density copies, fits or under-fits as its bandwidth grows.

Seeds as in the theory's table: T 2000 [0], P 1000 [1], validation 1000 [2], draws of Q [100..]; 5 cells.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.core.entropy import simulation
from dovetail.core.extras import require
from dovetail.memorize.copying.baselines import (
    frechet_distance,
    generalization_gap,
    neighbour_accuracy,
    precision_recall,
)
from dovetail.memorize.copying.data_copying import CopyingTest

FULL = tuple(float(s) for s in np.logspace(-3, 1, 75))
TOY = (0.01, 0.1, 0.13, 1.0)
NAMED = (0.01, 0.1, 0.13, 1.0)  # the rows of the theory's table


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write copying_moons.csv and its picture: four bandwidths and three draws as a toy."""
    table = pl.DataFrame(list(rows(sorted({*FULL, *NAMED}) if full else TOY, 10 if full else 3)))
    table.write_csv(out / "copying_moons.csv")
    picture(out / "copying_moons.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=0, full=full)
    return table


def rows(bandwidths: Any, draws: int) -> Iterator[dict[str, Any]]:
    """One row for each bandwidth: means over draws of Q, and the masked example of each cell at the end."""
    moons = require("sklearn.datasets", extra="memorize").make_moons
    density = require("sklearn.neighbors", extra="memorize").KernelDensity
    train, fresh, valid = (moons(n, noise=0.2, random_state=seed)[0] for seed, n in enumerate((2000, 1000, 1000)))
    prepared = CopyingTest.prepare(train, fresh, cells=5)
    for bandwidth in bandwidths:
        model = density(bandwidth=bandwidth).fit(train)
        samples = [model.sample(1000, random_state=100 + draw) for draw in range(draws)]
        found = [_row(prepared, sample) for sample in samples]
        curve = precision_recall(train, samples[0], rng=simulation(1))
        yield {
            "bandwidth": bandwidth,
            "likelihood": float(model.score_samples(valid).mean()),
            "gap": generalization_gap(model.score_samples(train), model.score_samples(fresh)),
            **{name: float(np.mean([row[name] for row in found])) for name in found[0]},
            "c_t_deviation": float(np.std([row["c_t"] for row in found], ddof=1)),
            "precision": curve.precision,
            "recall": curve.recall,
            "masked_p": None,
        }
    near, far = (density(bandwidth=s).fit(train).sample(4000, random_state=r) for s, r in ((0.02, 7), (0.3, 8)))
    for cell in range(5):
        inside, outside = prepared.cells_of(near) == cell, prepared.cells_of(far) != cell
        result = prepared.test(np.concatenate([near[inside][:200], far[outside][:800]]), baselines=False)
        yield {
            "bandwidth": -1.0 - cell,
            "z": result.overall.z,
            "c_t": result.cells.c_t,
            "masked_p": result.cells.cells[cell].p_holm,
        }


def _row(prepared: CopyingTest, sample: Any) -> dict[str, float]:
    reference, result = prepared.reference(sample), prepared.test(sample, baselines=False)
    accuracy = neighbour_accuracy(prepared.train, sample, rng=simulation(1))
    return {
        "c_t": reference.c_t,
        "z": reference.z,
        "c_t_standardized": result.cells.c_t_standardized or 0.0,
        "worst_cell": min(cell.p_holm for cell in result.cells.cells),
        "nn_train": accuracy.train,
        "nn_generated": accuracy.generated,
        "frechet_reference": reference.frechet,
        "frechet": frechet_distance(prepared.train, sample),
        "bins_over": reference.bins_over,
        "bins_under": reference.bins_under,
        "copying": float(result.verdict == "copying"),
        "membership": result.membership.auc,
    }


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What figures 2.2 and 2.3 are to show."""
    swept = table.filter(pl.col("bandwidth") > 0).sort("bandwidth")
    masked = table.filter(pl.col("bandwidth") < 0)
    at = {s: swept.filter((pl.col("bandwidth") - s).abs() < 1e-9).row(0, named=True) for s in NAMED}
    peak = float(swept["bandwidth"][int(swept["likelihood"].arg_max() or 0)])
    crossing = float(swept.filter(pl.col("c_t") > 0)["bandwidth"][0])
    nn = [(at[s]["nn_train"] + at[s]["nn_generated"]) / 2 for s in NAMED]
    return {
        "the published formulas meet the table within .3": all(
            abs(at[s]["c_t"] - value) < 0.3 for s, value in zip(NAMED, (-11.75, -0.32, 0.31, 10.06), strict=True)
        ),
        "C_T crosses 0 within a factor of 1.5 of the likelihood's peak": 1 / 1.5 < crossing / peak < 1.5,
        "Frechet, bins, precision and recall do not react to copying": abs(at[0.01]["frechet"] - at[0.1]["frechet"])
        < 0.01
        and abs(at[0.01]["bins_over"] - at[0.1]["bins_over"]) < 0.1
        and at[0.01]["precision"] > 0.97 < at[0.01]["recall"],
        "the two-sample accuracy falls below 1/2 and stays far above 0": nn[0] < 0.45
        and nn[0] > 0.3
        and nn[3] > 0.65,
        "the gap of likelihoods sees copying and not under-fitting": at[0.01]["gap"] > 3
        and abs(at[1.0]["gap"]) < 0.05,
        "a copied cell is found at Holm p < 1e-5 while C_T and Z say under-fitting": float(masked["masked_p"][0])
        < 1e-5
        and float(masked["c_t"][0]) > 0 < float(masked["z"][0]),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Six panels over the bandwidth; the dashed line is the peak of the likelihood."""
    swept = table.filter(pl.col("bandwidth") > 0).sort("bandwidth")
    x, peak = swept["bandwidth"], float(swept["bandwidth"][int(swept["likelihood"].arg_max() or 0)])
    panels = {
        "C_T, published formulas": ("c_t",),
        "two-sample nearest neighbour": ("nn_train", "nn_generated"),
        "generalization gap, nats": ("gap",),
        "Frechet distance": ("frechet", "frechet_reference"),
        "share of different bins": ("bins_over", "bins_under"),
        "precision and recall": ("precision", "recall"),
    }
    figure, axes = pyplot.subplots(2, 3, figsize=(11, 6))
    for place, (title, names) in zip(axes.ravel(), panels.items(), strict=True):
        for name in names:
            place.plot(x, swept[name], label=name.replace("_", " "))
        place.set_xscale("log")
        if title.startswith("Frechet"):
            place.set_yscale("log")
        place.axvline(peak, linestyle="--", color="grey", linewidth=1)
        place.set_title(title)
        place.set_xlabel("bandwidth")
        if len(names) > 1:
            place.legend()
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)
