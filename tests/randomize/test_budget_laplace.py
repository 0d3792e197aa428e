"""BudgetLaplace clamps below its threshold, keeps its guarantee, and its threshold holds where it says."""

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest
from tests.statistics import expect_broken, expect_law
from tests.tiers import one_in

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.randomize.budget_laplace import BudgetLaplace

EXAMPLES = list(BudgetLaplace.examples())
PAPER: dict[str, Any] = {"lower": 3.9, "upper": 178.3, "beta": 0.5, "rho": 0.9}
DRAWS = 100_000


def reports_of(randomizer: BudgetLaplace) -> np.ndarray:
    """Every report of a clamped randomizer; enough of them otherwise."""
    return np.arange(randomizer.steps + 1) if randomizer.clamps else np.arange(-2000, 2000)


def law(randomizer: BudgetLaplace, point: int) -> np.ndarray:
    return np.exp(randomizer.log_density(reports_of(randomizer), randomizer.lower + point * randomizer.step))


def test_the_examples_show_both_branches() -> None:
    assert [randomizer.clamps for randomizer in EXAMPLES] == [True, True, True, False]


@pytest.mark.exhaust
@pytest.mark.parametrize("randomizer", EXAMPLES, ids=repr)
def test_reports_have_the_law_of_the_log_density_with_both_atoms(randomizer: BudgetLaplace, rng: Entropy) -> None:
    for point in {0, randomizer.steps // 2, randomizer.steps}:
        cells = np.clip(reports_of(randomizer), -20, randomizer.steps + 20)
        expected = np.bincount(cells + 20, weights=law(randomizer, point), minlength=randomizer.steps + 41)
        value = randomizer.lower + point * randomizer.step
        drawn = np.clip(randomizer.randomize(np.full(DRAWS, value), rng), -20, randomizer.steps + 20)
        seen = np.bincount(drawn + 20, minlength=randomizer.steps + 41)
        kept = expected > 1e-12
        assert seen[~kept].sum() == 0
        expect_law(seen[kept], expected[kept] / expected[kept].sum())


def test_a_forgotten_clamp_is_caught(rng: Entropy) -> None:
    randomizer = EXAMPLES[0]
    forgotten = randomizer.noise.randomize(np.full(DRAWS, 1.5), rng)
    inside = forgotten[(forgotten >= 0) & (forgotten <= randomizer.steps)]
    expect_broken(np.bincount(inside, minlength=randomizer.steps + 1), law(randomizer, 4))


@pytest.mark.parametrize("randomizer", EXAMPLES, ids=repr)
def test_the_guarantee_is_pure_and_reached_at_the_atoms(randomizer: BudgetLaplace) -> None:
    assert randomizer.rate * randomizer.steps == Fraction(randomizer.epsilon)
    assert randomizer.guarantee.epsilon == randomizer.epsilon and randomizer.guarantee.delta == 0.0
    z = np.arange(randomizer.steps + 1)
    table = np.array([randomizer.log_density(z, randomizer.lower + i * randomizer.step) for i in z])
    ratios = (table.max(axis=0) - table.min(axis=0))[[0, -1]]
    assert ratios == pytest.approx([randomizer.epsilon] * 2, rel=1e-12)
    assert (table.max(axis=0) - table.min(axis=0)).max() <= randomizer.epsilon * (1 + 1e-12)


@pytest.mark.parametrize("randomizer", EXAMPLES, ids=repr)
def test_decoded_reports_are_exactly_unbiased_with_the_variance_of_rao_and_blackwell(
    randomizer: BudgetLaplace,
) -> None:
    for point in range(randomizer.steps + 1):
        masses, z = law(randomizer, point), reports_of(randomizer)
        around = randomizer.decode(z) - (randomizer.lower + point * randomizer.step)
        at_edges = masses[[0, -1]].sum() if randomizer.clamps else 0.0
        assert masses.sum() == pytest.approx(1.0, abs=1e-12)
        assert masses @ around == pytest.approx(0.0, abs=1e-12 * randomizer.upper**2)
        assert masses @ around**2 == pytest.approx(randomizer.noise_variance * (1 - at_edges / 2), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "steps"), [(0.01, 1024), (1.0, 64), (30.0, 7), (600.0, 1)])
def test_decoding_stays_unbiased_at_all_rates(epsilon: float, steps: int) -> None:
    randomizer = BudgetLaplace(0.0, 1.0, epsilon, 0.001, 0.999, precision="published", grid=1.0 / steps)
    assert randomizer.clamps
    points = np.arange(steps + 1)
    table = np.exp([randomizer.log_density(points, i * randomizer.step) for i in points])
    np.testing.assert_allclose(
        table @ randomizer.decode(points), points * randomizer.step, atol=1e-12 / epsilon + 1e-12
    )


def test_the_published_threshold_is_lemma_1() -> None:
    assert BudgetLaplace(**PAPER, epsilon=1.0).published_threshold == pytest.approx(4.504, abs=5e-4)


def test_the_guaranteed_threshold_tends_to_lemma_1_with_the_smallest_value() -> None:
    limit = -174.4 * np.log(0.1) / (0.5 * 3.9)
    found = [BudgetLaplace(**PAPER, epsilon=1.0, grid=174.4 / 2**k).guaranteed_threshold for k in (10, 20, 28)]
    assert found[0] > found[1] > found[2] > limit
    assert found[2] == pytest.approx(205.94, abs=0.01)


@pytest.mark.exhaust
@pytest.mark.parametrize("steps", one_in(4, [32, 200, 1024]))
@pytest.mark.parametrize(("lower", "upper"), [(2.0, 6.0), (-7.0, -3.0), (3.9, 178.3)])
def test_at_the_guaranteed_threshold_every_value_has_its_precision(lower: float, upper: float, steps: int) -> None:
    public: dict[str, Any] = {
        "lower": lower,
        "upper": upper,
        "beta": 0.75,
        "rho": 0.8,
        "grid": (upper - lower) / steps,
    }
    threshold = BudgetLaplace(**public, epsilon=1.0).guaranteed_threshold
    precise = BudgetLaplace(**public, epsilon=threshold)
    assert not precise.clamps
    inward = 1.0 if lower > 0 else -1.0
    nearest = lower if lower > 0 else upper
    values = np.concatenate(
        [np.linspace(lower, upper, 301), nearest + inward * precise.step * np.linspace(0, 2, 301)]
    )
    assert min(precise.precision_at(value) for value in values) >= 0.8
    below = BudgetLaplace(**public, epsilon=threshold * (1 - 1e-9))
    assert below.clamps
    # a sufficient epsilon, not the smallest:
    # unclamped just below the threshold, rounding may leave too little: the bound uses the whole half step
    k = np.floor(Fraction(0.75) * Fraction(abs(nearest)) / Fraction(below.step) - Fraction(1, 2))
    t = np.exp(-float(below.rate))
    assert 1 - 2 * t ** (k + 1) / (1 + t) < 0.8


def test_the_paper_s_precision_is_reached_at_the_largest_value_only(rng: Entropy) -> None:
    device = BudgetLaplace(**PAPER, epsilon=4.51, precision="published", grid=174.4 / 2**16)
    assert not device.clamps
    for value, expected in ((3.9, 0.049), (50.0, 0.476), (178.3, 0.9)):
        exact = device.precision_at(value)
        assert exact == pytest.approx(expected, abs=2e-3)
        sent = device.decode(device.randomize(np.full(DRAWS, value), rng))
        good = np.count_nonzero(np.abs(sent - value) <= 0.5 * value)
        expect_law([good, DRAWS - good], [exact, 1 - exact])


@pytest.mark.parametrize("randomizer", EXAMPLES, ids=repr)
def test_the_precision_is_that_of_the_report_as_sent(randomizer: BudgetLaplace) -> None:
    z = reports_of(randomizer)
    sent = randomizer.lower + randomizer.step * z
    for value in np.linspace(randomizer.lower, randomizer.upper, 23):
        masses = np.exp(randomizer.log_density(z, value))
        slack = 1e-12  # ends of the interval that are grid points belong to it
        good = masses[np.abs(sent - value) <= randomizer.beta * abs(value) + slack].sum()
        assert randomizer.precision_at(float(value)) == pytest.approx(good, abs=1e-9)


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (-1.0, 0.0), (-1.0, 1.0)])
def test_ranges_that_touch_or_cross_zero_have_no_guaranteed_precision(lower: float, upper: float) -> None:
    with pytest.raises(UnsupportedError, match="shrinks to a point at 0"):
        BudgetLaplace(lower, upper, epsilon=1.0, beta=0.5, rho=0.9)
    published = BudgetLaplace(lower, upper, epsilon=1.0, beta=0.5, rho=0.9, precision="published")
    assert published.guaranteed_threshold == inf and published.precision_at(0.0) < 0.9


def test_a_grid_too_coarse_for_the_interval_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"cannot be guaranteed by our bound .* Use a grid of at most 0\.5"):
        BudgetLaplace(1.0, 3.0, epsilon=1.0, beta=0.25, rho=0.9, grid=1.0)
    assert not BudgetLaplace(1.0, 3.0, epsilon=700.0, beta=0.25, rho=0.9, grid=0.5).clamps


@pytest.mark.parametrize(
    "bad",
    [
        {"beta": 0.0},
        {"beta": 1.0},
        {"beta": float("nan")},
        {"beta": "1"},
        {"rho": 0.0},
        {"rho": 1.0},
        {"rho": True},
        {"epsilon": 0.0},
        {"grid": 0.3},
        {"upper": 0.5},
        {"lower": float("nan")},
        {"precision": "exact"},
    ],
    ids=repr,
)
def test_parameters_outside_their_range_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="must be"):
        BudgetLaplace(**{"lower": 1.0, "upper": 2.0, "epsilon": 1.0, "beta": 0.5, "rho": 0.9, **bad})


def test_values_and_reports_outside_the_range_are_refused(rng: Entropy) -> None:
    randomizer = EXAMPLES[0]
    assert randomizer.randomize([], rng).size == 0
    for bad in ([0.9], [2.1], [np.nan], ["a"], [[1.5]]):
        with pytest.raises(DataError, match="`values` must be"):
            randomizer.randomize(bad, rng)
    for reports in ([-1], [9], [0.5], [np.nan], ["a"]):
        with pytest.raises(DataError, match=r"`reports` must be whole numbers in 0\.\.8"):
            randomizer.decode(reports)
    with pytest.raises(DataError, match="`values` must be"):
        randomizer.precision_at(3.0)
    for noise in (randomizer, randomizer.noise):
        for bad in (0.9, [np.nan], ["0"], [True]):
            with pytest.raises(DataError, match="`report` must be whole grid steps"):
                noise.log_density(bad, 1.0)
    for bad in ([np.nan], ["3"], [True], [[1], [1, 2]]):
        with pytest.raises(DataError, match="`reports` must be finite numbers"):
            randomizer.noise.decode(bad)


@pytest.mark.exhaust
def test_a_refused_precision_may_yet_be_reached_which_the_refusal_does_not_deny() -> None:
    """On two steps the values that rounding would move out of their interval are not the smallest ones."""
    public: dict[str, Any] = {"lower": 0.3, "upper": 2.7, "beta": 0.9, "rho": 0.9, "grid": 1.2}
    with pytest.raises(UnsupportedError, match="cannot be guaranteed by our bound"):
        BudgetLaplace(**public, epsilon=300.0)
    same = BudgetLaplace(**public, epsilon=300.0, precision="published")
    assert not same.clamps and min(same.precision_at(value) for value in np.linspace(0.3, 2.7, 501)) > 0.9


def test_algorithm_1_as_printed_never_clamps() -> None:
    """Lines 4 to 13 of our copy: both clamps stand behind the return of the same branch."""
    randomizer = EXAMPLES[0]

    def printed(y: float) -> float | None:
        if randomizer.epsilon >= randomizer.published_threshold:
            return y
        return None

    assert randomizer.clamps and printed(randomizer.upper + 1.0) is None
    ends = law(randomizer, 0)[[0, -1]]
    assert ends.min() > 0.0 and law(randomizer, 0).sum() == pytest.approx(1.0)  # ours: all mass in the range


@pytest.mark.parametrize("x", [1.0, 2.0])
def test_the_proof_of_theorem_1_has_the_wrong_bound_at_both_ends(x: float) -> None:
    randomizer = BudgetLaplace(1.0, 3.0, 1.0, 0.1, 0.9, precision="published")
    assert randomizer.clamps
    ends = np.array([0, randomizer.steps])
    below, above = np.exp(randomizer.log_density(ends, x + 1.0) - randomizer.log_density(ends, x))
    limit = np.exp(randomizer.epsilon)
    assert 1 / limit < below < 1 < above < limit  # printed: both are at most e^-epsilon


def test_the_printed_distribution_function_exceeds_one() -> None:
    randomizer = BudgetLaplace(0.0, 6.0, 6.0, 0.1, 0.999, precision="published", grid=6.0 / 4096)
    assert randomizer.clamps
    atom = float(np.exp(randomizer.log_density(0, 3.0)))  # three scales above the lower end
    printed, right = np.exp(3.0) / 2, np.exp(-3.0) / 2
    assert printed > 1.0 and atom == pytest.approx(right, rel=6.0 / 4096)  # half a step of rounding, twice
