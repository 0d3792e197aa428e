"""The noisy sort keeps its promise for exact discrete noise, for every group, with ties broken by nobody's index."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shuffle.symmetric import everything, groups_of, index, largest_change, log_law
from tests.statistics import expect_broken, expect_law, rng_of
from tests.tiers import one_in

from dovetail.core.discrete_noise import discrete_laplace
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.shuffle.fitting.components import PartitionedOrder
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.sensitivity import footrule
from dovetail.shuffle.noisy_sort import RATE, NoisySort, sort_keys
from dovetail.shuffle.sampling.permutations import log_order_probability


@pytest.mark.parametrize("n", one_in(4, [2, 3, 4, 5]))
def test_the_exact_worst_ratio_is_below_alpha_for_every_group(n: int) -> None:
    for group in groups_of(n):
        for alpha in (0.5, 3.0):
            shuffler = NoisySort.along(_whole(n), Groups.from_lists([group], n), alpha=alpha)
            true = largest_change(log_law(shuffler), group, n)
            assert 0.3 * alpha < true <= alpha * (1 + 1e-9)  # not far below: .48 to .97 in the theory note


def test_half_the_noise_breaks_the_promise() -> None:
    shuffler = NoisySort.along(_whole(4), Groups.from_lists([[0, 3]], 4), alpha=3.0)
    law = log_law(NoisySort.along(_whole(4), Groups.from_lists([[0, 3]], 4), alpha=6.0))
    assert largest_change(law, (0, 3), 4) > shuffler.alpha


def coarse_law(scores: list[int], rate: float, *, by_index: bool = False) -> np.ndarray:
    """Exact law of sorting scores with discrete Laplace noise of this rate, ties uniform (or by index)."""
    n, reach = len(scores), int(30 / rate)
    steps = np.arange(-reach, reach + 1)
    weight = np.exp(-rate * np.abs(steps))
    noise = np.stack(np.meshgrid(*[np.arange(steps.size)] * n), axis=-1).reshape(-1, n)
    chance, keys = (weight / weight.sum())[noise].prod(axis=1), np.array(scores) + steps[noise]
    right = np.array([(np.diff(keys[:, pi]) >= 0).all(axis=1) for pi in everything(n)])  # (n!, noises)
    if by_index:
        right &= np.cumsum(right, axis=0) == 1
    return np.asarray((right / right.sum(axis=0)) @ chance)


@pytest.mark.parametrize(("scores", "rate"), [([0, 1], 0.7), ([0, 3], 1.5), ([0, 1, 2], 2.5), ([0, 0, 1], 3.0)])
def test_discrete_noise_keeps_the_promise_without_any_continuity(scores: list[int], rate: float) -> None:
    n, law = len(scores), np.log(coarse_law(scores, rate))
    for group in groups_of(n):
        assert largest_change(law, group, n) <= rate * footrule(np.array(scores)[list(group)]) + 1e-9


def test_ties_broken_by_index_break_the_promise() -> None:
    """Equal scores promise alpha = 0; with ties by index the order of the pair is told."""
    assert largest_change(np.log(coarse_law([0, 0], 2.0)), (0, 1), 2) == pytest.approx(0.0, abs=1e-12)
    assert largest_change(np.log(coarse_law([0, 0], 2.0, by_index=True)), (0, 1), 2) > 1.0


@pytest.mark.exhaust
@pytest.mark.parametrize(("scores", "rate"), [([0, 1, 2], 1.2), ([0, 0, 1], 0.9)])
def test_the_sampler_follows_the_discrete_law_with_ties(scores: list[int], rate: float, rng: Entropy) -> None:
    draws = 60_000
    keys = np.tile(scores, draws) + discrete_laplace(Fraction(rate), 3 * draws, rng)
    part = np.repeat(np.arange(draws), 3)
    drawn = sort_keys(keys, part, rng).reshape(draws, 3) - 3 * np.arange(draws)[:, None]
    counts = np.bincount(index(drawn), minlength=6)
    expect_law(counts, coarse_law(scores, rate) / coarse_law(scores, rate).sum())
    expect_broken(counts, coarse_law(scores, 1.1 * rate) / coarse_law(scores, 1.1 * rate).sum())


@pytest.mark.exhaust
def test_fine_discrete_noise_is_nearly_the_continuous_law() -> None:
    """The grid of 2^32 steps is 2^22 times finer than this one, whose law is already close to the integral."""
    rate, spread = 2.0**-4, 12
    coarse = coarse_law([0, spread], rate)
    smooth = math.exp(log_order_probability(np.array([0.0, spread * rate])))
    assert coarse[0] == pytest.approx(smooth, abs=rate**2)


@pytest.mark.parametrize("gap", [0.0, 0.1, 1.0, 7.0, 80.0])
def test_two_laplace_numbers_race_as_the_closed_form_says(gap: float) -> None:
    assert math.exp(log_order_probability(np.array([0.0, gap]))) == pytest.approx(
        1 - (2 + gap) / 4 * math.exp(-gap), rel=1e-12
    )
    assert log_order_probability(np.array([gap, 0.0])) == pytest.approx(math.log((2 + gap) / 4) - gap, rel=1e-9)


@given(centres=st.lists(st.floats(-8, 8), min_size=1, max_size=5))
def test_the_chances_of_all_orders_sum_to_one(centres: list[float]) -> None:
    given_centres = np.array(centres)
    total = math.fsum(math.exp(log_order_probability(given_centres[pi])) for pi in everything(len(centres)))
    assert total == pytest.approx(1.0, abs=1e-11)


@pytest.mark.exhaust
@given(
    lists=st.lists(st.lists(st.integers(0, 7), min_size=2, max_size=5), min_size=1, max_size=5),
    alpha=st.floats(0.0, 1e5),
    scores=st.none() | st.lists(st.integers(-50, 50), min_size=8, max_size=8),
)
def test_the_scale_keeps_the_promise_in_exact_arithmetic(
    lists: list[list[int]], alpha: float, scores: list[int] | None
) -> None:
    groups = Groups.from_lists(lists, 8)
    shuffler = NoisySort.fit(groups, alpha=alpha, scores=scores)
    for group in groups:
        delta = footrule(shuffler.scores[group])
        scale = int(shuffler.scales[shuffler.line.component[shuffler.line.places[group[0]]]])
        assert RATE * scale * delta <= Fraction(alpha)
    assert shuffler.exact_alpha(groups) <= alpha
    here = np.arange(8) % 3 != 0
    assert shuffler.restrict(here).sensitivity <= shuffler.sensitivity


@pytest.mark.exhaust
def test_atoms_share_a_score_and_cost_nothing() -> None:
    groups = Groups.from_lists([[0, 1, 2, 3], [3, 4]], 5)
    shuffler = NoisySort.fit(groups, alpha=1.0)
    assert np.unique(shuffler.scores[:3]).size == 1
    assert shuffler.exact_alpha(Groups.from_lists([[0, 1, 2]], 5)) == 0.0
    assert NoisySort.fit(Groups.from_lists([[0, 1, 2]], 3), alpha=1.0).sensitivity == 0


@pytest.mark.exhaust
def test_people_move_by_the_noise() -> None:
    n = 100_000
    shuffler = NoisySort.fit(Groups.from_labels(np.arange(n), radius=15), alpha=4.0)
    shift = np.abs(shuffler.permutation(rng_of("people move by the noise")) - np.arange(n))
    b = shuffler.summary()["mean_displacement"]
    # mean b, standard deviation about b; places within 30 b of each other depend
    assert shift.mean() == pytest.approx(b, rel=6 * math.sqrt(60 * b / n))


def test_the_law_of_many_people_is_refused_and_the_way_out_named() -> None:
    shuffler = NoisySort.fit(Groups.from_labels(np.arange(7), radius=1), alpha=1.0)
    with pytest.raises(UnsupportedError, match="at most 6 people, this one has 7"):
        shuffler.log_weight(range(7))


def test_other_groups_across_components_are_promised_nothing() -> None:
    shuffler = NoisySort.fit(Groups.from_lists([[0, 1], [1, 2], [3, 4]], 5), alpha=1.0)
    assert shuffler.exact_alpha(Groups.from_lists([[2, 3]], 5)) == math.inf
    assert shuffler.exact_alpha(Groups.from_lists([[0, 1, 2]], 5)) >= 1.0


@pytest.mark.parametrize("scores", [[1, 2], [1.5] * 4, [1 << 41, 0, 0, 0]])
def test_scores_are_whole_numbers_of_everybody(scores: list[float]) -> None:
    with pytest.raises(DataError, match="`scores`"):
        NoisySort.fit(Groups.from_lists([[0, 1], [1, 2]], 4), alpha=1.0, scores=scores)


@pytest.mark.parametrize("alpha", [-1.0, math.nan, "4", True])
def test_a_wrong_alpha_is_refused(alpha: float) -> None:
    with pytest.raises(ParameterError, match="`alpha`"):
        NoisySort.fit(Groups.from_lists([[0, 1], [1, 2]], 3), alpha=alpha)


def test_a_scale_that_breaks_the_promise_is_refused() -> None:
    groups = Groups.from_lists([[0, 1], [1, 2]], 3)
    shuffler = NoisySort.fit(groups, alpha=1.0)
    with pytest.raises(DataError, match="`scales` must keep alpha = 1"):
        NoisySort(groups, 1.0, shuffler.line, shuffler.scores, shuffler.scales + 1)


def test_alpha_infinity_leaves_the_order() -> None:
    shuffler = NoisySort.fit(Groups.from_lists([[0, 1], [1, 2]], 3), alpha=math.inf)
    assert shuffler.permutation(simulation(1)).tolist() == [0, 1, 2] and not shuffler.guarantee.protects


def _whole(n: int) -> PartitionedOrder:
    return PartitionedOrder.single_component(np.arange(n))


@pytest.mark.exhaust
def test_every_order_of_a_component_is_possible_however_large_alpha_is() -> None:
    shuffler = NoisySort.fit(Groups.from_labels(range(5), radius=1), alpha=600.0)
    weights = np.array([shuffler.log_weight(list(order)) for order in everything(5)])
    assert np.isfinite(weights).all() and weights.min() < -800.0
    assert math.fsum(np.exp(weights)) == pytest.approx(1.0, abs=1e-9)
    # X_1 < X_2 for centres d apart, the wrong way round: (2 + d) / 4 e^-d, however far
    for gap in (0.5, 50.0, 600.0, 5000.0):
        assert log_order_probability(np.array([gap, 0.0])) == pytest.approx(math.log((2 + gap) / 4) - gap, abs=1e-9)
    with pytest.raises(UnsupportedError, match="units of noise apart"):
        log_order_probability(np.array([0.0, 1e6]))
