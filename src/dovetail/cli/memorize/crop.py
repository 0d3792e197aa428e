"""`dovetail memorize crop`: the largest part of an image that meets no object, and its free corners."""

from __future__ import annotations

from typing import Annotated

import typer

from dovetail.cli.console.output import Json, print_json, print_rows
from dovetail.core.errors import DataError


def register(app: typer.Typer) -> None:
    """Add the verb to the group."""
    app.command("crop")(_crop)


def _crop(
    height: Annotated[int, typer.Option(help="Of the image, pixels.", min=1)],
    width: Annotated[int, typer.Option(help="Of the image, pixels.", min=1)],
    boxes: Annotated[
        str, typer.Option(help="Objects, as x0,y0,x1,y1;x0,y0,x1,y1;.. with the origin at the upper left.")
    ] = "",
    objective: Annotated[
        str, typer.Option(help="side: the larger smaller side, then area. area: the other way round.")
    ] = "side",
    part: Annotated[float, typer.Option(help="Of each side, for the crops of the corners.")] = 0.3,
    as_json: Json = False,
) -> None:
    """The largest rectangle of an image that meets no box, exactly, and the corners that touch none.

    Boxes are half-open and may stick out of the image; what lies outside hides nothing, and is named.

    Example: dovetail memorize crop --height 300 --width 300 --boxes "100,200,120,300;200,200,220,300"
    """
    from dovetail.memorize.crops import CORNERS, boxes_of, clip_boxes, corner_crop, largest_crop

    objects = boxes_of(_rows(boxes))
    found = largest_crop(objects, height=height, width=width, objective=objective)  # type: ignore[arg-type]
    corners: dict[str, list[float] | None] = {}
    for name in CORNERS:
        try:
            corners[name] = list(corner_crop(objects, height=height, width=width, share=part, corner=name).corners)
        except DataError:
            corners[name] = None
    outside = [n for n, box in enumerate(objects, 1) if not clip_boxes([box], height=height, width=width)]
    if outside:
        names = ", ".join(map(str, outside))
        typer.echo(
            f"warning: no part of box {names} lies in the image of {width} x {height}; it hides nothing.", err=True
        )
    document = {
        "crop": list(found.corners),
        "smaller_side": found.smaller_side,
        "area": found.area,
        "objective": objective,
        "corners": corners,
        "outside": outside,
    }
    if as_json:
        print_json(document)
        return
    shown = {name: _text(corner) if corner else "touches an object" for name, corner in corners.items()}
    print_rows(
        "Crops without an object (x0, y0, x1, y1)",
        {"largest": _text(found.corners), "smaller side": f"{found.smaller_side:g}", **shown},
    )


def _rows(text: str) -> list[list[float]]:
    return [[_number(one, row) for one in row.split(",")] for row in text.split(";") if row.strip()]


def _number(text: str, row: str) -> float:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            raise DataError(f"`boxes` must be x0,y0,x1,y1;.. with numbers, got {row.strip()!r}.") from None


def _text(corners: list[float] | tuple[float, ...]) -> str:
    return ", ".join(f"{one:g}" for one in corners)
