"""Planar noise has its exact law, the matching sees no labels, and the promise holds for tiny batches."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from tests.shuffle.symmetric import groups_of, index, largest_change, reorderings
from tests.statistics import FALSE_ALARM, expect_broken, expect_law, rng_of

from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError
from dovetail.shuffle.best import best_shuffler
from dovetail.shuffle.fitting.components import PartitionedOrder, kd_order
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.sensitivity import RATE
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar import PlanarLaplace, mean_distance
from dovetail.shuffle.sampling.permutations import _decide_exactly, planar_laplace

Plane = np.ndarray


@pytest.mark.parametrize("rate", [0.4, 1.0, 2.5])
def test_planar_noise_has_its_exact_law(rate: float, rng: Entropy) -> None:
    drawn = planar_laplace(Fraction(rate), 100_000, rng)
    reach = 6
    side = np.arange(-60, 61)
    weight = np.exp(-rate * np.hypot(*np.meshgrid(side, side)))
    inside = (np.abs(drawn) <= reach).all(axis=1)
    counts = np.bincount((drawn[inside, 1] + reach) * 13 + drawn[inside, 0] + reach, minlength=169)
    law = weight[60 - reach : 67 + reach - 0, 60 - reach : 67 + reach][:13, :13].ravel() / weight.sum()
    expect_law(np.append(counts, (~inside).sum()), np.append(law, 1 - law.sum()))
    wrong = np.exp(-1.1 * rate * np.hypot(*np.meshgrid(side, side)))
    wrong = wrong[60 - reach : 61 + reach, 60 - reach : 61 + reach].ravel() / wrong.sum()
    expect_broken(np.append(counts, (~inside).sum()), np.append(wrong, 1 - wrong.sum()))


def test_a_close_decision_is_settled_exactly() -> None:
    """For z = (3, 4) the chance is e^(-(5 - 7 A)); words on its two sides are decided on their sides."""
    chance = math.exp(-(5 - 7 * 0.7071067811))
    word = int(chance * 2**64)
    assert _decide_exactly(Fraction(1), 3, 4, word - 2**14, simulation(1))
    assert not _decide_exactly(Fraction(1), 3, 4, word + 2**14, simulation(1))
    assert _decide_exactly(Fraction(1), 0, 0, 2**64 - 1, simulation(1))


def law_of(points: Plane, rate: float, reach: int) -> np.ndarray:
    """Exact law (n!,) of the matching under discrete planar noise cut off at `reach`, ties uniform."""
    n, line = len(points), PartitionedOrder.single_component(np.arange(len(points)))
    side = np.arange(-reach, reach + 1)
    cells = np.array(list(product(side, side)))
    weight = np.exp(-rate * np.hypot(*cells.T))
    weight /= weight.sum()
    homes = kd_order(points, line, np.arange(n))
    law = np.zeros(math.factorial(n))
    mixes = reorderings(tuple(range(n)), n)
    for noise in product(range(len(cells)), repeat=n):
        noisy = points + cells[list(noise)]
        for mixed in mixes:
            kappa = np.empty(n, dtype=np.int64)
            kappa[homes] = kd_order(noisy, line, mixed)
            law[index(kappa)] += weight[list(noise)].prod() / len(mixes)
    return law


@pytest.mark.exhaust
@pytest.mark.parametrize("points", [[[0, 0], [1, 0]], [[0, 0], [1, 2]], [[0, 0], [0, 1]]])
def test_the_exact_ratio_of_two_people_is_below_alpha(points: list[list[int]]) -> None:
    given_points, rate = np.array(points), 1.3
    law = np.log(law_of(given_points, rate, reach=5))
    distance = float(np.hypot(*(given_points[1] - given_points[0])))
    true = largest_change(law, (0, 1), 2)
    assert true <= 2 * rate * distance + 0.02  # noise beyond the cut-off has a chance below .01
    assert true > 0.2 or distance == 1.0


@pytest.mark.exhaust
def test_the_matching_is_uniform_for_equal_points_and_sees_no_labels(rng: Entropy) -> None:
    line, points = PartitionedOrder.single_component(np.arange(3)), np.zeros((3, 2), dtype=np.int64)
    seen = [index(kd_order(points, line, rng.permutation(3))) for _ in range(6000)]
    expect_law(np.bincount(seen, minlength=6), np.full(6, 1 / 6))
    expect_broken(np.bincount([index(kd_order(points, line, np.arange(3)))] * 6000, minlength=6), np.full(6, 1 / 6))


@pytest.mark.exhaust
@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_draws_of_three_people_stay_within_alpha(alpha: float) -> None:
    """Empirical ratios, lower ends of Clopper-Pearson intervals: 36 comparisons at a false alarm of 1e-9 in all."""
    points = np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 1.0]])
    groups, rng, draws = Groups.from_lists([[0, 1, 2]], 3), rng_of(f"three people {alpha}"), 20_000
    shuffler = PlanarLaplace.fit(groups, alpha=alpha, points=points)
    counts = np.bincount([int(index(shuffler.permutation(rng))) for _ in range(draws)], minlength=6)
    level = FALSE_ALARM / 72
    low, high = beta.ppf(level, counts, draws - counts + 1), beta.isf(level, counts + 1, draws - counts)
    assert np.log(np.maximum.outer(low, np.zeros(6)) / high).max() <= alpha
    broken = PlanarLaplace.fit(groups, alpha=20 * alpha, points=points)
    counts = np.bincount([int(index(broken.permutation(rng))) for _ in range(draws)], minlength=6)
    low = beta.ppf(level, counts, draws - counts + 1)
    assert alpha > 1 or np.log(low.max() / beta.isf(level, counts.min() + 1, draws - counts.min())) > alpha


@given(
    points=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=4, max_size=4),
    group=st.sampled_from(groups_of(4)),
)
def test_the_bound_is_above_every_reordering_of_the_group(
    points: list[tuple[int, int]], group: tuple[int, ...]
) -> None:
    where = np.array(points, dtype=float)
    groups = Groups.from_lists([group], 4)
    shuffler = PlanarLaplace.fit(groups, alpha=1.0, points=where)
    grid = shuffler.grid
    moves = [np.hypot(*(grid[tau] - grid).T).sum() for tau in reorderings(group, 4)]
    assert (
        max(moves) * float(RATE) <= shuffler.exact_alpha(groups) * (1 + 1e-12) and shuffler.exact_alpha(groups) <= 1.0
    )
    assert shuffler.sensitivity == 0 or shuffler.exact_alpha(groups) > 0.999
    fewer = shuffler.restrict(np.array([True, True, True, False]))
    assert float(RATE) * fewer.sensitivities.max() <= 1.0


@pytest.mark.exhaust
def test_a_report_lands_near_home() -> None:
    points = np.random.default_rng(1).random((20_000, 2))
    shuffler = PlanarLaplace.fit(Groups.within_radius(points, 0.01), alpha=16.0, points=points)
    moved = np.hypot(*(points[shuffler.permutation(simulation(1))] - points).T).mean()
    stated = shuffler.summary()["mean_distance"]
    assert abs(moved - stated) < 0.05 * stated  # two means over 20,000 people, of whom neighbours move together


@pytest.mark.exhaust
@pytest.mark.parametrize("wide", [1.0, 0.01], ids=["square", "strip"])
def test_the_best_shuffler_moves_reports_no_further_than_the_others(wide: float) -> None:
    points = np.random.default_rng(1).random((1000, 2)) * [1.0, wide]
    groups = Groups.within_radius(points, 0.03 if wide == 1.0 else 0.003)
    best = best_shuffler(groups, alpha=8.0, points=points)
    each = [
        PlanarLaplace.fit(groups, alpha=8.0, points=points),
        Mallows.fit(groups, alpha=8.0, points=points), NoisySort.fit(groups, alpha=8.0, points=points),
    ]  # fmt: skip
    assert mean_distance(best, points) == min(mean_distance(one, points) for one in each)


@pytest.mark.parametrize("alpha", [8.0, 100.0, 400.0])
@pytest.mark.parametrize("ages", [True, False], ids=["ages", "a chain"])
def test_along_a_line_too_the_best_shuffler_is_none_of_the_worse(ages: bool, alpha: float) -> None:
    line = np.random.default_rng(1).integers(18, 90, 500) if ages else np.arange(300)
    groups = Groups.from_labels(line, radius=1)
    best, where = best_shuffler(groups, alpha=alpha), line[:, None].astype(np.float64)
    if best.name == "uniform":
        return  # alpha = 0, for hardly more
    each = [Mallows.fit(groups, alpha=alpha), NoisySort.fit(groups, alpha=alpha)]
    assert mean_distance(best, where) == min(mean_distance(one, where) for one in each)


def test_nothing_leaves_its_component() -> None:
    points = np.random.default_rng(1).random((300, 2))
    groups = Groups.within_radius(points, 0.05)
    component = groups.components()
    drawn = PlanarLaplace.fit(groups, alpha=1.0, points=points).permutation(simulation(1))
    assert (component[drawn] == component).all() and (drawn[component < 0] == np.flatnonzero(component < 0)).all()


def test_scales_that_break_the_promise_and_points_on_a_line_are_refused() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    groups = Groups.from_lists([[0, 1], [1, 2]], 3)
    shuffler = PlanarLaplace.fit(groups, alpha=1.0, points=points)
    with pytest.raises(DataError, match="`scales` must keep alpha = 1"):
        PlanarLaplace(groups, 1.0, shuffler.line, points, shuffler.scales * 1.001, shuffler.centres)
    for wrong in (points[:, :1], points[:2], np.full((3, 2), np.nan)):
        with pytest.raises(DataError):
            PlanarLaplace.fit(groups, alpha=1.0, points=wrong)


def test_a_few_people_apart_do_not_make_the_whole_shuffle_nearly_uniform() -> None:
    """A dense village of 60 is shuffled evenly; of 600 along a road much can be learned, and nothing warns."""
    road, village = np.column_stack((np.arange(600) * 0.1, np.zeros(600))), np.random.default_rng(1).random((60, 2))
    points = np.vstack((road, village * 0.3 + 100.0))
    summary = PlanarLaplace.fit(Groups.within_radius(points, 0.15), alpha=5.0, points=points).summary()
    assert summary["near_uniform_share"] == 60 / 660 and not summary["near_uniform"] and "warning" not in summary


@pytest.mark.exhaust
def test_noise_as_large_as_the_component_warns() -> None:
    points = np.random.default_rng(1).random((500, 2))
    groups = Groups.within_radius(points, 0.2)
    assert "nearly uniform" in PlanarLaplace.fit(groups, alpha=1.0, points=points).summary()["warning"]
    assert not PlanarLaplace.fit(groups, alpha=1e4, points=points).summary()["near_uniform"]
    everybody = Groups.from_lists([range(500)], 500)
    assert not PlanarLaplace.fit(everybody, alpha=1.0, points=points).summary()["near_uniform"]  # one group: it must


def test_few_people_are_compared_by_so_many_draws_that_chance_does_not_decide() -> None:
    weights = np.array(
        [138.0, 154, 156, 157, 162, 166, 167, 169, 169, 174, 176, 182, 189, 189, 191, 193, 193, 202, 211, 247]
    )
    groups = Groups.within_radius(weights, 7.0)
    sort = NoisySort.fit(groups, alpha=64.0)
    moved = [float(np.abs(weights[sort.permutation(simulation(seed))] - weights).mean()) for seed in range(400)]
    # five standard errors of either mean: false alarm below 1e-6
    assert abs(mean_distance(sort, weights[:, None]) - np.mean(moved)) < 5.0 * np.std(moved) * (2.0 / 400) ** 0.5
