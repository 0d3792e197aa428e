"""Groups are the distinct sets that their definitions name, however they are stored."""

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from tests.shuffle.test_reference import naive_search

from dovetail.core.errors import DataError, DovetailError, ParameterError, UnsupportedError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.neighbours import EARTH_RADIUS, chord
from dovetail.shuffle.fitting.reference_orders import breadth_first_order as breadth_first
from dovetail.shuffle.sampling.permutations import inverse

Sets = set[frozenset[int]]
plane = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=14)
lists_of_people = st.lists(st.lists(st.integers(0, 7), max_size=6), max_size=8)


def as_sets(groups: Groups) -> Sets:
    found = [frozenset(members.tolist()) for members in groups]
    assert len(set(found)) == len(found) == len(groups), "groups are listed once"
    return set(found)


def of_two(sets: list[set[int]]) -> Sets:
    return {frozenset(group) for group in sets if len(group) >= 2}


@given(
    labels=st.lists(st.integers(-5, 5), min_size=1, max_size=20), radius=st.none() | st.sampled_from([0, 1, 2.5, 20])
)
def test_label_groups_hold_whoever_is_near_enough(labels: list[int], radius: float | None) -> None:
    reach = 0 if radius is None else radius
    naive = of_two([{j for j, b in enumerate(labels) if abs(a - b) <= reach} for a in labels])
    assert as_sets(Groups.from_labels(labels, radius)) == naive


@given(labels=st.lists(st.integers(0, 30).map(lambda k: k / 10), min_size=1, max_size=20), radius=st.integers(0, 9))
def test_label_windows_use_the_rounded_difference_itself(labels: list[float], radius: int) -> None:
    """0.3 - 0.1 > 0.2 in doubles; the window must say what |t_i - t_j| <= r says."""
    reach = radius / 10
    naive = of_two([{j for j, b in enumerate(labels) if abs(a - b) <= reach} for a in labels])
    assert as_sets(Groups.from_labels(labels, reach)) == naive


@given(points=plane, radius=st.sampled_from([0.0, 1.0, 1.5, 2.0, 9.0]))
def test_balls_hold_whoever_is_near_enough(points: list[tuple[int, int]], radius: float) -> None:
    where = np.array(points, dtype=float)
    near = np.linalg.norm(where[:, None] - where, axis=2) <= radius
    naive = of_two([set(np.flatnonzero(row).tolist()) for row in near])
    assert as_sets(Groups.within_radius(where, radius)) == naive


@given(points=plane, data=st.data())
def test_nearest_takes_the_owner_first_and_breaks_ties_by_index(points: list[tuple[int, int]], data: Any) -> None:
    k = data.draw(st.integers(1, len(points)))
    where = np.array(points)
    naive = []
    for i in range(len(points)):
        squares = ((where - where[i]) ** 2).sum(axis=1)
        naive.append(set(sorted(range(len(points)), key=lambda j: (squares[j], j != i, j))[:k]))
    assert as_sets(Groups.nearest(where, k)) == of_two(naive)


@pytest.mark.exhaust
@given(points=plane, data=st.data())
def test_everybody_may_have_a_radius_of_their_own(points: list[tuple[int, int]], data: Any) -> None:
    reach = data.draw(st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.5]), min_size=len(points), max_size=len(points)))
    where = np.array(points, dtype=float)
    near = np.linalg.norm(where[:, None] - where, axis=2) <= np.array(reach)[:, None]
    naive = of_two([set(np.flatnonzero(row).tolist()) for row in near])
    groups = Groups.within_radius(where, reach)
    assert as_sets(groups) == naive and groups.owned_by_member.all()
    line = np.abs(where[:, :1] - where[:, 0]) <= np.array(reach)[:, None]
    on_line = Groups.within_radius(where[:, 0], reach)
    assert as_sets(on_line) == of_two([set(np.flatnonzero(row).tolist()) for row in line]) and on_line.contiguous
    listed = owned([set(np.flatnonzero(row).tolist()) for row in line])
    assert breadth_first(on_line).tolist() == breadth_first(listed).tolist()


def owned(sets: list[set[int]]) -> Groups:
    """Group i belongs to person i."""
    return Groups.from_lists([[i, *sorted(group)] for i, group in enumerate(sets)], len(sets))


@pytest.mark.exhaust
@given(points=plane, metric=st.sampled_from(["cityblock", "chebyshev", "sqeuclidean", "canberra", "seuclidean"]))
@settings(max_examples=50)
def test_other_metrics_mean_what_scipy_says(points: list[tuple[int, int]], metric: str) -> None:
    where = np.array([(0, 0), (5, 5), *points], dtype=float) + 1.0
    near = squareform(pdist(where, metric)) <= 1.0
    naive = of_two([set(np.flatnonzero(row).tolist()) for row in near])
    assert as_sets(Groups.within_radius(where, 1.0, metric=metric)) == naive


@given(
    points=st.lists(st.tuples(st.floats(-90, 90), st.floats(-400, 400)), min_size=1, max_size=12),
    radius=st.sampled_from([0.0, 1e3, 1e6, 5e6, 1.5e7, 3e7]),
)
def test_haversine_is_the_distance_along_the_globe(points: list[tuple[float, float]], radius: float) -> None:
    """Pairs whose distance is within a micrometre of the radius may go either way."""
    latitude, longitude = np.radians(np.array(points)).T
    between = np.sin((latitude[:, None] - latitude) / 2) ** 2
    between += np.cos(latitude[:, None]) * np.cos(latitude) * np.sin((longitude[:, None] - longitude) / 2) ** 2
    apart = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(between, 1.0)))
    antipodes = apart > 2e7  # arcsin is steep there
    if (np.abs(apart - radius) < np.where(antipodes, 10.0, 1e-2))[~np.eye(len(points), dtype=bool)].any():
        return
    naive = of_two([set(np.flatnonzero(row).tolist()) for row in apart <= radius])
    assert as_sets(Groups.within_radius(points, radius, metric="haversine")) == naive


def test_the_globe_has_no_seams() -> None:
    seam = Groups.within_radius([[10.0, 180.0], [10.0, -180.0]], 0.0, metric="haversine")
    pole = Groups.within_radius([[90.0, 13.0], [90.0, -100.0]], 0.0, metric="haversine")
    assert seam.largest == pole.largest == 2
    degree = np.pi * EARTH_RADIUS / 180
    equator = [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]
    assert Groups.within_radius(equator, degree * 1.0001, metric="haversine").sizes.tolist() == [2, 3, 2]
    assert len(Groups.within_radius(equator, degree * 0.9999, metric="haversine")) == 0
    quarter = [[0.0, 0.0], [0.0, 90.0]]
    assert len(Groups.within_radius(quarter, degree * 89.0, metric="haversine")) == 0
    assert chord(degree * 90.0) == pytest.approx(np.sqrt(2.0)) and chord(degree * 180.1) == np.inf


edge_lists = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=14)


@given(edges=edge_lists, hops=st.integers(1, 4), closed=st.booleans())
def test_neighbourhoods_hold_whoever_is_few_steps_away(edges: list[tuple[int, int]], hops: int, closed: bool) -> None:
    graph = nx.empty_graph(9)
    graph.add_edges_from(edges)
    reached = [nx.single_source_shortest_path_length(graph, i, cutoff=hops) for i in range(9)]
    sets = [{j for j in found if closed or j != i} for i, found in enumerate(reached)]
    groups = Groups.from_graph(edges, hops=hops, n=9, closed=closed)
    assert as_sets(groups) == of_two(sets)
    assert groups == Groups.from_graph(graph, hops=hops, closed=closed)
    assert groups == Groups.from_graph(nx.to_scipy_sparse_array(graph), hops=hops, closed=closed)
    assert groups.owned_by_member.all() == (closed or len(groups) == 0)
    assert breadth_first(groups).tolist() == naive_search([(i, group) for i, group in enumerate(sets)], 9)


def test_the_number_of_people_may_follow_from_the_edges() -> None:
    assert Groups.from_graph(np.array([[0, 3]])).n == 4
    assert len(Groups.from_graph([], n=1)) == 0 and Groups.from_graph([], n=1).n == 1


@given(one=lists_of_people, two=lists_of_people)
def test_a_union_holds_the_groups_of_all(one: list[list[int]], two: list[list[int]]) -> None:
    first, second = Groups.from_lists(one, 8), Groups.from_lists(two, 8)
    joined = Groups.union(first, second)
    assert as_sets(joined) == as_sets(first) | as_sets(second)
    assert joined.covers(first) and joined.covers(second) and joined.dropped == first.dropped + second.dropped
    assert Groups.union(first) == first


@pytest.mark.exhaust
@given(
    labels=st.lists(st.integers(-5, 5), min_size=1, max_size=20),
    radii=st.lists(st.integers(0, 6), min_size=1, max_size=3),
)
def test_unions_of_windows_stay_windows(labels: list[int], radii: list[int]) -> None:
    parts = [Groups.from_labels(labels, radius) for radius in radii]
    joined = Groups.union(*parts)
    assert joined.contiguous and as_sets(joined) == set().union(*map(as_sets, parts))
    listed = [Groups.from_lists([g.tolist() for g in part], len(labels)) for part in parts]
    assert joined == Groups.union(*listed)


@given(lists=lists_of_people)
def test_the_summary_counts_what_is_there(lists: list[list[int]]) -> None:
    groups = Groups.from_lists(lists, 8)
    facts = groups.summary()
    assert facts["n"] == 8 and facts["groups"] == len(groups) and facts["dropped"] == groups.dropped
    assert facts["entries"] == sum(map(len, as_sets(groups))) and facts["largest"] == groups.largest
    assert facts["components"] == groups.components().max() + 1 and facts["ownerless"] == 0
    assert facts["atoms"] == len({frozenset(s for s in as_sets(groups) if i in s) or i for i in range(8)})
    assert facts["memory_bytes"] >= 4 * facts["entries"] and all(
        type(value) in (int, float) for value in facts.values()
    )


@given(lists=lists_of_people, order=st.permutations(range(8)))
def test_relabelling_renames_people_and_nothing_else(lists: list[list[int]], order: list[int]) -> None:
    groups = Groups.from_lists(lists, 8)
    renamed = groups.relabel(np.array(order))
    assert {frozenset(order[k] for k in group) for group in as_sets(renamed)} == as_sets(groups)
    assert renamed.relabel(inverse(np.array(order))) == groups


@given(lists=lists_of_people)
def test_lists_are_taken_as_sets(lists: list[list[int]]) -> None:
    groups = Groups.from_lists(lists, 8)
    assert as_sets(groups) == of_two([set(group) for group in lists])
    assert groups.dropped == len({frozenset(group) for group in lists if len(set(group)) < 2})


@given(lists=lists_of_people)
def test_what_is_derived_agrees_with_its_definition(lists: list[list[int]]) -> None:
    groups = Groups.from_lists(lists, 8)
    sets = as_sets(groups)
    members = [person for group in sets for person in group]
    assert groups.disjoint == (len(members) == len(set(members)))
    assert set(np.flatnonzero(groups.grouped).tolist()) == set(members)
    assert groups.largest == max((len(group) for group in sets), default=0)
    assert sorted(groups.sizes.tolist()) == sorted(len(group) for group in sets)
    graph = nx.Graph()
    graph.add_nodes_from(members)
    for group in sets:
        nx.add_path(graph, list(group))
    found = groups.components()
    assert {frozenset(part) for part in nx.connected_components(graph)} == {
        frozenset(np.flatnonzero(found == c).tolist()) for c in range(found.max() + 1)
    }


@pytest.mark.exhaust
@given(labels=st.lists(st.integers(0, 9), min_size=1, max_size=15), radius=st.integers(0, 3))
def test_windows_and_lists_of_the_same_groups_are_the_same(labels: list[int], radius: int) -> None:
    windows = Groups.from_labels(labels, radius)
    lists = Groups.from_lists([group.tolist() for group in windows], len(labels))
    assert windows == lists and hash(windows) == hash(lists) and windows.disjoint == lists.disjoint
    assert windows.covers(lists) and lists.covers(windows)
    np.testing.assert_array_equal(windows.grouped, lists.grouped)
    assert len(set(zip(windows.components().tolist(), lists.components().tolist(), strict=True))) == len(
        set(windows.components().tolist())
    )


@pytest.mark.exhaust
@settings(max_examples=200)
@given(outer=lists_of_people, inner=lists_of_people)
def test_covers_means_that_every_group_lies_inside_one(outer: list[list[int]], inner: list[list[int]]) -> None:
    wide, narrow = Groups.from_lists(outer, 8), Groups.from_lists(inner, 8)
    assert wide.covers(narrow) == all(any(b <= a for a in as_sets(wide)) for b in as_sets(narrow))


@given(labels=st.lists(st.integers(0, 6), min_size=8, max_size=8), radius=st.integers(0, 2), inner=lists_of_people)
def test_windows_cover_what_lies_inside_one(labels: list[int], radius: int, inner: list[list[int]]) -> None:
    wide, narrow = Groups.from_labels(labels, radius), Groups.from_lists(inner, 8)
    assert wide.covers(narrow) == all(any(b <= a for a in as_sets(wide)) for b in as_sets(narrow))


def test_a_grouping_covers_only_groupings_of_the_same_people() -> None:
    groups = Groups.from_labels([1, 1, 2])
    assert not groups.covers(Groups.from_labels([1, 1])) and not groups.covers("ages")
    assert groups != Groups.from_labels([1, 1]) and groups != "ages"


def test_order_guarantees_compose_for_equal_groups() -> None:
    one = OrderPrivacy(1.0, Groups.from_labels([1, 2, 3, 9], radius=1))
    two = OrderPrivacy(2.0, Groups.from_lists([[0, 1], [2, 1], [2, 1, 0]], 4))
    assert one.implies(OrderPrivacy(1.0, Groups.from_lists([[2, 1]], 4)))
    with pytest.raises(UnsupportedError, match="same groups"):
        one.compose(OrderPrivacy(2.0, Groups.from_lists([[0, 1]], 4)))
    assert one.compose(OrderPrivacy(2.0, Groups.from_labels([1, 2, 3, 9], radius=1))).alpha == 3.0
    assert two.groups != one.groups or two.compose(one).alpha == 3.0


def test_one_coordinate_is_a_label() -> None:
    points = [0.0, 0.4, 1.1, 5.0]
    assert Groups.within_radius(points, 0.7) == Groups.from_labels(points, 0.7)
    assert Groups.within_radius(np.array(points)[:, None], 0.7) == Groups.from_labels(points, 0.7)


def test_labels_may_be_words_and_dates() -> None:
    assert as_sets(Groups.from_labels(["b", "a", "b"])) == {frozenset({0, 2})}
    assert as_sets(Groups.from_labels(np.array(["2020-01-01", "2021-01-01", "2020-01-01"], "M8[D]"))) == {
        frozenset({0, 2})
    }


@pytest.mark.exhaust
def test_a_million_labels_are_kept_as_windows() -> None:
    groups = Groups.from_labels(np.arange(1_000_000) % 1000, radius=100)
    assert (groups.n, len(groups), groups.largest) == (1_000_000, 1000, 201_000)
    assert groups.rows.people.nbytes + groups.rows.starts.nbytes + groups.rows.stops.nbytes < 5_000_000
    assert not groups.disjoint and groups.components().max() == 0
    with pytest.raises(UnsupportedError, match="368,770,000 members"):
        Groups.from_labels(np.arange(1_000_000) % 1000, radius=205).rows.materialize()


def test_crowded_sites_share_one_group() -> None:
    points = np.repeat(np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]]), 1000, axis=0)
    groups = Groups.within_radius(points, 1.0)
    assert len(groups) == 2 and groups.largest == 2000 and groups.disjoint


def test_the_repr_is_short() -> None:
    assert repr(Groups.from_labels(np.arange(5000) // 2)) == "Groups(n=5,000, groups=2,500, largest=2)"


ON_SPHERE = [[45.0, 7.0], [90.5, 7.0]]
FAR = 1 << 60
BAD: list[tuple[Callable[[], object], type[DovetailError], str]] = [
    (lambda: Groups.from_labels([1.0, np.nan, np.nan]), DataError, "got 2 that are not; first at index 1"),
    (lambda: Groups.from_labels(["a", None]), DataError, "got 1 that are not; first at index 1: None"),
    (lambda: Groups.from_labels([]), DataError, "at least one label"),
    (lambda: Groups.from_labels([[1, 2], [3, 4]]), DataError, "shape"),
    (lambda: Groups.from_labels(np.array([1, "a"], dtype=object)), DataError, "one kind"),
    (lambda: Groups.from_labels(["a", "b"], radius=1), DataError, "must be numbers"),
    (lambda: Groups.from_labels([1, FAR], radius=1), DataError, "2\\^53"),
    (lambda: Groups.from_labels([1, 2], radius=-1), ParameterError, "`radius` must be a number, at least 0, got -1"),
    (lambda: Groups.from_labels([1, 2], radius=float("nan")), ParameterError, "`radius`"),
    (lambda: Groups.within_radius([[0.0, np.inf], [1.0, 1.0]], 1.0), DataError, "first at index 0"),
    (lambda: Groups.within_radius(np.zeros((0, 2)), 1.0), DataError, "at least one person"),
    (lambda: Groups.within_radius(np.zeros((2, 2, 2)), 1.0), DataError, "shape"),
    (lambda: Groups.within_radius([["x", "y"]], 1.0), DataError, "must be numbers"),
    (lambda: Groups.within_radius(np.zeros((2, 2)), -0.5), ParameterError, "`radius`"),
    (
        lambda: Groups.nearest(np.zeros((3, 2)), 4),
        ParameterError,
        "`k` must be a whole number, at least 1 and at most 3",
    ),
    (lambda: Groups.nearest(np.zeros((3, 2)), 0), ParameterError, "`k`"),
    (lambda: Groups.from_lists([[0, 3], [-1, 1]], 3), DataError, "people 0..2, got 2 that are not; first 3"),
    (lambda: Groups.from_lists([[0.5, 1]], 3), DataError, "whole numbers"),  # type: ignore[list-item]
    (lambda: Groups.from_lists([[0]], 0), ParameterError, "`n`"),
    (
        lambda: Groups.within_radius(np.random.default_rng(1).random((20_000, 2)), 9.0),
        UnsupportedError,
        "400,000,000",
    ),
    (lambda: Groups.nearest(np.zeros((20_000, 2)), 20_000), UnsupportedError, "400,000,000"),
    (lambda: Groups.within_radius(np.zeros((3, 2)), [1.0, -1.0, 1.0]), DataError, "first at index 1: -1.0"),
    (lambda: Groups.within_radius(np.zeros((3, 2)), [1.0, np.nan, 1.0]), DataError, "first at index 1: nan"),
    (lambda: Groups.within_radius(np.zeros((3, 2)), [1.0, 1.0]), DataError, "one number or 3 numbers"),
    (lambda: Groups.within_radius(ON_SPHERE, 1.0, metric="haversine"), DataError, "index 1: .90.5, 7.0."),
    (lambda: Groups.within_radius(np.zeros((3, 3)), 1.0, metric="haversine"), DataError, "got 3 columns"),
    (lambda: Groups.within_radius(np.zeros((3, 2)), 1.0, metric="astral"), ParameterError, "`metric`"),
    (lambda: Groups.within_radius(np.zeros((3, 2)), 1.0, metric="cosine"), DataError, "got none for some"),
    (lambda: Groups.within_radius(np.zeros((40_000, 2)), 1.0, metric="cosine"), UnsupportedError, "at most 30,000"),
    (lambda: Groups.from_graph([[0, 1], [1, 5]], n=3), DataError, "people 0..2, got 1 that do not; first at index 1"),
    (lambda: Groups.from_graph([[0, -1]], n=3), DataError, "first at index 0"),
    (lambda: Groups.from_graph([[0.0, 1.0]]), DataError, "whole numbers"),
    (lambda: Groups.from_graph([[0, 1, 2]]), DataError, "pairs of people"),
    (lambda: Groups.from_graph([]), DataError, "at least one pair"),
    (lambda: Groups.from_graph([], n=0), ParameterError, "`n`"),
    (lambda: Groups.from_graph([[0, 1]], hops=0), ParameterError, "`hops`"),
    (lambda: Groups.from_graph(nx.Graph([("a", "b")])), DataError, "nodes 0..1"),
    (lambda: Groups.from_graph(nx.to_scipy_sparse_array(nx.path_graph(3)), n=4), DataError, "square matrix"),
    (lambda: Groups.from_graph(nx.star_graph(20_000), hops=2), UnsupportedError, "members when listed"),
    (Groups.union, DataError, "at least one grouping"),
    (lambda: Groups.union(Groups.from_lists([], 2), Groups.from_lists([], 3)), DataError, "n = 2, 3"),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD, ids=[str(i) for i in range(len(BAD))])
def test_bad_input_is_refused_in_one_line(make: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


ENDS = np.array([[1e308, -1e308], [0.0, 1e-300], [1.0, 1.0], [1.0, 0.5]])


@pytest.mark.parametrize(
    "make", [lambda points: Groups.within_radius(points, 1.0), lambda points: Groups.nearest(points, 2)]
)
def test_coordinates_whose_distances_are_no_numbers_are_refused(make: Callable[[Any], Groups]) -> None:
    with pytest.raises(DataError, match=r"`points` must be at most 1e\+100 in size.* got 1 that are not"):
        make(ENDS)
    with pytest.raises(DataError, match="`points` must span 0 or at least 1e-100, got 1e-300"):
        make([[0.0, 0.0], [1e-300, 1e-300]])
    assert make(ENDS[1:]).n == 3  # 1e-300 beside 1 is 0, as in every sum with it


def test_a_radius_whose_square_vanishes_is_refused() -> None:
    with pytest.raises(DataError, match="`radius` must be 0 or at least 1e-100, got 1e-300"):
        Groups.within_radius(ENDS[1:], 1e-300)
    with pytest.raises(DataError, match="`radius` must be 0 or at least 1e-100, got 1e-300"):
        Groups.within_radius(ENDS[1:], [0.0, 1e-300, 1.0])
    assert len(Groups.within_radius(ENDS[[2, 2, 3]], 0.0)) == 1


def test_windows_of_the_largest_numbers_do_not_overflow() -> None:
    assert Groups.from_labels([1e308, -1e308, 0.0, 1e-300], radius=1e308).largest == 4
    assert Groups.from_labels([1.7e308, -1.7e308, 0.0, 1e-300], radius=1e308).largest == 2


@pytest.mark.parametrize("labels", [[0.1 + 0.2, 0.3, 0.3], ["0.30000000000000004", "0.3", "0.3"]])
def test_labels_that_rounding_alone_tells_apart_are_refused(labels: list[Any]) -> None:
    for same in (labels, np.array(labels, dtype=object)):
        with pytest.raises(DataError, match=r"than rounding, got 0\.3 and 0\.30000000000000004: round"):
            Groups.from_labels(same)
    if isinstance(labels[0], float):
        with pytest.raises(DataError, match="more than rounding"):
            Groups.from_labels(labels, radius=0.0)
        assert Groups.from_labels(labels, radius=1e-9).largest == 3


def test_neighbouring_labels_that_are_no_rounding_are_kept() -> None:
    assert len(Groups.from_labels([0.3, 0.3001] * 2)) == 2
    assert len(Groups.from_labels([2.0**53, 2.0**53 + 2] * 2)) == 2  # numbers of people, say
    assert len(Groups.from_labels(["0.3", "0.30", "x"] * 2)) == 3
