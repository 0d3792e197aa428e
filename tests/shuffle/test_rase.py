"""RASE's shuffler keeps its promise to the groups that it names, and says what is left for the contributors' own."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shuffle.symmetric import everything, index, largest_change, log_law
from tests.statistics import expect_broken, expect_law, rng_of

from dovetail.core.entropy import simulation, system_entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.stages import Shuffler
from dovetail.shuffle.fitting.components import agglomerate, cut_into_groups, equal_blocks
from dovetail.shuffle.fitting.fitted_shuffler import sort_to_roster
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.sensitivity import kendall, largest_theta
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.rase import RASE, Sattolo
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

OWN = Groups.from_lists([[4, 0, 2], [1, 3]], 5)
ALL: list[Shuffler] = [*RASE.examples(), *Sattolo.examples()]
over_all = pytest.mark.parametrize("shuffler", ALL, ids=lambda s: f"{s!r:.90}")


@pytest.mark.exhaust
@over_all
def test_draws_follow_a_published_law_that_sums_to_one(shuffler: Shuffler, request: pytest.FixtureRequest) -> None:
    law, rng = np.exp(log_law(shuffler)), rng_of(request.node.nodeid)
    assert math.fsum(law) == pytest.approx(1.0, abs=1e-13)
    perms = np.array([shuffler.permutation(rng) for _ in range(20_000)])
    expect_law(np.bincount(index(perms), minlength=math.factorial(shuffler.n)), law)


@pytest.mark.parametrize("shuffler", RASE.examples(), ids=lambda s: f"{s!r:.90}")
def test_both_promises_hold_and_the_one_beside_is_exact(shuffler: RASE) -> None:
    law = log_law(shuffler)
    everybody = Groups.from_lists([range(5)], 5)
    promise = shuffler.guarantee
    for groups, alpha in ((promise.groups or everybody, promise.alpha), (shuffler.groups, shuffler.own_alpha)):
        assert isinstance(groups, Groups)
        true = max(largest_change(law, tuple(group.tolist()), shuffler.n) for group in groups)
        assert true <= alpha * (1 + 1e-12) + 1e-13  # rounding of the log weights
    if isinstance(shuffler.mechanism, Mallows):
        assert true == pytest.approx(shuffler.own_alpha, rel=1e-12)
        exact = Fraction(shuffler.mechanism.theta) * shuffler.summary()["own_sensitivity"]
        assert 0 <= Fraction(shuffler.own_alpha) - exact <= Fraction(math.ulp(shuffler.own_alpha))


@over_all
def test_mixing_equals_enumeration(shuffler: Shuffler) -> None:
    labels = np.arange(shuffler.n) % 2
    weights, perms = np.exp(log_law(shuffler)), everything(shuffler.n)
    truth = [[weights @ (labels[perms[:, labels == a]] == b).mean(axis=1) for b in (0, 1)] for a in (0, 1)]
    np.testing.assert_allclose(shuffler.mixing(labels), truth, atol=1e-12)


def test_the_default_shuffles_contributors_inside_their_own_groups() -> None:
    shuffler = RASE.fit(OWN, alpha=3.0)
    assert shuffler.mechanism == WithinGroups(OWN)
    assert (shuffler.guarantee.alpha, shuffler.guarantee.groups) == (0.0, OWN)
    assert shuffler.guarantee.protects and shuffler.own_alpha == 0.0
    np.testing.assert_allclose(shuffler.mixing(np.array([0, 1, 0, 1, 0])), np.eye(2))


def test_contributors_in_no_group_with_another_are_promised_nothing() -> None:
    alone = RASE.fit(Groups.from_lists([[0], [1]], 2))
    assert not alone.guarantee.protects and "vacuously" in alone.guarantee.source
    np.testing.assert_array_equal(alone.permutation(system_entropy()), [0, 1])


@given(data=st.data(), n=st.integers(2, 7))
def test_the_branch_rule_of_algorithm_2(data: st.DataObject, n: int) -> None:
    k = data.draw(st.integers(1, n))
    labels = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    alpha = data.draw(st.floats(0.0, 30.0))
    order = np.array(data.draw(st.permutations(range(n))))
    groups = Groups.from_labels(labels)
    shuffler = RASE.fit(groups, k=k, alpha=alpha, refine="blocks", reference=order)
    delta = max((kendall(np.argsort(order)[members]) for members in groups), default=0)
    width = math.ceil(n / k) - 1
    if alpha <= delta <= 10 * alpha and k < n:
        assert isinstance(shuffler.mechanism, Mallows)
        assert shuffler.mechanism.width == width
        assert shuffler.mechanism.theta == largest_theta(alpha, width * (width + 1) // 2)
        np.testing.assert_array_equal(shuffler.mechanism.order, order)
    else:
        assert shuffler.mechanism == Uniform(n) and shuffler.guarantee.alpha == 0.0


def test_the_guarantee_names_the_refined_partition_and_what_is_left_for_the_own_groups() -> None:
    shuffler = RASE.fit(OWN, k=2, alpha=3.0, refine="blocks", reference=[0, 1, 2, 3, 4])
    assert shuffler.guarantee.groups == Groups.from_lists([[0, 1, 2], [3, 4]], 5) != OWN
    assert shuffler.own_alpha == 7.0  # theta = 3 / 3, positions 0 2 4
    assert "alpha' = 7" in shuffler.guarantee.source and "blocks" in shuffler.guarantee.source


def test_equal_blocks_are_optimal_among_all_partitions() -> None:
    """With the order fixed, no partition of up to 8 places into k groups has a smaller sensitivity."""
    for n in range(1, 9):
        best: dict[int, int] = {}
        for labels in restricted_growth(n):
            k = max(labels) + 1
            delta = max(kendall([i for i in range(n) if labels[i] == g]) for g in range(k))
            best[k] = min(best.get(k, delta), delta)
        for k, least in best.items():
            width = math.ceil(n / k) - 1
            assert delta_of(equal_blocks(n, k)) == least == width * (width + 1) // 2


def test_agglomerative_clustering_merges_as_a_search_of_all_pairs_does() -> None:
    for n, k in product(range(1, 13), range(1, 13)):
        if k > n:
            continue
        clusters = [(i, i) for i in range(n)]
        while len(clusters) > k:
            ends = [(min(a[0], b[0]), max(a[1], b[1]), a, b) for a, b in combinations(clusters, 2)]
            low, high, a, b = min(ends, key=lambda pair: (pair[1] - pair[0], pair[0]))
            clusters = sorted([c for c in clusters if c not in (a, b)] + [(low, high)])
        assert agglomerate(n, k).tolist() == [high - low + 1 for low, high in clusters]
        assert delta_of(equal_blocks(n, k)) <= delta_of(agglomerate(n, k))
    assert delta_of(agglomerate(8, 3)) == 6 and delta_of(equal_blocks(8, 3)) == 3


def test_blocks_are_cut_along_the_reference_order() -> None:
    groups = cut_into_groups(np.array([3, 1, 4, 0, 2]), equal_blocks(5, 2))
    assert groups == Groups.from_lists([[3, 1, 4], [0, 2]], 5)


def test_sattolo_s_loop_draws_each_cyclic_permutation_once_and_nothing_else() -> None:
    """The printed loop, all its choices enumerated: the law of `Sattolo` and of no uniform shuffle."""
    for n in range(2, 6):
        seen = Counter(swapped(n, choice) for choice in product(*(range(i + 1, n) for i in range(n - 1))))
        law = {tuple(pi.tolist()): Sattolo(n).log_weight(pi) for pi in everything(n)}
        assert set(seen.values()) == {1}
        assert seen.keys() == {pi for pi, weight in law.items() if weight > -math.inf}
        assert all(math.exp(law[pi]) == pytest.approx(1 / math.factorial(n - 1)) for pi in seen)
        assert largest_change(log_law(Sattolo(n)), tuple(range(n)), n) == math.inf


def test_a_cyclic_shuffle_is_no_uniform_shuffle(request: pytest.FixtureRequest) -> None:
    rng = rng_of(request.node.nodeid)
    perms = np.array([Sattolo(4).permutation(rng) for _ in range(2_000)])
    expect_broken(np.bincount(index(perms), minlength=24), np.full(24, 1 / 24))


def test_sattolo_promises_nothing_and_rase_refuses_it() -> None:
    promise = Sattolo(4).guarantee
    assert promise.alpha == math.inf and not promise.protects and "alpha is infinite" in promise.caveats[0]
    with pytest.raises(UnsupportedError, match="alpha is infinite"):
        RASE.fit(OWN, auxiliary="sattolo")
    with pytest.raises(ParameterError, match="`n` must be"):
        Sattolo(1)


@pytest.mark.parametrize("shuffler", RASE.examples(), ids=lambda s: f"{s!r:.90}")
def test_the_order_of_arrival_leaves_no_trace(shuffler: RASE) -> None:
    who = np.array([3, 0, 4, 1]) if shuffler.n == 5 else np.array([3, 0, 1])
    released = []
    for seats in permutations(who.tolist()):
        present, batch = sort_to_roster(seats, 10.0 * np.array(seats), n=shuffler.n)
        released.append(shuffler.restrict(present).shuffle(batch, simulation(5)).tolist())
    assert all(batch == released[0] for batch in released)
    assert sorted(released[0]) == sorted((10.0 * who).tolist())


def test_missing_contributors_keep_theta_and_alpha() -> None:
    shuffler = RASE.fit(OWN, k=2, alpha=3.0, refine="blocks", reference=[2, 4, 0, 1, 3])
    fewer = shuffler.restrict(np.array([True, True, False, True, True]))
    assert isinstance(shuffler.mechanism, Mallows) and isinstance(fewer.mechanism, Mallows)
    assert fewer.mechanism.theta == shuffler.mechanism.theta and fewer.guarantee.alpha == 3.0
    assert fewer.groups == Groups.from_lists([[3, 0], [1, 2]], 4)
    assert fewer.own_alpha <= shuffler.own_alpha
    assert "some are missing" in fewer.guarantee.source


def test_a_restricted_fleet_says_how_many_refined_groups_it_has() -> None:
    """Nine people in four blocks 3 2 2 2; some are missing, twice."""
    shuffler = RASE.fit(Groups.from_lists([range(9)], 9), k=4, alpha=20.0, refine="blocks", reference=range(9))
    assert isinstance(shuffler.mechanism, Mallows) and "20 <= 36" in shuffler.reason
    here = np.array([True, True, False, True, False, True, True, False, False])
    fewer = shuffler.restrict(here)
    assert (fewer.n, fewer.k, fewer.summary()["k"]) == (5, 3, 3) and "agglom" not in fewer.guarantee.source
    assert "holds for the blocks of 3" in fewer.guarantee.source
    assert fewer.reason == "Mallows: as fitted for the whole fleet"
    least = fewer.restrict(np.array([True, False, True, False, False]))
    assert (least.k, least.reason) == (2, fewer.reason)
    assert shuffler.restrict(np.ones(9, bool)).k == 4
    outside = RASE.fit(OWN, k=2, alpha=50.0, refine="blocks").restrict(np.array([True, True, False, True, True]))
    assert outside.mechanism == Uniform(4) and outside.k is outside.summary()["k"] is None
    assert outside.reason == "auxiliary: as fitted for the whole fleet"
    assert RASE.fit(OWN).restrict(np.array([True, True, False, True, True])).reason == ""


def test_a_graph_is_cut_into_its_connected_components() -> None:
    networkx = pytest.importorskip("networkx")
    path = networkx.Graph([(0, 3), (3, 1), (2, 4)])
    path.add_nodes_from(range(6))
    assert RASE.fit(path).groups == Groups.from_lists([[0, 1, 3], [2, 4]], 6)
    along = RASE.fit([[0, 3], [3, 1], [1, 2]], k=2, alpha=5.0, refine="blocks").mechanism
    assert isinstance(along, Mallows)
    near = {frozenset(pair) for pair in ((0, 3), (3, 1), (1, 2))}
    assert {frozenset(along.order[i : i + 2].tolist()) for i in (0, 2)} & near


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"refine": "blocks", "k": 6, "alpha": 1.0}, ParameterError, "`k` must be"),
        ({"refine": "blocks", "alpha": 1.0}, ParameterError, "`k` must be"),
        ({"refine": "blocks", "k": True, "alpha": 1.0}, ParameterError, "`k` must be"),
        ({"refine": "kmeans", "k": 2}, ParameterError, "`refine` must be"),
        ({"refine": ["blocks"], "k": 2}, ParameterError, "`refine` must be"),
        ({"k": 2}, ParameterError, "need `refine`"),
        ({"alpha": -1.0}, ParameterError, "`alpha` must be"),
        ({"alpha": math.nan}, ParameterError, "`alpha` must be"),
        ({"auxiliary": "knuth"}, ParameterError, "`auxiliary` must be"),
        ({"refine": "blocks", "k": 2, "reference": [0, 1]}, DataError, "`reference` must be"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        RASE.fit(OWN, **options)  # type: ignore[arg-type]


def test_overlapping_groups_are_refused_with_the_reason() -> None:
    with pytest.raises(UnsupportedError, match="needs disjoint groups"):
        RASE.fit(Groups.from_lists([[0, 1], [1, 2]], 3))


def test_no_rase_is_made_by_hand_for_overlapping_groups_either() -> None:
    with pytest.raises(UnsupportedError, match="RASE needs disjoint groups"):
        RASE(Groups.from_lists([[0, 1], [1, 2]], 3), Uniform(3))


def test_a_mechanism_that_does_not_cover_the_groups_is_refused() -> None:
    """By hand one could name any mechanism: alpha = 0 must not be promised of an order that is released."""
    own = Groups.from_lists([[0, 1, 2], [3, 4]], 5)
    with pytest.raises(ParameterError, match=r"`mechanism` must be a WithinGroups, Mallows or Uniform"):
        RASE(own, Identity(5))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"for the 5 people of the groups, got 4"):
        RASE(own, Uniform(4))
    with pytest.raises(ParameterError, match="a group is split in two"):
        RASE(own, WithinGroups(Groups.from_lists([[0, 1], [3, 4]], 5)))
    assert RASE(own, Uniform(5)).own_alpha == 0.0
    assert RASE(own, WithinGroups(Groups.from_lists([[0, 1, 2, 3, 4]], 5))).own_alpha == 0.0


@pytest.mark.parametrize(
    ("devices", "reports", "wanted"),
    [
        ([0, 0], [1, 2], "once a round"),
        ([0, 5], [1, 2], "`devices` must be 0..4; 1 are not, the first is 5"),
        ([-1], [1], "the first is -1"),
        ([0], [1, 2], "one whole number for each report"),
        ([0.0], [1], "one whole number for each report"),
    ],
)
def test_impossible_arrivals_are_refused(devices: list[int], reports: list[int], wanted: str) -> None:
    with pytest.raises(DataError, match=wanted):
        sort_to_roster(devices, reports, n=5)


def test_arrivals_of_nobody_say_so() -> None:
    with pytest.raises(DataError, match="at least one person, got nobody"):
        RASE.fit(OWN).restrict([False] * 5)


@over_all
def test_reports_survive_a_shuffle(shuffler: Shuffler) -> None:
    assert sorted(shuffler.shuffle(np.arange(shuffler.n), system_entropy()).tolist()) == list(range(shuffler.n))
    assert shuffler.summary()["shuffler"] == shuffler.name


def delta_of(sizes: np.ndarray) -> int:
    """Sensitivity of contiguous blocks of these sizes."""
    return max(int(size) * (int(size) - 1) // 2 for size in sizes)


def restricted_growth(n: int) -> list[list[int]]:
    """Every partition of 0..n-1, once, as labels."""
    rows = [[0]]
    for _ in range(n - 1):
        rows = [[*row, label] for row in rows for label in range(max(row) + 2)]
    return rows


def swapped(n: int, choice: tuple[int, ...]) -> tuple[int, ...]:
    """Lines 12-15 of Algorithm 2 for given choices of j."""
    items = list(range(n))
    for i, j in enumerate(choice):
        items[i], items[j] = items[j], items[i]
    return tuple(items)
