"""Reference orders: lines of everybody in which the members of each group stand close together."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh

from dovetail.core.compiled import njit
from dovetail.core.entropy import Permutation
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.shuffle.fitting.groups import Codes, Groups
from dovetail.shuffle.fitting.neighbours import Points
from dovetail.shuffle.fitting.ranges import People, Places, Ranges
from dovetail.shuffle.sampling.permutations import check_permutation, inverse

# Breadth-first search over people who share a group, from people to groups and back: no edge is ever listed.


class RowAdjacency(NamedTuple):
    """From a person to some rows, and from these rows on to people: two compressed tables."""

    rows: People
    rows_from: Places
    rows_to: Places
    people: People
    people_from: Places
    people_to: Places


class PeopleGraph(NamedTuple):
    """Graph of people: those reached by either kind of steps."""

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
    return np.asarray(_search_layers(graph, roots, np.arange(roots.size), False))


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
    return np.asarray(_search_layers(graph, by_degree, rank, peripheral))


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
def _search_layers(graph: PeopleGraph, roots: Permutation, rank: Permutation, peripheral: bool) -> Permutation:
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


def reference_order(groups: Groups) -> Permutation:
    """The public order that the groups came with, if each is contiguous in it; otherwise `breadth_first_order`."""
    return label_order(groups) if groups.contiguous else breadth_first_order(groups)


def label_order(groups: Groups) -> Permutation:
    """Everybody sorted by label, ties by index: each group is contiguous, so its sensitivity C(g, 2) is the least."""
    if groups.order is None:
        raise UnsupportedError("These groups are not windows of labels and have no label order; use breadth_first.")
    return groups.order


def breadth_first_order(groups: Groups) -> Permutation:
    r"""Breadth-first order of the graph that joins each owner to the members of their group.

    .. math:: E = \{(i, j) : j \in G_i\}

    The root is the owner of the largest group; neighbours come in order of index; where the graph ends, the search
    restarts at the not yet visited owner of the largest group (ties by index), and people in no group come last.

    Notes
    -----
    This reads the algorithm box (star edges), not the text, which joins everybody within a group. O(members +
    n log n): each distinct group is opened once, by the first of its owners to be visited. Windows of labels are
    symmetric and stay unlisted: places already looked at are skipped, so everybody is touched once. The order is the
    one that listing them would give.

    Source
    ------
    Meehan et al. (2022), Privacy Implications of Shuffling, Algorithm 1, steps 2-4; the restarts are ours.
    """
    roots = owners_by_group_size(groups)
    if not groups.contiguous or not _symmetric(groups):
        return breadth_first(group_graphs(groups).star, roots)
    rows, owned = groups.rows, groups.owners.transpose(groups.n)
    return np.asarray(_search(roots, rows.people, rows.starts, rows.stops, owned.people, owned.starts, owned.stops))


def _symmetric(groups: Groups) -> bool:
    """True if i is in a window of j whenever j is in one of i: so it is for one radius, not for a radius each."""
    rows, n = groups.rows, groups.n
    place = np.empty(n, dtype=np.int64)
    place[rows.people] = np.arange(n)
    first, last = np.arange(n), np.arange(1, n + 1)  # what each place owns
    at = place[groups.owners.materialize().people]
    np.minimum.at(first, at, np.repeat(rows.starts, groups.owners.sizes))
    np.maximum.at(last, at, np.repeat(rows.stops, groups.owners.sizes))
    monotone = bool((np.diff(first) >= 0).all() and (np.diff(last) >= 0).all())
    return monotone and bool((last[first] > np.arange(n)).all() and (first[last - 1] <= np.arange(n)).all())


@njit(cache=True, nogil=True)
def _search(
    roots: Places, people: People, starts: Places, stops: Places,
    owned: People, owned_starts: Places, owned_stops: Places,
) -> Permutation:  # fmt: skip
    """The search over windows: places that were looked at are skipped, so everybody is touched once."""
    n = roots.size
    order = np.empty(n, dtype=np.int64)  # both the queue and the result
    seen = np.zeros(n, dtype=np.bool_)
    skip = np.arange(people.size + 1)  # the first place at or after this one that was not yet looked at
    head = tail = 0
    for root in roots:
        if seen[root]:
            continue
        seen[root] = True
        order[tail] = root
        tail += 1
        while head < tail:
            first = tail
            for g in owned[owned_starts[order[head]] : owned_stops[order[head]]]:
                place = _next(skip, starts[g])
                while place < stops[g]:
                    j = people[place]
                    if not seen[j]:
                        seen[j] = True
                        order[tail] = j
                        tail += 1
                    skip[place] = place + 1
                    place = _next(skip, place + 1)
            head += 1
            if tail - first > 1:
                order[first:tail] = np.sort(order[first:tail])
    return order


@njit(cache=True, nogil=True)
def _next(skip: Places, place: int) -> int:
    """Follow and shorten the chain of skipped places."""
    end = place
    while skip[end] != end:
        end = skip[end]
    while skip[place] != end and place != end:
        skip[place], place = end, skip[place]
    return end


# Orders from numbers about people: sorted along an axis of public points, or along a vibration of the network.


MOST_FIEDLER = 2000  # people in groups; beyond that eigenvectors take longer than they are worth

_DENSE = 200  # below this size the full decomposition is the fastest


def sort_along_axis(points: Points, axis: int) -> Permutation:
    """Everybody sorted by one coordinate, ties by the others in turn, then by index."""
    columns = np.roll(points, -axis, axis=1)
    return np.lexsort(columns.T[::-1])


def sort_along_principal_axis(points: Points) -> Permutation:
    """Everybody sorted along the direction in which the points spread the most."""
    middle = points - points.mean(axis=0)
    direction = np.linalg.eigh(middle.T @ middle)[1][:, -1]
    direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
    return np.argsort(middle @ direction, kind="stable")


def fiedler_order(groups: Groups, components: NDArray[np.int64]) -> Permutation:
    r"""Each component sorted by the second eigenvector of its Laplacian.

    .. math:: L = D - A, \qquad A_{ij} = |\{G : i, j \in G\}|

    The vector is found from a fixed start, and its sign makes its largest entry positive, so the order is the same
    every time. Components come by number, people in no group last.

    Source
    ------
    Fiedler (1975), A property of eigenvectors of nonnegative symmetric matrices and its application to graph theory;
    Barnard, Pothen, Simon (1995), A spectral algorithm for envelope reduction of sparse matrices.
    """
    flat = groups.rows.materialize()
    ends = np.append(0, flat.stops)
    member = csr_array((np.ones(flat.people.size), flat.people, ends), shape=(len(flat), groups.n))
    weights = csr_array(member.T @ member)
    key = np.zeros(groups.n)
    for part in range(int(components.max(initial=-1)) + 1):
        people = np.flatnonzero(components == part)
        key[people] = _second_vector(weights[people][:, people])
    outside = np.asarray(components < 0)
    return np.lexsort((key, components, outside))


def _second_vector(weights: csr_array) -> NDArray[np.float64]:
    laplacian = diags_array(np.asarray(weights.sum(axis=1)).reshape(-1)) - weights
    size = laplacian.shape[0]
    if size <= _DENSE:
        vector = np.linalg.eigh(laplacian.toarray())[1][:, min(1, size - 1)]
    else:
        start = np.cos(np.arange(size))  # anything that is fixed and not constant
        shift = -1e-4 * float(laplacian.diagonal().mean())  # below 0, so that the matrix can be inverted
        values, vectors = eigsh(laplacian.tocsc(), k=2, sigma=shift, v0=start)
        vector = vectors[:, np.argmax(values)]
    vector = np.round(vector, 12)  # equal people stay equal, so ties go by index
    return np.asarray(vector * np.sign(vector[np.argmax(np.abs(vector))]))


# Improving a reference order: everybody moves to the middle of their neighbours, again and again.
#
# .. math:: p \leftarrow \mathrm{rank}\Bigl(\tfrac12 \bigl(\min_{j \in N(i)} p_j + \max_{j \in N(i)} p_j\bigr)\Bigr)
#
# with N(i) the person and their neighbours, ties by the current position; then the same with the mean. No step is
# guaranteed to help, so each order is scored exactly and the best one seen is kept.


Middles = NDArray[np.float64]  # (n,)

_SHORT = 64  # below this many members insertion sort is the fastest


def score_components(
    rows: Ranges, positions: Permutation, *, within: Places, part: Places, parts: int
) -> tuple[Places, Places]:
    r"""Largest exact sensitivity and largest width of each part of the rows, for an order given by positions (n,).

    .. math:: \max_G \; \Delta(G) - c_G

    with c_G = `within` the pairs of members of a common atom, 0 where atoms are not used (`pairs_within_atoms`), and
    `part` the number 0..parts-1 of the connected component that holds each row. One pass over the members; a row is
    sorted only when the bound 2 h (w - h + 1) - h with h = floor(g / 2) could make it the largest of its part so far.
    """
    largest, widest = _score(rows.people, rows.starts, rows.stops, positions, within, part, parts)
    return np.asarray(largest), np.asarray(widest)


def barycenter_sweep(graph: PeopleGraph, order: Permutation, *, mean: bool) -> Permutation:
    """The order after everybody moved to the middle (or the mean) of themselves and their neighbours."""
    middle = np.asarray((_means if mean else _midranges)(graph, inverse(order)))
    return order[np.argsort(middle[order], kind="stable")]


@njit(cache=True, nogil=True)
def _score(
    people: People, starts: Places, stops: Places, positions: Permutation, within: Places, part: Places, parts: int
) -> tuple[Places, Places]:  # fmt: skip
    largest, widest = np.zeros(parts, dtype=np.int64), np.zeros(parts, dtype=np.int64)
    places = np.empty(_SHORT, dtype=np.int64)
    for g in range(starts.size):
        low = high = positions[people[starts[g]]]
        for member in people[starts[g] : stops[g]]:
            low, high = min(low, positions[member]), max(high, positions[member])
        width = high - low
        widest[part[g]] = max(widest[part[g]], width)
        size = stops[g] - starts[g]
        half = size // 2
        if 2 * half * (width - half + 1) - half - within[g] <= largest[part[g]]:  # nested pairs shrink by 2 at least
            continue
        # the group's positions in order: short ones by insertion
        if size > _SHORT:
            p = np.sort(positions[people[starts[g] : stops[g]]])
        else:
            p = places
            for k in range(size):
                position = positions[people[starts[g] + k]]
                m = k
                while m > 0 and p[m - 1] > position:
                    p[m] = p[m - 1]
                    m -= 1
                p[m] = position
        # pair the outermost, the next and so on: what swapping them changes, but for pairs within an atom
        change = -within[g]
        for i in range(half):
            change += 2 * (p[size - 1 - i] - p[i]) - 1
        largest[part[g]] = max(largest[part[g]], change)
    return largest, widest


@njit(cache=True, nogil=True)
def _midranges(graph: PeopleGraph, positions: Permutation) -> Middles:
    n = positions.size
    low, high = positions.astype(np.float64), positions.astype(np.float64)
    for steps in graph:
        least, most = _extremes(steps, positions)
        for i in range(n):
            for g in steps.rows[steps.rows_from[i] : steps.rows_to[i]]:
                low[i], high[i] = min(low[i], least[g]), max(high[i], most[g])
    return low + high


@njit(cache=True, nogil=True)
def _extremes(steps: RowAdjacency, positions: Permutation) -> tuple[Middles, Middles]:
    least = np.full(steps.people_from.size, math.inf)
    most = np.full(steps.people_from.size, -math.inf)
    for g in range(least.size):
        for j in steps.people[steps.people_from[g] : steps.people_to[g]]:
            least[g], most[g] = min(least[g], positions[j]), max(most[g], positions[j])
    return least, most


@njit(cache=True, nogil=True)
def _means(graph: PeopleGraph, positions: Permutation) -> Middles:
    n = positions.size
    total, count = positions.astype(np.float64), np.ones(n)
    for steps in graph:
        sums = np.zeros(steps.people_from.size)
        for g in range(sums.size):
            for j in steps.people[steps.people_from[g] : steps.people_to[g]]:
                sums[g] += positions[j]
        for i in range(n):
            for g in steps.rows[steps.rows_from[i] : steps.rows_to[i]]:
                total[i] += sums[g]
                count[i] += steps.people_to[g] - steps.people_from[g]
    return total / count


# Atoms in a reference order: they stand together, and pairs inside one atom cost no sensitivity.


def check_atoms(given: ArrayLike, groups: Groups) -> Codes:
    """Codes of atoms that are not coarser than `groups.atoms()`; coarser ones would break the promise."""
    codes = np.asarray(given)
    if codes.shape != (groups.n,) or codes.dtype.kind not in "iu" or (codes.size and codes.min() < 0):
        raise DataError(f"`atoms` must be {groups.n:,} codes 0.., got shape {codes.shape} of {codes.dtype}.")
    codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    true = groups.atoms()
    first = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    first[codes[::-1]] = true[::-1]
    torn = np.flatnonzero(first[codes] != true)
    if torn.size:
        raise DataError(
            f"`atoms` must join people with the same groups only, got {torn.size:,} who differ; first {torn[0]}."
        )
    return codes


def pairs_within_atoms(groups: Groups, codes: Codes) -> Places:
    r"""Pairs of members of a common atom in each group (groups,): :math:`\sum_{a \subseteq G} \binom{m_a}{2}`.

    Reordering inside an atom costs nothing, so these pairs are taken off the sensitivity.
    """
    others = np.bincount(codes, minlength=1)[codes] - 1
    if not others.any():
        return np.zeros(len(groups), dtype=np.int64)
    rows = groups.rows
    if groups.contiguous:
        sums = np.concatenate(([0], np.cumsum(others[rows.people])))
        return np.asarray((sums[rows.stops] - sums[rows.starts]) // 2)
    return np.asarray(_sum_rows(rows.people, rows.starts, rows.stops, others)) // 2


def make_contiguous(order: ArrayLike, codes: ArrayLike) -> Permutation:
    """The order in which people with equal codes stand together, each block at the mean of their places.

    Of blocks with equal means the one that begins earlier is first, whatever its code; inside a block people keep
    their order.

    >>> make_contiguous([0, 1, 2, 3, 4], [7, 8, 8, 7, 9])
    array([0, 3, 1, 2, 4])
    """
    blocks = np.asarray(codes, dtype=np.int64)
    if blocks.min(initial=0) < 0:
        raise DataError(f"`codes` must be at least 0, got {int(blocks.min())}.")
    line = check_permutation(order, blocks.size, name="order")
    counts = np.bincount(blocks)
    if counts.max(initial=0) <= 1:
        return line
    places = inverse(line)
    means, firsts = block_places(places, blocks)
    return np.lexsort((places, firsts[blocks], means[blocks]))


def block_places(places: Permutation, blocks: Codes) -> tuple[NDArray[np.float64], Places]:
    """Mean and first place of the people of each block (blocks,)."""
    counts = np.bincount(blocks)
    firsts = np.full(counts.size, places.size, dtype=np.int64)
    np.minimum.at(firsts, blocks, places)
    return np.bincount(blocks, weights=places) / np.maximum(counts, 1), firsts


@njit(cache=True, nogil=True)
def _sum_rows(people: People, starts: Places, stops: Places, values: Places) -> Places:
    result = np.zeros(starts.size, dtype=np.int64)
    for g in range(starts.size):
        for member in people[starts[g] : stops[g]]:
            result[g] += values[member]
    return result
