"""The median minimises, its bias bound holds, and it is chosen exactly where its bounds are smaller."""

import numpy as np
import pytest
from scipy.optimize import brentq
from tests.statistics import expect_at_least, expect_caught, expect_mean, rng_of

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError
from dovetail.estimate.classes import combine_classes
from dovetail.estimate.mean import estimate_mean
from dovetail.estimate.robust_mean import (
    best_mean,
    estimate_median,
    median_bias,
    median_variance,
    shrunken_mean,
)
from dovetail.job.fleet import FleetRound, time_window
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.laplace import Laplace

NARROW = Laplace(lower=0.0, upper=100.0, epsilon=4.0, grid=0.1)


def reports_law(device: BudgetLaplace, values: np.ndarray) -> np.ndarray:
    """Exact law (m + 1,) of the median of an odd number of clamped reports: Poisson-binomial counts below."""
    law = np.exp([device.log_density(np.arange(device.steps + 1), float(value)) for value in values])
    counts = np.eye(1, values.size + 1)[0][:, None] * np.ones(device.steps + 1)  # how many reports are at most z
    for below in np.minimum(law.cumsum(axis=1), 1.0):
        counts = counts * (1.0 - below) + np.vstack((np.zeros(below.size), counts[:-1] * below))
    return np.diff(counts[(values.size + 1) // 2 :].sum(axis=0), prepend=0.0)


@pytest.mark.parametrize("n", [1, 3, 5, 25, 101])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 30.0])
def test_the_bounds_hold_for_few_people_by_exact_sums(epsilon: float, n: int, rng: Entropy) -> None:
    """Everybody at an end, in the middle, near an end, at both ends, anywhere (not infinitely many)."""
    device = BudgetLaplace(0.0, 40.0, epsilon, 0.001, 0.9999, precision="published", grid=1.0)
    assert device.clamps
    crowds = [np.zeros(n), np.full(n, 40.0), np.full(n, 20.0), 1.0 * rng.below(3, n), 40.0 * (rng.below(7, n) == 0),
              1.0 * rng.below(41, n)]  # fmt: skip
    for values in crowds:
        estimate = estimate_median(device, np.zeros(n, dtype=int), spread=max(float(values.std()), 1e-3))
        law, points = reports_law(device, values), np.arange(41.0)
        centre = law @ points
        assert abs(centre - values.mean()) <= estimate.bias_bound + 1e-9
        assert np.sqrt(np.abs(law) @ (points - centre) ** 2) <= estimate.standard_error + 1e-9
        assert np.sqrt(np.abs(law) @ (points - values.mean()) ** 2) <= estimate.bias_bound + 1e-9


def test_the_bias_of_few_reports_is_real_and_the_mixture_alone_would_miss_it() -> None:
    """Five people at 1 of 100 under wide noise: clamping lifts their median by a fifth of the range."""
    device = BudgetLaplace(0.0, 100.0, 1.0, 0.001, 0.9999, precision="published", grid=1.0)
    bias = reports_law(device, np.ones(5)) @ np.arange(101.0) - 1.0
    estimate = estimate_median(device, np.zeros(5, dtype=int), spread=1.0)
    assert bias > 19.0 > 10.0 * (median_bias(1.0, 100.0) + device.step + device.rounding)
    assert bias < estimate.bias_bound < 100.0


def test_averages_of_medians_cover() -> None:
    """144 rounds of few people near an end, and 40 classes of them: the noise is averaged away, the bias is not."""
    laplace = Laplace(0.0, 100.0, epsilon=1.0)
    rng = rng_of("averages of medians")
    for n in (5, 20):
        batches = laplace.randomize(np.ones(144 * n), rng).reshape(144, n)
        medians = [estimate_median(laplace, batch, spread=1.0) for batch in batches]
        rounds = [FleetRound(t, each, 0, 0, True) for t, each in enumerate(medians, start=1)]
        mean = time_window(rounds, 144, width=144).estimate
        for each in (mean, combine_classes({str(t): each for t, each in enumerate(medians[:40])}).overall):
            low, high = each.interval(0.95)
            assert low <= 1.0 <= high
        of_many = median_bias(1.0, 100.0) + 1.5 * laplace.step
        assert float(mean.value - 1.96 * mean.standard_error) - of_many > 1.0  # the bias of few is in the bound


def test_the_bias_bound_holds_for_mixtures(rng: Entropy) -> None:
    for _ in range(200):
        x = rng.below(1000, 3) / 1000
        scale, weights = 0.2 + rng.below(1000, 1)[0] / 200, 1.0 + rng.below(50, 3)
        weights = weights / weights.sum()
        mean = weights @ x
        spread = float(np.sqrt(weights @ (x - mean) ** 2))

        def tilt(y: float, x: np.ndarray = x, w: np.ndarray = weights, scale: float = scale) -> float:
            return float(w @ (np.sign(y - x) * -np.expm1(-np.abs(y - x) / scale)))

        median = brentq(tilt, x.min() - 1, x.max() + 1)
        assert abs(median - mean) <= median_bias(spread, scale) + 1e-12


def test_the_bias_bound_is_not_idle() -> None:
    x, weights, scale = np.array([0.0, 1.0]), np.array([0.85, 0.15]), 5.0
    median = brentq(lambda y: float(weights @ (np.sign(y - x) * -np.expm1(-np.abs(y - x) / scale))), -1, 2)
    spread = float(np.sqrt(0.85 * 0.15))
    assert abs(median - 0.15) > 0.5 * median_bias(spread, scale)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 51])
def test_the_variance_of_the_median_is_exact_for_odd_n_and_a_bound_for_even(n: int, rng: Entropy) -> None:
    u = (rng.words(20_000 * n) >> np.uint64(11)).astype(float).reshape(-1, n) * 2.0**-53 + 2.0**-54
    draws = np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))
    squares = np.median(draws, axis=1) ** 2
    if n % 2:
        expect_mean(squares, median_variance(n))
        expect_caught(expect_mean, squares, 1.2 * median_variance(n))
    else:
        assert squares.mean() < median_variance(n)


def test_the_variance_of_the_median_falls_like_one_over_n() -> None:
    scaled = [n * median_variance(n) for n in (1, 3, 11, 101, 10_001, 1_000_001)]
    assert scaled == sorted(scaled, reverse=True) and scaled[-1] == pytest.approx(1.0, abs=0.01)


@pytest.mark.exhaust
@pytest.mark.parametrize("n", [25, 400])
def test_intervals_cover_the_mean_of_a_narrow_crowd(n: int, rng: Entropy) -> None:
    """Wide by design, for the bias bound holds whatever the crowd; one standard error does not do."""
    values = 40.0 + 2.0 * (np.arange(n) % 5 == 0)
    batches = NARROW.randomize(np.tile(values, 900), rng).reshape(900, n)
    estimates = [estimate_median(NARROW, batch, spread=1.0) for batch in batches]
    for ends in ([e.interval(0.95) for e in estimates], [e.population_interval(0.95) for e in estimates]):
        expect_at_least([bool(low <= values.mean() <= high) for low, high in ends], 0.95)
    off = np.array([float(e.value) for e in estimates]) - values.mean()
    expect_caught(expect_at_least, np.abs(off) <= [float(e.standard_error) for e in estimates], 0.95)


@pytest.mark.exhaust
def test_the_crossover_is_real(rng: Entropy) -> None:
    """With few people the median errs less; with many its bias stays and the unbiased mean wins."""
    device, squared = Laplace(lower=0.0, upper=100.0, epsilon=4.0, grid=1.0), {}
    for n, trials in ((20, 400), (40_000, 60)):
        values = np.where(np.arange(n) % 10 == 0, 50.0, 20.0)
        batches = device.randomize(np.tile(values, trials), rng).reshape(trials, n)
        for estimate in (estimate_median, estimate_mean):
            off = np.array([float(estimate(device, batch).value) for batch in batches]) - values.mean()
            squared[n, estimate.__name__] = off**2
    small = squared[20, "estimate_mean"].mean() / squared[20, "estimate_median"].mean()
    large = squared[40_000, "estimate_mean"].mean() / squared[40_000, "estimate_median"].mean()
    assert small > 1.1 and large < 0.5


def test_the_choice_is_the_smaller_bound_and_says_why(rng: Entropy) -> None:
    reports = NARROW.randomize(np.full(50_000, 50.0), rng)
    for n in (30, 1000, 50_000):
        for spread in (0.5, 3.0, None):
            chosen = best_mean(NARROW, reports[:n], spread=spread)
            mean, median = estimate_mean(NARROW, reports[:n]), estimate_median(NARROW, reports[:n], spread=spread)
            noise, shrunken = float(median.standard_error), shrunken_mean(NARROW, mean)
            risks = {
                "median": noise**2 + (median.bias_bound - noise) ** 2,
                "shrunken": shrunken.standard_error**2 + shrunken.bias_bound**2,
            }
            own, least = float(mean.standard_error**2 + mean.bias_bound**2), min(risks, key=risks.__getitem__)
            name = least if risks[least] <= 0.95 * own else "rao-blackwell"
            assert chosen.name == name
            assert chosen.estimate == {"median": median, "shrunken": shrunken, "rao-blackwell": mean}[name]
            assert f"n = {n:,}" in chosen.reason
    assert best_mean(NARROW, reports[:30], spread=0.5).name == "median"
    assert best_mean(NARROW, reports, spread=3.0).name == "rao-blackwell"
    assert best_mean(NARROW, reports[:30]).name == "rao-blackwell"
    wide = Laplace(lower=0.0, upper=100.0, epsilon=0.1)
    few = wide.randomize(np.full(30, 50.0), rng)
    assert float(estimate_mean(wide, few).standard_error) > 100.0 and best_mean(wide, few).name == "shrunken"


def test_clamped_reports_have_the_clamped_median() -> None:
    device = BudgetLaplace(lower=1.0, upper=2.0, epsilon=1.0, beta=0.5, rho=0.9, grid=0.25)
    assert float(estimate_median(device, np.array([0, 0, 0, 2, 4])).value) == 1.0
    assert float(estimate_median(device.noise, np.array([-9, -7, -5, 2, 40])).value) == 1.0


def test_bad_input_is_refused() -> None:
    for spread in (0.0, -1.0, float("nan"), "1"):
        with pytest.raises(ParameterError, match="`spread` must be"):
            estimate_median(NARROW, np.array([1]), spread=spread)
    with pytest.raises(DataError, match="no reports"):
        estimate_median(NARROW, np.array([], dtype=np.int64))


@pytest.mark.parametrize("upper", [1.0, 1e12, 1e74])
def test_the_largest_budget_and_ranges_do_not_overflow(upper: float) -> None:
    """Warnings are errors."""
    for grid in (upper, upper / 1024):
        laplace = Laplace(0.0, upper, epsilon=700.0, grid=grid)
        for spread in (None, upper / 100):
            estimate = estimate_median(laplace, np.array([0, 1, 1]), spread=spread)
            assert 0.0 <= estimate.standard_error <= estimate.bias_bound <= upper


def test_the_error_of_a_median_inside_the_range_is_at_most_half_the_range() -> None:
    laplace = Laplace(0.0, 3000.0, epsilon=9.0)
    estimate = estimate_median(laplace, np.array([0, 0, 32]))
    assert estimate.standard_error <= 1500.0
