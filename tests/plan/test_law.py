"""What the planner predicts is what a simulation finds: for every randomizer, several domains, noises and sizes."""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.randomize.chosen import KINDS
from tests.statistics import expect_at_least, expect_caught, expect_coverage, expect_mean, rng_of

from dovetail.core.estimate import Z95
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.plan.requirements import PopulationShape
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing

TRIALS = 2000
N = 240  # a multiple of every k below

SHARES = [kind(k=k, epsilon=epsilon) for kind in KINDS for k, epsilon in ((2, 0.5), (5, 1.5), (24, 3.0))]
MEANS = [
    Laplace(lower=0.0, upper=1.0, epsilon=0.5),
    Laplace(lower=-20.0, upper=30.0, epsilon=4.0, grid=0.5),
    Laplace(lower=2.0, upper=3.0, epsilon=8.0, grid=0.25),
]
LAWS: list[tuple[FrequencyRandomizer | NumericRandomizer, PopulationShape, int]]
LAWS = [(law, shares, n) for law in SHARES for shares in ("any", "flat") for n in (N, 4 * N)]
LAWS += [(law, "any", n) for law in MEANS for n in (N, 4 * N)]
IDS = [f"{law}-{shares}-{n}" for law, shares, n in LAWS]


@cache
def errors(
    randomizer: FrequencyRandomizer | NumericRandomizer, shares: PopulationShape, n: int
) -> NDArray[np.float64]:
    """Estimate minus truth (trials,) of the worst share, or of the mean."""
    rng = rng_of(f"{randomizer}-{shares}-{n}")
    if isinstance(randomizer, NumericRandomizer):
        half = 0.0 if randomizer.rounding else randomizer.step / 2  # between grid points, rounding varies most
        values = np.where(np.arange(n) < n // 3, randomizer.lower + half, randomizer.upper - half)
        reports = randomizer.randomize(np.tile(values, TRIALS), rng=rng).reshape(TRIALS, n)
        return np.asarray(randomizer.decode(reports.mean(axis=1)) - values.mean())
    symbols = np.arange(n) % randomizer.k if shares == "flat" else np.zeros(n, dtype=np.int64)
    truth = np.bincount(symbols, minlength=randomizer.k) / n
    worst = int(np.argmax(randomizer.variance(truth)))
    reports = randomizer.randomize(np.tile(symbols, TRIALS), rng=rng)
    tallies = np.array([randomizer.tally(batch) for batch in np.split(reports, TRIALS)])
    return np.asarray(randomizer.invert(tallies, np.full(TRIALS, n))[:, worst] - truth[worst])


@pytest.mark.exhaust
@pytest.mark.parametrize(("randomizer", "shares", "n"), LAWS, ids=IDS)
def test_the_predicted_error_is_the_simulated_one(
    randomizer: FrequencyRandomizer | NumericRandomizer, shares: PopulationShape, n: int
) -> None:
    predicted = predict_accuracy(randomizer, n=n, shares=shares)
    expect_mean((errors(randomizer, shares, n) / predicted.standard_error) ** 2, 1.0)


@pytest.mark.exhaust
@pytest.mark.parametrize("factor", [1.2, 1 / 1.2])
def test_a_prediction_that_is_off_by_a_fifth_is_caught(factor: float) -> None:
    for randomizer, shares, n in LAWS:
        broken = factor * predict_accuracy(randomizer, n=n, shares=shares).standard_error
        expect_caught(expect_mean, (errors(randomizer, shares, n) / broken) ** 2, 1.0)


@pytest.mark.exhaust
def test_the_95_percent_error_covers_and_five_sixths_or_six_fifths_of_it_do_not() -> None:
    # Shares move in steps, here of up to a third of a standard error; a hundredth is granted for that.
    hits, tight, loose = [], [], []
    for randomizer, shares, n in LAWS:
        reach, found = predict_accuracy(randomizer, n=n, shares=shares).error95, np.abs(errors(randomizer, shares, n))
        hits.append(found <= reach)
        tight.append(found <= reach / 1.2)
        loose.append(found <= reach * 1.2)
    expect_coverage(np.concatenate(hits), 0.95, 0.01)
    for broken in (tight, loose):
        expect_caught(expect_coverage, np.concatenate(broken), 0.95, 0.01)


@pytest.mark.parametrize("randomizer", [*SHARES, *(Hadamard(k=9, epsilon=2.0), LocalHashing(k=4, epsilon=0.3))])
def test_no_population_is_worse_than_the_predicted_one(randomizer: FrequencyRandomizer) -> None:
    worst = predict_accuracy(randomizer, n=N).standard_error
    generator = np.random.default_rng(1)
    for concentration in (0.02, 0.2, 2.0):
        populations = generator.dirichlet(np.full(randomizer.k, concentration), size=200)
        found = np.sqrt(max(randomizer.variance(shares).max() for shares in populations) / N)
        assert found <= worst * (1 + 1e-12)


def test_the_mean_of_values_between_grid_points_stays_within_the_error_with_rounding() -> None:
    coarse = Laplace(lower=0.0, upper=1.0, epsilon=8.0, grid=0.5)
    values = np.full(TRIALS * N, 0.75)  # half way: rounding adds as much as it can
    found = coarse.decode(coarse.randomize(values, rng=rng_of("rounding")).reshape(TRIALS, N).mean(axis=1)) - 0.75
    expect_at_least(np.abs(found) <= predict_accuracy(coarse, n=N).error95, 0.95)
    expect_caught(expect_at_least, np.abs(found) <= Z95 * np.sqrt(coarse.geometric_variance / N), 0.95)


def test_the_mean_of_values_that_are_rounded_to_the_nearest_stays_within_the_error_with_rounding() -> None:
    coarse = BudgetLaplace(0.0, 1.0, epsilon=8.0, beta=0.5, rho=0.5, precision="published", grid=0.5)
    values = np.full(TRIALS * N, 0.74)  # rounds to 0.5: as biased as can be, nearly
    reports = coarse.randomize(values, rng=rng_of("rounding")).reshape(TRIALS, N)
    found = coarse.decode(reports).mean(axis=1) - 0.74
    predicted = predict_accuracy(coarse, n=N)
    expect_at_least(np.abs(found) <= predicted.error95, 0.95)
    expect_caught(expect_at_least, np.abs(found) <= Z95 * predicted.standard_error, 0.95)


def test_sampling_is_added_for_the_population() -> None:
    coin = KRR(k=2, epsilon=30.0)  # hardly any noise: all error comes from who was asked
    predicted = predict_accuracy(coin, n=N)
    asked = np.random.default_rng(2).binomial(N, 0.5, size=TRIALS) / N - 0.5
    expect_mean((Z95 * asked / predicted.population_error95) ** 2, 1.0)
    assert predicted.population_error95 > 1e4 * predicted.error95
