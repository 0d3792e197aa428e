r"""What a better reference order and the exact sensitivity are worth: theta of the paper against ours.

For each family, size and seed: the paper's breadth-first order with its w (w + 1) / 2 and with the exact sensitivity,
and the portfolio's order. At equal alpha theta is proportional to 1 / Delta, so a gain is a ratio of sensitivities.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.order_gain.families import FAMILIES
from studies.record import command, picture, record

from dovetail.cli.progress import each
from dovetail.shuffle.fitting.best_order import best_order
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.reference_orders import breadth_first_order as breadth_first
from dovetail.shuffle.fitting.reference_orders import label_order
from dovetail.shuffle.fitting.sensitivity import kendall_by_group, published_width_bound, width_by_group
from dovetail.shuffle.sampling.permutations import inverse

SEEDS = (1, 2, 3, 4, 5)
PEOPLE, AGES = 32_561, 74  # as many as the census extract has; the ages themselves are synthetic


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write order_gain.csv, ages.csv and order_gain.png: n = 1e3 and 1e4, five seeds in full; n = 300 as a toy."""
    sizes, seeds = ((1000, 10_000), SEEDS) if full else ((300,), SEEDS[:2])
    table = pl.DataFrame([case(name, n, seed) for n in sizes for name in FAMILIES for seed in seeds])
    table.write_csv(out / "order_gain.csv")
    ages(PEOPLE if full else 2000).write_csv(out / "ages.csv")
    picture(out / "order_gain.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEEDS[0], full=full)
    return table


def case(family: str, n: int, seed: int) -> dict[str, Any]:
    """One row: the paper's order, ours, the bounds, and what each step is worth."""
    instance = FAMILIES[family](n, seed)
    groups = instance.groups
    positions = inverse(breadth_first(groups))
    width = int(width_by_group(groups, positions).max())
    exact = int(kendall_by_group(groups, positions).max())
    begin = time.perf_counter()
    best = best_order(groups, points=None if family == "interval" else instance.points)
    seconds = time.perf_counter() - begin
    return {
        "family": family,
        "n": groups.n,
        "seed": seed,
        "largest": groups.largest,
        "width_breadth_first": width,
        "delta_breadth_first": exact,
        "width": best.width,
        "delta": best.sensitivity,
        "delta_bound": best.sensitivity_bound,
        "width_bound": best.width_bound,
        "order": best.name,
        "ratio": best.sensitivity / exact,
        "gain_exact": published_width_bound(width) / exact,
        "gain_total": published_width_bound(width) / best.sensitivity,
        "seconds": seconds,
    }


def ages(n: int) -> pl.DataFrame:
    """Synthetic integer ages: groups of everybody at most r years apart."""
    labels = np.minimum(np.random.default_rng(SEEDS[0]).gamma(4.0, 6.0, n).astype(np.int64), AGES - 1)
    rows = []
    for radius in each((0, 1, 2, 5, 10), "groups of each radius"):
        groups = Groups.from_labels(labels, radius)
        positions = inverse(breadth_first(groups))
        width = int(width_by_group(groups, positions).max())
        rows.append(
            {
                "radius": radius,
                "largest": groups.largest,
                "width_breadth_first": width,
                "delta_paper": published_width_bound(width),
                "delta_breadth_first": int(kendall_by_group(groups, positions).max()),
                "delta_label": int(kendall_by_group(groups, inverse(label_order(groups))).max()),
                "delta_atoms": best_order(groups, atoms=groups.atoms()).sensitivity,
            }
        )
    return pl.DataFrame(rows)


def means(table: pl.DataFrame) -> pl.DataFrame:
    """Means over seeds, one row per family and size."""
    numbers = ["delta_breadth_first", "delta", "ratio", "gain_exact", "gain_total", "seconds"]
    return table.group_by("family", "n", maintain_order=True).agg(pl.col(numbers).mean())


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Bars of the gain in theta, exact sensitivity alone and order included."""
    figure, axis = pyplot.subplots(figsize=(10, 4))
    rows = means(table)
    places = np.arange(len(rows))
    axis.bar(places - 0.2, rows["gain_exact"], 0.4, label="exact sensitivity")
    axis.bar(places + 0.2, rows["gain_total"], 0.4, label="and a better order")
    axis.set_yscale("log")
    axis.set_xticks(places, [f"{family}\n{n:,}" for family, n in rows.select("family", "n").rows()], fontsize=6)
    axis.set_ylabel("gain in theta at equal alpha")
    axis.legend()
    return figure


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """The claims of the title, seen in this table."""
    return {
        "our order is never above breadth-first search": bool((table["ratio"] <= 1.0).all()),
        "the exact sensitivity is never above the paper's": bool((table["gain_exact"] >= 1.0).all()),
        "no order is below its lower bound": bool((table["delta"] >= table["delta_bound"]).all()),
    }


if __name__ == "__main__":
    command(main, __doc__)
