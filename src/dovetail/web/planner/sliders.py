"""Where sliders stop: round numbers, the same for the page that shows them and the server that works ahead."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

STEPS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # of each power of ten


def stops(low: int, high: int) -> tuple[str, ...]:
    """Round numbers from 10^low to 10^high."""
    found = [f"{step * 10.0**power:.12g}" for power in range(low, high) for step in STEPS]
    return (*found, f"{10.0**high:.12g}")


def _whole(low: int, high: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{round(float(text)):d}" for text in stops(low, high)))


SLIDERS: dict[str, tuple[str, ...]] = {
    "n": _whole(2, 9),
    "k": tuple(map(str, [*range(2, 21), 25, 30, 40, 50, 60, 80, 100, 125, 160, 200, 250, 300, 400, 500])),
    "error": stops(-4, 0)[:-4],
    "epsilon": stops(-3, 1),
    "epsilon0": stops(-2, 1),
    "honest": tuple(f"{percent / 100:g}" for percent in range(5, 100, 5)),
    "groups": _whole(0, 4)[1:],
}


def neighbours(name: str, text: str, *, after: str | None = None) -> tuple[str, ...]:
    """The stops beside a value, those first that lie on from the value before it."""
    values = SLIDERS.get(name, ())
    try:
        numbers, value = [float(stop) for stop in values], float(text)
        down = after is not None and value < float(after)
    except ValueError:
        return ()
    above, below = values[bisect_right(numbers, value) :][:2], values[: bisect_left(numbers, value)][-2:][::-1]
    ahead, behind = (below, above) if down else (above, below)
    return (*ahead[:1], *behind[:1], *ahead[1:], *behind[1:]) if after is None else (*ahead, *behind)
