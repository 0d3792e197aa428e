"""The estimate that is chosen keeps the error that it promises, from a lot of noise to hardly any."""

import numpy as np
import pytest
from tests.tiers import one_in, tiered

from dovetail.core.entropy import Entropy
from dovetail.core.estimate import Estimate
from dovetail.estimate.mean import estimate_mean
from dovetail.estimate.robust_mean import BestMean, best_mean, shrunken_mean
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.laplace import Laplace

PEOPLE, TRIALS = 50, 300
WATTS = (0.0, 3000.0)


def loads(rng: Entropy) -> np.ndarray:
    """A fleet of meters: mostly standby, few appliances on."""
    standby = rng.below(60, PEOPLE).astype(float)
    return np.where(rng.below(10, PEOPLE) == 0, 400.0 + rng.below(2500, PEOPLE), standby)


WORLDS = {
    "all at the lower end": lambda rng: np.zeros(PEOPLE),
    "all at the upper end": lambda rng: np.full(PEOPLE, 3000.0),
    "all in the middle": lambda rng: np.full(PEOPLE, 1500.0),
    "a fleet of meters": loads,
}


@pytest.mark.exhaust
@pytest.mark.parametrize("world", one_in(4, WORLDS))
@pytest.mark.parametrize(
    "strength",  # n epsilon^2
    tiered([0.01, 0.1, 1.0, 10.0, 100.0, 1000.0], first=lambda one: one in (0.1, 10.0)),
)
def test_the_chosen_mean_errs_by_no_more_than_it_says_and_never_more_than_the_unbiased_one(
    world: str, strength: float, rng: Entropy
) -> None:
    """300 draws: a root mean squared error is known to 4 %, five of them are 20 %."""
    device = Laplace(lower=WATTS[0], upper=WATTS[1], epsilon=(strength / PEOPLE) ** 0.5, grid=1.0)
    values = WORLDS[world](rng)
    off = np.empty((TRIALS, 2))
    for row in range(TRIALS):
        reports = device.randomize(values, rng)
        chosen = best_mean(device, reports)
        off[row] = [float(chosen.estimate.value), float(estimate_mean(device, reports).value)]
    chosen_error, unbiased_error = np.sqrt(((off - values.mean()) ** 2).mean(axis=0))
    assert chosen_error <= 1.2 * promised(chosen)
    assert chosen_error <= 1500.0 * 1.2, "half the range is what naming its middle errs by at most"
    if world != "a fleet of meters":
        assert chosen_error <= 1.2 * unbiased_error
    if strength <= 1.0:
        assert chosen.name != "rao-blackwell" and unbiased_error > chosen_error
    if strength == 1000.0:
        assert chosen.name == "rao-blackwell"


def promised(chosen: BestMean) -> float:
    """The largest root mean squared error, as the rule weighs it."""
    estimate = chosen.estimate
    bias = float(estimate.bias_bound) - (float(estimate.standard_error) if chosen.name == "median" else 0.0)
    return float(np.hypot(float(estimate.standard_error), bias))


@pytest.mark.parametrize("error", [1.0, 10.0, 1e6])
def test_shrinking_keeps_the_minimax_risk_at_every_mean(error: float) -> None:
    r"""(w se)^2 + ((1 - w)(mu - c))^2 is largest at the ends of the range: h^2 se^2 / (h^2 + se^2)."""
    device, half = Laplace(lower=-5.0, upper=15.0, epsilon=1.0), 10.0
    found = shrunken_mean(device, Estimate(np.asarray(7.0), np.asarray(error), 9, np.asarray(2 * error)))
    weight = half**2 / (half**2 + error**2)
    assert float(found.value) == pytest.approx(5.0 + weight * 2.0)
    risk = float(found.standard_error) ** 2 + float(found.bias_bound) ** 2
    assert risk == pytest.approx(half**2 * error**2 / (half**2 + error**2), rel=1e-9)
    assert risk <= min(half, error) ** 2 and float(found.population_error) == pytest.approx(2 * weight * error)


@pytest.mark.exhaust
def test_the_interval_of_a_shrunken_mean_holds_at_the_ends_of_the_range(rng: Entropy) -> None:
    """Widened by the bias, it covers in at least 95 % of 400 draws: fewer than 360 with probability below 1e-4."""
    device = Laplace(lower=0.0, upper=3000.0, epsilon=0.1, grid=1.0)
    for end in (0.0, 3000.0):
        inside = 0
        for _ in range(400):
            reports = device.randomize(np.full(PEOPLE, end), rng)
            low, high = shrunken_mean(device, estimate_mean(device, reports)).interval()
            inside += bool(low <= end <= high)
        assert inside >= 360


def test_reports_without_a_median_of_use_are_shrunken_or_left(rng: Entropy) -> None:
    device = BudgetLaplace(lower=1.0, upper=3.0, epsilon=0.2, beta=0.5, rho=0.9, grid=0.25)
    few, many = (best_mean(device, device.randomize(np.full(n, 2.0), rng)) for n in (20, 60_000))
    assert few.name == "shrunken" and many.name in ("mean", "rao-blackwell")
    assert "root mean squared error at most about" in few.reason and "n = 60,000" in many.reason
