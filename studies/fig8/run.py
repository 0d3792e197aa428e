"""Figure 8: what an attack gets and what an analyst learns in Adult, against the size of groups and against alpha."""

from pathlib import Path
from typing import Any

import polars as pl
from studies.iclr import World, derived, experiment, settings
from studies.iclr_claims import compared, ends
from studies.iclr_draw import CURVES, ENDS, MARKERS, WORDS, curves, finished, phase, row_of
from studies.iclr_worlds import adult, pretend_adult
from studies.record import command, picture, record

from dovetail.core.display import COLOURS, DASHES
from dovetail.datasets.people import adult as census


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write fig8.csv and .png, and cells.jsonl, from which an interrupted run goes on."""
    given = settings(__file__, full=full)
    rng, chosen = derived(given["seed"], "adult", "world"), given["adult"]

    def world() -> World:
        return adult(census() if full else pretend_adult(given["people"], rng), given, rng)

    sweep = [(given["alpha"], float(size)) for size in chosen["sizes"]]
    sweep += [(alpha, float(chosen["radius"])) for alpha in chosen["alphas"]]
    table = experiment({"adult": world}, {"adult": sweep}, given, out=out)
    table.write_csv(out / "fig8.csv")
    picture(out / "fig8.png", lambda pyplot: drawn(pyplot, table, given))
    record(out, seed=given["seed"], full=full)
    return table


def drawn(pyplot: Any, table: pl.DataFrame, given: dict[str, Any]) -> Any:
    """Above: against the size of groups. Below: against alpha, and rho against lambda."""
    figure, axes = pyplot.subplots(2, 4, figsize=(17, 7.5))
    ended = pl.col("alpha").is_null()
    sizes, alphas = (
        table.filter(ended | (pl.col(column) == value))
        for column, value in (("alpha", given["alpha"]), ("size", given["adult"]["radius"]))
    )
    row_of(axes[0, [0, 2, 3]], sizes, "adult", f"(a) alpha = {given['alpha']:g}")
    curves(axes[0, 1], sizes, "group_size", "rho_rare")
    for axis, column in zip(axes[1, :2], ("rho", "rho_rare"), strict=True):
        curves(axis, alphas, "alpha", column)
    phase(axes[1, 3], alphas, "alpha")
    against(axes[1, 2], alphas)
    axes[1, 0].set_title(f"(b) ages within {given['adult']['radius']} of each other", loc="left")
    axes[1, 2].set_title("(c) the same", loc="left")
    for axis in (axes[0, 1], axes[1, 1], axes[1, 2]):
        axis.set_yscale("symlog", linthresh=0.01)  # no shuffle is fifteen times the rest
    return finished(figure, axes[0, 0])


def against(axis: Any, rows: pl.DataFrame) -> None:
    """rho of the rarer value against lambda, alpha along the curve, with crosses of one standard deviation."""
    for number, (mechanism, label) in enumerate({**CURVES, **ENDS}.items()):
        line = rows.filter(mechanism=mechanism).sort("alpha")
        style = (
            {"color": COLOURS[number], "linestyle": DASHES[number], "marker": MARKERS[number]}
            if mechanism in CURVES
            else {"color": "0.25", "linestyle": "", "marker": "*" if mechanism == "LDP" else "X"}
        )
        reach = (line["rho_rare_sd"], line["lambda_sd"])
        axis.errorbar(
            line["lambda"], line["rho_rare"], *reach, markersize=6, markerfacecolor="none", label=label, **style
        )
    axis.set(xlabel=WORDS["lambda"], ylabel=WORDS["rho_rare"])
    axis.legend(fontsize="small")


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    ldp, uniform = (table.filter(mechanism=end).row(0, named=True) for end in ENDS)
    most = table.filter(mechanism="best").filter(pl.col("alpha") == pl.col("alpha").max()).row(0, named=True)
    return {
        **ends(table, "adult"),
        **compared(table, "adult"),
        "adult: of those who hold the rarer value a uniform shuffle hides most": (
            uniform["rho_rare"] < ldp["rho_rare"] / 2
        ),
        "adult: with alpha the best mechanism comes back to no shuffle": (
            most["lambda"] < ldp["lambda"] + 2 * (most["lambda_sd"] + ldp["lambda_sd"])
        ),
    }


if __name__ == "__main__":
    command(main, __doc__)
