"""Means behind dummies: unbiased, with the error that is stated, and better than local noise at the same epsilon."""

import numpy as np
import pytest
from tests.statistics import expect_broken, expect_caught, expect_law, expect_mean

from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.estimate.dummies import (
    mean_grid,
    mean_with_dummies,
    mean_with_user_dummies,
    round_to_grid,
)
from dovetail.randomize.sampling.open_reports import OpenNumbers
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies

DUMMIES = Dummies(9, 1.0, 1e-6)
VALUES = np.linspace(-3.0, 3.7, 400)
RANGE = {"lower": -5.0, "upper": 5.0}


def estimates(times: int, rng: Entropy) -> tuple[np.ndarray, float]:
    found = []
    for _ in range(times):
        sent = round_to_grid(VALUES, **RANGE, points=9, rng=rng)
        found.append(mean_with_dummies(DUMMIES, DUMMIES.add(sent, rng), **RANGE, n=VALUES.size))
    return np.array([[float(one.value)] for one in found]), float(found[0].standard_error)


def test_the_mean_is_unbiased_with_at_most_the_stated_error(rng: Entropy) -> None:
    values, stated = estimates(1500, rng)
    expect_mean(values, [VALUES.mean()], against=[0.5 * stated])
    expect_caught(expect_mean, values, [VALUES.mean() + stated], [0.5 * stated])
    spread = float(values.std(ddof=1))
    # rounding is counted at its worst: 1500 draws know a standard deviation to within 12 %, at 6.1 standard errors
    noise = (DUMMIES.variance * 9 * 10 / (12 * 8)) ** 0.5 * 10.0 / VALUES.size
    assert 0.88 * noise < spread < 1.12 * stated


def test_rounding_goes_to_a_neighbour_and_ends_stay(rng: Entropy) -> None:
    sent = round_to_grid(VALUES, **RANGE, points=9, rng=rng)
    assert (np.abs(-5.0 + sent * 1.25 - VALUES) < 1.25).all()
    assert round_to_grid([-5.0, 5.0, 0.0], **RANGE, points=9, rng=rng).tolist() == [0, 8, 4]


@pytest.mark.parametrize("n", [1000, 100_000])
def test_the_grid_has_the_least_error(n: int) -> None:
    variance = DUMMIES.variance

    def error(d: int) -> float:
        line = np.arange(d) / (d - 1) - 0.5
        return float(1 / (4 * (d - 1) ** 2 * n) + variance / n**2 * (line @ line))

    best = mean_grid(n, variance=variance)
    assert error(best) == pytest.approx(min(error(d) for d in range(2, 200)), rel=1e-12)
    if n == 100_000:
        assert error(best) ** 0.5 == pytest.approx(6.6e-5, rel=0.01)  # the window has 1.60e-4


def test_what_is_no_range_and_no_batch_is_refused() -> None:
    with pytest.raises(ParameterError, match="`upper` must be above `lower`"):
        mean_with_dummies(DUMMIES, [0] * 300, lower=1.0, upper=1.0, n=10)
    with pytest.raises(DataError, match="in \\[-5, 5\\]"):
        round_to_grid([7.0], **RANGE, points=9, rng=simulation(1))
    with pytest.raises(DataError):
        mean_with_dummies(DUMMIES, [0] * 3, **RANGE, n=10_000)


@pytest.mark.exhaust
def test_a_mean_behind_dummies_of_people_has_at_most_the_stated_error(rng: Entropy) -> None:
    dummies, found = UserDummies(9, 0.9), []
    for _ in range(1500):
        sent = round_to_grid(VALUES, **RANGE, points=9, rng=rng)
        found.append(mean_with_user_dummies(dummies, dummies.add(sent, rng), **RANGE, n=VALUES.size))
    values, stated = np.array([[float(one.value)] for one in found]), float(found[0].standard_error)
    expect_mean(values, [VALUES.mean()], against=[0.5 * stated])
    expect_caught(expect_mean, values, [VALUES.mean() + stated], [0.5 * stated])
    spread = float(values.std(ddof=1))
    noise = (0.9 * 10 / (12 * 8) / VALUES.size) ** 0.5 * 10.0  # rate times the mean square of the grid
    assert 0.88 * noise < spread < 1.12 * stated and stated < 1.1 * noise
    with pytest.raises(DataError, match="a batch of 400 people"):
        mean_with_user_dummies(dummies, [0] * 400, **RANGE, n=400)


def test_the_law_of_rounding_is_that_of_its_sampler(rng: Entropy) -> None:
    grid = OpenNumbers(0.0, 1.0, 5)
    sent = grid.randomize(np.full(4000, 0.3), rng)
    law = np.exp(grid.log_density(np.arange(5), np.full(5, 0.3)))
    assert law.sum() == pytest.approx(1.0) and grid.decode(np.arange(5)) @ law == pytest.approx(0.3)
    expect_law(np.bincount(sent, minlength=5), law)
    expect_broken(np.bincount(sent, minlength=5), [0.0, 0.9, 0.1, 0.0, 0.0])
    assert grid.guarantee.epsilon == float("inf") and grid.examples()[0].report_bits == 3
