"""Delta, Z and their p-values: against enumeration, under ties, and what they keep when distances are transformed."""

from itertools import combinations
from math import isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, hypergeom, rankdata
from tests.statistics import expect_at_least, expect_caught, expect_share

from dovetail.core.entropy import simulation
from dovetail.memorize.copying.baselines import reference_z
from dovetail.memorize.copying.data_copying import CopyingTest
from dovetail.memorize.copying.rank_test import (
    RankTest,
    benjamini_hochberg,
    delta_interval,
    detectable_by_ranks,
    deviation_bound,
    exact_law,
    holm,
    midrank_variance,
    newcombe_interval,
    rank_test,
)

SAMPLES = st.lists(st.integers(0, 4).map(float), min_size=1, max_size=6).map(np.array)


def sums(ranks: np.ndarray, m: int) -> np.ndarray:
    """Rank sums of every choice of m observations."""
    return np.array([sum(ranks[list(chosen)]) for chosen in combinations(range(len(ranks)), m)])


@given(SAMPLES, SAMPLES)
def test_exact_p_values_equal_enumeration_of_every_assignment(fresh: np.ndarray, generated: np.ndarray) -> None:
    found, ranks = rank_test(fresh, generated), rankdata(np.concatenate([fresh, generated]))
    every, seen = sums(ranks, len(generated)), ranks[len(fresh) :].sum()
    if found.method == "all distances are equal":
        assert found.z == 0.0 and found.p_copying == 1.0
        return
    assert found.method == "exact"
    assert isclose(found.p_copying, float((every <= seen + 1e-9).mean()), abs_tol=1e-12)
    assert isclose(found.p_underfitting, float((every >= seen - 1e-9).mean()), abs_tol=1e-12)


@given(SAMPLES, SAMPLES)
def test_the_variance_of_midranks_equals_that_of_all_assignments(fresh: np.ndarray, generated: np.ndarray) -> None:
    ranks = rankdata(np.concatenate([fresh, generated]))
    ties = np.unique(ranks, return_counts=True)[1].astype(float)
    assert isclose(midrank_variance(ties, len(generated)), sums(ranks, len(generated)).var(), abs_tol=1e-9)


@given(SAMPLES, SAMPLES)
def test_delta_and_its_mirror_image_sum_to_one_also_with_ties(fresh: np.ndarray, generated: np.ndarray) -> None:
    one, other = rank_test(fresh, generated), rank_test(generated, fresh)
    assert 0.0 <= one.delta <= 1.0 and isclose(one.delta + other.delta, 1.0)
    assert isclose(one.z, -other.z, abs_tol=1e-12)


def test_a_monotone_map_of_distances_changes_nothing() -> None:
    draw = np.random.default_rng(1)
    fresh, generated = draw.random(300), draw.random(200) ** 1.3
    assert rank_test(fresh, generated) == rank_test(np.exp(5 * fresh), np.exp(5 * generated))


@pytest.mark.exhaust
@pytest.mark.parametrize("width", [2, 9])
def test_the_unit_of_rounded_data_changes_nothing(width: int) -> None:
    draw = np.random.default_rng(1)
    train, fresh, made = (draw.standard_normal((count, width)).round(1) for count in (400, 300, 250))
    found = []
    for unit in (1.0, 10.0, 3.7, 1 / 7):
        prepared = CopyingTest.prepare(unit * train, unit * fresh, overlap="keep", cells=1)
        test = prepared.test(unit * made, baselines=False)
        found.append((test.overall, test.tail, test.verdict, test.copied_fraction))
    assert found[1:] == found[:-1]


def test_equal_samples_have_z_zero_and_copies_delta_zero() -> None:
    distances = np.random.default_rng(2).random(100)
    assert rank_test(distances, distances).z == 0.0
    found = rank_test(distances, np.zeros(50))
    assert found.delta == 0.0 and found.p_copying < 1e-15


def test_two_million_ties_leave_the_doubles_alone_and_not_the_integers() -> None:
    ties = np.array([3e6, 1e6])
    assert midrank_variance(ties, 10**6) == pytest.approx(
        3e6 * 1e6 / 12 * (4e6 + 1 - (27 + 1) * 1e18 / 16e12), rel=1e-6
    )


def test_few_untied_distances_get_permutations_and_equal_the_exact_law() -> None:
    draw = np.random.default_rng(3)
    fresh, generated = np.zeros(1000), np.zeros(1000)
    fresh[:9], generated[:3] = draw.random(9), draw.random(3)
    found = rank_test(fresh, generated, rng=simulation(1))
    assert found.method == "permutation"
    chances = [rank_test(fresh, generated, rng=simulation(seed)).p_copying for seed in range(3)]
    assert max(chances) - min(chances) < 0.02 and 0.03 < found.p_copying < 0.06


@pytest.mark.parametrize(("n", "m", "far"), [(520, 520, 9), (1000, 600, 4), (600, 2000, 3)])
def test_a_tie_of_more_than_a_thousand_leaves_the_exact_law_in_the_doubles(n: int, m: int, far: int) -> None:
    fresh, generated = np.zeros(n), np.zeros(m)
    fresh[:far] = 1.0
    scores, counts = np.array([0, 1]), np.array([n + m - far, far])
    law, least = exact_law(scores, counts, m)
    assert law[0 - least] == pytest.approx(hypergeom.pmf(0, n + m, far, m), rel=1e-9)
    found = rank_test(fresh, generated, rng=simulation(1))
    if found.method == "exact":
        assert found.p_copying == pytest.approx(hypergeom.cdf(0, n + m, far, m), rel=1e-9)
    assert (n, found.method) != (520, "permutation")


def rejections(z: bool, count: int) -> list[bool]:
    """Whether tests at level .05 of 95 % tied, unequal samples of one law reject: by z alone, or by our p."""
    found = []
    for seed in range(count):
        draw = np.random.default_rng(seed)
        x = np.where(draw.random(220) < 0.95, 0.0, draw.random(220))
        test = rank_test(x[:20], x[20:])
        found.append(test.z < -1.6449 if z else test.p_copying <= 0.05)
    return found


@pytest.mark.exhaust
def test_exact_p_values_keep_the_level_where_normal_ones_do_not() -> None:
    # at level .05 a normal p rejects about .067 of 95 % tied samples; the exact one at most .05
    exact = rejections(False, 200)
    expect_share(exact, 0.0, 0.05, [0.25])
    expect_caught(expect_share, [*exact, *[True] * 60], 0.0, 0.05, [0.25])
    assert sum(rejections(True, 200)) >= sum(exact)


@pytest.mark.exhaust
def test_the_minimum_detectable_share_is_met_by_simulation() -> None:
    n = m = 500
    share = detectable_by_ranks(n, m)
    assert share == pytest.approx(2.4865 * np.sqrt((m + n) / (3 * m * n)), rel=1e-3)
    fired = []
    for seed in range(800):
        draw = np.random.default_rng(seed)
        generated = np.where(draw.random(m) < share, 0.0, draw.random(m))
        fired.append(rank_test(draw.random(n), generated).p_copying <= 0.05)
    expect_share(fired, 0.77, 0.84, [0.65, 0.93])


def covered(intervals: list[tuple[float, float]], truth: float) -> list[bool]:
    return [low <= truth <= high for low, high in intervals]


@pytest.mark.exhaust
def test_intervals_of_delta_cover_and_have_width_at_the_ends() -> None:
    intervals = []
    for seed in range(1500):
        draw = np.random.default_rng(seed)
        intervals.append(delta_interval(draw.random(60), draw.random(50) ** 2))
    truth = 1 / 3  # Pr(V^2 > U)
    expect_at_least(covered(intervals, truth), 0.94)
    half = [(truth + (low - truth) / 2, truth + (high - truth) / 2) for low, high in intervals]
    middle = [((low + high) / 2 - (high - low) / 4, (low + high) / 2 + (high - low) / 4) for low, high in intervals]
    assert len(half) == len(middle)
    expect_caught(expect_at_least, covered(middle, truth), 0.94)
    low, high = delta_interval(np.ones(40), np.zeros(50))
    assert low == 0.0 and 0.03 < high < 0.08, "DeLong has no width here"
    assert newcombe_interval(1.0, 40, 50, z=1.96)[0] == pytest.approx(1.0 - high, abs=1e-3)


def test_the_interval_of_delta_is_delongs_also_of_samples_of_unlike_sizes() -> None:
    draw = np.random.default_rng(4)
    fresh, generated = np.round(draw.random(12), 1), np.round(draw.random(90), 1)
    farther = (generated[:, None] > fresh) + 0.5 * (generated[:, None] == fresh)  # (90, 12), pair by pair
    error = np.sqrt(farther.mean(axis=1).var(ddof=1) / 90 + farther.mean(axis=0).var(ddof=1) / 12)
    wanted = farther.mean() + 1.959963984540054 * error * np.array([-1.0, 1.0])
    assert delta_interval(fresh, generated) == pytest.approx(tuple(wanted), rel=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_monotone_above_the_p_values_and_below_bonferroni(p: list[float]) -> None:
    adjusted, discovery = holm(p), benjamini_hochberg(p)
    order = np.argsort(p, kind="stable")
    assert (np.diff(np.array(adjusted)[order]) >= 0).all()
    for raw, one, other in zip(p, adjusted, discovery, strict=True):
        assert raw <= one <= min(1.0, len(p) * raw) + 1e-15 and raw <= other + 1e-15 <= one + 1e-14


def test_false_discovery_rates_are_those_of_scipy_and_rise_with_the_p_values() -> None:
    p = [0.04, 0.01, 0.03, 0.5, 0.02, 0.9]
    assert benjamini_hochberg(p) == pytest.approx(false_discovery_control(p), rel=1e-12)
    assert benjamini_hochberg([0.04, 0.041]) == [0.041, 0.041], "the smaller p-value falls at no larger rate"


def test_holm_ignores_the_order_of_the_hypotheses() -> None:
    p = [0.03, 0.001, 0.2, 0.001]
    assert holm(p[::-1])[::-1] == holm(p)


def test_the_published_mean_adds_half_over_sigma_whatever_the_sign() -> None:
    draw = np.random.default_rng(5)
    fresh, generated = draw.random(100), draw.random(100)
    ours: RankTest = rank_test(fresh, generated)
    shift = 0.5 / np.sqrt(100 * 100 * 201 / 12)
    assert reference_z(fresh, generated) - ours.z == pytest.approx(shift)
    assert reference_z(generated, fresh) + ours.z == pytest.approx(shift)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (6, 6), (9, 3)])
def test_theorem_1_needs_a_factor_of_two_and_holds_with_it(n: int, m: int) -> None:
    """For L(P) = L(Q), whose exact law of U is that of all assignments."""
    ranks = np.arange(1.0, n + m + 1)
    off = np.abs((sums(ranks, m) - m * (m + 1) / 2) / (m * n) - 0.5)
    for t in np.unique(off):
        assert np.mean(off >= t - 1e-12) <= deviation_bound(float(t), n=n, m=m)
    if (n, m) == (1, 1):
        printed = np.exp(-2 * 0.5**2 / 2)
        assert np.mean(off >= 0.5) == 1.0 > printed and round(float(printed), 3) == 0.779
