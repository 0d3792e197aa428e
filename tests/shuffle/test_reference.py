"""Reference orders list everybody once and keep groups together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.errors import UnsupportedError
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.reference_orders import breadth_first_order as breadth_first
from dovetail.shuffle.fitting.reference_orders import label_order, reference_order
from dovetail.shuffle.fitting.sensitivity import kendall_by_group
from dovetail.shuffle.sampling.permutations import inverse


def naive_search(owned: list[tuple[int, set[int]]], n: int) -> list[int]:
    """Breadth-first search over star edges, from (owner, group) pairs."""
    edges: list[set[int]] = [set() for _ in range(n)]
    size = [0] * n
    for owner, group in owned:
        if len(group) < 2:
            continue
        size[owner] = max(size[owner], len(group))
        for member in group - {owner}:
            edges[owner].add(member)
            edges[member].add(owner)
    order: list[int] = []
    for root in sorted(range(n), key=lambda i: (-size[i], i)):
        if root in order:
            continue
        queue = [root]
        order.append(root)
        while queue:
            new = sorted(edges[queue.pop(0)] - set(order))
            order += new
            queue += new
    return order


@pytest.mark.exhaust
@given(lists=st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=5), max_size=9))
def test_breadth_first_follows_star_edges(lists: list[list[int]]) -> None:
    groups = Groups.from_lists(lists, 12)
    assert breadth_first(groups).tolist() == naive_search([(group[0], set(group)) for group in lists], 12)


def test_one_search_as_printed_leaves_other_components_out_and_ours_goes_on_at_the_largest_of_them() -> None:
    lists = [[5, 6], [0, 1, 2], [8, 7, 9, 3], [1, 4]]
    reached = {8}  # where the largest group begins, and a single breadth-first search with it
    while more := {member for group in lists if reached & set(group) for member in group} - reached:
        reached |= more
    assert reached == {3, 7, 8, 9}
    assert breadth_first(Groups.from_lists(lists, 10)).tolist() == [8, 3, 7, 9, 0, 1, 2, 4, 5, 6]


@given(labels=st.lists(st.integers(0, 12), min_size=1, max_size=25), radius=st.integers(0, 4))
def test_windows_are_searched_as_if_they_were_listed(labels: list[int], radius: int) -> None:
    owned = [(i, {j for j, b in enumerate(labels) if abs(a - b) <= radius}) for i, a in enumerate(labels)]
    assert breadth_first(Groups.from_labels(labels, radius)).tolist() == naive_search(owned, len(labels))


@given(points=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=16), k=st.integers(1, 2))
def test_nearest_neighbours_are_searched_in_both_directions(points: list[tuple[int, int]], k: int) -> None:
    where = np.array(points)
    owned = []
    for i in range(len(points)):
        squares = ((where - where[i]) ** 2).sum(axis=1)
        owned.append((i, set(sorted(range(len(points)), key=lambda j: (squares[j], j != i, j))[:k])))
    assert breadth_first(Groups.nearest(where, k)).tolist() == naive_search(owned, len(points))


def test_the_example_of_appendix_a10_starts_at_five() -> None:
    """The groups that the text names, one-based: G5 = {5,2,3,8,4}, G8 = {8,3,5}, G4 = {4,5,7}."""
    groups = Groups.from_lists([[4, 1, 2, 7, 3], [7, 2, 4], [3, 4, 6]], 8)
    assert (breadth_first(groups)[:5] + 1).tolist() == [5, 2, 3, 4, 8]


def test_people_in_no_group_come_last_by_index() -> None:
    assert breadth_first(Groups.from_lists([[4, 2]], 6)).tolist() == [4, 2, 0, 1, 3, 5]


def test_the_label_order_makes_every_group_contiguous_and_is_the_default() -> None:
    labels = np.random.default_rng(1).integers(0, 40, 500)
    groups = Groups.from_labels(labels, radius=2)
    order = label_order(groups)
    assert (np.diff(labels[order]) >= 0).all()
    np.testing.assert_array_equal(reference_order(groups), order)
    pairs = groups.sizes * (groups.sizes - 1) // 2
    np.testing.assert_array_equal(kendall_by_group(groups, inverse(order)), pairs)
    assert kendall_by_group(groups, inverse(breadth_first(groups))).max() > pairs.max()
    listed = Groups.from_lists([group.tolist() for group in groups], 500)
    assert sorted(kendall_by_group(listed, inverse(order))) == sorted(pairs)


def test_groups_without_labels_have_no_label_order() -> None:
    groups = Groups.from_lists([[0, 1]], 3)
    with pytest.raises(UnsupportedError, match="breadth_first"):
        label_order(groups)
    assert groups.order is None and reference_order(groups).tolist() == [0, 1, 2]
