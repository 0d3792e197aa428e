"""Standard errors are those of the exact law: with counts in proportion to it, nothing is left to chance.

The oracle knows the law of a clamped report alone: what is unbiased follows from a system of linear equations, and
the variance from its solution. A standard error off by a few percent, to either side, is seen.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri

from dovetail.core.estimate import Estimate, Tally
from dovetail.estimate.frequency import estimate_frequencies
from dovetail.estimate.mean import (
    FunctionEstimator,
    estimate_count_above,
    estimate_function,
    estimate_mean,
    estimate_quantile,
    estimate_sum,
    estimate_variance,
)
from dovetail.estimate.robust_mean import estimate_median, median_bias, median_variance
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace

Numbers = NDArray[np.float64]
LAPLACE = Laplace(lower=2.0, upper=10.0, epsilon=3.0, grid=1.0)
POINTS = np.arange(9.0) + 2.0
SHARES = np.array([0.1, 0.0, 0.2, 0.05, 0.3, 0.05, 0.1, 0.0, 0.2])  # of people, by grid point
N = 1_000_000
LEVEL = 0.95
Z = float(ndtri(0.975))


def clamped_law(randomizer: Laplace) -> Numbers:
    """Pr[clamped report | grid point] (m + 1, m + 1), from the noise's own law."""
    m, rate = randomizer.steps, float(randomizer.rate)
    grid = np.arange(m + 1)
    law = np.tanh(rate / 2) * np.exp(-rate * np.abs(grid[:, None] - grid))
    beyond = np.exp(-rate * grid) / (1 + np.exp(-rate))  # at the lower end and below, from each point
    law[:, 0], law[:, -1] = beyond, beyond[::-1]
    np.testing.assert_allclose(law.sum(axis=1), 1.0, rtol=1e-12)
    return np.asarray(law)


def reports_in_proportion(randomizer: Laplace, shares: Numbers, n: int) -> NDArray[np.int64]:
    """n reports of people with these shares, as many of each kind as are expected, up to one."""
    upto = np.rint(n * np.cumsum(shares @ clamped_law(randomizer))).astype(np.int64)
    return np.repeat(np.arange(randomizer.steps + 1), np.diff(upto, prepend=0))


def exact_variance(randomizer: Laplace, shares: Numbers, f: Numbers) -> float:
    """n times the variance of the unbiased estimate of the mean of f among people with these shares."""
    law = clamped_law(randomizer)
    h = np.linalg.solve(law, f)
    return float(shares @ (law @ h**2 - (law @ h) ** 2))


def stated_variance(randomizer: Laplace, shares: Numbers, f: Numbers) -> float:
    """The same where everybody may be half way to the neighbour that differs most in f."""
    beside = np.pad(np.diff(f) ** 2 / 4, 1)
    return exact_variance(randomizer, shares, f) + float(shares @ np.maximum(beside[1:], beside[:-1]))


REPORTS = reports_in_proportion(LAPLACE, SHARES, N)
MEAN = float(SHARES @ POINTS)
QUESTIONS: dict[str, tuple[Callable[[], object], Numbers, float]] = {
    "mean": (lambda: estimate_mean(LAPLACE, REPORTS), POINTS, 1.0),
    "sum": (lambda: estimate_sum(LAPLACE, REPORTS), POINTS, N),
    "variance": (lambda: estimate_variance(LAPLACE, REPORTS), (POINTS - MEAN) ** 2, 1.0),
    "count": (lambda: estimate_count_above(LAPLACE, REPORTS, 6.0), (POINTS >= 6.0) * 1.0, N),
    "function": (lambda: estimate_function(LAPLACE, REPORTS, np.sqrt), np.sqrt(POINTS), 1.0),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_standard_error_is_the_root_of_the_exact_variance(question: str) -> None:
    ask, f, scale = QUESTIONS[question]
    found = ask()
    error = scale * np.sqrt(stated_variance(LAPLACE, SHARES, f) / N)
    assert float(found.standard_error) == pytest.approx(error, rel=2e-3)  # type: ignore[attr-defined]
    assert float(found.value) == pytest.approx(scale * float(SHARES @ f), rel=2e-3)  # type: ignore[attr-defined]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_population_error_adds_the_spread_of_the_people(question: str) -> None:
    ask, f, scale = QUESTIONS[question]
    spread = float(SHARES @ f**2 - (SHARES @ f) ** 2)
    error = scale * np.sqrt((exact_variance(LAPLACE, SHARES, f) + spread) / N)
    assert float(ask().population_error) == pytest.approx(error, rel=2e-3)  # type: ignore[attr-defined]


def test_where_noise_is_small_a_population_is_as_uncertain_as_its_people_differ() -> None:
    clear = Laplace(lower=2.0, upper=10.0, epsilon=40.0, grid=1.0)
    reports = reports_in_proportion(clear, SHARES, N)
    for found, f in (
        (estimate_mean(clear, reports), POINTS),
        (estimate_function(clear, reports, lambda x: x >= 4.0), (POINTS >= 4.0) * 1.0),
    ):
        spread = float(SHARES @ f**2 - (SHARES @ f) ** 2)
        noise = exact_variance(clear, SHARES, f)
        assert noise < 0.1 * spread
        assert float(found.population_error) == pytest.approx(np.sqrt((noise + spread) / N), rel=2e-3)


@pytest.mark.parametrize("values", [(0, 2), (0, 0), (0, 1, 2)])
def test_the_variance_of_few_people_is_estimated_without_bias(values: tuple[int, ...]) -> None:
    few = Laplace(lower=0.0, upper=2.0, epsilon=2.0, grid=1.0)
    law, expected = clamped_law(few), 0.0
    for reports in product(range(3), repeat=len(values)):
        chance = np.prod([law[value, report] for value, report in zip(values, reports, strict=True)])
        expected += float(chance * estimate_variance(few, np.array(reports)).value)
    assert expected == pytest.approx(np.var(values), abs=1e-9)


def test_a_standard_error_counts_what_few_reports_may_hide() -> None:
    estimator = FunctionEstimator(LAPLACE, lambda x: x >= 6.0)
    one = np.eye(9)[0]
    assert float(estimator.solve(Tally(one, 1)).standard_error) > 0.0
    law = clamped_law(LAPLACE)
    for n in (10, 100, 1000):  # never below the exact one on average over counts in proportion, and hardly above
        found = estimator.solve(Tally(n * (SHARES @ law), n))
        exact = np.sqrt(stated_variance(LAPLACE, SHARES, (POINTS >= 6.0) * 1.0) / n)
        assert exact < float(found.standard_error) < exact * (1 + 6.0 / np.sqrt(n))


@pytest.mark.exhaust
@pytest.mark.parametrize("share", [0.3, 0.5, 0.75])
@pytest.mark.parametrize("n", [60_000, 100_000])
def test_the_interval_of_a_quantile_ends_where_the_exact_error_says(share: float, n: int) -> None:
    fine = Laplace(lower=0.0, upper=256.0, epsilon=16.0, grid=1.0)
    shares = np.full(257, 1 / 257)
    found = estimate_quantile(fine, reports_in_proportion(fine, shares, n), share=share, level=LEVEL)
    cuts = np.arange(256)
    errors = [np.sqrt(stated_variance(fine, shares, (np.arange(257) <= c) * 1.0) / n) for c in cuts[::16]]
    error, below = np.interp(cuts, cuts[::16], errors), (cuts + 1) / 257
    low = float(np.flatnonzero(below + Z * error >= share)[0])
    high = float(np.flatnonzero(np.insert(below - Z * error < share, 0, True))[-1])
    assert found.value - low > 30 < high - found.value, "ten percent are three grid points and more"
    assert abs(found.low - low) <= 2.0 and abs(found.high - high) <= 2.0
    assert abs(found.value - (share * 257 - 1)) <= 2.0


@pytest.mark.parametrize("n", [1, 3, 5, 11])
def test_the_variance_of_a_median_is_that_of_its_density(n: int) -> None:
    x = np.linspace(-40.0, 40.0, 400_001)
    below = np.where(x < 0, 0.5 * np.exp(-np.abs(x)), 1 - 0.5 * np.exp(-np.abs(x)))
    k = n // 2
    density = below**k * (1 - below) ** k * 0.5 * np.exp(-np.abs(x))
    assert median_variance(n) == pytest.approx(float(density @ x**2 / density.sum()), rel=1e-6)


def test_an_interval_around_a_median_allows_for_its_bias() -> None:
    loud, spread = Laplace(lower=2.0, upper=10.0, epsilon=0.5, grid=2.0**-7), 3.0
    found = estimate_median(loud, np.full(100_000, 512), spread=spread)
    bias = median_bias(spread, loud.step / float(loud.rate))
    assert float(found.standard_error) < 0.5 * bias < 0.5 * found.bias_bound


def test_shares_have_the_standard_errors_of_their_channel() -> None:
    krr, shares = KRR(k=4, epsilon=1.0), np.array([0.1, 0.2, 0.3, 0.4])
    law = krr.channel().matrix()
    counts = np.diff(np.rint(N * np.cumsum(shares @ law)).astype(np.int64), prepend=0)
    found = estimate_frequencies(krr, np.repeat(np.arange(4), counts))
    inverse = np.linalg.inv(law)
    noise = shares @ (law @ inverse**2 - (law @ inverse) ** 2)
    np.testing.assert_allclose(found.standard_error, np.sqrt(noise / N), rtol=1e-3)
    wider = np.sqrt((noise + shares * (1 - shares)) / N)
    np.testing.assert_allclose(found.population_error, wider, rtol=1e-3)
    for (low, high), error in (
        (found.interval(LEVEL), np.sqrt(noise / N)),
        (found.population_interval(LEVEL), wider),
    ):
        np.testing.assert_allclose((high - low) / 2, Z * error, rtol=3e-3)
    assert found.spread is not None
    half_step = 1.0 / (2 * N * float(law[0, 0] - law[0, 1]))  # half of what one report more moves a share
    np.testing.assert_allclose(found.spread.half_step, half_step, rtol=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_an_interval_is_two_sided_and_widened_by_the_bias_that_cannot_be_excluded(level: float) -> None:
    found = Estimate(np.array(3.0), np.array(2.0), 10, np.array(5.0), bias_bound=0.5)
    reach = float(ndtri(0.5 + level / 2))
    for (low, high), error in ((found.interval(level), 2.0), (found.population_interval(level), 5.0)):
        assert (float(low), float(high)) == pytest.approx((3.0 - reach * error - 0.5, 3.0 + reach * error + 0.5))
