r"""How close reference orders come to a hidden optimum: figure 9.

n people stand in a hidden line; each person's group is a window of w + 1 neighbours, so the hidden order has width w
and no order has less. Labels are shuffled, and each method has to find the line again.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.shuffle.fitting import reference_orders as graph_search
from dovetail.shuffle.fitting.best_order import best_order
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.reference_orders import breadth_first_order as breadth_first
from dovetail.shuffle.fitting.sensitivity import width_by_group
from dovetail.shuffle.sampling.permutations import inverse

SEEDS = tuple(range(10))
WIDTHS = (0, 5, 10, 20, 50, 100)
SIZES = (200, 500, 1000, 3000)
METHODS = ("optimum", "random", "breadth first", "breadth first, meetings", "Cuthill-McKee, meetings", "portfolio")


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write fig9.csv and fig9.png: widths 0 to 100, n = 200 to 3000, ten seeds in full; three seeds as a toy."""
    sizes, widths, seeds = (SIZES, WIDTHS, SEEDS) if full else (SIZES[:2], WIDTHS[:4], SEEDS[:3])
    table = pl.DataFrame([row for w in widths for n in sizes for seed in seeds for row in case(n, w, seed)])
    table.write_csv(out / "fig9.csv")
    picture(out / "fig9.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=seeds[0], full=full)
    return table


def hidden_line(n: int, width: int, seed: int) -> Groups:
    """Windows of width + 1 people of a shuffled line, one around each person, moved inwards at the ends."""
    line = np.random.default_rng(seed).permutation(n)
    begins = np.clip(np.arange(n) - width // 2, 0, n - width - 1)
    place = begins[:, None] + np.arange(width + 1)
    return Groups.from_lists(
        [[line[i], *line[window].tolist()] for i, window in enumerate(place)], n
    )  # the first one listed owns the group


def case(n: int, width: int, seed: int) -> list[dict[str, Any]]:
    """One row per method."""
    groups = hidden_line(n, width, seed)
    graph, roots = graph_search.group_graphs(groups), graph_search.owners_by_group_size(groups)
    orders = {
        "random": np.random.default_rng([seed, 1]).permutation(n),
        "breadth first": breadth_first(groups),
        "breadth first, meetings": graph_search.breadth_first(graph.clique, roots),
        "Cuthill-McKee, meetings": graph_search.cuthill_mckee(graph.clique, peripheral=True),
        "portfolio": best_order(groups).order,
    }
    found = {"optimum": width} | {
        name: int(width_by_group(groups, inverse(order)).max(initial=0)) for name, order in orders.items()
    }
    return [
        {"n": n, "hidden_width": width, "seed": seed, "method": name, "width": found[name],
         "ratio": found[name] / width if width else 1.0}
        for name in METHODS
    ]  # fmt: skip


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """One panel for each hidden width, mean width against n."""
    widths = table["hidden_width"].unique(maintain_order=True).to_list()
    figure, axes = pyplot.subplots(1, len(widths), figsize=(3 * len(widths), 3), squeeze=False)
    for axis, width in zip(axes[0], widths, strict=True):
        for name in METHODS:
            rows = table.filter((pl.col("method") == name) & (pl.col("hidden_width") == width))
            mean = rows.group_by("n", maintain_order=True).agg(pl.col("width").mean())
            axis.plot(mean["n"], mean["width"], marker=".", label=name)
        axis.set(title=f"width {width}", xlabel="n", yscale="symlog")
    axes[0][0].legend(fontsize=6)
    return figure


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What holds of the figure, seen in this table."""
    cuthill = table.filter(pl.col("method").str.contains("(?i)cuthill"))
    searched = table.filter(pl.col("method").str.starts_with("breadth first"))
    return {
        "Cuthill-McKee finds the hidden width": bool((cuthill["ratio"] == 1.0).all()) and len(cuthill) > 0,
        "breadth-first search misses it by up to four times": bool(1.0 < float(searched["ratio"].max()) <= 4.0),
    }


if __name__ == "__main__":
    command(main, __doc__)
