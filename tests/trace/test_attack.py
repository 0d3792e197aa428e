"""Adversaries: smoothers are Bayes' rule, predictions meet measurements, robust noise hides what uniform does not."""

from dataclasses import replace

import numpy as np
import pytest
from tests.statistics import rng_of
from tests.trace.priors import KERNELS, covariance, generator
from tests.trace.test_release import PLAN, PRIOR, TIMES

from dovetail.trace.kernels import with_nugget
from dovetail.trace.rehearsal import (
    RIGHT,
    SEEN,
    SMOOTH,
    WALK,
    chance_within,
    heat_distance,
    random_walk_estimate,
    rehearse_attack,
    smoother,
    synthetic_traces,
    utility,
)
from dovetail.trace.trace import SecretTimes, Trace


def test_a_smoother_is_the_conditional_mean_with_and_without_a_sighting() -> None:
    rng, prior = generator("smoother"), KERNELS[1].matrix(np.arange(10.0))
    noise = covariance(10, rng)
    whole, released = prior + 100.0, rng.standard_normal(10)
    middle = released.mean()
    plain = smoother(prior, noise, [4])
    gain = whole[4] @ np.linalg.inv(whole + noise)
    assert plain.estimate(released)[0] == pytest.approx(middle + gain @ (released - middle), rel=1e-6)
    assert plain.variance[0] == pytest.approx(101.0 - gain @ whole[4], rel=1e-6)
    # the sighting as one more release without noise
    both = np.block([[whole + noise, whole[:, [7]]], [whole[[7]], whole[[7]][:, [7]]]])
    cross = np.append(whole[4], whole[4, 7])
    seen = smoother(prior, noise, [4], known=7)
    expected = middle + cross @ np.linalg.solve(both, np.append(released, 0.3) - middle)
    assert seen.estimate(released, 0.3)[0] == pytest.approx(expected, rel=1e-6)
    assert seen.variance[0] == pytest.approx(101.0 - cross @ np.linalg.solve(both, cross), rel=1e-6)


def test_the_chance_of_a_disc_is_that_of_sampling() -> None:
    rng = np.random.default_rng(5)
    for variances in (np.array([1.0, 4.0]), np.array([0.01, 9.0])):
        hits = (rng.standard_normal((400_000, 2)) ** 2 @ variances <= 1.0).mean()
        assert chance_within(1.0, variances) == pytest.approx(hits, abs=6 * np.sqrt(0.25 / 400_000))
    assert chance_within(1.0, np.array([1.0])) == pytest.approx(0.682689, abs=1e-6)


def test_a_random_walk_smooths_what_is_smooth() -> None:
    times = np.arange(60.0)
    true = np.column_stack([np.sin(times / 10), np.cos(times / 10)])
    released = true + 0.3 * np.random.default_rng(6).standard_normal(true.shape)
    guess = random_walk_estimate(times, released, list(range(60)))
    assert np.sqrt(np.mean((guess - true) ** 2)) < 0.6 * 0.3


@pytest.mark.exhaust
def test_where_the_kernel_is_right_prediction_and_measurement_agree() -> None:
    rng = rng_of("prediction")
    plan = replace(PLAN, secrets=SecretTimes(((75.0, 75.0),)), radius=15.0, error=15.0)
    like = [Trace.of(str(i), TIMES, np.zeros((12, 2))) for i in range(300)]
    found = rehearse_attack(plan, synthetic_traces(plan, like, rng), draws=1, rng=rng)
    ours, uniform = (next(x for x in found if (x.mechanism, x.adversary) == (m, RIGHT)) for m in ("mixed", "uniform"))
    for one in (ours, uniform):
        assert one.predicted is not None and one.width_ratio is not None and one.width_ratio_error is not None
        # six standard errors: a false alarm in 5e8
        assert abs(one.success - one.predicted) <= 6 * np.sqrt(one.predicted * (1 - one.predicted) / 300)
        assert abs(one.width_ratio - 1.0) <= 6 * one.width_ratio_error
    assert ours.success <= uniform.success / 1.5
    walk = next(x for x in found if x.adversary == WALK)
    assert walk.predicted is None and walk.width_ratio is None


@pytest.mark.exhaust
def test_a_smoother_that_believes_in_no_nugget_is_rehearsed_and_finds_smooth_traces_best() -> None:
    plan = replace(PLAN, prior=replace(PRIOR, kernel=with_nugget(PRIOR.kernel, 0.3)), radius=15.0, error=15.0)
    smooth = [Trace.of(str(i), TIMES, np.column_stack([15.0 * i + TIMES, 3.0 * TIMES])) for i in range(8)]
    found = rehearse_attack(plan, smooth, draws=40, rng=rng_of("nugget"))
    ours = {one.adversary: one.error for one in found if one.mechanism == "uniform"}
    assert {SMOOTH, SMOOTH + SEEN} <= set(ours) and ours[SMOOTH] < ours[RIGHT]
    assert SMOOTH not in {one.adversary for one in rehearse_attack(PLAN, smooth[:2], draws=2, rng=rng_of("none"))}


def test_utility_of_the_truth_is_perfect_and_of_noise_is_not() -> None:
    rng = np.random.default_rng(8)
    true = [np.cumsum(rng.normal(0, 20, (30, 2)), axis=0) for _ in range(3)]
    times = [np.arange(30.0) * 10] * 3
    same = utility(times, true, true)
    assert same.error == same.dwell == same.length == 0.0 and set(same.heat.values()) == {0.0}
    noisy = utility(times, true, [each + rng.normal(0, 50, each.shape) for each in true])
    assert noisy.error > 40 and noisy.length > 0.5 and 0 < noisy.heat[1000.0] <= noisy.heat[100.0] <= 1
    assert PRIOR.dimensions == 2


def test_heat_maps_that_share_no_cell_are_as_far_apart_as_can_be() -> None:
    here = np.array([[1.0, 1.0], [2.0, 3.0]])
    assert (heat_distance(here, here + 100.0, 50.0), heat_distance(here, here, 50.0)) == (1.0, 0.0)
