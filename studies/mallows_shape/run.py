r"""The shape of the Mallows law under Kendall's distance, by formula: figures 2 and 4 of the RASE paper.

.. math:: \Pr[\sigma] = \frac{e^{-\theta d}}{\psi_n(\theta)}, \qquad
          \Pr[d] = I_n(d)\, \Pr[\sigma], \qquad \Pr[\sigma_0] = \frac{1}{\psi_n(\theta)}

I_n(d) is the number of permutations of n with d inversions (Mahonian numbers), the coefficients of
(1)(1 + x)(1 + x + x^2) ...
"""

import math
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.mallows_shape.moments import mean_inversions
from studies.record import command, picture, record

from dovetail.shuffle.sampling.mallows import log_normalizer

SEED = 0  # nothing is drawn
M = 5  # figure 2
THETAS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
SIZES = (2, 3, 5, 8, 16, 32, 64)


def mahonian(n: int) -> list[int]:
    """How many permutations of n have 0, 1, .. inversions.

    >>> mahonian(4)
    [1, 3, 5, 6, 5, 3, 1]
    """
    counts = [1]
    for m in range(2, n + 1):
        counts = [sum(counts[max(0, d - m + 1) : d + 1]) for d in range(len(counts) + m - 1)]
    return counts


def by_distance(n: int, theta: float) -> list[dict[str, float]]:
    """Figure 2: one row for each distance."""
    one = [math.exp(-theta * d - log_normalizer(n, theta)) for d in range(n * (n - 1) // 2 + 1)]
    return [
        {
            "figure": 2, "n": n, "theta": theta, "distance": d, "permutations": count, "of_one": p,
            "of_distance": count * p,
        }
        for d, (count, p) in enumerate(zip(mahonian(n), one, strict=True))
    ]  # fmt: skip


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write mallows_shape.csv and .png; in full the centre's mass to n = 64, as a toy to 16."""
    sizes = SIZES if full else tuple(n for n in SIZES if n <= 16)
    rows: list[dict[str, float | None]] = [dict(row) for theta in THETAS for row in by_distance(M, theta)]
    for n, theta in product(sizes, THETAS):
        log_mass = -log_normalizer(n, theta)
        rows.append(
            {
                "figure": 4, "n": n, "theta": theta, "distance": 0, "permutations": 1, "of_one": math.exp(log_mass),
                "log10_of_one": log_mass / math.log(10), "mean_distance": mean_inversions(n, theta),
            }
        )  # fmt: skip
    table = pl.DataFrame(rows, infer_schema_length=None)
    table.write_csv(out / "mallows_shape.csv")
    picture(out / "mallows_shape.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    shape = [rows for _, rows in table.filter(figure=2).group_by("theta", maintain_order=True)]
    centre = table.filter(figure=4)
    mass = centre.pivot("theta", index="n", values="log10_of_one").sort("n").drop("n").to_numpy()
    peaks = [int(np.argmax(rows["of_distance"].to_numpy())) for rows in shape]
    return {
        "the probabilities of all distances add up to one": all(
            math.isclose(rows["of_distance"].sum(), 1.0, rel_tol=1e-12) for rows in shape
        ),
        "the centre is the likeliest order for theta > 0, and farther orders are less likely": all(
            bool((np.diff(rows["of_one"].to_numpy()) < 0).all()) for rows in shape[1:]
        ),
        "the likeliest distance is not 0 for small theta, and falls as theta grows": peaks[1] > 0
        and all(a >= b for a, b in pairwise(peaks)),
        "the mass of the centre rises with theta": bool((np.diff(mass, axis=1) > 0).all()),
        "the mass of the centre falls with n, without end for every theta": bool((np.diff(mass, axis=0) < 0).all()),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """The probability of one order and of a distance for n = 5; the mass of the centre against n."""
    figure, axes = pyplot.subplots(1, 3, figsize=(14, 4.2))
    markers = "os^xDv*"
    for (theta,), rows in table.filter(figure=2).group_by("theta", maintain_order=True):
        marker = markers[THETAS.index(theta)]
        for axis, column in zip(axes, ("of_one", "of_distance"), strict=False):
            axis.plot(rows["distance"], rows[column], marker=marker, label=f"theta = {theta:g}")
    for (theta,), rows in table.filter(figure=4).group_by("theta", maintain_order=True):
        axes[2].plot(rows["n"], rows["log10_of_one"], marker=markers[THETAS.index(theta)], label=f"theta = {theta:g}")
    axes[0].set(yscale="log", title=f"one order, n = {M}", xlabel="Kendall distance", ylabel="probability")
    axes[1].set(title=f"all orders at a distance, n = {M}", xlabel="Kendall distance", ylabel="probability")
    axes[2].set(xscale="log", title="the centre", xlabel="n", ylabel="log10 of probability")
    sizes = table.filter(figure=4)["n"].unique().sort().to_list()
    axes[2].set_xticks(sizes, sizes)
    axes[2].minorticks_off()
    axes[1].legend(fontsize="small")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)
