"""A group that reaches into another component is promised nothing: whoever knows the components sees through it."""

import math
from itertools import product

import numpy as np
import pytest

from dovetail.core.errors import DataError
from dovetail.core.stages import Shuffler
from dovetail.shuffle.fitting.components import PartitionedOrder, crosses
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar import PlanarLaplace
from dovetail.shuffle.within_groups import WithinGroups

SIX = [np.array([0, *cuts, 6]) for cuts in ([], [1], [3], [5], [2, 4], [1, 2, 3, 4, 5])]
FAR = [0, 1, 2, 3, 20, 21, 22, 23]  # two components of four
POINTS = np.column_stack((FAR, np.zeros(8)))


def crossing(groups: Groups, line: PartitionedOrder) -> list[bool]:
    """By the definition: people of two components."""
    part = line.component[line.places]
    return [len(set(part[group].tolist())) > 1 for group in groups]


@pytest.mark.exhaust
@pytest.mark.parametrize("starts", SIX, ids=str)
def test_windows_of_labels_cross_exactly_where_they_hold_people_of_two_components(starts: np.ndarray) -> None:
    for labels in product(range(4), repeat=6):
        if list(labels) != sorted(labels) and sum(labels) % 5:
            continue  # every sorted vector, and a fifth of the others
        groups = Groups.from_labels(labels, radius=1)
        assert groups.contiguous
        line = PartitionedOrder(np.arange(6)[::-1].copy(), starts, np.arange(7))
        assert crosses(groups, line).tolist() == crossing(groups, line), labels


def test_lists_cross_exactly_where_they_hold_people_of_two_components() -> None:
    lists = [[0, 1], [1, 2], [0, 5], [3], [0, 1, 2, 3, 4, 5], [2, 4]]
    groups = Groups.from_lists(lists, 6)
    for starts in SIX:
        line = PartitionedOrder(np.array([2, 0, 1, 5, 3, 4]), starts, np.arange(7))
        assert crosses(groups, line).tolist() == crossing(groups, line)


def fitted() -> list[Shuffler]:
    groups = Groups.from_labels(FAR, radius=1)
    return [
        Mallows.fit(groups, alpha=2.0),
        NoisySort.fit(groups, alpha=2.0),
        PlanarLaplace.fit(groups, alpha=2.0, points=POINTS),
        WithinGroups(Groups.from_labels([0] * 4 + [1] * 4)),
    ]


@pytest.mark.exhaust
@pytest.mark.parametrize("shuffler", fitted(), ids=lambda shuffler: shuffler.name)
@pytest.mark.parametrize("labels", [[0] * 5 + [1] * 3, [0] * 3 + [1] * 5, [0, 1, 2, 3, 3, 4, 5, 6], [0] * 8])
def test_a_lined_group_across_components_is_promised_nothing(shuffler: Shuffler, labels: list[int]) -> None:
    across = Groups.from_labels(labels)
    assert shuffler.exact_alpha(across) == math.inf
    assert shuffler.exact_alpha(Groups.from_lists([group.tolist() for group in across], 8)) == math.inf
    inside = Groups.from_labels([0, 0, 1, 1, 2, 2, 3, 3])
    assert shuffler.exact_alpha(inside) < math.inf


def test_one_crossing_group_among_others_is_enough_to_refuse_a_line() -> None:
    line = PartitionedOrder(np.arange(3), np.array([0, 2, 3]), np.arange(4))
    with pytest.raises(DataError, match="1 groups cross"):
        Mallows.along(line, Groups.from_lists([[0, 1], [1, 2]], 3), alpha=1.0)
