"""Every estimator ignores order, adds over batches, is unbiased and covers the truth."""

from typing import Any

import numpy as np
import pytest
from tests.randomize.chosen import FREQUENCY, NUMERIC
from tests.statistics import expect_coverage, expect_mean

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.estimate import Tally
from dovetail.core.stages import FrequencyRandomizer
from dovetail.estimate.frequency import FrequencyEstimator
from dovetail.estimate.grouped import GroupedFrequencyEstimator, GroupedMeanEstimator
from dovetail.estimate.mean import MeanEstimator

TRIALS, PEOPLE = 400, 1000
RANDOMIZERS = [*FREQUENCY, *NUMERIC]


def estimator_of(randomizer: Any) -> Any:
    return FrequencyEstimator(randomizer) if hasattr(randomizer, "k") else MeanEstimator(randomizer)


def grouped_of(randomizer: Any, groups: int) -> Any:
    if isinstance(randomizer, FrequencyRandomizer):
        return GroupedFrequencyEstimator(randomizer, groups=groups)
    return GroupedMeanEstimator(randomizer, groups=groups)


def some_values(randomizer: Any, n: int) -> np.ndarray:
    """Lopsided values: half of them the first symbol, or on grid points of a numeric range."""
    if hasattr(randomizer, "k"):
        return np.where(np.arange(n) % 2 == 0, 0, np.arange(n) % randomizer.k)
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


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
def test_estimates_are_unbiased_and_their_intervals_cover(randomizer: Any, rng: Entropy) -> None:
    estimator, values = estimator_of(randomizer), some_values(randomizer, PEOPLE)
    reports = randomizer.randomize(np.tile(values, TRIALS), rng)
    estimates = [estimator.solve(estimator.tally(batch)) for batch in np.split(reports, TRIALS)]
    truth = truth_of(randomizer, values)
    expect_mean([e.value for e in estimates], truth)
    for level in (0.5, 0.95):
        inside = [(low <= truth) & (truth <= high) for low, high in (e.interval(level) for e in estimates)]
        for hits in np.reshape(inside, (TRIALS, -1)).T:
            expect_coverage(hits, level)


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
def test_population_intervals_cover_under_sampling(randomizer: Any, rng: Entropy) -> None:
    estimator, pool = estimator_of(randomizer), some_values(randomizer, 64 * 9 * 5)
    drawn = pool[rng.below(pool.size, TRIALS * PEOPLE)]
    reports = randomizer.randomize(drawn, rng)
    estimates = [estimator.solve(estimator.tally(batch)) for batch in np.split(reports, TRIALS)]
    truth = truth_of(randomizer, pool)
    inside = [(low <= truth) & (truth <= high) for low, high in (e.population_interval(0.95) for e in estimates)]
    for hits in np.reshape(inside, (TRIALS, -1)).T:
        expect_coverage(hits, 0.95)


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
