"""Crops without an object: the exact largest crop beside the published search between consecutive edges."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.core.errors import DataError
from dovetail.datasets.download import data_folder
from dovetail.memorize.crops import Box, boxes_of, clip_boxes, corner_crop, largest_crop

SEED = 1
WHERE = "BCCD at 72 x 96 pixels (Shenggan, MIT), with bccd96_boxes.csv, boxes as fractions"
HEIGHT, WIDTH = 72, 96
SYNTHETIC, SIDE = 400, 300  # random box sets of 1 to 6 boxes in images of this side
USABLE = {"random": 100, "white cells": 30, "all cells": 10}  # smallest usable side, pixels


def pixel_boxes(boxes: Sequence[Box]) -> list[Box]:
    """Boxes in whole pixels, rounded outwards: a pixel that an object touches is the object's."""
    return [Box(math.floor(b.x0), math.floor(b.y0), math.ceil(b.x1), math.ceil(b.y1)) for b in boxes]


def main(full: bool, out: Path) -> pl.DataFrame:
    """Random boxes, and as the full size blood smears with the boxes of white cells and of all cells."""
    rows = list(measured("random", random_boxes(SYNTHETIC if full else 60), SIDE, SIDE))
    if full:
        for name, sets in smears().items():
            rows += measured(name, sets, HEIGHT, WIDTH)
    table = pl.DataFrame(rows)
    table.write_csv(out / "dejavu_crops.csv")
    picture(out / "dejavu_crops.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def random_boxes(count: int) -> list[list[Box]]:
    """Sets of boxes like those of photographs: one to six, of a tenth to a half of each side."""
    rng = np.random.default_rng(SEED)
    sets = []
    for _ in range(count):
        n = int(rng.integers(1, 7))
        size = rng.integers(SIDE // 10, SIDE // 2, size=(n, 2))
        low = rng.integers(0, SIDE - SIDE // 10, size=(n, 2))
        sets.append(boxes_of([(*a, *b) for a, b in zip(low.tolist(), (low + size).tolist(), strict=True)]))
    return sets


def smears() -> dict[str, list[list[Box]]]:
    """The boxes of each blood smear, in pixels rounded outwards."""
    folder = data_folder("bccd96", WHERE)
    try:
        table = pl.read_csv(folder / "bccd96_boxes.csv")
    except OSError:
        raise DataError(f"{folder / 'bccd96_boxes.csv'}: no such file. Get {WHERE}.") from None
    scale = np.array([WIDTH, HEIGHT, WIDTH, HEIGHT])

    def sets(rows: pl.DataFrame) -> list[list[Box]]:
        parts = (
            part.select("x0", "y0", "x1", "y1").to_numpy() * scale
            for _, part in rows.group_by("index", maintain_order=True)
        )
        return [pixel_boxes(boxes_of(part.tolist())) for part in parts]

    return {"white cells": sets(table.filter(label="WBC")), "all cells": sets(table)}


def measured(name: str, sets: Iterable[list[Box]], height: int, width: int) -> Iterable[dict[str, Any]]:
    """For each image the smaller side of the exact crop and of the published one, and the free corner."""
    for boxes in sets:
        try:
            exact = largest_crop(boxes, height=height, width=width).smaller_side
        except DataError:
            exact = 0
        try:
            corner_crop(boxes, height=height, width=width)
            free = True
        except DataError:
            free = False
        row = {"boxes": name, "objects": len(boxes), "exact": float(exact), "usable": USABLE[name]}
        yield {**row, "published": float(published(boxes, height, width)), "corner_free": free}


def published(boxes: list[Box], height: int, width: int) -> float:
    """The published search: in each strip between consecutive x-edges the largest gap, boxes clipped."""
    inside = clip_boxes(boxes, height=height, width=width)
    edges = sorted({0.0, float(width), *(x for box in inside for x in (box.x0, box.x1))})
    best = 0.0
    for x0, x1 in pairwise(edges):
        start = 0.0
        for y0, y1 in [*sorted((b.y0, b.y1) for b in inside if b.x0 < x1 and x0 < b.x1), (height, height)]:
            best = max(best, min(x1 - x0, y0 - start))
            start = max(start, y1)
    return best


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the claim says, seen in this table."""
    lost = table.filter((pl.col("exact") >= pl.col("usable")) & (pl.col("published") < pl.col("usable")))
    return {
        "the exact crop is never smaller than the published one": bool((table["exact"] >= table["published"]).all()),
        "the published search is smaller in more than a third of images": bool(
            (table["exact"] > table["published"]).mean() > 1 / 3  # type: ignore[operator]
        ),
        "the published search loses usable images": lost.height > 0,
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Both smaller sides of each image."""
    names = table["boxes"].unique(maintain_order=True).to_list()
    figure, panels = pyplot.subplots(1, len(names), figsize=(4 * len(names), 4), squeeze=False)
    for axis, name in zip(panels[0], names, strict=True):
        rows = table.filter(boxes=name)
        most = rows["exact"].max()
        axis.plot([0, most], [0, most], color="0.6", lw=0.8)
        axis.axhline(rows["usable"][0], color="tab:red", lw=0.8, ls="--")
        axis.axvline(rows["usable"][0], color="tab:red", lw=0.8, ls="--")
        axis.plot(rows["exact"], rows["published"], ".", ms=4, alpha=0.6)
        axis.set(title=name, xlabel="smaller side, exact", ylabel="consecutive edges")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)
