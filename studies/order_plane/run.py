r"""Reference orders of very many people in the plane: space-filling curves, spectral, multilevel, and the portfolio.

n points are uniform in the unit square, the group of a person is everybody within r, so that about 30 people are in
it. Each order's largest width and largest exact sensitivity, what no order can go below, and how long it takes.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from studies.record import command, picture, record

from dovetail.core.entropy import Permutation
from dovetail.shuffle.fitting import reference_orders as axes
from dovetail.shuffle.fitting.best_order import best_order, width_bound
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.reference_orders import barycenter_sweep, cuthill_mckee, group_graphs
from dovetail.shuffle.fitting.reference_orders import breadth_first_order as breadth_first
from dovetail.shuffle.fitting.sensitivity import kendall_by_group, width_by_group
from dovetail.shuffle.sampling.permutations import inverse

SEED = 1
MEMBERS = 30  # of a group, on average
BITS = 16  # of each coordinate on a curve
COARSE = 30  # people in a cell of the coarse level
SWEEPS = 20
Points = NDArray[np.float64]  # (n, 2)


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write order_plane.csv and order_plane.png: n = 1e5 and 1e6 in full, about ten minutes; 2,000 as a toy."""
    table = pl.DataFrame([row for n in ((100_000, 1_000_000) if full else (2000,)) for row in case(n)])
    table.write_csv(out / "order_plane.csv")
    picture(out / "order_plane.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def case(n: int) -> list[dict[str, Any]]:
    """One row for each order of n people."""
    points = np.random.default_rng([SEED, n]).random((n, 2))
    radius = (MEMBERS / (np.pi * n)) ** 0.5
    groups = Groups.within_radius(points, radius)
    largest, bound = groups.largest, width_bound(groups)
    orders: dict[str, Callable[[], Permutation]] = {
        "breadth first": lambda: breadth_first(groups),
        "Cuthill-McKee, peripheral": lambda: cuthill_mckee(group_graphs(groups).star, peripheral=True),
        "Hilbert": lambda: np.argsort(hilbert(points), kind="stable"),
        "Morton": lambda: np.argsort(morton(points), kind="stable"),
        "axis": lambda: axes.sort_along_axis(points, 0),
        "spectral": lambda: spectral(points),
        "multilevel": lambda: multilevel(points, groups),
        "portfolio": lambda: best_order(groups, points=points).order,
    }
    rows = []
    for name, compute in orders.items():
        begin = time.process_time()
        order = compute()
        seconds = time.process_time() - begin
        places = inverse(order)
        rows.append({
            "n": n, "order": name, "seconds": round(seconds, 2), "members": groups.rows.entries / len(groups),
            "width": int(width_by_group(groups, places).max()), "width_bound": bound,
            "delta": int(kendall_by_group(groups, places).max()), "delta_bound": largest * (largest - 1) // 2,
            "across": 2.0 * radius * n,
        })  # fmt: skip
    return rows


def morton(points: Points) -> NDArray[np.int64]:
    """Place (n,) along the Z-order curve: the bits of both coordinates by turns."""
    x, y = (points * ((1 << BITS) - 1)).astype(np.int64).T
    key = np.zeros(len(points), dtype=np.int64)
    for bit in range(BITS):
        key |= ((x >> bit) & 1) << (2 * bit + 1) | ((y >> bit) & 1) << (2 * bit)
    return key


def hilbert(points: Points) -> NDArray[np.int64]:
    """Place (n,) along Hilbert's curve: quadrant by quadrant, each turned so that the ends meet."""
    x, y = (points * ((1 << BITS) - 1)).astype(np.int64).T.copy()
    key = np.zeros(len(points), dtype=np.int64)
    for bit in reversed(range(BITS)):
        side = 1 << bit
        right, upper = (x & side) > 0, (y & side) > 0
        key += side * side * ((3 * right) ^ upper)
        x, y = x & (side - 1), y & (side - 1)
        flip = right & ~upper
        x, y = np.where(flip, side - 1 - x, x), np.where(flip, side - 1 - y, y)
        x, y = np.where(upper, x, y), np.where(upper, y, x)
    return key


def cells(points: Points) -> tuple[NDArray[np.int64], int]:
    """The cell (n,) of each person on a grid of about COARSE people each, and the cells on a side."""
    side = max(2, round((len(points) / COARSE) ** 0.5))
    x, y = np.minimum((points * side).astype(np.int64), side - 1).T
    return x * side + y, side


def neighbouring(side: int) -> NDArray[np.int64]:
    """Pairs (m, 2) of cells that share a side."""
    number = np.arange(side * side).reshape(side, side)
    pairs = [
        np.column_stack((a.ravel(), b.ravel()))
        for a, b in ((number[1:], number[:-1]), (number[:, 1:], number[:, :-1]))
    ]
    return np.vstack(pairs)


def spectral(points: Points) -> Permutation:
    """By the second eigenvector of the graph of cells, and inside a cell along the diagonal."""
    cell, side = cells(points)
    grid = Groups.from_graph(neighbouring(side), n=side * side)
    rank = inverse(axes.fiedler_order(grid, np.zeros(side * side, dtype=np.int64)))
    return np.lexsort((points.sum(axis=1), rank[cell]))


def multilevel(points: Points, groups: Groups) -> Permutation:
    """The portfolio's order of the cells, then everybody to the middle of their neighbours, the best sweep kept."""
    cell, side = cells(points)
    centres = np.column_stack(np.divmod(np.arange(side * side), side)).astype(np.float64)
    grid = Groups.from_graph(neighbouring(side), n=side * side)
    rank = inverse(best_order(grid, points=centres).order)
    order = best = np.argsort(rank[cell], kind="stable")
    least, graph = int(kendall_by_group(groups, inverse(order)).max()), group_graphs(groups).star
    for sweep in range(SWEEPS):
        order = barycenter_sweep(graph, order, mean=sweep % 2 == 1)
        delta = int(kendall_by_group(groups, inverse(order)).max())
        if delta < least:
            best, least = order, delta
    return best


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Width over its bound and sensitivity over its bound, a bar for each order, a row for each n."""
    sizes = table["n"].unique(maintain_order=True).to_list()
    figure, panels = pyplot.subplots(len(sizes), 2, figsize=(10, 3 * len(sizes)), squeeze=False, layout="constrained")
    for row, n in enumerate(sizes):
        here = table.filter(pl.col("n") == n)
        for axis, what in zip(panels[row], ("width", "delta"), strict=True):
            ratio = (here[what] / here[f"{what}_bound"]).to_list()
            axis.barh(here["order"].to_list(), ratio, color="0.6")
            for place, value in enumerate(ratio):
                axis.text(value, place, f" {value:,.0f}", va="center", fontsize=8)
            axis.set(xscale="log", xlim=(1, 5 * max(ratio)), title=f"n = {n:,}: {what} over its lower bound")
            axis.invert_yaxis()
    return figure


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What holds of the orders, seen in this table."""
    by = {
        (n, name): (width, delta)
        for n, name, width, delta in table.select("n", "order", "width", "delta").iter_rows()
    }
    sizes = table["n"].unique().to_list()
    others = [name for name in table["order"].unique().to_list() if name != "portfolio"]
    return {
        "no width and no sensitivity is below its lower bound": bool(
            ((table["width"] >= table["width_bound"]) & (table["delta"] >= table["delta_bound"])).all()
        ),
        "no other order has a sensitivity a tenth below the portfolio's, or a smaller width": all(
            by[n, "portfolio"][1] <= 1.1 * by[n, name][1] and by[n, "portfolio"][0] <= by[n, name][0]
            for n in sizes
            for name in others
        ),
        "space-filling curves are several times worse than a sort along an axis": all(
            by[n, curve][1] >= 3 * by[n, "axis"][1] for n in sizes for curve in ("Hilbert", "Morton")
        ),
        "a sort along an axis is as wide as the strip that a group is in": bool(
            (table.filter(order="axis")["width"] <= 1.2 * table.filter(order="axis")["across"]).all()
        ),
    }


if __name__ == "__main__":
    command(main, __doc__)
