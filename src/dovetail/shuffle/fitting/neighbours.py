"""Neighbours by public coordinates: label windows, balls and nearest neighbours."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from dovetail.core.checks import not_negative_or_infinite, whole
from dovetail.core.compiled import njit
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.shuffle.fitting.ranges import MOST_ENTRIES, People, Places, Ranges, refuse_beyond_memory

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
    """True if this is None, a float that is not a number, or another library's mark for a missing value."""
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


# Distances other than straight lines: on the globe, and whatever scipy knows.


EARTH_RADIUS = 6_371_008.8  # metres, mean radius (IUGG)

NORMS = {"euclidean": 2.0, "cityblock": 1.0, "chebyshev": math.inf}

_MOST_COMPARED = 30_000  # people; each is compared with each
_CELLS = 20_000_000  # distances held at once


def on_sphere(points: Points) -> Points:
    """Latitude and longitude in degrees (n, 2) as points of the unit sphere (n, 3)."""
    if points.shape[1] != 2:
        raise DataError(
            f"`points` must be latitude, longitude (n, 2) with the haversine metric, got {points.shape[1]} columns."
        )
    latitude = points[:, 0]
    bad = np.flatnonzero(np.abs(latitude) > 90)
    if bad.size:
        raise DataError(
            f"`points` must be latitude in [-90, 90], longitude, in degrees, got {bad.size:,} that are not; first at "
            f"index {bad[0]}: {points[bad[0]].tolist()}."
        )
    east = np.radians(np.mod(points[:, 1], 360.0))  # -180 and 180 are the same place
    away = np.where(np.abs(latitude) == 90, 0.0, np.cos(np.radians(latitude)))  # at a pole longitude says nothing
    return np.column_stack((away * np.cos(east), away * np.sin(east), np.sin(np.radians(latitude))))


def chord(metres: Reach) -> Reach:
    r"""Straight distance through the unit sphere of two places so many metres apart, :math:`2 \sin(d / 2R)`."""
    half = np.asarray(metres) / (2 * EARTH_RADIUS)
    through = np.where(half >= math.pi / 2, math.inf, 2 * np.sin(np.minimum(half, math.pi / 2)))
    return float(through) if np.ndim(metres) == 0 else through


def within(points: Points, reach: Reach, metric: str) -> Ranges:
    """For each person everybody at most `reach` away in a metric of `scipy.spatial.distance.cdist`.

    Every pair is compared, so it is for at most 30,000 people. Metrics that are scaled by the data (`seuclidean`,
    `mahalanobis`) use all points at once.
    """
    n = len(points)
    if n > _MOST_COMPARED:
        raise UnsupportedError(
            f"`metric` {metric!r} compares each person with each: at most {_MOST_COMPARED:,} people, got {n:,}; "
            f"haversine, {', '.join(NORMS)} have no such limit."
        )
    scale = _scale(points, metric)
    limit = np.broadcast_to(np.asarray(reach, dtype=np.float64), (n,))
    rows, people, entries = [], [], 0
    step = max(1, _CELLS // n)
    for begin in range(0, n, step):
        part = slice(begin, begin + step)
        apart = _compared(points[part], points, metric, scale)
        if np.isnan(apart).any():
            raise DataError(f"`points` must have a distance from each to each, got none for some with {metric!r}.")
        row, person = np.nonzero(apart <= limit[part, None])
        entries += row.size
        refuse_beyond_memory(entries)
        rows.append(row + begin)
        people.append(person)
    return Ranges.compress(np.concatenate(rows), np.concatenate(people), shape=(n, n))


def _scale(points: Points, metric: str) -> dict[str, Any]:
    if metric == "seuclidean" and len(points) > 1:
        return {"V": points.var(axis=0, ddof=1)}
    if metric == "mahalanobis" and len(points) > 1:
        return {"VI": np.linalg.pinv(np.atleast_2d(np.cov(points.T)))}
    return {}


def _compared(some: Points, points: Points, metric: str, scale: dict[str, Any]) -> Points:
    try:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(cdist(some, points, metric, **scale))
    except (ValueError, TypeError) as error:
        raise ParameterError(
            f"`metric` must be 'haversine' or a metric of scipy.spatial.distance, got {metric!r} ({error})."
        ) from error


# Public networks as groups: who can be reached within a number of hops.


Edges = NDArray[np.int64]  # (m, 2)


def check_edges(edges: Any, n: int | None) -> tuple[Edges, int]:
    """Pairs of people, and how many people there are, from a list of pairs, a sparse matrix or a networkx graph."""
    if hasattr(edges, "tocoo"):
        return _from_matrix(edges, n)
    if hasattr(edges, "nodes") and hasattr(edges, "edges"):
        return _from_networkx(edges, n)
    pairs = np.asarray(edges)
    if pairs.size == 0:
        pairs = np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise DataError(
            f"`edges` must be pairs of people (m, 2) in whole numbers, a scipy sparse matrix or a networkx graph, "
            f"got shape {pairs.shape} of {pairs.dtype}."
        )
    if n is None and len(pairs) == 0:
        raise DataError("`edges` must hold at least one pair when `n` is not given, got none.")
    people = whole("n", int(pairs.max()) + 1 if n is None else n, least=1)
    bad = np.flatnonzero(((pairs < 0) | (pairs >= people)).any(axis=1))
    if bad.size:
        raise DataError(
            f"`edges` must join people 0..{people - 1}, got {bad.size:,} that do not; first at index {bad[0]}: "
            f"{pairs[bad[0]].tolist()}."
        )
    return pairs.astype(np.int64), people


def neighbourhoods(edges: Edges, n: int, *, hops: int, closed: bool) -> Ranges:
    """For each of n people everybody within `hops` undirected steps, with or without the person."""
    hops = whole("hops", hops, least=1)
    both = np.concatenate((edges, edges[:, ::-1]))
    joined = Ranges.compress(both[:, 0], both[:, 1], shape=(n, n))
    sizes = np.asarray(_count_within_hops(joined.people, joined.starts, joined.stops, hops, closed, MOST_ENTRIES))
    refuse_beyond_memory(int(sizes.sum()))
    ends = np.cumsum(sizes)
    people = np.asarray(_list_within_hops(joined.people, joined.starts, joined.stops, hops, closed, ends))
    return Ranges(people, ends - sizes, ends)


def _from_matrix(matrix: Any, n: int | None) -> tuple[Edges, int]:
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or n not in (None, matrix.shape[0]):
        raise DataError(
            f"`edges` must be a square matrix with a row per person, got shape {matrix.shape}"
            f"{'' if n is None else f' for {n:,} people'}."
        )
    people = whole("n", matrix.shape[0], least=1)
    table = matrix.tocoo()
    there = np.asarray(table.data != 0)
    return np.column_stack((table.row[there], table.col[there])).astype(np.int64), people


def _from_networkx(graph: Any, n: int | None) -> tuple[Edges, int]:
    nodes = list(graph.nodes)
    people = whole("n", len(nodes) if n is None else n, least=1)
    known = all(isinstance(node, int | np.integer) and 0 <= node < people for node in nodes)
    if not known:
        raise DataError(
            f"`edges` must have the nodes 0..{people - 1}; networkx.convert_node_labels_to_integers numbers them."
        )
    pairs = [(int(edge[0]), int(edge[1])) for edge in graph.edges()]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2), people


@njit(cache=True, nogil=True)
def _count_within_hops(people: People, starts: Places, stops: Places, hops: int, closed: bool, most: int) -> Places:
    """Count the neighbours of each person; counting stops soon after the sum is above `most`."""
    n = starts.size
    sizes = np.zeros(n, dtype=np.int64)
    seen, queue = np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64)
    total = 0
    for i in range(n):
        sizes[i] = _search_within_hops(people, starts, stops, hops, i, seen, queue) - (not closed)
        total += sizes[i]
        if total > most:
            sizes[i] += total * (n - 1 - i) // (i + 1)  # about as many for the others
            break
    return sizes


@njit(cache=True, nogil=True)
def _list_within_hops(people: People, starts: Places, stops: Places, hops: int, closed: bool, ends: Places) -> People:
    n = starts.size
    result = np.empty(ends[-1], dtype=np.int32)
    seen, queue = np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64)
    for i in range(n):
        size = _search_within_hops(people, starts, stops, hops, i, seen, queue)
        found = np.sort(queue[(0 if closed else 1) : size])
        result[ends[i] - found.size : ends[i]] = found
    return result


@njit(cache=True, nogil=True)
def _search_within_hops(
    people: People, starts: Places, stops: Places, hops: int, root: int, seen: Places, queue: Places
) -> int:
    """Put everybody within `hops` steps of the root into the queue; how many."""
    seen[root] = root
    queue[0] = root
    head, tail = 0, 1
    for _ in range(hops):
        level = tail
        while head < level:
            for j in people[starts[queue[head]] : stops[queue[head]]]:
                if seen[j] != root:
                    seen[j] = root
                    queue[tail] = j
                    tail += 1
            head += 1
        if head == tail:
            break
    return tail
