r"""How much of a set in the middle of the line is preserved: figure 7, under Kendall's distance.

theta = alpha / (w (w + 1) / 2) for groups that are windows of w + 1 people; the set is a block of l people in the
middle of n. eta is the smallest share kept in 50 draws, as in the paper; eta_99 is kept by 99 % of many draws.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from studies.record import command, picture, record

from dovetail.cli.progress import each
from dovetail.core.entropy import Entropy, simulation
from dovetail.shuffle.fitting.sensitivity import published_width_bound
from dovetail.shuffle.sampling.mallows import draw_mallows

SEED = 7
TRIALS, DELTA = 50, 0.01
SHARES = (0.05, 0.1, 0.25, 0.5, 0.8)
ALPHAS = (1.0, 2.0, 3.0, 5.0, 10.0)
WIDTHS = (10, 20, 30, 50, 100, 200, 300)


def expected_block_retention(n: int, size: int, theta: float) -> float:
    r"""About the expected share of an interior block of l places that stays, under Mallows' Kendall law.

    .. math:: \eta \approx \max\left(1 - \frac{2 \ln 2}{\theta l}, \frac{l}{n}\right)

    Each of the two edges loses ln 2 / theta people; no law of this family keeps less than a uniform shuffle.
    A rule of thumb for 1 / theta much below l; use `preservation` for a statement.
    """
    edges = 2.0 * math.log(2.0) / (theta * size) if theta * size > 0.0 else math.inf
    return max(1.0 - edges, size / n)


def retention_quantile(law: ArrayLike, size: int, *, delta: float) -> float:
    """Largest eta that holds with probability at least 1 - delta, from a law of the number of replaced members.

    >>> retention_quantile([0.5, 0.4, 0.1], 4, delta=0.1)
    0.75
    """
    beyond = np.cumsum(np.asarray(law, dtype=np.float64)[::-1])[::-1]  # Pr[at least j replaced]
    return (size - int((beyond[1:] > delta).sum())) / size


def kept(n: int, theta: float, *, draws: int, rng: Entropy) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Members of each middle block (draws, shares) that stay in it."""
    result = np.empty((draws, len(SHARES)), dtype=np.int64)
    for draw in each(range(draws), "draw orders"):
        kappa = draw_mallows(n, theta, rng)
        for column, share in enumerate(SHARES):
            size = round(share * n)
            first = (n - size) // 2
            block = kappa[first : first + size]
            result[draw, column] = ((block >= first) & (block < first + size)).sum()
    return result


def cell(n: int, alpha: float, width: int, *, draws: int, rng: Entropy) -> list[dict[str, float]]:
    """One row for each size of the set."""
    theta = alpha / published_width_bound(width)
    counts = kept(n, theta, draws=draws, rng=rng)
    rows = []
    for column, share in enumerate(SHARES):
        size = round(share * n)
        lost = size - counts[:, column]
        rows.append(
            {
                "n": n,
                "alpha": alpha,
                "width": width,
                "share": share,
                "theta": theta,
                "eta": float(counts[:TRIALS, column].min()) / size,
                "eta_99": retention_quantile(np.bincount(lost) / draws, size, delta=DELTA),
                "mean": float(counts[:, column].mean()) / size,
                "deviation": float(counts[:, column].std(ddof=1)) / size,
                "rule": expected_block_retention(n, size, theta),
            }
        )
    return rows


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write fig7.csv and fig7.png: n = 10,000 and 2000 draws each in full, n = 1000 and 200 draws as a toy."""
    n, draws = (10_000, 2000) if full else (1000, 200)
    rng = simulation(SEED)
    pairs = dict.fromkeys([(a, w) for a in ALPHAS for w in (10, 30, 100)] + [(3.0, w) for w in WIDTHS])
    table = pl.DataFrame([row for a, w in pairs for row in cell(n, a, w, draws=draws, rng=rng)])
    table.write_csv(out / "fig7.csv")
    picture(out / "fig7.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Three panels, as in the paper: eta against alpha (w = 30), against width and against size (alpha = 3)."""
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 4), sharey=True)
    at_three, at_thirty = table.filter(pl.col("alpha") == 3.0), table.filter(pl.col("width") == 30)
    for axis, rows, x, by in (
        (axes[0], at_thirty, "alpha", "share"),
        (axes[1], at_three, "width", "share"),
        (axes[2], at_three, "share", "width"),
    ):
        for (value,), line in sorted(rows.group_by(by), key=lambda pair: pair[0]):
            line = line.sort(x)
            axis.plot(line[x], line["eta"], marker="o", label=f"{by} {value:g}")
        axis.set_xlabel(x)
        axis.legend(fontsize="small", framealpha=0.6)
    axes[0].set_ylabel("eta")
    return figure


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the figure claims, seen in this table."""
    wide = table.group_by("alpha", "width", maintain_order=True).agg(pl.col("mean").is_sorted().alias("rises"))
    ends = (
        table.filter(pl.col("width") == 30)
        .group_by("share")
        .agg(
            pl.col("mean").sort_by("alpha").first().alias("low"), pl.col("mean").sort_by("alpha").last().alias("high")
        )
    )
    return {
        "larger sets keep more": bool(wide["rises"].all()),
        "a larger alpha keeps more": bool((ends["high"] > ends["low"]).all()),
    }


if __name__ == "__main__":
    command(main, __doc__)
