"""The bootstrap average is the mean with more noise; its percentile interval covers the population's mean."""

import numpy as np
import pytest
from tests.statistics import expect_caught, expect_coverage, expect_mean, expect_standard_error

from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.estimate.mean import estimate_mean
from dovetail.estimate.robust_mean import bootstrap_mean
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.laplace import Laplace

CLAMPED = BudgetLaplace(lower=1.0, upper=3.0, epsilon=1.0, beta=0.5, rho=0.9, grid=0.25)
DEVICES = [Laplace(lower=0.0, upper=10.0, epsilon=2.0), CLAMPED]


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_resample_means_have_the_moments_of_resampling(device: Laplace | BudgetLaplace, rng: Entropy) -> None:
    reports = device.randomize(np.linspace(device.lower, device.upper, 300), rng)
    mean = estimate_mean(device, reports)
    result = bootstrap_mean(device, reports, resamples=4000, rng=rng)
    expect_mean(result.means, float(mean.value))
    expect_standard_error(result.means - float(mean.value), float(mean.population_error) * np.sqrt(299 / 300))
    expect_caught(expect_mean, result.means, float(mean.value) + 0.2 * float(mean.population_error))
    assert float(result.estimate.value) == pytest.approx(result.means.mean())
    extra = result.means.var(ddof=1) / 4000  # of the average of so many resamples
    for name in ("standard_error", "population_error"):
        found, own = (float(getattr(one, name)) for one in (result.estimate, mean))
        assert found**2 - own**2 == pytest.approx(extra, rel=1e-6)
    assert float(result.estimate.bias_bound) == float(mean.bias_bound)


@pytest.mark.exhaust
@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_population_intervals_cover(device: Laplace | BudgetLaplace, rng: Entropy) -> None:
    pool = np.linspace(device.lower, device.upper, 9)
    batches = device.randomize(pool[rng.below(9, 1100 * 200)], rng).reshape(1100, 200)
    found = [bootstrap_mean(device, batch, resamples=200, rng=rng).population_interval(0.8) for batch in batches]
    low, high = np.transpose(found) + np.array([[device.rounding], [-device.rounding]])  # values lie on the grid
    expect_coverage((low <= pool.mean()) & (pool.mean() <= high), 0.8)
    middle, half = (low + high) / 2, (high - low) / 2
    for factor in (0.7, 1.4):
        expect_caught(expect_coverage, np.abs(middle - pool.mean()) <= factor * half, 0.8)


def test_an_interval_is_wider_by_the_bias_on_both_sides(rng: Entropy) -> None:
    result = bootstrap_mean(CLAMPED, CLAMPED.randomize(np.full(50, 2.0), rng), resamples=100, rng=rng)
    bias = float(result.estimate.bias_bound)
    assert bias > 0.0
    low, high = np.quantile(result.means, [0.1, 0.9])
    assert result.population_interval(0.8) == pytest.approx((low - bias, high + bias), rel=1e-12)


def test_the_order_does_not_matter_and_the_seed_decides(rng: Entropy) -> None:
    reports = CLAMPED.randomize(np.linspace(1.0, 3.0, 200), rng)
    one, two, other = (
        bootstrap_mean(CLAMPED, batch, resamples=50, rng=simulation(seed)).means
        for batch, seed in ((reports, 1), (reports[::-1], 1), (reports, 2))
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_many_resamples_are_drawn_in_pieces(monkeypatch: pytest.MonkeyPatch, rng: Entropy) -> None:
    monkeypatch.setattr("dovetail.estimate.robust_mean._CELLS", 20)
    result = bootstrap_mean(CLAMPED, np.array([0, 1, 2, 3, 8]), resamples=11, rng=rng)
    assert result.means.shape == (11,)


def test_bad_input_is_refused(rng: Entropy) -> None:
    with pytest.raises(ParameterError, match="`resamples` must be"):
        bootstrap_mean(CLAMPED, np.array([1]), resamples=1, rng=rng)
    with pytest.raises(DataError, match="no reports"):
        bootstrap_mean(CLAMPED, np.array([], dtype=np.int64), rng=rng)
    with pytest.raises(ParameterError, match="`level` must be"):
        bootstrap_mean(CLAMPED, np.array([1, 2]), resamples=2, rng=rng).population_interval(1.0)
