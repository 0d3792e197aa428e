"""Who is near whom: label windows, balls and nearest neighbours, from public coordinates."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from dovetail.core.checks import not_negative_or_infinite, whole
from dovetail.core.errors import DataError
from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.groups.ranges import People, Places, Ranges, refuse_beyond_memory

Points = NDArray[np.float64]  # (n, d)

Reach = float | NDArray[np.float64]  # one, or (n,)

_CHUNK = 20_000  # people whose neighbours are listed at once
_LARGEST = 1e100  # of coordinates and, inverted, of their span: squares of distances neither overflow nor vanish
_SLACK = 1e-12  # relative difference below which two distances are compared by the one formula of `_distances`


def encode_labels(labels: ArrayLike) -> tuple[Places, NDArray[Any]]:
    """Codes (n,) of `labels` and the sorted distinct labels; missing labels raise DataError."""
    given = np.asarray(labels)
    if given.ndim != 1 or given.size == 0:
        raise DataError(f"`labels` must be a list of at least one label, got shape {given.shape}.")
    if given.dtype.kind == "f":
        missing = np.asarray(~np.isfinite(given))
    elif given.dtype.kind in "mM":
        missing = np.isnat(given)
    elif given.dtype.kind == "O":
        missing = np.array([_absent(label) for label in given], dtype=np.bool_)
    else:
        missing = np.zeros(given.size, dtype=np.bool_)
    _refuse_some("labels", "present and finite", given, missing)
    try:
        values, codes = np.unique(given, return_inverse=True)
    except TypeError as error:
        raise DataError(f"`labels` must be of one kind that can be sorted, got a mixture ({error}).") from error
    return codes.astype(np.int64), values


def refuse_rounded_apart(values: NDArray[Any]) -> None:
    """Refuse sorted distinct labels that are one number but for its rounding, such as 0.1 + 0.2 and 0.3."""
    try:
        numbers = np.unique(values.astype(np.float64)) if values.dtype.kind in "fUO" else np.empty(0)
    except (TypeError, ValueError):
        return
    numbers = numbers[np.isfinite(numbers)]
    close = np.diff(numbers) <= 2.0 * np.spacing(np.abs(numbers[:-1]))
    first = np.flatnonzero(close & (numbers[:-1] % 1.0 != 0.0))
    if first.size:
        one, other = numbers[first[0]], numbers[first[0] + 1]
        raise DataError(
            f"`labels` must differ by more than rounding, got {float(one)!r} and {float(other)!r}: round them, or "
            "give a `radius` above 0."
        )


def windows(values: NDArray[Any], centres: NDArray[Any], reach: Reach) -> tuple[Places, Places]:
    """For each centre the range [first, last) of the sorted distinct numbers with |difference| <= reach.

    Centres are among the numbers; `reach` is one number, or one for each centre.
    """
    if values.dtype.kind not in "iuf":
        raise DataError(f"`labels` must be numbers when `radius` is given, got {values.dtype}.")
    if values.dtype.kind != "f":
        if max(abs(int(values[0])), abs(int(values[-1]))) >= 1 << 53:
            raise DataError(
                "`labels` must be below 2^53 in size when `radius` is given, so that differences are exact."
            )
        values, centres = values.astype(np.float64), centres.astype(np.float64)
    with np.errstate(over="ignore"):  # what overflows is out of reach, as it is in truth
        return _windows(values, centres, reach)


def _windows(values: NDArray[Any], centres: NDArray[Any], reach: Reach) -> tuple[Places, Places]:
    first = np.searchsorted(values, centres - reach, side="left")
    last = np.searchsorted(values, centres + reach, side="right")
    most = values.size - 1
    while True:  # centres -+ reach are rounded: at most a step or two until the differences themselves decide
        down = (first > 0) & (centres - values[np.maximum(first - 1, 0)] <= reach)
        up = centres - values[np.minimum(first, most)] > reach
        out = (last < values.size) & (values[np.minimum(last, most)] - centres <= reach)
        back = values[np.maximum(last - 1, 0)] - centres > reach
        if not (down.any() or up.any() or out.any() or back.any()):
            return first.astype(np.int64), last.astype(np.int64)
        first = first - down + up
        last = last + out - back


def check_radius(radius: ArrayLike, n: int) -> Reach:
    """One number at least 0, or one for each of n people."""
    if np.ndim(radius) == 0:
        return not_negative_or_infinite("radius", radius)
    each = np.asarray(radius)
    if each.shape != (n,) or each.dtype.kind not in "iuf":
        raise DataError(f"`radius` must be one number or {n:,} numbers, got shape {each.shape} of {each.dtype}.")
    _refuse_some("radius", "at least 0", each, ~np.asarray(each >= 0))
    return float(each[0]) if (each == each[0]).all() else each.astype(np.float64)


def refuse_vanishing(points: Points, reach: Reach = 0.0) -> None:
    """Refuse points and radii so small that the squares of all distances are 0."""
    least = 1.0 / _LARGEST
    span, radius = float(np.ptp(points, axis=0).max()), np.asarray(reach)[np.asarray(reach) > 0.0]
    if 0.0 < span < least:
        raise DataError(f"`points` must span 0 or at least {least:g}, got {span:g}: take a smaller unit.")
    if radius.size and radius.min() < least:
        raise DataError(f"`radius` must be 0 or at least {least:g}, got {radius.min():g}: take a smaller unit.")


def check_points(points: ArrayLike) -> Points:
    """Finite coordinates (n, d); a list of numbers is one column."""
    try:
        given = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"`points` must be numbers (n,) or (n, d), got {type(points).__name__} ({error}).") from error
    if given.ndim == 1:
        given = given[:, None]
    if given.ndim != 2 or given.size == 0:
        raise DataError(
            f"`points` must be coordinates (n,) or (n, d) of at least one person, got shape {given.shape}."
        )
    _refuse_some("points", "finite", given, np.asarray(~np.isfinite(given).all(axis=1)))
    most = f"at most {_LARGEST:g} in size, so that distances are finite"
    _refuse_some("points", most, given, np.asarray((np.abs(given) > _LARGEST).any(axis=1)))
    return given


def balls(points: Points, reach: float, p: float) -> tuple[Ranges, Places]:
    """The group of each site, everybody within `reach` of it in the p-norm; and the site (n,) of each person."""
    sites, site = _sites(points)
    crowd = np.bincount(site, minlength=len(sites))
    tree = cKDTree(sites)
    weights = None if crowd.size == len(points) else (np.ones(len(sites)), crowd.astype(np.float64))
    refuse_beyond_memory(int(tree.count_neighbors(tree, reach, p=p, weights=weights)))
    around = Ranges(*_both_ways(tree.query_pairs(reach, p=p, output_type="ndarray"), len(sites)))
    return _peopled(around, site, crowd), site


def own_balls(points: Points, reach: NDArray[np.float64], p: float) -> Ranges:
    """The group of each person, everybody within the person's own reach in the p-norm."""
    sites, site = _sites(points)
    crowd = np.bincount(site, minlength=len(sites))
    tree = cKDTree(sites)
    refuse_beyond_memory(int(tree.query_ball_point(points, reach, p=p, return_length=True).sum()))
    found, sizes = [], []
    for begin in range(0, len(points), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        lists = tree.query_ball_point(points[part], reach[part], p=p)
        sizes += [len(each) for each in lists]
        found.append(np.fromiter(chain.from_iterable(lists), dtype=np.int32))
    rows = np.repeat(np.arange(len(points)), sizes)
    return _peopled(Ranges.compress(rows, np.concatenate(found), shape=(len(points), len(sites))), site, crowd)


def _sites(points: Points) -> tuple[Points, Places]:
    """The distinct points in lexicographic order, and the number of each person's."""
    order = np.lexsort(points.T[::-1])
    line = points[order]
    new = np.append(True, (line[1:] != line[:-1]).any(axis=1))
    site = np.empty(len(points), dtype=np.int64)
    site[order] = np.cumsum(new) - 1
    return np.ascontiguousarray(line[new]), site


def _peopled(around: Ranges, site: Places, crowd: Places) -> Ranges:
    """Rows of sites as rows of the people who are there."""
    ends = np.cumsum(crowd)
    people = np.argsort(site, kind="stable").astype(np.int32)
    if crowd.size == site.size:
        return Ranges(people[around.people], around.starts, around.stops).materialize()
    crowds = Ranges(people, (ends - crowd)[around.people], ends[around.people]).materialize()
    bounds = np.append(0, crowds.stops)  # the crowds of a ball come one after the other
    return Ranges(crowds.people, bounds[around.starts], bounds[around.stops]).materialize()


def nearest(points: Points, k: int) -> Ranges:
    """The k nearest people of each person, the person first; equal distances in order of index."""
    n = len(points)
    k = whole("k", k, least=1, most=n)
    refuse_beyond_memory(n * k)
    distances, found = cKDTree(points).query(points, k=np.arange(1, min(k + 1, n) + 1))
    chosen = found[:, :k].astype(np.int32)
    if k < n:
        limit = distances[:, k - 1] * (1 + _SLACK)
        tied = np.flatnonzero(distances[:, k] <= limit)
        tree = cKDTree(points)
        for i in tied:
            chosen[i] = _first(points, int(i), tree.query_ball_point(points[i], limit[i] * (1 + _SLACK)), k)
    rows = np.repeat(np.arange(n, dtype=np.int32), k)
    return Ranges.compress(rows, chosen.reshape(-1), shape=(n, n))


def _first(points: Points, i: int, candidates: list[int], k: int) -> People:
    """The k first of the candidates by (distance, itself before others, index)."""
    around = np.sort(np.asarray(candidates))
    squares = ((points[around] - points[i]) ** 2).sum(axis=1)
    return around[np.lexsort((around, around != i, squares))[:k]].astype(np.int32)


def _refuse_some(name: str, wanted: str, values: NDArray[Any], bad: NDArray[np.bool_]) -> None:
    places = np.flatnonzero(bad)
    if places.size:
        first = values[places[0] : places[0] + 1].tolist()[0]
        raise DataError(
            f"`{name}` must be {wanted}, got {places.size:,} that are not; first at index {places[0]}: {first}."
        )


def _absent(label: object) -> bool:
    """Whether this is None, a float that is not a number, or another library's mark for a missing value."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA answers neither yes nor no
        return True


@njit(cache=True, nogil=True)
def _both_ways(pairs: Places, n: int) -> tuple[People, Places, Places]:
    """Each of n sites with the sites it is paired with, itself included."""
    counts = np.ones(n, dtype=np.int64)
    for pair in pairs:
        counts[pair[0]] += 1
        counts[pair[1]] += 1
    ends = np.cumsum(counts)
    starts = ends - counts
    fill = starts.copy()
    table = np.empty(ends[-1], dtype=np.int32)
    for i in range(n):
        table[fill[i]] = i
        fill[i] += 1
    for pair in pairs:
        i, j = pair[0], pair[1]
        table[fill[i]], table[fill[j]] = j, i
        fill[i] += 1
        fill[j] += 1
    return table, starts, ends
