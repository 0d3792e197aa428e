r"""Reference orders on random geometric groups: figure 10.

n points are uniform on the unit interval, as in the paper, or in the unit square; the group of a person is everybody
*else* within r, so groups do not hold their owner. Widths of the paper's order, a random order and ours, with what no
order can go below.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.spatial import cKDTree
from studies.record import command, picture, record

from dovetail.cli.progress import each
from dovetail.shuffle.fitting.best_order import best_order, width_bound
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.reference_orders import breadth_first_order as breadth_first
from dovetail.shuffle.fitting.sensitivity import kendall_by_group, width_by_group
from dovetail.shuffle.sampling.permutations import inverse

SEEDS = tuple(range(10))
RADII = {1: (0.0, 0.005, 0.01, 0.02, 0.05, 0.1), 2: (0.02, 0.05, 0.1, 0.2)}  # by dimension
PLACES = {1: "line", 2: "plane"}
CLOSE = 2.0  # times the bound
SIZES = (200, 500, 1000)
ORDERS = ("random", "breadth first", "portfolio")


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write fig10.csv and fig10.png: line and plane, n up to 1000, ten seeds in full; two seeds as a toy."""
    sizes, seeds = (SIZES, SEEDS) if full else (SIZES[:1], SEEDS[:2])
    cases = [(d, r, n, seed) for d, radii in RADII.items() for r in radii for n in sizes for seed in seeds]
    table = pl.DataFrame(
        [row for d, r, n, seed in each(cases, "order and shuffle") for row in case(n, r, seed, dimensions=d)]
    )
    table.write_csv(out / "fig10.csv")
    picture(out / "fig10.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=seeds[0], full=full)
    return table


def others_within(n: int, radius: float, seed: int, *, dimensions: int = 1) -> Groups:
    """Everybody else within the radius of each of n uniform points, as the neighbours in a graph."""
    points = np.random.default_rng(seed).random((n, dimensions))
    pairs = cKDTree(points).query_pairs(radius, output_type="ndarray")
    return Groups.from_graph(pairs, n=n, closed=False)


def case(n: int, radius: float, seed: int, *, dimensions: int = 1) -> list[dict[str, Any]]:
    """One row per order, with the bounds."""
    groups = others_within(n, radius, seed, dimensions=dimensions)
    orders = {
        "random": np.random.default_rng([seed, 1]).permutation(n),
        "breadth first": breadth_first(groups),
        "portfolio": best_order(groups).order,
    }
    bounds = {
        "mean_group": groups.rows.entries / len(groups) if len(groups) else 0.0,
        "largest_less_one": max(groups.largest - 1, 0),
        "width_bound": width_bound(groups),
    }
    rows = []
    for name in ORDERS:
        positions = inverse(orders[name])
        scores = {
            "width": int(width_by_group(groups, positions).max(initial=0)),
            "delta": int(kendall_by_group(groups, positions).max(initial=0)),
        }
        place = {"place": PLACES[dimensions], "n": n, "radius": radius, "seed": seed, "order": name}
        rows.append(place | scores | bounds)
    return rows


def gaps(table: pl.DataFrame) -> pl.DataFrame:
    """Times the portfolio's width is above the bound, by place, n and radius: mean over seeds, and the largest."""
    ours = table.filter((pl.col("order") == "portfolio") & (pl.col("width_bound") > 0))
    ratio = pl.col("width") / pl.col("width_bound")
    return ours.group_by("place", "n", "radius", maintain_order=True).agg(
        ratio.mean().alias("gap"), ratio.max().alias("largest_gap")
    )


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """One panel for each place and n: width against r."""
    sizes, places = (table[name].unique(maintain_order=True).to_list() for name in ("n", "place"))
    figure, axes = pyplot.subplots(
        len(places), len(sizes), figsize=(4 * len(sizes), 3 * len(places)), squeeze=False, layout="constrained"
    )
    for row, place in enumerate(places):
        for axis, n in zip(axes[row], sizes, strict=True):
            here = table.filter((pl.col("n") == n) & (pl.col("place") == place))
            lines = here.group_by("radius", "order", maintain_order=True).agg(pl.col("width", "width_bound").mean())
            for name in ORDERS:
                rows = lines.filter(pl.col("order") == name)
                axis.plot(rows["radius"], rows["width"], marker=".", label=name)
            axis.plot(rows["radius"], rows["width_bound"], linestyle=":", label="no order is below")
            axis.set(title=f"{place}, n = {n}", xlabel="r", ylabel="width")
    axes[0][0].legend(fontsize=6)
    return figure


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What holds of the figure, seen in this table."""
    wide = table.pivot(on="order", index=["place", "n", "radius", "seed"], values=["width", "delta"])
    gap, line = gaps(table), pl.col("place") == "line"
    largest = float(gap.filter(~line)["gap"].max())  # type: ignore[arg-type]
    return {
        "no width is below its lower bound": bool((table["width"] >= table["width_bound"]).all()),
        "the portfolio is never above breadth-first search": bool(
            (wide["delta_portfolio"] <= wide["delta_breadth first"]).all()
        ),
        f"on a line the gap to the bound is small: at most {CLOSE:g} times it": bool(
            (gap.filter(line)["gap"] <= CLOSE).all()
        ),
        "in the plane the gap is not small: several times the bound": largest > CLOSE,
        "breadth-first search is never wider than a random order": bool(
            (wide["width_breadth first"] <= wide["width_random"]).all()
        ),
    }


if __name__ == "__main__":
    command(main, __doc__)
