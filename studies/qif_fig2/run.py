"""Figure 2: what noise, shuffling and both leave to guess about one of n binary values."""

from pathlib import Path
from typing import Any

import polars as pl
from studies.qif import expected, grid, lines, save
from studies.record import command


def main(full: bool, out: Path) -> pl.DataFrame:
    """n = 1 .. 200 for five p in full; 40 n, the last one 200, for the three p that the paper names as a toy."""
    ps, ns = ((1.0, 0.9, 0.8, 0.7, 0.6), range(1, 201)) if full else ((1.0, 0.9, 0.6), [*range(1, 40), 200])
    return save(grid([2], ps, ns), out, __file__, full=full, draw=drawn)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is printed, and what the claim adds."""
    alone = table.filter(p=1.0)
    pairs = table.filter(pl.col("n") > 1).with_columns(m=pl.col("n") // 2)
    steps = pairs.group_by("p", "m").agg(pl.col("leakage").max() / pl.col("leakage").min() - 1.0)["leakage"]
    shuffled = table.join(alone.select("n", shuffled="noise_and_shuffle"), on="n")
    return {
        **expected(table, __file__),
        "2m and 2m + 1 people leave the same to guess": bool((steps < 1e-14).all()),
        "both together leave less than either": bool(
            (table["noise_and_shuffle"] <= table["noise"] + 1e-15).all()
            and (shuffled["noise_and_shuffle"] <= shuffled["shuffled"]).all()
        ),
        "the excess falls like 1/sqrt(n) and not exponentially": bool(
            ((table.filter(n=200)["leakage_over_limit"] - 1.0).abs() < 0.002).all()
        ),
        "200 shuffled values without noise tell less than a report with p = .53": bool(
            (alone.filter(n=200)["noise_and_shuffle"] < 0.53).all()
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """The paper's picture: dotted for noise alone, solid with shuffling."""
    figure, axis = pyplot.subplots(figsize=(7, 4.5))
    lines(axis, table, by="p", y="noise_and_shuffle", label="NS, p = {}", linestyle="-")
    lines(axis, table, by="p", y="noise", label="N, p = {}", linestyle=":")
    axis.set(xlabel="people n", ylabel="vulnerability", title="k = 2, uniform prior", ylim=(0.49, 1.01))
    axis.legend(fontsize="x-small", ncols=2)
    return figure


if __name__ == "__main__":
    command(main, __doc__)
