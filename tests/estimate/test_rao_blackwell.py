"""What a clamped report stands for is exactly unbiased: sums over the law, no simulation."""

import numpy as np
import pytest
from scipy.integrate import quad
from tests.tiers import one_in

from dovetail.core.errors import UnsupportedError
from dovetail.estimate.mean import ClampedGrid
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.laplace import Laplace

CASES = [(1, 0.3), (2, 0.9), (5, 0.01), (16, 2.0), (64, 1.0), (64, 20.0), (300, 0.5)]  # m, epsilon


def clamped(m: int, epsilon: float) -> tuple[ClampedGrid, np.ndarray]:
    """The grid and the exact law (m + 1, m + 1) of a clamped report given the value."""
    device = BudgetLaplace(0.0, float(m), epsilon, 0.001, 0.999, precision="published", grid=1.0)
    assert device.clamps
    points = np.arange(m + 1)
    return ClampedGrid.of(device), np.exp([device.log_density(points, float(i)) for i in points])


@pytest.mark.parametrize(("m", "epsilon"), CASES)
def test_every_function_of_the_value_is_estimated_without_bias(m: int, epsilon: float) -> None:
    grid, law = clamped(m, epsilon)
    every = grid.unbiased(np.eye(m + 1))  # row j: the estimate of [i = j]
    np.testing.assert_allclose(law @ every.T, np.eye(m + 1), atol=1e-12 * (1 + grid.half))


@pytest.mark.parametrize(("m", "epsilon"), CASES)
def test_moments_have_their_closed_forms(m: int, epsilon: float) -> None:
    grid, _ = clamped(m, epsilon)
    o, z = grid.overshoot, np.arange(m + 1.0)
    first, second = z.copy(), z**2 - 2 * o * (o + 1)
    first[[0, -1]] = -o, m + o
    second[[0, -1]] = -o, m**2 + 2 * m * o - o  # E[y^2 | clamp(y)] minus the noise variance
    np.testing.assert_allclose(grid.unbiased(z), first, rtol=1e-12)
    np.testing.assert_allclose(grid.unbiased(z**2), second, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("m", "epsilon"), CASES)
def test_the_edges_are_the_conditional_mean_of_the_report_whatever_the_value(m: int, epsilon: float) -> None:
    grid, _ = clamped(m, epsilon)
    t = np.exp(-epsilon / m)
    far = np.arange(int(45 * m / epsilon) + 1)  # beyond: below e^-45
    for i in {0, m // 2, m}:
        tail = t ** (i + far)  # y = -far
        assert -(tail @ far) / tail.sum() == pytest.approx(-grid.overshoot, rel=1e-9)


@pytest.mark.parametrize(("m", "epsilon"), CASES)
def test_the_variance_never_exceeds_that_of_the_unclamped_report(m: int, epsilon: float) -> None:
    grid, law = clamped(m, epsilon)
    value = grid.unbiased(np.arange(m + 1.0))
    variance = law @ value**2 - (law @ value) ** 2
    np.testing.assert_allclose(variance, 2 * grid.half * (1 - (law[:, 0] + law[:, -1]) / 2), rtol=1e-6)
    assert np.all(variance < 2 * grid.half) and np.all(variance >= grid.half * (1 - 1e-9))


@pytest.mark.parametrize("wrong", [-1.0, 1.0, -0.05, 0.05])
def test_other_values_at_the_edges_are_biased(wrong: float) -> None:
    grid, law = clamped(16, 2.0)
    value = grid.unbiased(np.arange(17.0))
    value[0] += wrong
    assert np.abs(law @ value - np.arange(17)).max() > 1e-3


@pytest.mark.exhaust
@pytest.mark.parametrize(("epsilon", "ratio"), one_in(4, [(0.1, 0.52), (0.5, 0.60), (1.0, 0.69), (4.0, 0.89)]))
def test_the_saving_is_that_of_the_theory_for_values_of_a_beta_law(epsilon: float, ratio: float) -> None:
    grid, law = clamped(1024, epsilon)
    u = (np.arange(1024 + 1)) / 1024
    people = u * (1 - u) ** 4
    value = grid.unbiased(np.arange(1025.0))
    variance = people @ (law @ value**2 - (law @ value) ** 2) / people.sum()
    assert variance / (2 * grid.half) == pytest.approx(ratio, abs=0.011)


@pytest.mark.parametrize("x", [0.0, 0.3, 1.7, 2.0])
@pytest.mark.parametrize("scale", [0.2, 1.0, 30.0])
def test_the_continuous_form_is_unbiased(x: float, scale: float) -> None:
    low, high = np.exp(-x / scale) / 2, np.exp(-(2.0 - x) / scale) / 2
    inside = sum(quad(lambda y: y * np.exp(-abs(y - x) / scale) / (2 * scale), *ends)[0] for ends in ((0, x), (x, 2)))
    assert inside - low * scale + high * (2.0 + scale) == pytest.approx(x, abs=1e-9)


def test_fine_grids_tend_to_the_continuous_form() -> None:
    laplace = Laplace(lower=0.0, upper=2.0, epsilon=1.0, grid=2.0 / (1 << 20))
    grid = ClampedGrid.of(laplace)
    assert grid.step * grid.overshoot == pytest.approx(2.0, abs=grid.step)
    assert grid.overshoot == pytest.approx(1 / np.expm1(float(laplace.rate)), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 40.0, 600.0])
def test_the_overshoot_keeps_its_digits_at_all_rates(epsilon: float) -> None:
    grid = ClampedGrid.of(Laplace(lower=0.0, upper=1.0, epsilon=epsilon, grid=1.0))
    assert grid.overshoot == pytest.approx(1 / np.expm1(epsilon), rel=1e-12)


def test_bad_input_is_refused() -> None:
    fine = Laplace(lower=0.0, upper=1.0, epsilon=1.0, grid=2.0**-21)
    with pytest.raises(UnsupportedError, match="Use a coarser grid"):
        ClampedGrid.of(fine).histogram(np.array([0]))
