"""Figure 7: noise and shuffle beside equation 16 with the paper's constant, four values."""

from pathlib import Path
from typing import Any

import polars as pl
from studies.qif import expected, grid, lines, save
from studies.record import command

K = 4


def main(full: bool, out: Path) -> pl.DataFrame:
    """p = 1, .8, .6; n = 10, 20 .. 1000 and five larger, to 1e6, in full; 10, 100, 1000 and 1e6 as a toy."""
    ns = (*range(10, 1001, 10), 3_000, 10_000, 30_000, 100_000, 10**6) if full else (10, 100, 1000, 10**6)
    return save(grid([K], (1.0, 0.8, 0.6), ns), out, __file__, full=full, draw=drawn)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """The lines approach each other in difference and not in ratio."""
    gap = (table["paper"] - table["noise_and_shuffle"]).abs()
    widest = table.with_columns(gap=gap).group_by("n").agg(pl.col("gap").max()).sort("n")["gap"]
    spread = table.group_by("n").agg(pl.col("leakage_over_paper").std())["leakage_over_paper"]
    return {
        **expected(table, __file__),
        "the difference to f = 1 falls with n": bool((widest.diff().drop_nulls() < 0.0).all()),
        "the ratio does not approach 1": bool(
            (table.select(pl.col("leakage_over_paper").diff().over("p")).to_series().drop_nulls() < 0.0).all()
        ),
        "the ratio is the same for every p": bool((spread < 1e-13).all()),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """The paper's picture, and the ratio of the excess over 1/k with its limit."""
    figure, (axis, ratio) = pyplot.subplots(1, 2, figsize=(11, 4.2))
    near = table.filter(pl.col("n") <= 1000)
    lines(axis, near, by="p", y="noise_and_shuffle", label="p = {}, exact", linestyle="-")
    lines(axis, near, by="p", y="paper", label="p = {}, f = 1", linestyle=":")
    one = table.filter(p=1.0)
    ratio.plot(one["n"], one["leakage_over_paper"], label="f = 1")
    ratio.plot(one["n"], one["leakage_over_limit"], label="right f")
    axis.set(xlabel="people n", ylabel="vulnerability", title=f"noise and shuffle, k = {K}, uniform prior")
    ratio.set(xlabel="people n", ylabel="exact excess over 1/k / asymptotic form", xscale="log")
    axis.legend(fontsize="x-small", ncols=2)
    ratio.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    command(main, __doc__)
