"""The best order is the best of its candidates, keeps to the bounds and never loses to the paper's."""

from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from studies.order_gain.families import FAMILIES

from dovetail.core.errors import DataError
from dovetail.shuffle.fitting import reference_orders as graph_search
from dovetail.shuffle.fitting.best_order import best_order, candidates, width_bound
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.ranges import Places
from dovetail.shuffle.fitting.reference_orders import (
    barycenter_sweep,
    fiedler_order,
    make_contiguous,
    pairs_within_atoms,
    score_components,
    sort_along_axis,
    sort_along_principal_axis,
)
from dovetail.shuffle.fitting.reference_orders import breadth_first_order as breadth_first
from dovetail.shuffle.fitting.sensitivity import kendall_by_group, width_by_group
from dovetail.shuffle.sampling.permutations import inverse

lists_of_people = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), max_size=7)
few = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), max_size=4)


def largest(groups: Groups, order: Places, codes: Places | None = None) -> int:
    """Largest exact sensitivity, between atoms if they are given."""
    deltas = kendall_by_group(groups, inverse(order))
    return int((deltas - (0 if codes is None else pairs_within_atoms(groups, codes))).max(initial=0))


def meeting_graph(groups: Groups) -> nx.Graph:
    graph = nx.empty_graph(groups.n)
    graph.add_edges_from((i, j) for group in groups for i in group for j in group if i != j)
    return graph


@given(lists=lists_of_people)
def test_the_best_order_is_scored_exactly_and_beats_breadth_first(lists: list[list[int]]) -> None:
    groups = Groups.from_lists(lists, 10)
    best = best_order(groups)
    assert sorted(best.order) == list(range(10))
    assert best.sensitivity == largest(groups, best.order) <= largest(groups, breadth_first(groups))
    assert best.width == width_by_group(groups, inverse(best.order)).max(initial=0)
    assert best.sensitivity_bound <= best.sensitivity and best.width_bound <= best.width
    assert best.sensitivity_bound == max((g * (g - 1) // 2 for g in groups.sizes), default=0)
    assert best.baseline is not None and best.sensitivity <= best.baseline
    found = [row["sensitivity"] for row in best.candidates if row["sensitivity"] is not None]
    assert best.sensitivity <= min(found)
    component = groups.components()[best.order]
    assert (np.diff(component[component >= 0]) != 0).sum() <= max(component.max(), 0)


@given(lists=few)
@settings(max_examples=25)
def test_no_order_of_five_people_is_below_the_bounds(lists: list[list[int]]) -> None:
    groups = Groups.from_lists(lists, 5)
    best = best_order(groups)
    optimum = min(largest(groups, np.array(order)) for order in permutations(range(5)))
    narrowest = min(int(width_by_group(groups, np.array(order)).max(initial=0)) for order in permutations(range(5)))
    assert best.sensitivity_bound <= optimum <= best.sensitivity
    assert best.width_bound <= narrowest


@given(lists=lists_of_people)
def test_with_atoms_every_atom_is_contiguous_and_only_other_pairs_count(lists: list[list[int]]) -> None:
    groups = Groups.from_lists(lists, 10)
    codes = groups.atoms()
    best = best_order(groups, atoms=codes)
    np.testing.assert_array_equal(make_contiguous(best.order, codes), best.order)
    assert best.sensitivity == largest(groups, best.order, codes)
    assert best.sensitivity <= largest(groups, make_contiguous(breadth_first(groups), codes), codes)
    assert best.sensitivity >= best.sensitivity_bound


@given(lists=lists_of_people)
def test_a_partition_with_atoms_costs_nothing(lists: list[list[int]]) -> None:
    labels = [min((k for k, group in enumerate(lists) if i in group), default=-1) for i in range(10)]
    groups = Groups.from_lists([np.flatnonzero(np.array(labels) == k).tolist() for k in set(labels)], 10)
    assert best_order(groups, atoms=groups.atoms()).sensitivity == 0


@given(labels=st.lists(st.integers(0, 9), min_size=1, max_size=20), radius=st.integers(0, 3))
def test_the_label_order_is_optimal_with_and_without_atoms(labels: list[int], radius: int) -> None:
    groups = Groups.from_labels(labels, radius)
    plain, joined = best_order(groups), best_order(groups, atoms=groups.atoms())
    assert plain.baseline == largest(groups, breadth_first(groups)) or groups.components().max() > 0
    assert plain.optimal and plain.sensitivity == groups.largest * (groups.largest - 1) // 2
    assert joined.optimal and joined.sensitivity == largest(groups, joined.order, groups.atoms())
    listed = Groups.from_lists([group.tolist() for group in groups], len(labels))
    assert width_bound(groups) == width_bound(listed) or not len(groups)


@given(lists=lists_of_people, order=st.permutations(range(10)))
def test_scores_agree_with_the_sensitivities_component_by_component(lists: list[list[int]], order: list[int]) -> None:
    groups = Groups.from_lists(lists, 10)
    positions = inverse(np.array(order))
    part = np.arange(len(groups)) % 3
    deltas, widths = score_components(
        groups.rows, positions, within=np.zeros(len(groups), np.int64), part=part, parts=3
    )
    for k in range(3):
        assert deltas[k] == kendall_by_group(groups, positions)[part == k].max(initial=0)
        assert widths[k] == width_by_group(groups, positions)[part == k].max(initial=0)


def test_scores_of_large_groups_are_sorted_too() -> None:
    rng = np.random.default_rng(1)
    groups = Groups.from_lists([rng.choice(1000, size, replace=False).tolist() for size in (63, 64, 65, 400)], 1000)
    positions = rng.permutation(1000)
    each = np.arange(4)
    deltas, _ = score_components(groups.rows, positions, within=np.zeros(4, np.int64), part=each, parts=4)
    np.testing.assert_array_equal(deltas, kendall_by_group(groups, positions))


@given(lists=lists_of_people)
def test_the_text_of_the_paper_joins_everybody_in_a_common_group(lists: list[list[int]]) -> None:
    groups = Groups.from_lists(lists, 10)
    graph, edges = graph_search.group_graphs(groups).clique, meeting_graph(groups)
    expected: list[int] = []
    for root in graph_search.owners_by_group_size(groups).tolist():
        if root not in expected:
            expected += [root, *(j for _, j in nx.bfs_edges(edges, root, sort_neighbors=sorted))]
    assert graph_search.breadth_first(graph, graph_search.owners_by_group_size(groups)).tolist() == expected


@given(lists=lists_of_people)
def test_cuthill_mckee_takes_neighbours_by_degree(lists: list[list[int]]) -> None:
    groups = Groups.from_lists(lists, 10)
    graph, edges = graph_search.group_graphs(groups).clique, meeting_graph(groups)
    rank = np.lexsort((np.arange(10), graph_search.degrees(graph)))
    expected: list[int] = []
    for root in rank.tolist():
        if root not in expected:
            by_rank = lambda found: sorted(found, key=inverse(rank).__getitem__)  # noqa: E731
            expected += [root, *(j for _, j in nx.bfs_edges(edges, root, sort_neighbors=by_rank))]
    assert graph_search.cuthill_mckee(graph, peripheral=False).tolist() == expected


@given(lists=lists_of_people)
def test_a_peripheral_start_is_at_an_end_of_its_component(lists: list[list[int]]) -> None:
    groups = Groups.from_lists(lists, 10)
    edges = meeting_graph(groups)
    order = graph_search.cuthill_mckee(graph_search.group_graphs(groups).clique, peripheral=True)
    assert sorted(order) == list(range(10))
    for component in nx.connected_components(edges):
        places = np.flatnonzero([i in component for i in order])
        assert places[-1] - places[0] + 1 == len(component)
        part = edges.subgraph(component)
        least = min(component, key=lambda i: (graph_search.degrees(graph_search.group_graphs(groups).clique)[i], i))
        assert nx.eccentricity(part, int(order[places[0]])) >= nx.eccentricity(part, least)


@given(lists=lists_of_people, order=st.permutations(range(10)), mean=st.booleans())
def test_a_sweep_moves_everybody_to_the_middle_of_their_neighbours(
    lists: list[list[int]], order: list[int], mean: bool
) -> None:
    groups = Groups.from_lists(lists, 10)
    graph = graph_search.group_graphs(groups).star
    positions = inverse(np.array(order))
    middles = []
    for i in range(10):
        near = [i, *(j for steps in graph for j in neighbours(steps, i))]
        places = positions[near]
        middles.append((places.mean() if mean else (places.min() + places.max())).item())
    expected = sorted(range(10), key=lambda i: (middles[i], positions[i]))
    assert barycenter_sweep(graph, np.array(order), mean=mean).tolist() == expected


def neighbours(steps: graph_search.RowAdjacency, i: int) -> list[int]:
    """Everybody whom these steps lead to, with repetitions."""
    rows = steps.rows[steps.rows_from[i] : steps.rows_to[i]]
    return [int(j) for g in rows for j in steps.people[steps.people_from[g] : steps.people_to[g]]]


def test_hidden_lines_are_found_again() -> None:
    """Windows of equal size have one optimal order up to direction, and the bound says so."""
    rng = np.random.default_rng(4)
    for width in (3, 8, 20):
        line = rng.permutation(200)
        groups = Groups.from_lists([line[k : k + width].tolist() for k in range(200 - width + 1)], 200)
        best = best_order(groups)
        assert best.optimal and best.width == best.width_bound == width - 1


def test_axes_sort_by_the_coordinate_and_the_widest_direction() -> None:
    rng = np.random.default_rng(2)
    points = rng.random((50, 2)) * (1, 10)
    points[:2] = [[0.5, 3.0], [0.5, 1.0]]
    assert (np.diff(points[sort_along_axis(points, 1), 1]) >= 0).all()
    assert sort_along_axis(np.array([[1.0, 3.0], [1.0, 1.0], [0.0, 2.0]]), 0).tolist() == [2, 1, 0]
    turned = points @ np.array([[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]])
    order = sort_along_principal_axis(turned)
    agreement = np.corrcoef(inverse(order), points[:, 1])[0, 1]
    assert abs(agreement) > 0.98


def test_the_fiedler_order_of_a_path_is_the_path() -> None:
    line = np.random.default_rng(3).permutation(300)
    groups = Groups.from_graph(np.column_stack((line[:-1], line[1:])))
    order = fiedler_order(groups, groups.components())
    assert order.tolist() in (line.tolist(), line[::-1].tolist())


@pytest.mark.exhaust
def test_components_get_the_order_that_is_best_for_each() -> None:
    rng = np.random.default_rng(5)
    points = rng.random((400, 2))
    points[:200, 0] /= 20  # two strips across each other, far apart
    points[200:] = points[200:] / (1, 20) + 50
    groups = Groups.within_radius(points, 0.1)
    best = best_order(groups, points=points)
    single = min(row["sensitivity"] for row in best.candidates if row["sensitivity"] is not None)
    assert best.sensitivity <= single
    assert best.sensitivity == largest(groups, best.order)


@pytest.mark.exhaust
@pytest.mark.parametrize("family", FAMILIES)
def test_the_result_is_the_same_every_time_and_below_breadth_first(family: str) -> None:
    instance = FAMILIES[family](400, 7)
    one, two = (best_order(instance.groups, points=instance.points) for _ in range(2))
    np.testing.assert_array_equal(one.order, two.order)
    if instance.groups.components().max() == 0:
        assert one.baseline == largest(instance.groups, breadth_first(instance.groups))
    assert one.candidates == two.candidates and one.name == two.name
    assert one.sensitivity <= largest(instance.groups, breadth_first(instance.groups))
    tried = candidates(instance.groups, instance.points)
    assert [each.name for each in tried] == [row["name"] for row in one.candidates if not row["note"]]
    for each in tried:
        assert each.sensitivity == largest(instance.groups, each.order) >= one.sensitivity
    quick = candidates(instance.groups, instance.points, refine=False)
    assert [each.name for each in quick] == [each.name for each in tried if "refined" not in each.name]


def test_one_person_and_nobody_in_a_group_have_an_order() -> None:
    assert best_order(Groups.from_lists([], 1)).order.tolist() == [0]
    alone = best_order(Groups.from_lists([[2]], 4))
    assert (alone.order.tolist(), alone.sensitivity, alone.width_bound) == ([0, 1, 2, 3], 0, 0)
    assert best_order(Groups.from_labels([3, 1, 2])).sensitivity == 0


def test_points_of_other_people_are_refused() -> None:
    with pytest.raises(DataError, match="coordinates of 3 people, got 2"):
        best_order(Groups.from_lists([[0, 1]], 3), points=[[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.exhaust
def test_what_is_skipped_says_why() -> None:
    groups = FAMILIES["square"](2500, 1).groups
    notes = {row["name"]: row["note"] for row in best_order(groups).candidates}
    assert notes["Fiedler"] == "skipped: 2,500 people in groups, above 2,000"
