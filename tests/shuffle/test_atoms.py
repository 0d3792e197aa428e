"""Atoms join exactly the people whom no group tells apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.errors import DataError
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.reference_orders import check_atoms, label_order, make_contiguous, pairs_within_atoms
from dovetail.shuffle.sampling.permutations import inverse

lists_of_people = st.lists(st.lists(st.integers(0, 7), max_size=6), max_size=6)


def naive(groups: Groups) -> list[set[int]]:
    """Blocks of people by the set of their groups; people without one stay alone."""
    held: dict[object, set[int]] = {}
    for i in range(groups.n):
        mine = frozenset(g for g, members in enumerate(groups) if i in members)
        held.setdefault(mine or i, set()).add(i)
    return sorted(held.values(), key=min)


def blocks(codes: np.ndarray) -> list[set[int]]:
    return [set(np.flatnonzero(codes == code).tolist()) for code in range(codes.max() + 1)]


@given(lists=lists_of_people)
def test_atoms_of_lists_follow_the_definition(lists: list[list[int]]) -> None:
    groups = Groups.from_lists(lists, 8)
    assert blocks(groups.atoms()) == naive(groups)


@given(labels=st.lists(st.integers(0, 9), min_size=1, max_size=20), radius=st.none() | st.integers(0, 4))
def test_atoms_of_windows_follow_the_definition_and_stand_together(labels: list[int], radius: int | None) -> None:
    groups = Groups.from_labels(labels, radius)
    codes = groups.atoms()
    assert blocks(codes) == naive(groups)
    np.testing.assert_array_equal(make_contiguous(label_order(groups), codes), label_order(groups))


@given(labels=st.lists(st.integers(0, 9), min_size=2, max_size=12), data=st.data())
def test_atoms_of_windows_inside_each_other_are_never_too_coarse(labels: list[int], data: st.DataObject) -> None:
    radii = data.draw(st.lists(st.integers(0, 5), min_size=len(labels), max_size=len(labels)))
    groups = Groups.within_radius(np.array(labels, dtype=float), np.array(radii, dtype=float))
    whole = naive(groups)
    assert all(any(part <= atom for atom in whole) for part in blocks(groups.atoms()))
    check_atoms(groups.atoms(), groups)


@given(lists=lists_of_people)
def test_groups_are_unions_of_atoms_and_pairs_are_counted_once(lists: list[list[int]]) -> None:
    groups = Groups.from_lists(lists, 8)
    codes = groups.atoms()
    for pairs, members in zip(pairs_within_atoms(groups, codes), groups, strict=True):
        inside = [block for block in blocks(codes) if block & set(members.tolist())]
        assert set().union(*inside) == set(members.tolist())
        assert pairs == sum(len(block) * (len(block) - 1) // 2 for block in inside)


@given(labels=st.lists(st.integers(0, 5), min_size=1, max_size=20), radius=st.integers(0, 3))
def test_pairs_of_windows_and_of_lists_agree(labels: list[int], radius: int) -> None:
    windows = Groups.from_labels(labels, radius)
    listed = Groups.from_lists([group.tolist() for group in windows], len(labels))
    codes = windows.atoms()
    assert sorted(pairs_within_atoms(windows, codes)) == sorted(pairs_within_atoms(listed, codes))


@given(order=st.permutations(range(9)), codes=st.lists(st.integers(0, 3), min_size=9, max_size=9))
def test_contiguous_keeps_blocks_together_and_their_order_inside(order: list[int], codes: list[int]) -> None:
    line = make_contiguous(order, codes)
    assert sorted(line) == list(range(9))
    seen = np.array(codes)[line]
    assert (np.diff(seen) != 0).sum() == len(set(codes)) - 1
    for code in set(codes):
        assert [i for i in line if codes[i] == code] == [i for i in order if codes[i] == code]
    np.testing.assert_array_equal(make_contiguous(line, codes), line)
    means = [
        inverse(np.array(order))[np.array(codes) == code].mean() for code in seen[np.diff(seen, prepend=-1) != 0]
    ]
    assert means == sorted(means)


@given(order=st.permutations(range(9)), codes=st.lists(st.integers(0, 3), min_size=9, max_size=9), data=st.data())
def test_contiguous_depends_on_the_blocks_and_not_on_their_codes(
    order: list[int], codes: list[int], data: st.DataObject
) -> None:
    renamed = np.array(data.draw(st.permutations(range(4))))[codes]
    np.testing.assert_array_equal(make_contiguous(order, codes), make_contiguous(order, renamed))


def test_people_without_a_group_never_form_an_atom() -> None:
    assert Groups.from_lists([[3]], 4).atoms().tolist() == [0, 1, 2, 3]
    assert Groups.from_labels([5, 1, 1, 7]).atoms().tolist() == [0, 1, 1, 2]


def test_atoms_that_cut_across_groups_are_refused() -> None:
    groups = Groups.from_lists([[1, 2]], 3)
    assert check_atoms([4, 9, 9], groups).tolist() == [0, 1, 1]
    with pytest.raises(DataError, match="same groups only, got 1 who differ; first 1"):
        check_atoms([0, 0, 1], groups)
    with pytest.raises(DataError, match="3 codes"):
        check_atoms([0, 1], groups)
    with pytest.raises(DataError, match="at least 0"):
        make_contiguous([0, 1], [0, -1])
