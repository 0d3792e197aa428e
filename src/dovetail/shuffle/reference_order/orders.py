"""Reference orders: lines of everybody in which the members of each group stand close together."""

import numpy as np

from dovetail.core.entropy import Permutation
from dovetail.core.errors import UnsupportedError
from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import People, Places
from dovetail.shuffle.reference_order import breadth_first as graph_search


def reference_order(groups: Groups) -> Permutation:
    """The public order that the groups came with, if each is contiguous in it; otherwise `breadth_first`."""
    return label_order(groups) if groups.contiguous else breadth_first(groups)


def label_order(groups: Groups) -> Permutation:
    """Everybody sorted by label, ties by index: each group is contiguous, so its sensitivity C(g, 2) is the least."""
    if groups.order is None:
        raise UnsupportedError("These groups are not windows of labels and have no label order; use breadth_first.")
    return groups.order


def breadth_first(groups: Groups) -> Permutation:
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
    roots = graph_search.owners_by_group_size(groups)
    if not groups.contiguous or not _symmetric(groups):
        return graph_search.breadth_first(graph_search.group_graphs(groups).star, roots)
    rows, owned = groups.rows, groups.owners.transpose(groups.n)
    return np.asarray(_search(roots, rows.people, rows.starts, rows.stops, owned.people, owned.starts, owned.stops))


def _symmetric(groups: Groups) -> bool:
    """Whether i is in a window of j whenever j is in one of i: so it is for one radius, not for a radius each."""
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
