"""Curves with bands of one standard deviation, between the lines of LDP and of a uniform shuffle."""

from typing import Any

import polars as pl

from dovetail.core.display import COLOURS, DASHES

CURVES = {"published": "published Mallows", "exact": "exact sensitivity, best order", "best": "best shuffler"}
ENDS = {"LDP": "no shuffle (LDP)", "uniform": "uniform shuffle"}
MARKERS = ("s", "^", "o")
WORDS = {
    "group_size": "people in a group",
    "rho": r"vulnerable people $\rho$",
    "rho_rare": r"vulnerable, of the rarer value",
    "lambda": r"error of local estimates $\lambda$",
    "theta_n": r"$\theta n$ (below 1: nearly uniform)",
}


def curves(axis: Any, rows: pl.DataFrame, x: str, y: str) -> None:
    """One curve with its band for each mechanism against x; dark grey lines for the two ends."""
    for number, (mechanism, label) in enumerate(CURVES.items()):
        line = rows.filter(mechanism=mechanism).sort(x).drop_nulls(y)
        axis.plot(
            line[x], line[y], color=COLOURS[number], linestyle=DASHES[number], marker=MARKERS[number], markersize=4,
            markerfacecolor="none", label=label,
        )  # fmt: skip
        if f"{y}_sd" in rows.columns:
            reach = line[f"{y}_sd"]
            axis.fill_between(
                line[x], line[y] - reach, line[y] + reach, color=COLOURS[number], alpha=0.2, linewidth=0
            )
    axis.set(xscale="log", xlabel=WORDS.get(x, x), ylabel=WORDS.get(y, y))
    axis.set_xticks(*ticks(rows[x].drop_nulls().unique().sort().to_list()), fontsize="x-small")
    axis.minorticks_off()
    if y != "theta_n":
        lines(axis, rows, y)


def ticks(values: list[float]) -> tuple[list[float], list[str]]:
    """Where curves have points, and what is written there: nothing where two would stand on each other."""
    apart, last, words = (values[-1] / values[0]) ** 0.06, 0.0, []
    for value in values:
        words.append("" if value < last * apart else f"{value:.1f}" if value < 10 else f"{value:.0f}")
        last = value if words[-1] else last
    return values, words


def lines(axis: Any, rows: pl.DataFrame, y: str) -> None:
    """The two ends with their bands."""
    for (end, label), dash in zip(ENDS.items(), ("-", ":"), strict=True):
        height, reach = rows.filter(mechanism=end).select(y, f"{y}_sd").row(0)
        axis.axhline(height, color="0.25", linestyle=dash, linewidth=1, label=label)
        axis.axhspan(height - reach, height + reach, color="0.25", alpha=0.15, linewidth=0)


def phase(axis: Any, rows: pl.DataFrame, x: str) -> None:
    """theta n of each mechanism; below 1 a shuffle is nearly uniform."""
    curves(axis, rows.filter(pl.col("theta_n") > 0), x, "theta_n")  # 0, uniform inside groups, is off the scale
    axis.axhline(1.0, color="0.25", linestyle=":", linewidth=1)
    axis.set_yscale("log")


def row_of(axes: Any, table: pl.DataFrame, name: str, title: str) -> None:
    """rho, lambda and theta n of one set against the size of its groups."""
    rows = table.filter(set=name)
    curves(axes[0], rows, "group_size", "rho")
    curves(axes[1], rows, "group_size", "lambda")
    phase(axes[2], rows, "group_size")
    axes[0].set_title(title, loc="left")


def finished(figure: Any, axis: Any) -> Any:
    """The figure, with what the curves of `axis` are called below it."""
    marks, names = axis.get_legend_handles_labels()
    figure.tight_layout(rect=(0.0, 0.05, 1.0, 1.0))
    figure.legend(marks, names, loc="lower center", ncols=len(names), frameon=False)
    return figure
