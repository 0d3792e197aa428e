"""Crops without an object: the largest equals brute force, corners touch nothing, bad boxes are refused in a line."""

from itertools import pairwise

import numpy as np
import pytest
from studies.dejavu_crops.run import pixel_boxes
from tests.tiers import tiered

from dovetail.core.errors import DataError, ParameterError
from dovetail.memorize.crops import (
    CORNERS,
    OBJECTIVES,
    Box,
    Objective,
    boxes_of,
    clip_boxes,
    corner_crop,
    largest_crop,
)

SIDE = 9


def random_boxes(rng: np.random.Generator) -> list[Box]:
    """None to five boxes; some stick out, some lie outside, some have no area."""
    low = rng.integers(-3, SIDE + 2, size=(rng.integers(6), 2))
    size = rng.integers(0, SIDE, size=low.shape)
    return boxes_of([(*start, *end) for start, end in zip(low.tolist(), (low + size).tolist(), strict=True)])


def brute_force(boxes: list[Box], objective: Objective) -> tuple[float, float]:
    """The best (side, area), or (area, side), of all rectangles of whole pixels that hold no pixel of a box."""
    taken = np.zeros((SIDE, SIDE), dtype=int)
    for box in boxes:
        taken[max(0, int(box.y0)) : max(0, int(box.y1)), max(0, int(box.x0)) : max(0, int(box.x1))] = 1
    sums = np.zeros((SIDE + 1, SIDE + 1), dtype=int)
    sums[1:, 1:] = taken.cumsum(0).cumsum(1)
    low, high = np.triu_indices(SIDE + 1, 1)
    inside = sums[high][:, high] - sums[low][:, high] - sums[high][:, low] + sums[low][:, low]
    tall, wide = (high - low)[:, None], (high - low)[None, :]
    free = inside == 0
    if not free.any():
        return (0, 0)
    side, area = np.minimum(tall, wide)[free], (tall * wide)[free]
    first, second = (side, area) if objective == "side" else (area, side)
    best = first.max()
    return int(best), int(second[first == best].max())


def found(boxes: list[Box], objective: Objective) -> Box | None:
    try:
        return largest_crop(boxes, height=SIDE, width=SIDE, objective=objective)
    except DataError:
        return None


def touches(crop: Box, boxes: list[Box]) -> bool:
    """Each side lies on the border of the image, or on the facing side of a box."""
    inside = clip_boxes(boxes, height=SIDE, width=SIDE)
    across = [b for b in inside if b.y0 < crop.y1 and crop.y0 < b.y1]
    along = [b for b in inside if b.x0 < crop.x1 and crop.x0 < b.x1]
    return (
        crop.x0 in {0, *(b.x1 for b in across)}
        and crop.x1 in {SIDE, *(b.x0 for b in across)}
        and crop.y0 in {0, *(b.y1 for b in along)}
        and crop.y1 in {SIDE, *(b.y0 for b in along)}
    )


@pytest.mark.exhaust
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", tiered(range(1, 8), lambda seed: seed == 1))
def test_the_largest_crop_equals_brute_force(seed: int, objective: Objective) -> None:
    rng = np.random.default_rng(seed)
    covered = 0
    for _ in range(1500):
        boxes = random_boxes(rng)
        crop = found(boxes, objective)
        if crop is None:
            covered += 1
            assert brute_force(boxes, objective) == (0, 0)
            continue
        both = (crop.smaller_side, crop.area)
        assert (both if objective == "side" else both[::-1]) == brute_force(boxes, objective), boxes
        assert not any(crop.meets(box) for box in clip_boxes(boxes, height=SIDE, width=SIDE)), boxes
        assert 0 <= crop.x0 < crop.x1 <= SIDE and 0 <= crop.y0 < crop.y1 <= SIDE
        assert touches(crop, boxes), (boxes, crop)
    assert covered < 50


def test_a_crop_scales_and_turns_with_its_image() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        boxes = random_boxes(rng)
        crop = found(boxes, "side")
        if crop is None:
            continue
        halves = [Box(b.x0 / 2, b.y0 / 2, b.x1 / 2, b.y1 / 2) for b in boxes if b.x1 <= 8 and b.y1 <= 8]
        same = largest_crop([Box(2 * b.x0, 2 * b.y0, 2 * b.x1, 2 * b.y1) for b in halves], height=8, width=8)
        assert largest_crop(halves, height=4, width=4).smaller_side == same.smaller_side / 2
        turned = largest_crop([Box(b.y0, b.x0, b.y1, b.x1) for b in boxes], height=SIDE, width=SIDE)
        assert (turned.smaller_side, turned.area) == (crop.smaller_side, crop.area)


def consecutive(boxes: list[Box], side: int) -> float:
    """The published code: strips between consecutive x-edges alone."""
    edges = sorted({0.0, float(side), *(x for b in boxes for x in (b.x0, b.x1))})
    best = 0.0
    for x0, x1 in pairwise(edges):
        taken = sorted((b.y0, b.y1) for b in boxes if b.x0 < x1 and x0 < b.x1)
        ends = [0.0, *(y for pair in taken for y in pair), float(side)]
        best = max(best, *(min(x1 - x0, high - low) for low, high in zip(ends[::2], ends[1::2], strict=True)))
    return best


def test_consecutive_edges_alone_miss_the_largest_crop() -> None:
    boxes = boxes_of([(100, 200, 120, 300), (200, 200, 220, 300)])
    assert consecutive(boxes, 300) == 100
    assert largest_crop(boxes, height=300, width=300) == Box(0, 0, 300, 200)


def test_unclipped_boxes_would_give_wrong_crops() -> None:
    boxes = boxes_of([(-5, -5, 4, 30), (25, 2, 60, 8)])
    crop = largest_crop(boxes, height=20, width=30)
    assert crop == largest_crop(clip_boxes(boxes, height=20, width=30), height=20, width=30)
    assert crop.x0 >= 0 and crop.x1 <= 30


def test_without_boxes_the_crop_is_the_image() -> None:
    assert largest_crop([], height=3, width=5) == Box(0, 0, 5, 3)
    assert largest_crop(boxes_of([(9, 9, 12, 12), (1, 1, 1, 3)]), height=3, width=5) == Box(0, 0, 5, 3)


@pytest.mark.parametrize("corner", CORNERS)
def test_a_corner_lies_in_its_corner_and_touches_no_object(corner: str) -> None:
    crop = corner_crop([], height=40, width=20, corner=corner)
    assert crop.sides == (6, 12)
    assert (crop.x0 == 0) == corner.endswith("left") and (crop.y0 == 0) == corner.startswith("upper")
    inside = Box(crop.x0 + 5, crop.y0 + 11, crop.x0 + 6, crop.y0 + 12)
    beside = [Box(crop.x1, 0, crop.x1 + 3, 40), Box(crop.x0 - 3, 0, crop.x0, 40)]
    assert corner_crop(beside, height=40, width=20, corner=corner) == crop
    with pytest.raises(DataError, match=f"leave the {corner} corner free, got box 3 in it"):
        corner_crop([*beside, inside], height=40, width=20, corner=corner)


def test_pixels_that_an_object_touches_are_its_own() -> None:
    assert pixel_boxes([Box(0.2, 1.0, 2.5, 3.01)]) == [Box(0, 1, 3, 4)]


def test_bad_boxes_are_refused() -> None:
    with pytest.raises(DataError, match=r"`boxes` must have x0 <= x1 and y0 <= y1, got 5,0,3,2 as box 2"):
        boxes_of([(0, 0, 1, 1), (5, 0, 3, 2)])
    with pytest.raises(DataError, match="four finite numbers"):
        boxes_of([(0, 0, 1)])
    with pytest.raises(DataError, match="four finite numbers"):
        boxes_of([(0, 0, 1, float("nan"))])
    with pytest.raises(DataError, match="they cover all of it"):
        largest_crop(boxes_of([(-1, -1, 9, 9)]), height=4, width=4)
    with pytest.raises(ParameterError, match="`height` must be"):
        largest_crop([], height=0, width=4)
    with pytest.raises(ParameterError, match="`objective` must be side or area"):
        largest_crop([], height=4, width=4, objective="volume")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="`corner` must be one of"):
        corner_crop([], height=4, width=4, corner="middle")
