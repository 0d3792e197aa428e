"""Reference orders: lines of everybody in which the members of each group stand close together."""

import numpy as np
from numba import njit

from dovetail.core.entropy import Permutation
from dovetail.core.errors import UnsupportedError
from dovetail.shuffle.groups import Groups
from dovetail.shuffle.ranges import People, Places, Ranges


def reference_order(groups: Groups) -> Permutation:
    """The public order that the groups came with, if each is contiguous in it; otherwise `breadth_first`."""
    return label_order(groups) if groups.lined else breadth_first(groups)


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
    n, rows, owners = groups.n, groups.rows, groups.owners
    owned = owners.transposed(n)
    nothing = Ranges(np.empty(0, np.int32), np.zeros(n, np.int64), np.zeros(n, np.int64))
    around = nothing if groups.lined else rows.transposed(n)
    largest = np.zeros(n, dtype=np.int64)
    np.maximum.at(largest, owners.listed().people, np.repeat(rows.sizes, owners.sizes))
    roots = np.argsort(-largest, kind="stable")
    return np.asarray(
        _search(
            roots, rows.people, rows.starts, rows.stops, owners.people, owners.starts, owners.stops,
            owned.people, owned.starts, owned.stops, around.people, around.starts, around.stops,
        )
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _search(
    roots: Places,
    people: People, starts: Places, stops: Places,
    owners: People, owner_starts: Places, owner_stops: Places,
    owned: People, owned_starts: Places, owned_stops: Places,
    around: People, around_starts: Places, around_stops: Places,
) -> Permutation:  # fmt: skip
    n = roots.size
    order = np.empty(n, dtype=np.int64)  # both the queue and the result
    seen = np.zeros(n, dtype=np.bool_)
    opened = np.zeros(starts.size, dtype=np.bool_)
    called = np.zeros(starts.size, dtype=np.bool_)
    skip = np.arange(people.size + 1)  # the first place at or after this one that was not yet looked at
    head = tail = 0
    for root in roots:
        if seen[root]:
            continue
        seen[root] = True
        order[tail] = root
        tail += 1
        while head < tail:
            i = order[head]
            head += 1
            first = tail
            for g in owned[owned_starts[i] : owned_stops[i]]:
                if opened[g]:
                    continue
                opened[g] = True
                place = _next(skip, starts[g])
                while place < stops[g]:
                    j = people[place]
                    if not seen[j]:
                        seen[j] = True
                        order[tail] = j
                        tail += 1
                    skip[place] = place + 1
                    place = _next(skip, place + 1)
            for g in around[around_starts[i] : around_stops[i]]:
                if called[g]:
                    continue
                called[g] = True
                for j in owners[owner_starts[g] : owner_stops[g]]:
                    if not seen[j]:
                        seen[j] = True
                        order[tail] = j
                        tail += 1
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
