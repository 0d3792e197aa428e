"""Where a long trace is cut into windows of independent noise: a function of the number of points and the secrets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dovetail.core.errors import UnsupportedError

Window = tuple[int, int]  # first point, and one beyond the last


def cut(n: int, secrets: Sequence[tuple[int, ...]], most: int) -> list[Window]:
    """Windows of at most `most` points; secrets lie in the middle of theirs, as far as there is room.

    Parameters
    ----------
    n : int
        Points of the trace.
    secrets : list of tuple of int
        Positions; those of one secret stay in one window.
    most : int, at least 2

    Examples
    --------
    >>> cut(100, [(50,)], 30)
    [(0, 18), (18, 36), (36, 66), (66, 83), (83, 100)]
    """
    homes = _homes(n, _groups(secrets, most), most)
    windows: list[Window] = []
    for (_, before), (start, end) in pairwise([(0, 0), *homes, (n, n)]):
        windows += _pieces(before, start, most)
        windows += [(start, end)] if end > start else []
    return _without_single_points(windows)


def _groups(secrets: Sequence[tuple[int, ...]], most: int) -> list[Window]:
    """First and last point of secrets that share a window: they overlap, or lie within half a window."""
    found: list[Window] = []
    for first, last in sorted((min(places), max(places)) for places in secrets):
        if last - first >= most:
            raise UnsupportedError(
                f"a secret of times that are secret together must fit into a window of {most:,} points, got "
                f"{last - first + 1:,}; choose larger windows or a shorter secret."
            )
        if found and (first <= found[-1][1] or last - found[-1][0] < most // 2):
            joined = (found[-1][0], max(last, found[-1][1]))
            if joined[1] - joined[0] >= most:
                raise UnsupportedError(f"secrets that overlap must fit into a window of {most:,} points.")
            found[-1] = joined
        else:
            found.append((first, last))
    return found


def _homes(n: int, groups: Sequence[Window], most: int) -> list[Window]:
    """A window around each group, which ends half way to the next."""
    homes: list[Window] = []
    for i, (first, last) in enumerate(groups):
        room = most - (last - first + 1)
        after_last = homes[-1][1] if homes else 0
        limit = n if i + 1 == len(groups) else (last + groups[i + 1][0] + 1) // 2
        start = max(after_last, first - room // 2)
        homes.append((start, max(last + 1, min(limit, start + most))))
    return homes


def _pieces(start: int, end: int, most: int) -> list[Window]:
    """Nearly equal pieces."""
    if end <= start:
        return []
    count = -(-(end - start) // most)
    ends = [start + (end - start) * i // count for i in range(count + 1)]
    return list(pairwise(ends))


def _without_single_points(windows: list[Window]) -> list[Window]:
    """A window of one point joins its neighbour."""
    found: list[Window] = []
    for start, end in windows:
        if found and (end - start == 1 or found[-1][1] - found[-1][0] == 1):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found
