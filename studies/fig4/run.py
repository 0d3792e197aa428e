"""Figure 4: what an attack gets and an analyst learns, against the size of groups, in California and on Twitch."""

from pathlib import Path
from typing import Any

import polars as pl
from studies.iclr import World, derived, experiment, settings
from studies.iclr_claims import between, compared, ends
from studies.iclr_draw import row_of
from studies.iclr_worlds import california, pretend_california, pretend_twitch, twitch
from studies.record import command, picture, record

from dovetail.datasets.california import california_housing
from dovetail.datasets.twitch import twitch as streamers
from dovetail.datasets.twitch import twitch_friendships

TITLES = {"california": "(a, c) California", "twitch": "(b, d) Twitch"}


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write fig4.csv and .png, and cells.jsonl, from which an interrupted run goes on."""
    given = settings(__file__, full=full)
    seeds = {name: derived(given["seed"], name, "world") for name in TITLES}

    def homes() -> World:
        table = california_housing() if full else pretend_california(given["people"], seeds["california"])
        return california(table, given, seeds["california"])

    def network() -> World:
        tables = (streamers(), twitch_friendships()) if full else pretend_twitch(given["people"], seeds["twitch"])
        return twitch(*tables, given, seeds["twitch"])

    sweeps = {name: [(given["alpha"], float(size)) for size in given[name]["sizes"]] for name in TITLES}
    table = experiment({"california": homes, "twitch": network}, sweeps, given, out=out)
    table.write_csv(out / "fig4.csv")
    picture(out / "fig4.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=given["seed"], full=full)
    return table


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """One row of panels for each set."""
    figure, axes = pyplot.subplots(2, 3, figsize=(13, 7.5))
    for panels, (name, title) in zip(axes, TITLES.items(), strict=True):
        row_of(panels, table, name, title)
    axes[1, 0].legend(fontsize="small", loc="center right")
    figure.tight_layout()
    return figure


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    sets = ("california", "twitch")
    held = {claim: holds for name in sets for claim, holds in (ends(table, name) | compared(table, name)).items()}
    return held | between(table, "california")


if __name__ == "__main__":
    command(main, __doc__)
