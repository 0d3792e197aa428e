"""Figure 5: what shuffling alone leaves to guess, for several numbers of values."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
from studies.qif import expected, grid, lines, save
from studies.record import command


def main(full: bool, out: Path) -> pl.DataFrame:
    """n = 10, 20 .. 1000 for seven k in full; 10, 100 and 1000 for three k as a toy."""
    ks, ns = ((2, 3, 4, 5, 10, 30, 100), range(10, 1001, 10)) if full else ((2, 3, 10), (10, 100, 1000))
    return save(grid(ks, [1.0], ns), out, __file__, full=full, draw=drawn)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is printed, and what the section says."""
    many = table.filter(n=1000).sort("k")
    return {
        **expected(table, __file__),
        "it falls with n": bool(
            table.select((pl.col("leakage").diff() < 0.0).over("k")).to_series().drop_nulls().all()
        ),
        "it falls with k": all(a > b for a, b in pairwise(many["noise_and_shuffle"])),
        "the gain over a blind guess grows with k": all(
            a < b for a, b in pairwise(many["noise_and_shuffle"] * many["k"])
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """The paper's picture, and the same against 1/k on logarithmic axes."""
    figure, (axis, close) = pyplot.subplots(1, 2, figsize=(11, 4.2))
    lines(axis, table, by="k", y="noise_and_shuffle", label="k = {}")
    lines(close, table, by="k", y="leakage", label="k = {}")
    close.set(xscale="log", yscale="log", xlabel="people n", ylabel="V - 1/k")
    axis.set(xlabel="people n", ylabel="vulnerability V", title="shuffling alone, uniform prior", ylim=(0, 0.8))
    axis.legend(fontsize="small", ncols=3)
    return figure


if __name__ == "__main__":
    command(main, __doc__)
