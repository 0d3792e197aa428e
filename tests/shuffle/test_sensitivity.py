"""Sensitivities do not overflow, ignore order and repetition, and theta never promises too much."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.errors import ParameterError
from dovetail.shuffle.fitting.components import PartitionedOrder
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.sensitivity import (
    kendall,
    kendall_between_atoms,
    kendall_by_group,
    largest_theta,
    width_by_group,
)
from dovetail.shuffle.sampling.lehmer_code import MOST_THETA

positions = st.lists(st.integers(0, 200), unique=True, max_size=12)


@given(places=positions, data=st.data())
def test_the_order_of_positions_and_their_origin_do_not_matter(places: list[int], data: st.DataObject) -> None:
    mixed = data.draw(st.permutations(places))
    assert kendall(mixed) == kendall(places) == kendall([200 - p for p in places])


@given(places=positions)
def test_the_two_closed_forms_agree(places: list[int]) -> None:
    inside = range(min(places, default=0), max(places, default=0))
    outsiders = [(sum(p < f for p in places), sum(p > f for p in places)) for f in inside if f not in places]
    assert kendall(places) == math.comb(len(places), 2) + 2 * sum(min(a, b) for a, b in outsiders)


def test_a_hundred_thousand_members_among_ten_million_do_not_overflow() -> None:
    g, n = 100_000, 10_000_000
    places = np.arange(g, dtype=np.int32) * (n // g)
    exact = sum(2 * (n // g) * (g - 1 - 2 * i) - 1 for i in range(g // 2))
    assert kendall(places) == exact > 2**32


@given(
    lists=st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=6), order=st.permutations(range(10))
)
def test_all_groups_at_once_agree_with_one_at_a_time(lists: list[list[int]], order: list[int]) -> None:
    groups, place = Groups.from_lists(lists, 10), np.array(order)
    assert kendall_by_group(groups, place).tolist() == [kendall(place[group]) for group in groups]
    assert width_by_group(groups, place).tolist() == [int(np.ptp(place[group])) for group in groups]


@given(labels=st.lists(st.integers(0, 5), min_size=2, max_size=12), seed=st.integers(0, 99))
def test_windows_agree_in_any_reference_order(labels: list[int], seed: int) -> None:
    groups = Groups.from_labels(labels, radius=1)
    for place in (
        np.random.default_rng(seed).permutation(len(labels)),
        np.argsort(np.argsort(labels, kind="stable")),
    ):
        assert kendall_by_group(groups, place).tolist() == [kendall(place[group]) for group in groups]
        assert width_by_group(groups, place).tolist() == [int(np.ptp(place[group])) for group in groups]


@given(
    alpha=st.floats(0.0, 1e308, allow_subnormal=True),
    sensitivity=st.integers(1, 10**13) | st.integers(1, 10),
)
def test_theta_times_sensitivity_never_exceeds_alpha(alpha: float, sensitivity: int) -> None:
    theta = largest_theta(alpha, sensitivity)
    assert Fraction(theta) * sensitivity <= Fraction(alpha)
    above = math.nextafter(theta, math.inf)
    assert theta == MOST_THETA or Fraction(above) * sensitivity > Fraction(alpha)


@pytest.mark.parametrize("alpha", [-1.0, math.nan, math.inf])
def test_theta_needs_a_finite_alpha(alpha: float) -> None:
    with pytest.raises(ParameterError, match="`alpha`"):
        largest_theta(alpha, 3)


def test_a_sensitivity_of_zero_is_not_divided_by() -> None:
    with pytest.raises(ParameterError, match="`sensitivity`"):
        largest_theta(1.0, 0)


@given(
    lists=st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=6), order=st.permutations(range(10))
)
def test_atoms_of_one_person_each_cost_what_a_line_without_atoms_does(
    lists: list[list[int]], order: list[int]
) -> None:
    groups, line = Groups.from_lists(lists, 10), PartitionedOrder.single_component(np.array(order))
    assert kendall_between_atoms(groups, line).tolist() == kendall_by_group(groups, line.places).tolist()
