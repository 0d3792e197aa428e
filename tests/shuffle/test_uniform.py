"""Inside disjoint groups nothing leaves its group and the best shuffler knows it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.entropy import simulation, system_entropy
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.shuffle.best import best_shuffler
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar import PlanarLaplace
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups


@given(labels=st.lists(st.integers(0, 6), min_size=1, max_size=40), seed=st.integers(0, 9))
def test_nothing_leaves_its_group(labels: list[int], seed: int) -> None:
    groups = Groups.from_labels(labels)
    for same in (groups, Groups.from_lists([group.tolist() for group in groups], len(labels))):
        drawn = WithinGroups.fit(same).permutation(simulation(seed))
        assert sorted(drawn.tolist()) == list(range(len(labels)))
        assert (np.array(labels)[drawn] == labels).all()


def test_people_in_no_group_stay_in_place() -> None:
    shuffler = WithinGroups(Groups.from_lists([[8, 1, 5]], 9))
    for seed in range(20):
        drawn = shuffler.permutation(simulation(seed))
        assert np.flatnonzero(drawn != np.arange(9)).tolist() in ([], [1, 5, 8], [1, 5], [1, 8], [5, 8])


def test_overlapping_groups_are_refused_and_mallows_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"overlap \(1 memberships too many\). Use Mallows"):
        WithinGroups.fit(Groups.from_lists([[0, 1], [1, 2]], 3))


def test_the_best_shuffler_stays_inside_disjoint_groups() -> None:
    groups = Groups.from_labels([1, 2, 1, 2, 3])
    best = best_shuffler(groups, alpha=2.0)
    assert isinstance(best, WithinGroups) and best.guarantee.alpha == 0.0
    assert best.guarantee.implies(Mallows.fit(groups, alpha=2.0).guarantee)


@pytest.mark.exhaust
@pytest.mark.parametrize("alpha", [0.0, 0.3, 2.0, 30.0, float("inf")])
def test_the_best_shuffler_of_overlapping_groups_keeps_alpha_and_says_why(alpha: float) -> None:
    points = np.random.default_rng(1).random((200, 2))
    line, plane = Groups.from_labels(np.arange(50), radius=4), Groups.within_radius(points, 0.1)
    for groups, places in ((line, None), (plane, points)):
        best = best_shuffler(groups, alpha=alpha, points=places)
        assert best.guarantee.alpha == (0.0 if isinstance(best, Uniform) else alpha) and best.summary()["reason"]


@pytest.mark.exhaust
def test_an_order_that_would_be_all_but_uniform_is_shuffled_uniformly() -> None:
    labels = np.arange(300)
    groups = Groups.from_labels(labels, radius=4)
    flat, steep = best_shuffler(groups, alpha=0.03), best_shuffler(groups, alpha=8.0)
    assert isinstance(flat, Uniform) and "all but uniform" in flat.summary()["reason"]
    assert "where nobody is alone" not in flat.summary()["reason"]
    assert not isinstance(steep, Uniform)
    orders = [NoisySort.fit(groups, alpha=0.03).permutation(simulation(seed)) for seed in range(50)]
    assert abs(float(np.mean([np.corrcoef(labels, order)[0, 1] for order in orders]))) < 0.15
    split = Groups.from_labels(np.concatenate([labels, labels + 1000]), radius=4)
    within = best_shuffler(split, alpha=0.03)
    assert isinstance(within, WithinGroups) and len(within.groups) == 2 and within.guarantee.alpha == 0.0
    assert "where nobody is alone" in within.summary()["reason"]
    mixed = Groups.from_lists([*([i, i + 1] for i in range(9)), *([i + 10, i + 11] for i in range(989))], 1000)
    assert not isinstance(best_shuffler(mixed, alpha=0.03), WithinGroups | Uniform), "ten of a thousand are too few"
    lonely = Groups.from_lists([[i, i + 1] for i in range(299)], 302)  # the last two people are in no group
    alone = best_shuffler(lonely, alpha=1e-3)
    assert isinstance(alone, WithinGroups)
    blocks = alone.uniform_blocks()
    assert [int((blocks == blocks[one]).sum()) for one in (0, 300, 301)] == [300, 1, 1]


@pytest.mark.exhaust
def test_the_best_shuffler_follows_the_published_rules() -> None:
    """Tiny groups and large theta: Mallows; windows and small theta: noise on places; the plane: planar noise."""
    chain = Groups.from_lists([[i, i + 1] for i in range(99)], 100)
    assert isinstance(best_shuffler(chain, alpha=8.0), Mallows)
    assert isinstance(best_shuffler(Groups.from_labels(np.arange(5000), radius=15), alpha=4.0), NoisySort)
    points = np.random.default_rng(2).random((5000, 2))
    plane = Groups.within_radius(points, 0.02)
    assert isinstance(best_shuffler(plane, alpha=4.0, points=points), PlanarLaplace)
    assert not isinstance(best_shuffler(plane, alpha=4.0), PlanarLaplace)


def test_a_restricted_group_is_shuffled_by_who_is_left() -> None:
    shuffler = WithinGroups(Groups.from_lists([[0, 1], [2, 3, 4]], 5)).restrict(
        np.array([True, False, True, True, False])
    )
    assert shuffler.n == 3 and [g.tolist() for g in shuffler.groups] == [[1, 2]]
    assert shuffler.provenance.shrunken == 2 and shuffler.provenance.dissolved == 1


@pytest.mark.parametrize("alpha", [-1.0, float("nan")])
def test_the_best_shuffler_checks_alpha_even_when_it_does_not_need_it(alpha: float) -> None:
    with pytest.raises(ParameterError, match="`alpha`"):
        best_shuffler(Groups.from_labels([1, 1]), alpha=alpha)


@pytest.mark.parametrize("kind", [Identity, Uniform])
def test_a_batch_has_at_least_one_person(kind: type[Identity | Uniform]) -> None:
    with pytest.raises(ParameterError, match="`n`"):
        kind(0)


def test_within_groups_of_many_people_is_uniform_in_position() -> None:
    groups = Groups.from_labels(np.arange(100_000) % 3)
    drawn = WithinGroups(groups).permutation(system_entropy())
    first = drawn[::3] // 3  # places of group 0
    # the mean of |first - place| for a uniform permutation is m/3 with standard deviation below sqrt(m)
    m = first.size
    assert abs(np.abs(first - np.arange(m)).mean() - m / 3) < 7 * np.sqrt(m)


def test_a_uniform_shuffle_of_those_who_came_is_of_their_number() -> None:
    fewer = Uniform(5).restrict(np.array([True, False, True, True, False]))
    assert fewer.n == 3 and sorted(fewer.permutation(simulation(1)).tolist()) == [0, 1, 2]
