"""Every estimator ignores order, adds over batches, is unbiased and covers the truth."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from tests.randomize.chosen import FREQUENCY, NUMERIC
from tests.statistics import LONG, SHORT, expect_caught, expect_mean, expect_standard_error
from tests.tiers import one_in

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.stages import FrequencyRandomizer
from dovetail.estimate.frequency import FrequencyEstimator
from dovetail.estimate.grouped import GroupedEstimator
from dovetail.estimate.mean import MeanEstimator
from dovetail.randomize.laplace import Laplace

TRIALS, PEOPLE = 1500, 400
RANDOMIZERS = [*FREQUENCY, *NUMERIC]


def estimator_of(randomizer: Any) -> Any:
    return FrequencyEstimator(randomizer) if hasattr(randomizer, "k") else MeanEstimator(randomizer)


def grouped_of(randomizer: Any, groups: int) -> Any:
    if isinstance(randomizer, FrequencyRandomizer):
        return GroupedEstimator.of_shares(randomizer, groups)
    return GroupedEstimator.of_means(randomizer, groups)


def some_values(randomizer: Any, n: int) -> np.ndarray:
    """Lopsided values: half of them the first symbol, or on grid points of a numeric range.

    Between them where values are rounded at random: the stated error is for values that are rounded most.
    """
    if hasattr(randomizer, "k"):
        return np.where(np.arange(n) % 2 == 0, 0, np.arange(n) % randomizer.k)
    if isinstance(randomizer, Laplace) or not randomizer.memoryless:
        return randomizer.lower + randomizer.step * (np.arange(n) % randomizer.steps + 0.5)
    return randomizer.lower + randomizer.step * (np.arange(n) % (randomizer.steps + 1))


def truth_of(randomizer: Any, values: np.ndarray) -> Any:
    return np.bincount(values, minlength=randomizer.k) / values.size if hasattr(randomizer, "k") else values.mean()


def same(one: Tally, other: Tally) -> None:
    np.testing.assert_array_equal(one.counts, other.counts)
    np.testing.assert_array_equal(one.n, other.n)


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
def test_tallies_ignore_order_and_add(randomizer: Any, rng: Entropy) -> None:
    estimator = estimator_of(randomizer)
    reports = randomizer.randomize(some_values(randomizer, 500), rng)
    same(estimator.tally(reports), estimator.tally(reports[rng.permutation(500)]))
    same(estimator.tally(reports), estimator.tally(reports[:99]) + estimator.tally(reports[99:]))


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
def test_grouped_tallies_add_and_are_the_tallies_of_the_groups(randomizer: Any, rng: Entropy) -> None:
    estimator, labels = grouped_of(randomizer, 3), rng.below(3, 500)
    reports = randomizer.randomize(some_values(randomizer, 500), rng)
    whole = estimator.tally(reports, labels)
    same(whole, estimator.tally(reports[:7], labels[:7]) + estimator.tally(reports[7:], labels[7:]))
    plain, single = estimator.solve(whole), estimator_of(randomizer)
    for group in range(3):
        alone = single.solve(single.tally(reports[labels == group]))
        for field in ("value", "standard_error", "population_error"):
            np.testing.assert_allclose(getattr(plain, field)[group], getattr(alone, field), rtol=1e-12)


def solved(randomizer: Any, values: np.ndarray, rng: Entropy) -> Estimate:
    """Estimates (trials, ..) of trials on these values (trials, people)."""
    estimator, reports = estimator_of(randomizer), randomizer.randomize(values.ravel(), rng)
    tallies = [estimator.tally(batch) for batch in np.split(reports, len(values))]
    counts = np.array([tally.counts for tally in tallies])
    return estimator.solve(Tally(counts, np.full(len(values), values.shape[1])))


def stated_error(estimate: Estimate, truth: Any, *, population: bool = False) -> np.ndarray:
    """The standard error on which an interval decides about this truth."""
    if estimate.spread is None:
        return estimate.population_error if population else estimate.standard_error
    spread = estimate.spread.drawn(1.0 / estimate.n[:, None]) if population else estimate.spread
    return np.sqrt(spread.at_zero + spread.slope * truth - spread.curvature * truth**2)


@pytest.mark.parametrize("randomizer", one_in(2, RANDOMIZERS), ids=repr)
def test_estimates_are_unbiased_with_their_standard_errors(randomizer: Any, rng: Entropy) -> None:
    values = some_values(randomizer, PEOPLE)
    found, truth = solved(randomizer, np.tile(values, (TRIALS, 1)), rng), truth_of(randomizer, values)
    expect_mean(found.value, truth)
    expect_caught(expect_mean, found.value, truth + 0.5 * found.value.std(axis=0))
    stated = stated_error(found, truth)
    expect_standard_error(found.value - truth, stated)
    off, claimed = (array.reshape(TRIALS, -1)[:, 0] for array in (found.value - truth, found.standard_error))
    expect_standard_error(off, claimed)  # of the commonest symbol
    for factor in (SHORT, LONG):
        expect_caught(expect_standard_error, found.value - truth, factor * stated)


@pytest.mark.parametrize("randomizer", one_in(2, RANDOMIZERS), ids=repr)
def test_population_errors_are_those_of_sampled_people(randomizer: Any, rng: Entropy) -> None:
    pool = some_values(randomizer, 64 * 9 * 5)
    found = solved(randomizer, pool[rng.below(pool.size, TRIALS * PEOPLE)].reshape(TRIALS, PEOPLE), rng)
    truth = truth_of(randomizer, pool)
    stated = stated_error(found, truth, population=True)
    expect_standard_error(found.value - truth, stated)
    for factor in (SHORT, LONG):
        expect_caught(expect_standard_error, found.value - truth, factor * stated)


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("population", [False, True])
@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
def test_intervals_end_where_the_error_is_its_quantile_of_standard_errors(
    randomizer: Any, population: bool, level: float, rng: Entropy
) -> None:
    """But for the bias bound, and half a step of the lattice on which shares lie."""
    found = solved(randomizer, some_values(randomizer, PEOPLE)[None], rng)
    half = 0.0 if found.spread is None else found.spread.half_step
    ends = found.population_interval(level) if population else found.interval(level)
    for side, end in zip((1, -1), ends, strict=True):
        truth = end + side * found.bias_bound
        reach = norm.isf((1 - level) / 2) * stated_error(found, truth, population=population)
        np.testing.assert_allclose(side * (found.value - truth), half + reach, rtol=1e-9)


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
def test_errors_never_vanish_and_population_errors_are_larger(randomizer: Any, rng: Entropy) -> None:
    estimator = estimator_of(randomizer)
    estimate = estimator.solve(estimator.tally(randomizer.randomize(some_values(randomizer, 1), rng)))
    assert np.all(estimate.standard_error > 0.0)
    assert np.all(estimate.population_error >= estimate.standard_error)


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
def test_no_reports_give_no_estimate(randomizer: Any, rng: Entropy) -> None:
    estimator = estimator_of(randomizer)
    none = randomizer.randomize([], rng)
    with pytest.raises(DataError, match="no reports"):
        estimator.solve(estimator.tally(none))
    with pytest.raises(DataError, match="none for group 1"):
        grouped = grouped_of(randomizer, 2)
        grouped.solve(grouped.tally(randomizer.randomize(some_values(randomizer, 3), rng), np.zeros(3, dtype=int)))
