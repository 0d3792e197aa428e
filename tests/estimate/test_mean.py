"""Means are exact sums, whatever the size of the reports."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.statistics import LONG, SHORT, expect_at_least, expect_caught, expect_mean, expect_standard_error
from tests.tiers import one_in

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate
from dovetail.estimate.mean import MeanEstimator, estimate_mean, in_range, sample_mean
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.laplace import Laplace

LAPLACE = Laplace(lower=-1.0, upper=3.0, epsilon=1.0, grid=0.5)
TRIALS = 1500


def covered(estimates: list[Estimate], truth: float) -> list[bool]:
    return [bool(low <= truth <= high) for low, high in (e.interval(0.95) for e in estimates)]


@pytest.mark.parametrize("steps", [8, 1 << 20, 1 << 31])
def test_sums_and_squares_never_overflow(steps: int, rng: Entropy) -> None:
    laplace = Laplace(lower=-1.0, upper=3.0, epsilon=1.0, grid=4.0 / steps)
    reports = rng.below(1 << 58, 3000) - (1 << 57)
    reports[:1000] %= steps + 1
    tally = MeanEstimator(laplace).tally(reports)
    exact = [min(max(int(report), 0), steps) for report in reports]
    sums = [sum(exact), sum(report * report for report in exact)]
    assert tally.counts.tolist() == [*sums, exact.count(0), exact.count(steps)]
    assert tally.n == 3000 and all(type(count) is int for count in tally.counts)
    estimate = MeanEstimator(laplace).solve(tally)
    o = float(1 / np.expm1(float(laplace.rate)))
    stands = [Fraction(z) + Fraction(o) * ((z == steps) - (z == 0)) for z in exact]
    mean = sum(stands) / 3000
    sample = sum((r - mean) ** 2 for r in stands) / 2999
    assert float(estimate.value) == pytest.approx(-1.0 + laplace.step * float(mean), rel=1e-9)
    assert float(estimate.population_error) == pytest.approx(laplace.step * float(sample / 3000) ** 0.5, rel=1e-9)


def test_the_estimate_is_the_mean_of_what_clamped_reports_stand_for() -> None:
    reports = np.array([1, 2, 9, -4])  # the last two beyond the edges 8 and 0
    estimate = estimate_mean(LAPLACE, reports)
    o = 1 / np.expm1(1 / 8)
    stands = np.array([1, 2, 8 + o, -o])
    assert float(estimate.value) == pytest.approx(-1.0 + 0.5 * stands.mean())
    noise = LAPLACE.geometric_variance * (1 - 2 / 8) + 0.5**2 / 4
    assert float(estimate.standard_error) == pytest.approx(np.sqrt(noise / 4))
    assert estimate.population_error == estimate.standard_error  # the larger of the two: these four are close
    assert estimate.bias_bound == 0.0
    apart = np.repeat([0, 8], 50)
    spread = 0.5 * np.sqrt(np.where(apart == 0, -o, 8 + o).var(ddof=1) / 100)
    assert float(estimate_mean(LAPLACE, apart).population_error) == pytest.approx(spread)


def test_the_analyst_may_clamp_what_the_device_did_not(rng: Entropy) -> None:
    device = BudgetLaplace(lower=1.0, upper=3.0, epsilon=1.0, beta=0.5, rho=0.9, grid=0.25)
    unclamped = device.noise.randomize(np.linspace(1.0, 3.0, 500), rng)
    there, here = estimate_mean(device, np.clip(unclamped, 0, 8)), estimate_mean(device.noise, unclamped)
    assert there.value == here.value
    assert float(here.standard_error**2 - there.standard_error**2) == pytest.approx(0.25**2 / 4 / 500)


def test_one_report_moves_the_estimate_by_little() -> None:
    calm, wild = np.full(100, 4), np.append(np.full(99, 4), 1 << 40)
    moved = float(estimate_mean(LAPLACE, wild).value - estimate_mean(LAPLACE, calm).value)
    assert moved == pytest.approx(0.5 * (4 + 1 / np.expm1(1 / 8)) / 100)


@pytest.mark.exhaust
@pytest.mark.parametrize("randomizer", one_in(3, [*Laplace.examples(), *BudgetLaplace.examples()]), ids=repr)
def test_means_are_unbiased_with_both_standard_errors(randomizer: Any, rng: Entropy) -> None:
    if randomizer.rounding:
        points = rng.below(randomizer.steps + 1, 100 * TRIALS)
    else:  # half way between two grid points, where random rounding varies as much as is stated
        points = rng.below(randomizer.steps, 100 * TRIALS) + 0.5
    reports = randomizer.randomize(randomizer.lower + randomizer.step * points, rng)
    estimates = [estimate_mean(randomizer, batch) for batch in np.split(reports, TRIALS)]
    truths = randomizer.lower + randomizer.step * points.reshape(TRIALS, -1).mean(axis=1)
    off = np.array([float(estimate.value) for estimate in estimates]) - truths
    errors = np.array([float(estimate.standard_error) for estimate in estimates])
    expect_mean(off, 0.0)
    expect_standard_error(off, errors)
    middle = randomizer.lower + randomizer.step * randomizer.steps / 2
    around = off + truths - middle
    sampled = np.array([float(estimate.population_error) for estimate in estimates])
    expect_standard_error(around, sampled)
    for factor in (SHORT, LONG):
        expect_caught(expect_standard_error, off, factor * errors)
        expect_caught(expect_standard_error, around, factor * sampled)


def test_tallies_of_clamped_reports_ignore_order_and_add(rng: Entropy) -> None:
    device = BudgetLaplace.examples()[0]
    reports, estimator = device.randomize(np.linspace(1.0, 2.0, 300), rng), MeanEstimator(device)
    whole = estimator.tally(reports).counts.tolist()
    assert whole == estimator.tally(reports[rng.permutation(300)]).counts.tolist()
    assert whole == (estimator.tally(reports[:7]) + estimator.tally(reports[7:])).counts.tolist()


@pytest.mark.parametrize("randomizer", BudgetLaplace.examples(), ids=repr)
def test_the_bias_of_the_sample_mean_is_within_its_bound_and_reached_at_the_ends(randomizer: BudgetLaplace) -> None:
    z = np.arange(randomizer.steps + 1) if randomizer.clamps else np.arange(-2000, 2000)
    t, m = np.exp(-float(randomizer.rate)), randomizer.steps
    bound = sample_mean(randomizer, z[:2]).bias_bound - randomizer.rounding
    variance = sample_mean(randomizer, z[:2]).standard_error ** 2 * 2
    found = []
    for point in range(m + 1):
        law = np.exp(randomizer.log_density(z, randomizer.lower + randomizer.step * point))
        found.append(randomizer.step * (law @ z - point))
        assert randomizer.step**2 * (law @ z**2 - (law @ z) ** 2) <= variance * (1 + 1e-12)
    expected = np.zeros(m + 1)
    if randomizer.clamps:
        i = np.arange(m + 1)
        expected = randomizer.step * t / (1 - t) * (t**i - t ** (m - i)) / (1 + t)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.max(np.abs(found)) == pytest.approx(bound, abs=1e-12)


@pytest.mark.exhaust
def test_the_sample_mean_is_biased_as_computed_where_the_other_is_not(rng: Entropy) -> None:
    device = BudgetLaplace(lower=1.0, upper=2.0, epsilon=0.5, beta=0.5, rho=0.9, grid=0.125)
    batches = device.randomize(np.full(900 * 100, 1.25), rng).reshape(900, 100)
    plain = [sample_mean(device, batch) for batch in batches]
    t = np.exp(-1 / 16)
    expect_mean([e.value for e in plain], 1.25 + 0.125 * t / (1 - t) * (t**2 - t**6) / (1 + t))
    expect_caught(expect_mean, [e.value for e in plain], 1.25)
    expect_at_least(covered(plain, 1.25), 0.95)
    expect_caught(expect_at_least, covered([replace(e, bias_bound=0.0) for e in plain], 1.25), 0.95)
    assert abs(np.mean([e.value for e in plain]) - 1.25) > 0.15
    expect_mean([estimate_mean(device, batch).value for batch in batches], 1.25)


@pytest.mark.exhaust
def test_the_bias_bound_covers_values_between_grid_points(rng: Entropy) -> None:
    nearest = BudgetLaplace(0.0, 1.0, epsilon=5.0, beta=0.5, rho=0.5, precision="published", grid=1.0)
    batches = nearest.randomize(np.full(900 * 200, 0.45), rng).reshape(900, 200)
    found = [estimate_mean(nearest, batch) for batch in batches]
    expect_at_least(covered(found, 0.45), 0.95)
    expect_caught(expect_at_least, covered([replace(e, bias_bound=0.0) for e in found], 0.45), 0.95)


@pytest.mark.exhaust
def test_values_between_grid_points_are_covered_without_a_bias_bound(rng: Entropy) -> None:
    laplace = Laplace(lower=0.0, upper=1.0, epsilon=5.0, grid=1.0)
    batches = laplace.randomize(np.full(900 * 200, 0.45), rng).reshape(900, 200)
    found = [estimate_mean(laplace, batch) for batch in batches]
    assert found[0].bias_bound == 0.0
    expect_mean([e.value for e in found], 0.45)
    expect_at_least(covered(found, 0.45), 0.95)
    unrounded = [
        replace(e, standard_error=np.sqrt(e.standard_error**2 - 0.25 / 200), population_error=e.population_error)
        for e in found
    ]
    expect_caught(expect_at_least, covered(unrounded, 0.45), 0.95)


@pytest.mark.parametrize("bad", [[0.5], [[1]], ["a"], [True], np.array([1], dtype=np.uint64)], ids=repr)
def test_reports_that_are_no_grid_steps_are_refused(bad: object) -> None:
    with pytest.raises(DataError, match="`reports` must be whole grid steps"):
        estimate_mean(LAPLACE, np.array(bad))


def test_reports_that_the_randomizer_never_sends_are_refused() -> None:
    device = BudgetLaplace.examples()[0]
    for estimate in (estimate_mean, sample_mean):
        with pytest.raises(DataError, match="must be what Laplace noise sends, got steps from -1 to 9"):
            estimate(device, np.array([9, 0, -1]))
        for empty in (np.array([], dtype=np.int64), []):
            with pytest.raises(DataError, match="no reports"):
                estimate(device, empty)  # type: ignore[arg-type]


def test_the_sample_mean_of_unclamped_reports_is_their_mean(rng: Entropy) -> None:
    reports = LAPLACE.randomize(np.full(300, 1.0), rng)
    plain = sample_mean(LAPLACE, reports)
    assert float(plain.value) == pytest.approx(LAPLACE.decode(reports).mean())
    assert float(plain.standard_error) ** 2 == pytest.approx(LAPLACE.noise_variance / 300)
    assert plain.bias_bound == 0.0


@given(value=st.floats(-50, 50), half=st.floats(0.01, 50), truth=st.floats(0, 10))
def test_a_mean_in_its_range_is_no_further_from_the_truth_and_its_interval_covers_no_less(
    value: float, half: float, truth: float
) -> None:
    possible, (low, high) = in_range(value, (value - half, value + half), (0.0, 10.0))
    assert 0.0 <= low <= possible <= high <= 10.0 and low < high
    assert abs(possible - truth) <= abs(value - truth)
    assert low <= truth <= high or not value - half <= truth <= value + half
