"""Group estimates stay honest when a shuffle has moved reports between groups."""

from dataclasses import replace

import numpy as np
import pytest
from tests.statistics import expect_at_least, expect_caught, expect_mean

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.estimate.grouped import (
    GroupedEstimator,
    estimate_group_means,
    estimate_groups,
    unmix,
)
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace

GROUPS, SIZE, MOVED, TRIALS = 3, 400, 80, 900
LABELS = np.repeat(np.arange(GROUPS), SIZE)
SHARE = MOVED / SIZE
MIXING = (1 - SHARE) * np.eye(GROUPS) + SHARE * np.roll(np.eye(GROUPS), 1, axis=1)  # places of a hear from a + 1
KRR2 = KRR(k=2, epsilon=2.0)
LAPLACE = Laplace(lower=0.0, upper=1.0, epsilon=2.0, grid=1.0)
VALUES = np.concatenate([np.arange(SIZE) < SIZE * share for share in (0.9, 0.5, 0.1)]).astype(np.int64)
TRUTH = np.array([0.9, 0.5, 0.1])


def cycle(movers: np.ndarray) -> np.ndarray:
    """The permutation that hands the movers' places (g, m) to the movers of the next group."""
    permutation = np.arange(GROUPS * SIZE)
    permutation[movers] = np.roll(movers, -1, axis=0)
    return permutation


def random_movers(rng: Entropy) -> np.ndarray:
    """MOVED people of each group, chosen without looking at values: the mixing is exactly MIXING."""
    return np.stack([group * SIZE + rng.permutation(SIZE)[:MOVED] for group in range(GROUPS)])


def fixed_movers(rng: Entropy) -> np.ndarray:
    """Always the front of each group, whose value is 1 where it can be: the worst case with the same mixing."""
    return np.arange(GROUPS)[:, None] * SIZE + np.arange(MOVED)


def test_without_mixing_groups_are_plain_estimates(rng: Entropy) -> None:
    estimate = estimate_groups(KRR2, KRR2.randomize(VALUES, rng), LABELS)
    assert estimate.value.shape == (GROUPS, 2) and estimate.n.tolist() == [SIZE] * GROUPS
    low, high = estimate.interval(1 - 1e-9)
    assert np.all((low[:, 1] <= TRUTH) & (high[:, 1] >= TRUTH))


@pytest.mark.exhaust
@pytest.mark.parametrize("movers", [random_movers, fixed_movers])
def test_widened_intervals_cover_whoever_moves(movers: object, rng: Entropy) -> None:
    hits, naive = [], []
    for _ in range(TRIALS):
        order = cycle(movers(rng))  # type: ignore[operator]
        shares = estimate_groups(KRR2, KRR2.randomize(VALUES, rng)[order], LABELS, MIXING)
        means = estimate_group_means(LAPLACE, LAPLACE.randomize(VALUES, rng)[order], LABELS, MIXING)
        for seen, plain in ((hits, 1.0), (naive, 0.0)):
            ends = [replace(e, bias_bound=plain * e.bias_bound).interval(0.95) for e in (shares, means)]
            (low, high), (bottom, top) = ends
            inside = (low[:, 1] <= TRUTH) & (high[:, 1] >= TRUTH)
            seen.append([*inside, *((bottom <= TRUTH) & (top >= TRUTH))])
    for column in np.transpose(hits):
        expect_at_least(column, 0.95)
    expect_caught(expect_at_least, np.transpose(naive)[2], 0.95)  # people of the first group speak for the last


def test_the_widening_is_the_share_that_left_times_the_span(rng: Entropy) -> None:
    reports = KRR2.randomize(VALUES, rng)
    plain, widened = estimate_groups(KRR2, reports, LABELS), estimate_groups(KRR2, reports, LABELS, MIXING)
    np.testing.assert_array_equal(widened.value, plain.value)
    np.testing.assert_array_equal(widened.standard_error, plain.population_error)
    np.testing.assert_allclose(widened.bias_bound, np.full((GROUPS, 1), SHARE))
    laplace = Laplace(lower=10.0, upper=30.0, epsilon=2.0, grid=1.0)
    means = estimate_group_means(laplace, laplace.randomize(10.0 + 20.0 * VALUES, rng), LABELS, MIXING)
    np.testing.assert_allclose(means.bias_bound, np.full(GROUPS, 20.0 * SHARE))


def test_the_bias_of_a_share_is_at_most_the_share_that_left(rng: Entropy) -> None:
    for _ in range(50):
        n, labels = 12, np.repeat([0, 1, 2], [3, 4, 5])
        order = rng.permutation(n)
        kept = np.array([np.mean(labels[order][labels == a] == a) for a in range(3)])
        values = rng.below(2, n)
        read = np.array([values[order][labels == a].mean() for a in range(3)])
        truth = np.array([values[labels == a].mean() for a in range(3)])
        assert np.all(np.abs(read - truth) <= 1 - kept + 1e-12)


def test_after_a_shuffle_intervals_are_those_of_a_population(rng: Entropy) -> None:
    krr, labels = KRR(3, 1.0), np.repeat([0, 1], [40, 60])
    reports = krr.randomize(np.zeros(100, dtype=np.int64), rng)
    plain, moved = (estimate_groups(krr, reports, labels, mixing) for mixing in (None, np.eye(2)))
    assert plain.spread is not None and moved.spread is not None
    added = np.array([[1 / 40], [1 / 60]])  # whose reports stand at a place is chance
    np.testing.assert_allclose(moved.spread.slope, plain.spread.slope + added, rtol=1e-12)
    np.testing.assert_allclose(moved.spread.curvature, plain.spread.curvature + added, rtol=1e-12)


@pytest.mark.exhaust
def test_unmixing_is_unbiased_and_covers_when_moves_ignore_values(rng: Entropy) -> None:
    estimates, plain, means = [], [], []
    for _ in range(TRIALS):
        order = cycle(random_movers(rng))
        mixed = estimate_groups(KRR2, KRR2.randomize(VALUES, rng)[order], LABELS)
        plain.append(mixed.value[:, 1])
        estimates.append(unmix(mixed, MIXING))
        means.append(unmix(estimate_group_means(LAPLACE, LAPLACE.randomize(VALUES, rng)[order], LABELS), MIXING))
    expect_mean([e.value[:, 1] for e in estimates], TRUTH)
    expect_mean([m.value for m in means], TRUTH)
    expect_mean(plain, MIXING @ TRUTH)
    expect_caught(expect_mean, plain, TRUTH)
    inside = [(low[:, 1] <= TRUTH) & (high[:, 1] >= TRUTH) for low, high in (e.interval(0.95) for e in estimates)]
    for column in np.transpose(inside):  # at least: who moves is drawn without replacement
        expect_at_least(column, 0.95)
    tight = [np.abs(e.value[:, 1] - TRUTH) <= 0.6 * 1.96 * e.standard_error[:, 1] for e in estimates]
    expect_caught(expect_at_least, np.transpose(tight)[0], 0.95)


def test_unmixing_propagates_errors_by_the_squared_inverse(rng: Entropy) -> None:
    nearest = BudgetLaplace(0.0, 1.0, epsilon=2.0, beta=0.5, rho=0.5, precision="published", grid=1.0)
    mixed = estimate_group_means(nearest, nearest.randomize(VALUES, rng), LABELS)
    result, inverse = unmix(mixed, MIXING), np.linalg.inv(MIXING)
    np.testing.assert_allclose(result.standard_error, np.sqrt(inverse**2 @ mixed.population_error**2))
    np.testing.assert_allclose(result.bias_bound, np.abs(inverse) @ np.full(GROUPS, 0.5))
    same = unmix(mixed, np.eye(GROUPS))
    np.testing.assert_allclose(same.value, mixed.value)


def test_groups_that_cannot_be_told_apart_are_refused(rng: Entropy) -> None:
    mixed = estimate_groups(KRR2, KRR2.randomize(VALUES, rng), LABELS)
    for mixing in (np.full((3, 3), 1 / 3), np.full((3, 3), (1 - 1e-8) / 3) + 1e-8 * np.eye(3)):
        with pytest.raises(UnsupportedError, match="cannot be told apart"):
            unmix(mixed, mixing)


def test_matrices_that_are_no_mixing_are_refused(rng: Entropy) -> None:
    reports = KRR2.randomize(VALUES, rng)
    estimator = GroupedEstimator.of_shares(KRR2, 3)
    for bad in (np.eye(2), np.full((3, 3), 0.5), np.eye(3) + [[1, -1, 0]] * 3, np.full((3, 3), np.nan), 1.0):
        with pytest.raises((ParameterError, DataError), match="`mixing` must"):
            estimator.solve(estimator.tally(reports, LABELS), bad)


def test_labels_that_do_not_fit_are_refused(rng: Entropy) -> None:
    reports = KRR2.randomize(VALUES, rng)
    estimator = GroupedEstimator.of_shares(KRR2, 3)
    with pytest.raises(DataError, match=r"`labels` must be whole numbers in 0\.\.2"):
        estimator.tally(reports, LABELS + 1)
    with pytest.raises(DataError, match="for each of 1,200 reports, got 5"):
        estimator.tally(reports, LABELS[:5])
    with pytest.raises(DataError, match="`labels`"):
        estimate_groups(KRR2, reports, LABELS - 1)
