"""Crops of an image that show none of its objects: the largest one, and the corners."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dovetail.core.checks import probability, whole
from dovetail.core.errors import DataError, ParameterError

Objective = Literal["side", "area"]
OBJECTIVES: tuple[Objective, ...] = ("side", "area")
CORNERS = ("lower-left", "lower-right", "upper-left", "upper-right")
_Interval = tuple[float, float]


@dataclass(frozen=True, order=True)
class Box:
    """A rectangle of an image, half-open: x0 <= x < x1, y0 <= y < y1, the y axis points down."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def sides(self) -> tuple[float, float]:
        """Width and height."""
        return self.x1 - self.x0, self.y1 - self.y0

    @property
    def smaller_side(self) -> float:
        """The shorter of width and height."""
        return min(self.sides)

    @property
    def area(self) -> float:
        """Width times height."""
        return math.prod(self.sides)

    @property
    def corners(self) -> tuple[float, float, float, float]:
        """(x0, y0, x1, y1)."""
        return self.x0, self.y0, self.x1, self.y1

    def meets(self, other: Box) -> bool:
        """True if they share an area."""
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1


def boxes_of(rows: Sequence[Sequence[float]]) -> list[Box]:
    """Boxes from rows of x0, y0, x1, y1.

    Raises
    ------
    DataError
        For rows of another length, numbers that are not finite, and ends in the wrong order; names the box.
    """
    made = []
    for number, row in enumerate(rows, 1):
        numbers = list(row)
        if len(numbers) != 4 or not all(math.isfinite(one) for one in numbers):
            raise DataError(f"`boxes` must be four finite numbers x0,y0,x1,y1 each, got {numbers} as box {number}.")
        x0, y0, x1, y1 = numbers
        if x1 < x0 or y1 < y0:
            raise DataError(
                f"`boxes` must have x0 <= x1 and y0 <= y1, got {x0:g},{y0:g},{x1:g},{y1:g} as box {number}."
            )
        made.append(Box(x0, y0, x1, y1))
    return made


def clip_boxes(boxes: Sequence[Box], *, height: int, width: int) -> list[Box]:
    """The parts of the boxes inside the image; those without area are dropped."""
    cut = [Box(max(b.x0, 0), max(b.y0, 0), min(b.x1, width), min(b.y1, height)) for b in boxes]
    return sorted(b for b in cut if b.x0 < b.x1 and b.y0 < b.y1)


def largest_crop(boxes: Sequence[Box], *, height: int, width: int, objective: Objective = "side") -> Box:
    r"""The largest rectangle of the image that meets no box.

    An empty rectangle can be widened until both vertical sides lie on an edge of a box or of the image, and then
    heightened to the whole gap between the boxes in its strip. So the candidates are, for each pair of x-edges, the
    gaps that the y-intervals of the boxes overlapping the strip leave; the best of them is the best of all.

    Parameters
    ----------
    boxes : list of Box
        Clipped to the image first, so a box may stick out; one without area in the image hides nothing.
    height, width : int
        Of the image, pixels.
    objective : "side" or "area"
        Maximize the smaller side, then the area (default); or the area, then the smaller side. Among equals the
        leftmost, then the topmost. Because of the second criterion the crop touches a box or the image's border on
        all four sides.

    Raises
    ------
    DataError
        When the boxes leave nothing free.

    Notes
    -----
    O(b^3 log b) for b boxes at worst; strips narrower than the best side so far are passed over.

    Examples
    --------
    >>> largest_crop(boxes_of([(100, 200, 120, 300), (200, 200, 220, 300)]), height=300, width=300)
    Box(x0=0, y0=0, x1=300, y1=200)

    Source
    ------
    Meehan and others (2023), Do SSL Models Have Deja Vu?, section 1.3.1 asks for it; the published code looks at
    consecutive edges alone and misses it (errata).
    """
    height, width = whole("height", height, least=1), whole("width", width, least=1)
    if objective not in OBJECTIVES:
        raise ParameterError(f"`objective` must be side or area, got {objective!r}.")
    clipped = clip_boxes(boxes, height=height, width=width)
    edges = sorted({0, width, *(x for box in clipped for x in (box.x0, box.x1))})
    best: Box | None = None
    for place, x0 in enumerate(edges):
        for x1 in edges[:place:-1]:
            if best is not None and _hopeless(x1 - x0, best, height, objective):
                break  # the strips to come are narrower still
            for y0, y1 in _gaps([(b.y0, b.y1) for b in clipped if b.x0 < x1 and x0 < b.x1], height):
                found = Box(x0, y0, x1, y1)
                if best is None or _worth(found, objective) > _worth(best, objective):
                    best = found
    if best is None:
        raise DataError(f"`boxes` must leave some of the image of {width} x {height} free; they cover all of it.")
    return best


def _worth(box: Box, objective: Objective) -> tuple[float, float]:
    both = (box.smaller_side, box.area)
    return both if objective == "side" else both[::-1]


def _hopeless(width: float, best: Box, height: int, objective: Objective) -> bool:
    """No rectangle of this width, however high, is better than the best so far."""
    return _worth(Box(0, 0, width, height), objective) <= _worth(best, objective)


def _gaps(taken: list[_Interval], height: int) -> list[_Interval]:
    """Gaps that intervals leave of [0, height), from the top."""
    free: list[_Interval] = []
    start: float = 0
    for low, high in sorted(taken):
        if low > start:
            free.append((start, low))
        start = max(start, high)
    return [*free, (start, height)] if start < height else free


def corner_crop(
    boxes: Sequence[Box], *, height: int, width: int, share: float = 0.3, corner: str = "lower-left"
) -> Box:
    """The corner of an image, `share` of each side, in whole pixels; it must not touch an object.

    Needs no boxes, but where they are known they are looked at.

    Raises
    ------
    DataError
        When a box reaches into the corner; names it.

    Examples
    --------
    >>> corner_crop([], height=32, width=32)
    Box(x0=0, y0=22, x1=10, y1=32)
    """
    height, width = whole("height", height, least=1), whole("width", width, least=1)
    if corner not in CORNERS:
        raise ParameterError(f"`corner` must be one of {', '.join(CORNERS)}, got {corner!r}.")
    part = probability("share", share)
    high, wide = (max(1, round(part * side)) for side in (height, width))
    x0 = 0 if corner.endswith("left") else width - wide
    y0 = 0 if corner.startswith("upper") else height - high
    crop = Box(x0, y0, x0 + wide, y0 + high)
    for number, box in enumerate(boxes, 1):
        if box.x0 < box.x1 and box.y0 < box.y1 and crop.meets(box):
            raise DataError(f"`boxes` must leave the {corner} corner free, got box {number} in it.")
    return crop
