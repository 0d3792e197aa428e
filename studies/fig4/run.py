"""Figure 4: what an attack gets and an analyst learns, against the size of groups, in California and on Twitch."""

from pathlib import Path
from typing import Any

import polars as pl
from studies.iclr import World, derived, experiment, settings
from studies.iclr_claims import between, compared, ends
from studies.iclr_draw import curves, finished, phase, row_of
from studies.iclr_worlds import california, pretend_california, pretend_twitch, twitch
from studies.record import command, picture, record

from dovetail.datasets.california import california_housing
from dovetail.datasets.twitch import twitch as streamers
from dovetail.datasets.twitch import twitch_friendships

TITLES = {"california": "(a, c) California", "twitch": "(b, d) Twitch"}
PANELS = {
    "a": ("california", "rho"), "b": ("twitch", "rho"), "c": ("california", "lambda"), "d": ("twitch", "lambda"),
}  # fmt: skip


def main(full: bool, out: Path, panel: str | None = None) -> pl.DataFrame:
    """Write fig4.csv and .png, or those of a panel, and cells.jsonl, from which an interrupted run goes on."""
    given, name = settings(__file__, full=full), f"fig4{panel or ''}"
    seeds = {name: derived(given["seed"], name, "world") for name in TITLES}

    def homes() -> World:
        table = california_housing() if full else pretend_california(given["people"], seeds["california"])
        return california(table, given, seeds["california"])

    def network() -> World:
        tables = (streamers(), twitch_friendships()) if full else pretend_twitch(given["people"], seeds["twitch"])
        return twitch(*tables, given, seeds["twitch"])

    sets = list(TITLES) if panel is None else [PANELS[panel][0]]
    sweeps = {each: [(given["alpha"], float(size)) for size in given[each]["sizes"]] for each in sets}
    table = experiment({"california": homes, "twitch": network}, sweeps, given, out=out)
    table.write_csv(out / f"{name}.csv")
    picture(out / f"{name}.png", lambda pyplot: drawn(pyplot, table) if panel is None else one(pyplot, table, panel))
    record(out, seed=given["seed"], full=full)
    return table


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """One row of panels for each set."""
    figure, axes = pyplot.subplots(2, 3, figsize=(13, 7.5))
    for panels, (name, title) in zip(axes, TITLES.items(), strict=True):
        row_of(panels, table, name, title)
    return finished(figure, axes[0, 0])


def one(pyplot: Any, table: pl.DataFrame, panel: str) -> Any:
    """One panel, and theta n beside it."""
    name, column = PANELS[panel]
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 4.2))
    curves(axes[0], table.filter(set=name), "group_size", column)
    phase(axes[1], table.filter(set=name), "group_size")
    axes[0].set_title(f"({panel}) {TITLES[name].split()[-1]}", loc="left")
    return finished(figure, axes[0])


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    held: dict[str, bool] = {}
    for name in table["set"].unique(maintain_order=True):
        held |= ends(table, name) | compared(table, name)
        held |= between(table, name) if name == "california" else {}
    return held


if __name__ == "__main__":
    command(main, __doc__)
