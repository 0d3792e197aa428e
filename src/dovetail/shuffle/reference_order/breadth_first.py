"""Breadth-first search over people who share a group, from people to groups and back: no edge is ever listed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dovetail.core.entropy import Permutation
from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import People, Places, Ranges


class RowAdjacency(NamedTuple):
    """From a person to some rows, and from these rows on to people: two compressed tables."""

    rows: People
    rows_from: Places
    rows_to: Places
    people: People
    people_from: Places
    people_to: Places


class PeopleGraph(NamedTuple):
    """Who is next to whom: the people reached by either kind of steps."""

    out: RowAdjacency
    back: RowAdjacency


class GroupGraphs(NamedTuple):
    """The same groups as two graphs; the tables behind them are shared.

    star : each owner is joined to the members of their group (the algorithm box of the paper)
    clique : everybody is joined to everybody in a common group (the text of the paper)
    """

    star: PeopleGraph
    clique: PeopleGraph


def group_graphs(groups: Groups) -> GroupGraphs:
    """Both readings of the paper's graph; windows of labels are listed."""
    rows = groups.rows.materialize() if groups.contiguous else groups.rows
    owned, around = groups.owners.transpose(groups.n), rows.transpose(groups.n)
    nothing = _steps(Ranges.empty(groups.n), Ranges.empty(0))
    return GroupGraphs(
        PeopleGraph(_steps(owned, rows), _steps(around, groups.owners)), PeopleGraph(_steps(around, rows), nothing)
    )


def owners_by_group_size(groups: Groups) -> Permutation:
    """Owners of the largest groups first, ties by index: where the paper starts its search."""
    largest = np.zeros(groups.n, dtype=np.int64)
    np.maximum.at(largest, groups.owners.materialize().people, np.repeat(groups.sizes, groups.owners.sizes))
    return np.argsort(-largest, kind="stable")


def degrees(graph: PeopleGraph) -> Places:
    """Steps that lead out of each person (n,), counted with repetitions."""
    return np.asarray(_degrees(graph.out) + _degrees(graph.back))


def member_visits(graph: PeopleGraph) -> int:
    """Looks at a member or a row in one pass over the graph."""
    return sum(steps.rows.size + steps.people.size for steps in graph)


def breadth_first(graph: PeopleGraph, roots: Permutation) -> Permutation:
    """Breadth-first order from the first root not yet seen, again and again; neighbours come in order of index."""
    return np.asarray(_search(graph, roots, np.arange(roots.size), False))


def cuthill_mckee(graph: PeopleGraph, *, peripheral: bool) -> Permutation:
    r"""Cuthill-McKee order: breadth first, neighbours by increasing degree, ties by index.

    Each component starts at its person of least degree, or at a pseudo-peripheral person: the far end of a
    breadth-first search, which starts again there until it gets no farther. The reverse order has the same
    sensitivities and widths, so reverse Cuthill-McKee needs no computation of its own.

    Source
    ------
    Cuthill and McKee (1969), Reducing the bandwidth of sparse symmetric matrices; George and Liu (1979), An
    implementation of a pseudoperipheral node finder, section 2.
    """
    by_degree = np.argsort(degrees(graph), kind="stable")
    rank = np.empty_like(by_degree)
    rank[by_degree] = np.arange(by_degree.size)
    return np.asarray(_search(graph, by_degree, rank, peripheral))


def _steps(near: Ranges, far: Ranges) -> RowAdjacency:
    return RowAdjacency(near.people, near.starts, near.stops, far.people, far.starts, far.stops)


@njit(cache=True, nogil=True)
def _degrees(steps: RowAdjacency) -> Places:
    result = np.zeros(steps.rows_from.size, dtype=np.int64)
    for i in range(result.size):
        for g in steps.rows[steps.rows_from[i] : steps.rows_to[i]]:
            result[i] += steps.people_to[g] - steps.people_from[g]
    return result


@njit(cache=True, nogil=True)
def _search(graph: PeopleGraph, roots: Permutation, rank: Permutation, peripheral: bool) -> Permutation:
    n = roots.size
    order = np.empty(n, dtype=np.int64)  # both the queue and the result
    state = (  # number of the last search that saw this person, and opened these rows
        np.zeros(n, dtype=np.int64),
        np.zeros(graph.out.people_from.size, dtype=np.int64),
        np.zeros(graph.back.people_from.size, dtype=np.int64),
    )
    unrank = np.empty(n, dtype=np.int64)
    unrank[rank] = np.arange(n)
    tail = search = 0
    for root in roots:
        if state[0][root] > 0:
            continue
        search += 1
        end, height, last = _search_from(graph, root, order, tail, state, search, rank, unrank)
        while peripheral:
            far = order[last]
            for place in range(last, end):
                if rank[order[place]] < rank[far]:
                    far = order[place]
            search += 1
            end, higher, last = _search_from(graph, far, order, tail, state, search, rank, unrank)
            if higher <= height:
                break
            height = higher
        tail = end
    return order


@njit(cache=True, nogil=True)
def _search_from(
    graph: PeopleGraph, root: int, order: Permutation, begin: int, state: tuple[Places, Places, Places], search: int,
    rank: Permutation, unrank: Permutation,
) -> tuple[int, int, int]:  # fmt: skip
    """Fill `order` from place `begin` on; where the search ends, its height, and where its last level begins."""
    seen, opened, called = state
    seen[root] = search
    order[begin] = root
    head, tail, height, level = begin, begin + 1, 0, begin
    end_of_level = tail
    while head < tail:
        if head == end_of_level:
            height, level, end_of_level = height + 1, head, tail
        i = order[head]
        head += 1
        first = tail
        tail = _visit(graph.out, i, order, tail, seen, opened, search)
        tail = _visit(graph.back, i, order, tail, seen, called, search)
        if tail - first > 1:
            order[first:tail] = unrank[np.sort(rank[order[first:tail]])]
    return tail, height, level


@njit(cache=True, nogil=True)
def _visit(
    steps: RowAdjacency, i: int, order: Permutation, tail: int, seen: Places, opened: Places, search: int
) -> int:
    """Append the people next to i who were not seen in this search."""
    for g in steps.rows[steps.rows_from[i] : steps.rows_to[i]]:
        if opened[g] == search:
            continue
        opened[g] = search
        for j in steps.people[steps.people_from[g] : steps.people_to[g]]:
            if seen[j] != search:
                seen[j] = search
                order[tail] = j
                tail += 1
    return tail
