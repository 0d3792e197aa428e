"""Public networks as groups: who can be reached within a number of hops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.core.errors import DataError
from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.groups.ranges import MOST_ENTRIES, People, Places, Ranges, refuse_beyond_memory

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
    """How many there are for each person; counting stops soon after the sum is above `most`."""
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
