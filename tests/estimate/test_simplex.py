"""Projected shares are shares, and nearer to the truth than what they were made from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from dovetail.core.estimate import Estimate
from dovetail.estimate.frequency import project_shares, project_to_simplex

VECTORS = st.integers(1, 6).flatmap(lambda k: arrays(np.float64, k, elements=st.floats(-3, 3)))


@given(VECTORS)
def test_the_projection_lies_on_the_simplex_and_stays_there(values: np.ndarray) -> None:
    shares = project_shares(values)
    assert shares.min() >= 0.0 and shares.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(project_shares(shares), shares, atol=1e-12)


@given(VECTORS, st.integers(0, 10**6))
def test_the_projection_is_never_further_from_any_shares(values: np.ndarray, seed: int) -> None:
    truth = np.random.default_rng(seed).dirichlet(np.full(values.size, 0.5))
    assert np.linalg.norm(project_shares(values) - truth) <= np.linalg.norm(values - truth) + 1e-12


def test_the_projection_is_the_nearest_point_that_an_optimizer_finds() -> None:
    for seed in range(5):
        v = np.random.default_rng(seed).normal(0.3, 0.4, size=4)
        best = minimize(
            lambda x, v=v: ((x - v) ** 2).sum(),
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(project_shares(v), best.x, atol=1e-6)


def test_groups_are_projected_one_by_one_and_keep_their_errors() -> None:
    value = np.array([[0.75, 0.5, -0.25], [0.2, 0.3, 0.5]])
    error = np.full((2, 3), 0.1)
    projected = project_to_simplex(Estimate(value, error, np.array([5, 6]), error))
    np.testing.assert_allclose(projected.value, [[0.625, 0.375, 0.0], [0.2, 0.3, 0.5]])
    assert projected.standard_error is error and projected.n.tolist() == [5, 6]
    low, high = projected.interval(0.95)
    assert low.min() == 0.0 and high.max() <= 1.0 and np.all(low <= high)
