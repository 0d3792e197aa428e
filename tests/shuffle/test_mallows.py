"""Mallows is fitted from groups alone, has its limits where they belong and warns when it is nearly uniform."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.entropy import simulation, system_entropy
from dovetail.core.errors import DataError, ParameterError
from dovetail.shuffle.fitting.components import PartitionedOrder
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.sensitivity import largest_theta
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.sampling.mallows import draw_mallows

CHAIN = Groups.from_lists([[0, 1], [1, 2, 3]], 5)


@given(alpha=st.floats(0.0, 1e6), order=st.permutations(range(5)))
def test_theta_keeps_the_promise_in_exact_arithmetic(alpha: float, order: list[int]) -> None:
    for shuffler in (
        Mallows.single(CHAIN, alpha=alpha, reference=order),
        Mallows.fit(CHAIN, alpha=alpha, reference=order),
    ):
        assert Fraction(shuffler.theta) * shuffler.sensitivity <= Fraction(alpha)
    assert shuffler.guarantee.alpha == alpha and shuffler.guarantee.groups == CHAIN


def test_alpha_zero_is_the_uniform_shuffle() -> None:
    shuffler = Mallows.fit(CHAIN, alpha=0.0)
    assert shuffler.theta == 0.0 and shuffler.guarantee.protects
    assert shuffler.log_weight(range(5)) == pytest.approx(-math.log(24))  # person 4 is in no group
    assert Mallows.single(CHAIN, alpha=0.0).log_weight(range(5)) == pytest.approx(-math.log(120))


def test_alpha_infinity_leaves_the_order_and_promises_nothing() -> None:
    shuffler = Mallows.fit(CHAIN, alpha=math.inf)
    np.testing.assert_array_equal(shuffler.permutation(system_entropy()), np.arange(5))
    assert not shuffler.guarantee.protects and "nothing" in shuffler.guarantee.source


def test_without_groups_the_promise_is_vacuous_and_the_order_stays() -> None:
    shuffler = Mallows.fit(Groups.from_lists([[1], []], 4), alpha=0.5)
    np.testing.assert_array_equal(shuffler.permutation(system_entropy()), np.arange(4))
    assert shuffler.sensitivity == 0 and "vacuously" in shuffler.guarantee.source
    with pytest.raises(ZeroDivisionError):
        0.5 / shuffler.sensitivity  # theta as printed
    assert shuffler.summary()["components"] == 0


def test_one_person_is_a_batch() -> None:
    shuffler = Mallows.fit(Groups.from_labels([3]), alpha=1.0)
    assert shuffler.shuffle([7], system_entropy()).tolist() == [7] and shuffler.mixing(np.array([0])).tolist() == [
        [1.0]
    ]


@pytest.mark.parametrize("alpha", [-1.0, math.nan, "4", True])
def test_a_wrong_alpha_is_refused(alpha: float) -> None:
    with pytest.raises(ParameterError, match="`alpha` must be a number, at least 0"):
        Mallows.fit(CHAIN, alpha=alpha)


@pytest.mark.parametrize("order", [[0, 1, 2], [0, 0, 1, 2, 3], [0.0, 1.0, 2.0, 3.0, 4.0], [1, 2, 3, 4, 5]])
def test_a_wrong_reference_order_is_refused(order: list[int]) -> None:
    with pytest.raises(DataError, match="`reference`"):
        Mallows.fit(CHAIN, alpha=1.0, reference=order)


def test_the_summary_says_what_was_fitted() -> None:
    groups = Groups.from_labels(np.arange(1000), radius=5)
    summary = Mallows.fit(groups, alpha=5.5).summary()
    assert "warning" not in summary
    assert summary == {
        "shuffler": "mallows",
        "n": 1000,
        "alpha": 5.5,
        "width": 10,
        "sensitivity": 55,
        "paper_sensitivity": 55,
        "theta": math.nextafter(0.1, 0.0),  # 0.1 itself, times 55, is above 5.5 in exact arithmetic
        "theta_n": pytest.approx(100.0),
        "thetas": [math.nextafter(0.1, 0.0)],
        "components": 1,
        "largest_group": 11,
        "groups": 1000,
        "ungrouped": 0,
        "mean_displacement": pytest.approx(13.863, abs=1e-3),
        "near_uniform": False,
        "retained_mean": pytest.approx(0.011, abs=1e-4),
        "retained_min": 0.006,
        "reference": "label order",
        "sensitivity_bound": 55,
        "width_bound": 10,
        "breadth_first_sensitivity": pytest.approx(65, abs=15),
    }


def test_a_nearly_uniform_shuffle_warns() -> None:
    groups = Groups.from_labels(np.arange(1000), radius=400)
    summary = Mallows.fit(groups, alpha=1.0).summary()
    assert summary["near_uniform"] and "nearly uniform" in summary["warning"]
    assert summary["mean_displacement"] == pytest.approx(1000 / 3, rel=1e-5)
    for share, warned in ((0.99, True), (1.01, False)):  # theta * n is proportional to alpha
        near = Mallows.fit(groups, alpha=share / summary["theta_n"]).summary()
        assert near["near_uniform"] == warned == ("warning" in near)


def test_relabelling_people_moves_the_law_along() -> None:
    rename = np.array([3, 0, 4, 1, 2])
    renamed = Groups.from_lists([rename[[0, 1]].tolist(), rename[[1, 2, 3]].tolist()], 5)
    order, pi = np.array([2, 4, 0, 1, 3]), np.array([1, 0, 2, 4, 3])
    there = np.empty(5, dtype=np.int64)
    there[rename] = rename[pi]
    one = Mallows.single(CHAIN, alpha=3.0, reference=order)
    other = Mallows.single(renamed, alpha=3.0, reference=rename[order])
    assert one.theta == other.theta and one.log_weight(pi) == pytest.approx(other.log_weight(there))


@pytest.mark.exhaust
@pytest.mark.parametrize("theta", [0.0, 5e-324, 1e-300, 1e-7, 0.01, 2.0, 1000.0, math.inf])
def test_every_theta_gives_a_permutation_from_both_doors(theta: float) -> None:
    for rng in (system_entropy(), simulation(1)):
        drawn = draw_mallows(3000, theta, rng)
        assert (np.bincount(drawn, minlength=3000) == 1).all()
        assert theta < 1000.0 or (drawn == np.arange(3000)).all()


def test_a_finite_theta_above_a_thousand_is_refused() -> None:
    with pytest.raises(ParameterError, match="`theta` must be at most 1000 or infinite"):
        draw_mallows(3, 1001.0, system_entropy())
    assert Mallows.fit(CHAIN, alpha=1e300).theta == 1000.0


def test_mixing_of_many_people_is_nearly_the_exact_one() -> None:
    n = 4000
    groups = Groups.from_labels(np.arange(n), radius=5)
    shuffler = Mallows.fit(groups, alpha=1.0)
    labels = np.arange(n) // 1000
    assert 2 * math.log(2) / shuffler.theta < 1000
    scored_orders = [shuffler.permutation(simulation(seed)) for seed in range(1, 101)]
    seen = np.mean(
        [[(labels[t][labels == a] == b).mean() for a in range(4) for b in range(4)] for t in scored_orders], axis=0
    )
    # 1000 people a label: standard errors of at most .0016 by the stopping rule, and less from the 100 draws
    np.testing.assert_allclose(shuffler.mixing(labels).reshape(-1), seen, atol=7 * 2e-3)


def test_mixing_of_labels_with_few_people_takes_few_draws() -> None:
    labels = np.minimum(np.arange(20_000) // 100, 30)
    labels[-1] = 31
    mixing = Mallows.fit(Groups.from_labels(labels, radius=1), alpha=4.0).mixing(labels)
    np.testing.assert_allclose(mixing.sum(axis=1), 1.0, atol=1e-12)


def test_labels_outside_their_range_are_refused() -> None:
    shuffler = Mallows.fit(CHAIN, alpha=1.0)
    for labels in ([0, 1], [0, 1, 2, 3, -1], [0.0, 1.0, 0.0, 1.0, 0.0]):
        with pytest.raises(DataError, match="`labels`"):
            shuffler.mixing(np.array(labels))


def test_every_component_has_its_own_theta_and_nothing_leaves_it() -> None:
    groups = Groups.from_lists([[0, 4], [4, 2], [1, 3, 5], [3, 5, 6, 7]], 9)
    shuffler = Mallows.fit(groups, alpha=6.0)
    component = np.array([0, 1, 0, 1, 0, 1, 1, 1, 2])
    wanted = {largest_theta(6.0, delta) for delta in shuffler.sensitivities.tolist() if delta}
    assert set(shuffler.thetas.tolist()) == wanted | {0.0}
    for seed in range(50):
        drawn = shuffler.permutation(simulation(seed))
        assert (component[drawn] == component).all() and drawn[8] == 8
    np.testing.assert_allclose(shuffler.mixing(component), np.eye(3), atol=1e-12)


@pytest.mark.exhaust
@given(
    lists=st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=5), min_size=1, max_size=6),
    present=st.lists(st.booleans(), min_size=10, max_size=10),
    single=st.booleans(),
)
def test_missing_people_never_raise_a_sensitivity(lists: list[list[int]], present: list[bool], single: bool) -> None:
    groups, here = Groups.from_lists(lists, 10), np.array([*present[:9], True])
    shuffler = Mallows.single(groups, alpha=2.0) if single else Mallows.fit(groups, alpha=2.0)
    fewer = shuffler.restrict(here)  # the constructor checks theta * sensitivity <= alpha exactly
    assert fewer.sensitivity <= shuffler.sensitivity and set(fewer.thetas) <= set(shuffler.thetas)
    left = [np.cumsum(here)[[p for p in group if here[p]]] - 1 for group in lists]
    assert fewer.groups == Groups.from_lists([group.tolist() for group in left], int(here.sum()))
    survivors = np.flatnonzero(here)
    np.testing.assert_array_equal(survivors[fewer.order], [p for p in shuffler.order if here[p]])


def test_a_restricted_shuffler_says_who_is_missing() -> None:
    fewer = Mallows.fit(CHAIN, alpha=2.0).restrict(np.array([False, True, True, True, True]))
    summary = fewer.summary()
    assert (summary["fitted_n"], summary["shrunken_groups"], summary["dissolved_groups"]) == (5, 1, 1)
    again = fewer.restrict(np.array([True, True, False, True])).summary()
    assert (again["fitted_n"], again["n"]) == (5, 3) and again["shrunken_groups"] > 1 == summary["shrunken_groups"]
    assert "presence does not depend on values" in fewer.guarantee.source


def test_label_groups_are_restricted_as_windows() -> None:
    groups = Groups.from_labels([3, 1, 2, 2, 9, 4], radius=1)
    here = np.array([True, True, False, True, True, True])
    fewer = Mallows.fit(groups, alpha=1.0).restrict(here)
    assert fewer.groups.contiguous and fewer.groups == Groups.from_labels([3, 1, 2, 9, 4], radius=1)


def test_other_groups_may_be_promised_nothing() -> None:
    groups = Groups.from_lists([[0, 1], [1, 2], [3, 4]], 6)
    shuffler = Mallows.fit(groups, alpha=1.0)
    assert shuffler.exact_alpha(groups) == 1.0
    assert shuffler.exact_alpha(Groups.from_lists([[3, 4]], 6)) == 0.0
    assert shuffler.exact_alpha(Groups.from_lists([[0]], 6)) == 0.0
    for other in ([2, 3], [4, 5]):
        assert shuffler.exact_alpha(Groups.from_lists([other], 6)) == math.inf
    with pytest.raises(DataError, match="must speak of 6 people"):
        shuffler.exact_alpha(CHAIN)


def test_a_theta_that_breaks_the_promise_is_refused() -> None:
    shuffler = Mallows.fit(CHAIN, alpha=2.0)
    with pytest.raises(DataError, match="`thetas` must keep alpha = 2"):
        Mallows(CHAIN, 2.0, shuffler.line, shuffler.thetas * 1.0000001)
    with pytest.raises(DataError, match="`thetas` must be"):
        Mallows(CHAIN, 2.0, shuffler.line, -shuffler.thetas)


@pytest.mark.parametrize(
    ("parts", "cells", "named"),
    [
        ([0, 2], [0, 1, 2, 3], "component_starts"),
        ([0, 3], [0, 2, 2, 3], "atom_starts"),
        ([0, 1, 3], [0, 2, 3], "component_starts"),
        ([3], [0, 3], "component_starts"),
    ],
)
def test_a_line_is_cut_into_whole_pieces(parts: list[int], cells: list[int], named: str) -> None:
    with pytest.raises(DataError, match=f"`{named}`"):
        PartitionedOrder(np.arange(3), np.array(parts), np.array(cells))


@pytest.mark.exhaust
def test_many_small_components_are_drawn_together() -> None:
    labels = np.arange(300_000) // 3
    groups = Groups.from_lists([[i, i + 1] for i in range(30_000) if i % 3 < 2], 300_000)
    drawn = Mallows.fit(groups, alpha=1.0).permutation(system_entropy())
    assert (labels[drawn] == labels).all() and (drawn[30_000:] == np.arange(30_000, 300_000)).all()
    assert np.bincount(drawn[:30_000] % 3 + 3 * (np.arange(30_000) % 3), minlength=9).min() > 0
