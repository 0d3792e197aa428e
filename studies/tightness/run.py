r"""How much of the generic bound is proof slack: stronger clones over the best attack found, by epsilon0 and n.

The attack is a real randomizer with that epsilon0 on a data set for which delta is evaluated exactly or from below.
Where delta is small beside the pair's Gaussian scale the ratio tends to sqrt(min(2p/(p+1), (p+2)/(p+1))) with
p = e^epsilon0: at most sqrt(4/3), at epsilon0 = log 2. At n = 1e9 a fixed delta is no longer small, and the ratio is
larger.
"""

import math
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
from studies.record import command, picture, record

from dovetail.account.attack_lower_bound import attack_lower
from dovetail.account.clones import ClonePair
from dovetail.cli.progress import each

DELTA = 1e-6
EPSILON0S = (0.1, 0.3, 0.5, math.log(2), 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


def limit(epsilon0: float) -> float:
    """The ratio of the two Gaussian scales."""
    p = math.exp(epsilon0)
    return math.sqrt(min(2.0 * p / (p + 1.0), (p + 2.0) / (p + 1.0)))


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write tightness.csv and .png: n from 1e2 to 1e9 in full, 1e4 and 1e6 as a toy."""
    sizes = [10**power for power in range(2, 10)] if full else [10**4, 10**6]
    rows = []
    for epsilon0, n in each(product(EPSILON0S, sizes), "bound and attack"):
        ends, reached = ClonePair(epsilon0, n).epsilon(DELTA), attack_lower(epsilon0, n, DELTA)
        rows.append(
            {
                "epsilon0": epsilon0,
                "n": n,
                "upper": ends.upper,
                "attack": reached,
                "numerical_gap": ends.gap,
                "ratio": ends.upper / reached if reached > 0.0 else None,
                "limit": limit(epsilon0),
            }
        )
    table = pl.DataFrame(rows)
    table.write_csv(out / "tightness.csv")
    picture(out / "tightness.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=0, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed for n from 1e4 to 1e6, seen in this table; amplified rows are those below half of epsilon0."""
    amplified = table.filter(pl.col("n").is_between(10**4, 10**6) & (pl.col("upper") < 0.5 * pl.col("epsilon0")))
    return {
        "no attack exceeds the bound": bool((table["ratio"] >= 1.0).all()),
        "the numerical gap is at most 1e-4": bool((table["numerical_gap"] <= 1e-4).all()),
        "the bound is within 18 % of an attack": bool((amplified["ratio"] <= 1.18).all()),
        "the ratio is within 2 % of its limit": bool(
            (amplified["ratio"] / amplified["limit"]).is_between(0.98, 1.02).all()
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """The ratio against epsilon0, one line for each n, and its limit."""
    figure, axis = pyplot.subplots(figsize=(7, 4.5))
    for (n,), line in table.filter(pl.col("n") >= 100).group_by("n", maintain_order=True):
        if n in (10**2, 10**4, 10**6, 10**9):
            axis.plot(
                line["epsilon0"],
                line["ratio"].cast(pl.Float64).to_numpy(),
                marker="o",
                markersize=3,
                label=f"n = {n:,}",
            )
    first = table.unique("epsilon0", maintain_order=True)
    axis.plot(first["epsilon0"], first["limit"], color="black", linestyle="-", linewidth=1, label="limit")
    axis.set(xscale="log", xlabel="epsilon0", ylabel="bound over best attack", ylim=(0.98, 1.35))
    axis.legend()
    return figure


if __name__ == "__main__":
    command(main, __doc__)
