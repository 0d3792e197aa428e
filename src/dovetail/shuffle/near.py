"""Who is near whom: label windows, balls and nearest neighbours, from public coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from dovetail.core.checks import whole
from dovetail.core.errors import DataError
from dovetail.shuffle.checks import not_negative
from dovetail.shuffle.ranges import People, Places, Ranges, refuse_beyond_memory

Points = NDArray[np.float64]  # (n, d)

_SLACK = 1e-12  # relative difference below which two distances are compared by the one formula of `_distances`


def coded(labels: ArrayLike) -> tuple[Places, NDArray[Any]]:
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


def windows(values: NDArray[Any], radius: float) -> tuple[Places, Places]:
    """For each of the sorted distinct numbers the range [first, last) of those with |difference| <= radius."""
    if values.dtype.kind not in "iuf":
        raise DataError(f"`labels` must be numbers when `radius` is given, got {values.dtype}.")
    reach = not_negative("radius", radius)
    if values.dtype.kind != "f":
        if max(abs(int(values[0])), abs(int(values[-1]))) >= 1 << 53:
            raise DataError(
                "`labels` must be below 2^53 in size when `radius` is given, so that differences are exact."
            )
        values = values.astype(np.float64)
    first = np.searchsorted(values, values - reach, side="left")
    last = np.searchsorted(values, values + reach, side="right")
    places = np.arange(values.size)
    while True:  # values -+ reach are rounded: at most a step or two until the differences themselves decide
        down = (first > 0) & (values - values[np.maximum(first - 1, 0)] <= reach)
        up = values - values[np.minimum(first, places)] > reach
        out = (last < values.size) & (values[np.minimum(last, values.size - 1)] - values <= reach)
        back = values[np.maximum(last - 1, places)] - values > reach
        if not (down.any() or up.any() or out.any() or back.any()):
            return first.astype(np.int64), last.astype(np.int64)
        first = first - down + up
        last = last + out - back


def checked_points(points: ArrayLike) -> Points:
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
    return given


def balls(points: Points, radius: float) -> tuple[Ranges, Places]:
    """The group of each distinct site, everybody within `radius` of it; and the site (n,) of each person."""
    reach = not_negative("radius", radius)
    sites, site = np.unique(points, axis=0, return_inverse=True)
    site = site.reshape(-1).astype(np.int64)
    crowd = np.bincount(site, minlength=len(sites))
    tree = cKDTree(sites)
    entries = tree.count_neighbors(tree, reach, weights=(np.ones(len(sites)), crowd.astype(np.float64)))
    refuse_beyond_memory(int(entries))
    pairs = tree.query_pairs(reach, output_type="ndarray")
    itself = np.arange(len(sites))
    owner = np.concatenate((itself, pairs[:, 0], pairs[:, 1]))
    other = np.concatenate((itself, pairs[:, 1], pairs[:, 0]))
    around = Ranges.compress(owner, other, shape=(len(sites), len(sites)))
    ends = np.cumsum(crowd)
    people = np.argsort(site, kind="stable").astype(np.int32)
    crowds = Ranges(people, (ends - crowd)[around.people], ends[around.people]).listed()
    bounds = np.append(0, crowds.stops)  # the crowds of a ball come one after the other
    return Ranges(crowds.people, bounds[around.starts], bounds[around.stops]).listed(), site


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
