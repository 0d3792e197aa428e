"""Means are exact sums, whatever the size of the reports."""

import numpy as np
import pytest
from tests.statistics import expect_coverage

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.estimate.mean import MeanEstimator, estimate_mean
from dovetail.randomize.laplace import Laplace

LAPLACE = Laplace(lower=-1.0, upper=3.0, epsilon=1.0, grid=0.5)


@pytest.mark.parametrize("size", [10, 1 << 30, 1 << 40, 1 << 57])
def test_sums_and_squares_never_overflow(size: int, rng: Entropy) -> None:
    reports = rng.below(2 * size, 3000) - size
    tally = MeanEstimator(LAPLACE).tally(reports)
    exact = [int(report) for report in reports]
    assert tally.counts.tolist() == [sum(exact), sum(report * report for report in exact)]
    assert tally.n == 3000


def test_the_estimate_is_the_decoded_mean_with_the_theorems_errors() -> None:
    reports = np.array([1, 2, 9, -4])
    estimate = estimate_mean(LAPLACE, reports)
    assert float(estimate.value) == -1.0 + 0.5 * 2.0
    assert float(estimate.standard_error) == pytest.approx(np.sqrt(LAPLACE.noise_variance / 4))
    spread = max(LAPLACE.noise_variance, 0.25 * reports.var(ddof=1))
    assert float(estimate.population_error) == pytest.approx(np.sqrt(spread / 4))
    assert estimate.bias_bound == 0.25


def test_the_bias_bound_covers_values_between_grid_points(rng: Entropy) -> None:
    laplace = Laplace(lower=0.0, upper=1.0, epsilon=5.0, grid=1.0)
    hits = []
    for _ in range(200):
        low, high = estimate_mean(laplace, laplace.randomize(np.full(5000, 0.45), rng)).interval(0.95)
        hits.append(bool(low <= 0.45 <= high))
    expect_coverage(hits, 0.95)


@pytest.mark.parametrize("bad", [[0.5], [[1]], ["a"], [True], np.array([1], dtype=np.uint64)], ids=repr)
def test_reports_that_are_no_grid_steps_are_refused(bad: object) -> None:
    with pytest.raises(DataError, match="`reports` must be whole grid steps"):
        estimate_mean(LAPLACE, np.array(bad))
