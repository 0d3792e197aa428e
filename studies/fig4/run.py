"""Figure 4: what an attack gets and an analyst learns, against the size of groups, in California and on Twitch."""

import os
from pathlib import Path
from typing import Any

import polars as pl
from studies.iclr import World, derived, experiment, settings
from studies.iclr_claims import between, compared, ends
from studies.iclr_draw import curves, finished, phase, row_of
from studies.iclr_worlds import california, pretend_california, pretend_texas, pretend_twitch, pudf, twitch
from studies.record import command, picture, record

from dovetail.core.errors import DataError
from dovetail.datasets.people import california_housing, texas, twitch_friendships
from dovetail.datasets.people import twitch as streamers

TITLES = {"california": "(a, c) California", "twitch": "(b, d) Twitch"}
PANELS = {
    "a": ("california", "rho"), "b": ("twitch", "rho"), "c": ("california", "lambda"), "d": ("twitch", "lambda"),
    "p": ("pudf", "rho"),
}  # fmt: skip
FILE, PLACES = "DOVETAIL_PUDF", "DOVETAIL_HOSPITALS"  # the paper's own data, which only their owners may have


def main(full: bool, out: Path, panel: str | None = None) -> pl.DataFrame:
    """Write fig4.csv and .png, or those of a panel, and cells.jsonl, from which an interrupted run goes on."""
    given, name = settings(__file__, full=full), f"fig4{panel or ''}"
    if panel == "p":
        return discharges(given, full=full, out=out)
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


def discharges(given: dict[str, Any], *, full: bool, out: Path) -> pl.DataFrame:
    """Write fig4p.csv and .png: panels a and c on discharges; a made-up stand-in where no file is named."""
    rng = derived(given["seed"], "pudf", "world")
    if file := os.environ.get(FILE):
        name, (table, hospitals) = "pudf", (texas(file), places_of(os.environ.get(PLACES)))
    else:
        name, (table, hospitals) = "stand-in", pretend_texas(given["pudf"]["people"], rng)
    sweep = [(given["alpha"], float(size)) for size in given["pudf"]["sizes"]]
    found = experiment({name: lambda: pudf(table, hospitals, given, rng)}, {name: sweep}, given, out=out)
    found.write_csv(out / "fig4p.csv")
    picture(out / "fig4p.png", lambda pyplot: finished(*_row(pyplot, found, name)))
    record(out, seed=given["seed"], full=full)
    return found


def places_of(file: str | None) -> pl.DataFrame:
    """Where the hospitals are: `hospital` (THCIC_ID), `latitude`, `longitude` in degrees."""
    if not file:
        raise DataError("discharges have no coordinates: name a table hospital,latitude,longitude with --hospitals.")
    try:
        table = pl.read_csv(file, schema_overrides={"hospital": pl.String})
        return table.select("hospital", pl.col("latitude", "longitude").cast(pl.Float64))
    except (pl.exceptions.PolarsError, OSError) as error:
        first = (str(error).splitlines() or ["cannot be read"])[0]
        raise DataError(f"{file}: must be a table hospital,latitude,longitude; {first}") from None


def _row(pyplot: Any, table: pl.DataFrame, name: str) -> tuple[Any, Any]:
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 3.9))
    row_of(axes, table, name, f"(a, c) discharges ({name})")
    return figure, axes[0]


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
