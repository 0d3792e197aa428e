"""Figure B.6 on moons: the kernel distance sees under-fitting and no copying, C_T sees both."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.core.entropy import simulation
from dovetail.core.extras import require
from dovetail.memorize.copying.baselines import likelihood_bandwidth, three_sample_mmd
from dovetail.memorize.copying.data_copying import CopyingTest

FULL = tuple(float(s) for s in np.geomspace(0.003, 3.0, 13))
TOY = (0.003, 0.1, 1.0)
DRAWS = 3


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write copying_mmd.csv and its picture: 13 bandwidths in full, three as a toy; half a minute."""
    moons = require("sklearn.datasets", extra="memorize").make_moons
    density = require("sklearn.neighbors", extra="memorize").KernelDensity
    train, fresh, valid = (moons(n, noise=0.2, random_state=seed)[0] for seed, n in enumerate((2000, 1000, 1000)))
    prepared = CopyingTest.prepare(train, fresh, cells=5)
    best = likelihood_bandwidth(train, valid)
    rows = []
    for bandwidth in FULL if full else TOY:
        model = density(bandwidth=bandwidth).fit(train)
        for draw in range(DRAWS):
            made = model.sample(1000, random_state=100 + draw)
            distance = three_sample_mmd(train, fresh, made, rng=simulation(1))
            rows.append(
                {"bandwidth": bandwidth, "likeliest": best, "draw": draw, "mmd": distance.difference,
                 "mmd_error": distance.standard_error, "mmd_p": distance.p_copying,
                 "c_t": prepared.reference(made).c_t}
            )  # fmt: skip
    table = pl.DataFrame(rows)
    table.write_csv(out / "copying_mmd.csv")
    picture(out / "copying_mmd.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=0, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What section B.0.4 says of its figure, at the copying and the under-fitting end, in every draw."""
    copying = table.filter(pl.col("bandwidth") == pl.col("bandwidth").min())
    blurred = table.filter(pl.col("bandwidth") > 5 * pl.col("likeliest"))
    return {
        "C_T sees copying and under-fitting": bool((copying["c_t"] < -5).all() and (blurred["c_t"] > 5).all()),
        "the kernel distance sees under-fitting": bool((blurred["mmd"] > 5 * blurred["mmd_error"]).all()),
        "and no copying: its p-value stays above .001": bool((copying["mmd_p"] > 0.001).all()),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Both statistics against the bandwidth; the dashed line is the likeliest one."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.8))
    mean = table.group_by("bandwidth").mean().sort("bandwidth")
    for axis, column, label in zip(
        axes, ("mmd", "c_t"), ("squared kernel distance, generated less fresh", "C_T"), strict=True
    ):
        axis.plot(mean["bandwidth"], mean[column], marker="o")
        axis.axhline(0.0, color="0.6", linewidth=0.8)
        axis.axvline(float(table["likeliest"][0]), linestyle="--", color="0.4")
        axis.set(xscale="log", xlabel="bandwidth of the kernel density", ylabel=label)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)
