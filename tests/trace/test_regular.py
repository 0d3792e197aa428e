"""Long traces: conjugate gradients, Levinson and matrices agree; draws have the prior's covariance."""

import numpy as np
import pytest
from scipy.linalg import solve_toeplitz
from scipy.stats import chi2
from tests.statistics import FALSE_ALARM, rng_of

from dovetail.core.errors import ParameterError
from dovetail.trace.closed_form import full
from dovetail.trace.descent import Budget
from dovetail.trace.kernels import RBF, Kernel, Matern32
from dovetail.trace.loss import condition, information
from dovetail.trace.mechanisms import mixed
from dovetail.trace.regular import RegularPrior, design_regular, regular_loss

each_kernel = pytest.mark.parametrize("kernel", [RBF(6.103), Matern32(6.0)], ids=repr)


@each_kernel
@pytest.mark.parametrize("n", [99, 120])
def test_long_and_short_ways_give_the_same_loss(kernel: Kernel, n: int) -> None:
    budget, times, place = Budget(n, 0.02), np.arange(float(n)), 40
    prior, long = kernel.matrix(times), RegularPrior.of(kernel, n)
    for name, noise in (
        ("full", full(prior, place, budget).noise),
        ("mixed", mixed(prior, [(place,)], budget).noise),
    ):
        design = design_regular(long, place, budget, name=name)
        exact = information(condition(prior, [place]), noise).largest
        assert design.loss.lower <= exact.upper and exact.lower <= design.loss.upper and design.loss.gap < 1e-4
        other = information(condition(kernel.stretched(2.0).matrix(times), [place]), noise).largest
        found = regular_loss(RegularPrior.of(kernel.stretched(2.0), n), design.noise)
        assert found.lower <= other.upper and other.lower <= found.upper and found.gap < 1e-3


@pytest.mark.parametrize("n", [1000, 100_000])
def test_a_total_budget_of_one_has_the_same_loss_at_any_length(n: int) -> None:
    design = design_regular(RegularPrior.of(RBF(6.103), n), n // 2, Budget(n, 1.0 / n, 0.0), name="full")
    assert round(design.loss.lower, 8) == round(design.loss.upper, 8) == 7.72467272
    if n == 1000:
        column = design.noise.prior.row(n // 2)
        q = column @ solve_toeplitz(design.noise.prior.column + np.eye(1, n)[0], column)  # Levinson
        assert q / (1 - q) == pytest.approx(design.loss.upper, rel=1e-8)


@pytest.mark.exhaust
@each_kernel
def test_a_long_draw_has_the_covariance_of_the_design(kernel: Kernel) -> None:
    n, rng = 60, rng_of("long draw")
    noise = design_regular(RegularPrior.of(kernel, n), 30, Budget(n, 0.2)).noise
    covariance = (
        noise.white * np.eye(n)
        + noise.rank_one * np.outer(noise.direction, noise.direction)
        + noise.shared * kernel.matrix(np.arange(float(n)))
    )
    white = np.linalg.solve(np.linalg.cholesky(covariance), np.array([noise.draw(rng) for _ in range(1500)]).T)
    total, count = float((white**2).sum()), white.size
    assert 2 * min(chi2.cdf(total, count), chi2.sf(total, count)) > FALSE_ALARM
    wrong = 1.05 * total  # noise of five percent more variance would be seen
    assert 2 * min(chi2.cdf(wrong, count), chi2.sf(wrong, count)) < FALSE_ALARM


def test_what_the_long_way_does_not_know_is_refused() -> None:
    prior, budget = RegularPrior.of(RBF(2.0), 50), Budget(50, 0.1)
    with pytest.raises(ParameterError, match="full or mixed"):
        design_regular(prior, 3, budget, name="robust")
    with pytest.raises(ParameterError, match="inside the trace"):
        design_regular(prior, 50, budget)
