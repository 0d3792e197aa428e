"""Laplace rounds to its grid and refuses what it cannot promise."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.statistics import expect_broken

from dovetail.core.discrete_noise import geometric
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError
from dovetail.randomize.laplace import Laplace
from dovetail_protocol.exact_thresholds import WORD


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 10, 1000, 1 << 31])
@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (-0.3, 0.7), (1e9, 1e9 + 1), (-1e-9, 1e-9)])
def test_a_value_is_rounded_to_its_neighbours_with_the_value_as_the_mean(
    lower: float, upper: float, steps: int
) -> None:
    laplace = Laplace(lower=lower, upper=upper, epsilon=1.0, grid=(upper - lower) / steps)
    assert laplace.steps == steps
    ends = [laplace.device.point(value, word) for value in (lower, upper) for word in (0, WORD - 1)]
    assert ends == [0, 0, steps, steps]
    slack = 8 * np.spacing(max(abs(lower), abs(upper)))
    for value in np.linspace(lower, upper, 20).tolist():
        below, up, stays = laplace.device.point(value, WORD - 1), 0, WORD - 1
        while up < stays:  # how many words round up
            middle = (up + stays) // 2
            up, stays = (up, middle) if laplace.device.point(value, middle) == below else (middle + 1, stays)
        assert 0 <= below < steps or (below, up) == (steps, 0)
        assert abs(lower + laplace.step * (below + up / WORD) - value) <= slack


def test_the_default_grid_has_thirty_two_steps_that_the_parameters_name() -> None:
    assert Laplace(lower=-1.0, upper=7.0, epsilon=1.0) == Laplace(lower=-1.0, upper=7.0, epsilon=1.0, grid=0.25)
    with pytest.raises(ParameterError, match="`upper` must be above"):
        Laplace(lower=0.0, upper=5e-324, epsilon=1.0)


@pytest.mark.parametrize(
    "bad",
    [
        {"lower": 1.0, "upper": 1.0},
        {"lower": 2.0, "upper": 1.0},
        {"lower": float("nan")},
        {"upper": float("inf")},
        {"lower": -1.7e308, "upper": 1.7e308},
        {"epsilon": 0.0},
        {"epsilon": 1e-15},
        {"epsilon": float("nan")},
        {"grid": 0.0},
        {"grid": -0.1},
        {"grid": 0.3},
        {"grid": 2.0},
        {"grid": 1e-12},
        {"grid": float("nan")},
    ],
    ids=repr,
)
def test_parameters_outside_their_range_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="must be"):
        Laplace(**{"lower": 0.0, "upper": 1.0, "epsilon": 1.0, **bad})


def test_values_outside_the_range_are_refused_not_clamped(rng: Entropy) -> None:
    laplace = Laplace(lower=0.0, upper=1.0, epsilon=1.0)
    assert laplace.randomize([], rng).size == 0
    for bad in ([1.5], [-0.1], [np.nan], [np.inf], ["a"], [[0.5]]):
        with pytest.raises(DataError, match="`values` must be"):
            laplace.randomize(bad, rng)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 5.0, 700.0])
def test_the_noise_variance_is_stable_at_all_rates(epsilon: float) -> None:
    laplace = Laplace(lower=0.0, upper=1.0, epsilon=epsilon, grid=1.0)
    t = np.exp(-np.longdouble(epsilon))
    exact = 2 * t / np.square(-np.expm1(-np.longdouble(epsilon)))
    assert laplace.geometric_variance == pytest.approx(float(exact), rel=1e-12)
    assert laplace.noise_variance == laplace.geometric_variance + 0.25
    assert laplace.overshoot == pytest.approx(float(t / -np.expm1(-np.longdouble(epsilon))), rel=1e-12)


def test_a_sign_error_in_the_noise_is_caught(rng: Entropy) -> None:
    laplace = Laplace(lower=0.0, upper=1.0, epsilon=2.0, grid=0.25)
    rate = Fraction(1, 2)
    wrong = geometric(rate, 50_000, rng) + geometric(rate, 50_000, rng)
    law = np.exp(laplace.log_density(np.arange(-20, 21), 0.0))
    seen = np.bincount(np.clip(wrong, -20, 20) + 20, minlength=41)
    expect_broken(seen, law / law.sum())


def test_reports_fall_outside_the_range_without_clamping(rng: Entropy) -> None:
    reports = Laplace(lower=0.0, upper=1.0, epsilon=0.5).randomize([0.0, 1.0] * 500, rng)
    assert reports.min() < 0 and reports.max() > 32
