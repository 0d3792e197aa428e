"""Figure 4: what noise, shuffling and both leave to guess about one of n values of five kinds."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
from studies.qif import grid, lines, save
from studies.record import command

from dovetail.core.channel import KRRChannel
from dovetail.leak.exact import exact_vulnerability

K, ENUMERATED = 5, 12


def main(full: bool, out: Path) -> pl.DataFrame:
    """n = 1 .. 200 for five p in full, 22 n for the two p that the paper names as a toy."""
    ps, ns = ((1.0, 0.9, 0.8, 0.6, 0.4), range(1, 201)) if full else ((1.0, 0.8), [*range(1, 21), 100, 200])
    return save(grid([K], ps, ns), out, __file__, full=full, draw=drawn)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the section says, and that the numbers are right."""
    shuffled = table.join(table.filter(p=1.0).select("n", shuffled="noise_and_shuffle"), on="n")
    falls = table.select((pl.col("leakage").diff() < 0.0).over("p")).to_series().drop_nulls()
    few = table.filter((pl.col("n") <= ENUMERATED) & (pl.col("p") == 0.8))
    exact = [exact_vulnerability(KRRChannel.of(K, 0.8), n=n).randomized_shuffled for n in few["n"]]
    return {
        "both together leave less than either": bool(
            (table["noise_and_shuffle"] <= table["noise"] + 1e-15).all()
            and (shuffled["noise_and_shuffle"] <= shuffled["shuffled"]).all()
        ),
        "every further person lowers it, towards 1/5": bool(falls.all() and (table["leakage"] > 0.0).all()),
        "it is the sum over all histograms, in fractions": all(
            abs(Fraction(found) - truth) <= Fraction(bound)
            for found, bound, truth in zip(few["noise_and_shuffle"], few["error_bound"], exact, strict=True)
        ),
        "200 shuffled values without noise tell less than a report with p = .3": bool(
            (table.filter(p=1.0, n=200)["noise_and_shuffle"] < 0.3).all()
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """The paper's picture: dotted for noise alone, solid with shuffling."""
    figure, axis = pyplot.subplots(figsize=(7, 4.5))
    lines(axis, table, by="p", y="noise_and_shuffle", label="NS, p = {}", linestyle="-")
    lines(axis, table, by="p", y="noise", label="N, p = {}", linestyle=":")
    axis.axhline(1.0 / K, color="black", linewidth=0.8)
    axis.set(xlabel="people n", ylabel="vulnerability", title=f"k = {K}, uniform prior", ylim=(0.18, 1.01))
    axis.legend(fontsize="x-small", ncols=2)
    return figure


if __name__ == "__main__":
    command(main, __doc__)
