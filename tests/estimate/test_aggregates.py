"""Sums, variances, counts and quantiles: unbiased by exact sums, intervals that cover, refusals that say why."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from studies.rase_metrics import average_aggregation_error, maximum_squared_error
from tests.statistics import (
    LONG,
    SHORT,
    expect_at_least,
    expect_caught,
    expect_coverage,
    expect_mean,
    expect_standard_error,
)
from tests.tiers import one_in

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.estimate import Tally
from dovetail.estimate.mean import (
    FunctionEstimator,
    estimate_count_above,
    estimate_function,
    estimate_mean,
    estimate_quantile,
    estimate_sum,
    estimate_variance,
)
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.laplace import Laplace

CLAMPED = BudgetLaplace(lower=2.0, upper=6.0, epsilon=2.0, beta=0.4, rho=0.9, grid=0.5)
DEVICES = [CLAMPED, CLAMPED.noise, Laplace(lower=-2.0, upper=6.0, epsilon=8.0, grid=0.5)]
PEOPLE, TRIALS = 100, 1200
VALUES = 2.0 + 0.5 * (np.arange(PEOPLE) ** 2 % 7)


def batches(device: Any, rng: Entropy, values: np.ndarray = VALUES) -> np.ndarray:
    return device.randomize(np.tile(values, TRIALS), rng).reshape(TRIALS, PEOPLE)


def expect_unbiased_with_stated_errors(estimates: list[Any], truth: float) -> None:
    values, stated = (np.array([getattr(e, name) for e in estimates]) for name in ("value", "standard_error"))
    expect_mean(values, truth)
    expect_standard_error(values - truth, stated)
    expect_caught(expect_mean, values, truth + stated.mean() / 2)
    for factor in (SHORT, LONG):
        expect_caught(expect_standard_error, values - truth, factor * stated)


def test_a_tally_of_everything_ignores_order_and_adds(rng: Entropy) -> None:
    estimator = FunctionEstimator(CLAMPED, np.square)
    reports = CLAMPED.randomize(VALUES, rng)
    whole = estimator.tally(reports)
    np.testing.assert_array_equal(whole.counts, estimator.tally(reports[rng.permutation(PEOPLE)]).counts)
    parts = estimator.tally(reports[:9]) + estimator.tally(reports[9:])
    np.testing.assert_array_equal(whole.counts, parts.counts)
    assert whole.n == parts.n == whole.counts.sum()


@pytest.mark.parametrize("function", [np.square, np.exp, lambda x: x > 3.2, lambda x: x == 2.0])
def test_functions_are_unbiased_by_exact_sums(function: Any) -> None:
    z = np.arange(CLAMPED.steps + 1)
    estimator = FunctionEstimator(CLAMPED, function)
    single = np.array([estimator.solve(Tally(np.eye(z.size, dtype=np.int64)[k], 1)).value for k in z])
    for point in z:
        value = 2.0 + 0.5 * point
        law = np.exp(CLAMPED.log_density(z, value))
        assert law @ single == pytest.approx(float(function(value)), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("function", [np.square, np.exp, lambda x: x > 3.2, lambda x: x == 2.0])
def test_squared_standard_errors_are_unbiased_by_exact_sums(function: Any) -> None:
    """What one more report adds to n^2 se^2 is, over its law, the variance of what it adds to n times the value."""
    z, estimator = np.arange(CLAMPED.steps + 1), FunctionEstimator(CLAMPED, function)
    base = 1000 * np.ones(z.size, dtype=np.int64)

    def scaled(counts: np.ndarray) -> float:
        n = int(counts.sum())
        return float((n * estimator.solve(Tally(counts, n)).standard_error) ** 2)

    each = np.eye(z.size, dtype=np.int64)
    single = np.array([estimator.solve(Tally(each[k], 1)).value for k in z])
    added = np.array([scaled(base + each[k]) for k in z]) - scaled(base)
    for point in z:
        law = np.exp(CLAMPED.log_density(z, 2.0 + 0.5 * point))
        assert law @ added == pytest.approx(law @ single**2 - (law @ single) ** 2, rel=1e-6)


def test_the_identity_is_the_mean(rng: Entropy) -> None:
    reports = CLAMPED.randomize(VALUES, rng)
    mean, function = estimate_mean(CLAMPED, reports), estimate_function(CLAMPED, reports, lambda x: x)
    assert float(function.value) == pytest.approx(float(mean.value), rel=1e-12)
    assert float(function.standard_error) == pytest.approx(float(mean.standard_error), rel=2 / PEOPLE)
    total = estimate_sum(CLAMPED, reports)
    assert float(total.value) == pytest.approx(PEOPLE * float(mean.value))
    assert float(total.standard_error) == pytest.approx(PEOPLE * float(mean.standard_error))
    assert total.bias_bound == pytest.approx(PEOPLE * 0.25)


@pytest.mark.exhaust
@pytest.mark.parametrize("device", one_in(3, DEVICES), ids=repr)
def test_variances_are_unbiased_with_their_standard_errors(device: Any, rng: Entropy) -> None:
    """Half way between grid points random rounding adds as much as it can, to the error and to the variance."""
    half = device.step / 2
    values, added = (VALUES, 0.0) if device.rounding else (VALUES + half, half**2 * (1 - 1 / PEOPLE))
    estimates = [estimate_variance(device, batch) for batch in batches(device, rng, values)]
    expect_unbiased_with_stated_errors(estimates, VALUES.var() + added)
    span = device.upper - device.lower if device.rounding else 0.0
    assert estimates[0].bias_bound == pytest.approx(half * (span + half))


def test_the_rounding_of_values_shifts_a_variance_by_at_most_its_bound(rng: Entropy) -> None:
    nearest = BudgetLaplace(0.0, 4.0, epsilon=1.0, beta=0.5, rho=0.5, precision="published", grid=1.0)
    bound = estimate_variance(nearest, np.array([1, 2])).bias_bound
    at_random = estimate_variance(nearest.noise, np.array([1, 2])).bias_bound
    for _ in range(200):
        values = rng.below(4001, 5) / 1000
        assert abs(values.var() - nearest.nearest(values).var()) <= bound
        up = values - np.floor(values)
        assert 0.0 <= np.mean(up * (1 - up)) * (1 - 1 / 5) <= at_random  # what rounding adds on average
    assert at_random == 0.25


@pytest.mark.exhaust
@pytest.mark.parametrize("threshold", [2.5, 3.7, 5.0])
@pytest.mark.parametrize("device", one_in(3, DEVICES[:2]), ids=repr)
def test_counts_are_unbiased_with_their_standard_errors(device: Any, threshold: float, rng: Entropy) -> None:
    truth = np.count_nonzero(threshold <= VALUES)
    estimates = [estimate_count_above(device, batch, threshold) for batch in batches(device, rng)]
    expect_unbiased_with_stated_errors(estimates, truth)


def test_counts_have_the_stencil_of_three_points() -> None:
    device, o = Laplace(lower=0.0, upper=5.0, epsilon=5.0, grid=1.0), 1 / np.expm1(1.0)
    single = [float(estimate_count_above(device, np.array([z]), 3.0).value) for z in range(-2, 8)]
    np.testing.assert_allclose(single, [0, 0, 0, 0, -o * (o + 1), 1 + o * (o + 1), 1, 1, 1, 1], atol=1e-12)
    ends = [float(estimate_count_above(device, np.array([0]), 1.0).value)]
    ends.append(float(estimate_count_above(device, np.array([5]), 5.0).value))
    np.testing.assert_allclose(ends, [-o, 1 + o], atol=1e-12)


def test_naive_counts_of_reports_are_biased(rng: Entropy) -> None:
    naive = np.count_nonzero(2.0 + 0.5 * batches(CLAMPED, rng) >= 3.5, axis=1)
    assert abs(naive.mean() - np.count_nonzero(VALUES >= 3.5)) > 20 * naive.std() / np.sqrt(TRIALS)


@pytest.mark.exhaust
def test_at_the_edge_of_a_quantile_its_interval_covers_at_its_level_and_no_more(rng: Entropy) -> None:
    """Exactly 0.8 of the people are at the truth or below it: the interval tells it from the next value."""
    device = BudgetLaplace(lower=2.0, upper=6.0, epsilon=8.0, beta=0.1, rho=0.99, grid=0.5, precision="published")
    assert device.clamps
    values = np.repeat([2.0, 2.5, 3.5, 4.0, 6.0], [60, 80, 100, 50, 10])
    reports = device.randomize(np.tile(values, 1200), rng).reshape(1200, 300)

    def hits(level: float) -> list[bool]:
        found = [estimate_quantile(device, batch, share=0.8, level=level) for batch in reports]
        assert all(q.low <= q.value <= q.high for q in found)
        return [q.low <= 3.5 < q.high for q in found]

    expect_coverage(hits(0.8), 0.8)
    for factor in (SHORT, LONG):
        expect_caught(expect_coverage, hits(1.0 - 2.0 * float(norm.sf(factor * norm.isf(0.1)))), 0.8)


@pytest.mark.exhaust
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_intervals_of_quantiles_cover(share: float, rng: Entropy) -> None:
    device = BudgetLaplace(lower=2.0, upper=6.0, epsilon=8.0, beta=0.1, rho=0.99, grid=0.5, precision="published")
    values = np.repeat([2.0, 2.5, 3.5, 5.0, 6.0], [60, 80, 100, 50, 10])
    truth = np.sort(values)[int(np.ceil(share * 300)) - 1]
    found = [
        estimate_quantile(device, batch, share=share)
        for batch in device.randomize(np.tile(values, 900), rng).reshape(900, 300)
    ]
    expect_at_least([q.low <= truth <= q.high for q in found], 0.95)  # a grid point, where counts vary continuously
    expect_caught(expect_at_least, [q.low <= truth - 0.5 and q.high >= truth + 0.5 for q in found], 0.95)
    assert np.mean([q.high - q.low for q in found]) < 3.0


def test_quantiles_without_noise_are_the_quantiles() -> None:
    device = Laplace(lower=0.0, upper=10.0, epsilon=700.0, grid=1.0)
    reports = np.repeat([1, 4, 9], [100, 800, 100])
    for share, value in ((0.05, 1.0), (0.5, 4.0), (0.95, 9.0)):
        quantile = estimate_quantile(device, reports, share=share)
        assert (quantile.value, quantile.low, quantile.high) == (value, value, value)


@pytest.mark.exhaust
@pytest.mark.parametrize(("epsilon", "n"), [(0.5, 200), (2.0, 30), (8.0, 5)])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_intervals_of_quantiles_cover_whatever_the_noise_hides(
    epsilon: float, n: int, share: float, rng: Entropy
) -> None:
    """Every answer counts: where nothing can be told the interval is the whole range."""
    device = Laplace(lower=0.0, upper=10.0, epsilon=epsilon, grid=1.0)
    values = 10.0 * (np.arange(n) % 10 == 0)
    truth = np.sort(values)[int(np.ceil(share * n)) - 1]
    found = [
        estimate_quantile(device, batch, share=share)
        for batch in device.randomize(np.tile(values, 900), rng).reshape(900, n)
    ]
    expect_at_least([q.low <= truth <= q.high for q in found], 0.95)
    assert any((q.low, q.high) == (0.0, 10.0) for q in found)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1.0,
        lambda x: x[:3],
        lambda x: 1 if x > 3 else 0,
        math.sqrt,
        np.log,
        lambda x: x * np.nan,
        lambda x: np.array(["a"] * x.size),
        "a",
    ],
)
def test_functions_that_are_not_elementwise_and_finite_are_refused(function: Any) -> None:
    device = Laplace(lower=0.0, upper=10.0, epsilon=5.0, grid=1.0)
    with pytest.raises(ParameterError, match="`function` must be a function that maps an array of numbers"):
        estimate_function(device, np.array([1, 2]), function)


def test_bad_input_is_refused() -> None:
    none = np.array([], dtype=np.int64)
    for estimate in (estimate_sum, estimate_variance):
        for empty in (none, []):
            with pytest.raises(DataError, match="no reports"):
                estimate(CLAMPED, empty)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no reports"):
        estimate_count_above(CLAMPED, none, 3.0)
    with pytest.raises(DataError, match="no reports"):
        estimate_quantile(CLAMPED, none, share=0.5)
    for threshold in (2.0, 6.1):
        with pytest.raises(UnsupportedError, match="`threshold` must lie in"):
            estimate_count_above(CLAMPED, np.array([1]), threshold)
    for bad in (0.0, 1.0, float("nan")):
        with pytest.raises(ParameterError, match="`share` must be"):
            estimate_quantile(CLAMPED, np.array([1]), share=bad)
    with pytest.raises(ParameterError, match="`threshold` must be"):
        estimate_count_above(CLAMPED, np.array([1]), float("nan"))


def test_the_measures_of_the_paper_have_their_printed_left_hand_sides() -> None:
    values, reports = [4.0, 2.0, 1.0, 3.0, 5.0], [9.5, 1.1, 8.4, 2.8, 3.2]
    assert average_aggregation_error(values, reports) == pytest.approx(np.mean(reports) - np.mean(values))
    printed = float(np.mean(np.subtract(values, reports)))  # the right-hand side of equation (19)
    assert printed == pytest.approx(-average_aggregation_error(values, reports)) and printed < 0.0
    assert maximum_squared_error(values, reports) == pytest.approx(7.4**2)
    mean_square = float(np.mean(np.subtract(values, reports) ** 2))  # what equation (20) is called, and is not
    assert mean_square == pytest.approx(17.82) and maximum_squared_error(values, reports) > 3 * mean_square
    for bad in ([1.0], [1.0] * 4 + [np.nan], [[1.0]] * 5, ["a"] * 5, [[1.0], [1.0, 2.0]]):
        with pytest.raises(DataError, match="`reports` must be finite numbers"):
            average_aggregation_error(values, bad)
