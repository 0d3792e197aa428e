"""Rounding all points to the public grid is part of what a release promises."""

from itertools import product

import numpy as np
import pytest

from dovetail.core.errors import UnsupportedError
from dovetail.trace.kernels import RBF, Floats
from dovetail.trace.loss import delta_of, mu_of
from dovetail.trace.noise import design_trace
from dovetail.trace.plan import TraceGuarantee, TracePlan, TracePrior
from dovetail.trace.posterior_loss import least_variance, rounding_charge
from dovetail.trace.trace import SecretTimes


def worst_rounded_pair(shift: Floats, step: float, noise: Floats) -> float:
    """mu of two traces that differ by `shift` before rounding, each point's place in its cell the worst found."""
    low, high = np.floor(shift / step) * step, np.ceil(shift / step) * step
    inverse = np.linalg.inv(noise)
    best = 0.0
    for start in range(6):
        pick = np.random.default_rng(start).integers(0, 2, len(shift)).astype(bool)
        moved = np.where(pick, high, low)
        for _, j in product(range(20), range(len(shift))):
            other = moved.copy()
            other[j] = low[j] + high[j] - moved[j]
            moved = max(moved, other, key=lambda one: float(one @ inverse @ one))
        best = max(best, float(moved @ inverse @ moved))
    return float(np.sqrt(best))


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("n", "radius", "noise", "step"),
    [(60, 10.1, "mixed", 0.0), (60, 1.1, "full", 0.0), (60, 200.1, "mixed", 0.13), (150, 10.1, "full", 0.0)],
)
def test_the_stated_mu_covers_the_worst_rounding_of_a_trace_that_hardly_moves(
    n: int, radius: float, noise: str, step: float
) -> None:
    # a kernel this long fixes every other point given the secret, so where it lies in its cell is the world's choice
    prior, times = TracePrior(RBF(1e7), np.array([[1e4]])), np.arange(float(n))
    plan = TracePlan(prior, SecretTimes(((n // 2, n // 2),)), radius, 50.0, noise, 0.01, step)
    design = design_trace(plan, times)
    covariance = design.noises[0] * design.variances[0]
    shift = np.full(n, radius) * np.exp(-0.5 * ((times - n // 2) / 1e7) ** 2)
    exact = worst_rounded_pair(shift, plan.grid, covariance)
    unrounded = radius * np.sqrt(np.ones(n) @ np.linalg.solve(covariance, np.ones(n)))
    assert exact <= design.guarantee.mu
    assert exact > unrounded * (1 + 1e-6)  # without the charge the statement would be too small
    assert all(exact <= mu for name, mu in design.guarantee.by_adversary.items() if name in ("length x 3",))


def test_a_coarse_step_is_refused_with_the_step_that_would_do() -> None:
    prior, times = TracePrior(RBF(1e4), np.array([[1e4]])), np.arange(60.0)
    with pytest.raises(UnsupportedError, match="`step` must be at most"):
        design_trace(TracePlan(prior, SecretTimes(((30.0, 30.0),)), 7.5, 50.0, "mixed", 0.01, 5.0), times)


def test_rounding_is_within_its_charge_in_one_dimension() -> None:
    # one number, all moves: the mixture over cells is exactly two shifted normals
    step, white = 0.7, 0.3
    for move in np.linspace(0.0, 3.0, 31):
        cell = np.linspace(0, step, 500)
        parted = np.abs(np.rint((cell + move) / step) - np.rint(cell / step))
        assert parted.max() * step / np.sqrt(white) <= move / np.sqrt(white) + rounding_charge(step, 1, white) + 1e-9


def test_the_least_variance_is_a_lower_bound_and_a_singular_noise_is_refused() -> None:
    assert 0.5 * (1 - 1e-12) <= least_variance(np.diag([0.5, 3.0])) <= 0.5
    with pytest.raises(UnsupportedError, match="nearly singular"):
        least_variance(np.ones((3, 3)))


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.5, 4.0])
def test_delta_is_never_below_the_curve(mu: float, epsilon: float) -> None:
    flint = pytest.importorskip("flint")
    with flint.ctx.workprec(400):
        half, root = flint.arb(mu) / 2, flint.arb(2).sqrt()
        shift, e = flint.arb(epsilon) / flint.arb(mu), flint.arb(epsilon).exp()
        normal = lambda x: (-x / root).erfc() / 2  # noqa: E731
        assert delta_of(epsilon, mu=mu) >= float((normal(half - shift) - e * normal(-half - shift)).mid())


@pytest.mark.parametrize("delta", [1e-20, 1e-12, 1e-6, 0.1])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 1.0])
def test_the_largest_mu_keeps_its_delta_however_small_both_are(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta=delta)
    assert mu > 0.0 and delta_of(epsilon, mu=mu) <= delta


def test_what_is_printed_of_mu_is_rounded_up() -> None:
    made = TraceGuarantee(0.123401, 1.0, (), {"other": 0.100001}, 1.0, "full")
    assert "0.124-Gaussian" in made.lines()[0] and made.lines()[1] == "other: mu 0.101"
