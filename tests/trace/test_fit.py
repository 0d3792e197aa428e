"""Fits: slopes of the likelihood, a known kernel found again, bounds reported, wrong kernels caught."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.trace.priors import generator

from dovetail.cli.main import invoke
from dovetail.core.errors import DataError
from dovetail.trace.fit import Fit, Likelihood, censored_quantiles, fit_kernel, goodness, grouped
from dovetail.trace.kernels import RBF, Kernel, Matern32, kernel_of, with_nugget
from dovetail.trace.trace import Trace

SPREAD = np.array([[4.0, 1.2], [1.2, 1.0]])


def drawn(kernel: Kernel, count: int, name: str, n: int = 40) -> list[Trace]:
    """Traces of a known prior at irregular times, each with its own mean."""
    rng, root = generator(name), np.linalg.cholesky(SPREAD)
    made = []
    for number in range(count):
        times = np.cumsum(rng.uniform(5.0, 15.0, n))
        factor = np.linalg.cholesky(kernel.matrix(times) + 1e-9 * np.eye(n))
        points = factor @ rng.standard_normal((n, 2)) @ root.T + rng.uniform(-1e3, 1e3, 2)
        made.append(Trace.of(str(number), times, points))
    return made


@pytest.mark.parametrize("isotropic", [False, True])
def test_slopes_are_those_of_the_likelihood(isotropic: bool) -> None:
    kernel = kernel_of("matern32*periodic+white", length=40.0, period=60.0)
    likelihood = Likelihood(grouped(drawn(with_nugget(Matern32(50.0), 0.05), 3, "slopes", 12)), 2, isotropic)
    _, slopes, _ = likelihood.value(kernel)
    for place in range(len(slopes)):
        ends = [
            likelihood.value(
                kernel.with_parameters(
                    tuple(p * np.exp(step * (i == place)) for i, p in enumerate(kernel.parameters))
                )
            )[0]
            for step in (1e-5, -1e-5)
        ]
        assert slopes[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-5)


def test_the_likelihood_is_that_of_contrasts_of_a_multivariate_normal() -> None:
    from scipy.stats import multivariate_normal

    trace = drawn(Matern32(50.0), 1, "contrasts", 6)[0]
    kernel = with_nugget(Matern32(50.0), 0.1)
    value, _, covariance = Likelihood(grouped([trace]), 2, False).value(kernel)
    # any 5 orthonormal contrasts of 6 points; 1' 1 = 6 is the Jacobian that the module leaves in
    basis = np.linalg.svd(np.ones((1, 6)))[2][1:]
    points = (basis @ trace.points).T.ravel()
    whole = np.kron(covariance, basis @ kernel.matrix(trace.times) @ basis.T)
    direct = multivariate_normal(np.zeros(10), whole).logpdf(points)
    assert value + np.log(6.0) == pytest.approx(direct, rel=1e-9)


@pytest.mark.exhaust
def test_a_known_kernel_is_found_again() -> None:
    fit = fit_kernel(kernel_of("matern32", length=20.0), drawn(with_nugget(Matern32(60.0), 0.02), 40, "again"))
    assert fit.at_bound == "" and fit.length == pytest.approx(60.0, rel=0.15)
    assert np.allclose(fit.covariance / fit.covariance[1, 1], SPREAD, atol=0.35)


@pytest.mark.exhaust
def test_a_right_kernel_leaves_white_residuals_and_a_wrong_one_is_caught() -> None:
    traces = drawn(with_nugget(Matern32(60.0), 0.02), 40, "white")
    right, wrong = (goodness(kernel_of(name, length=1.0, period=7.0), traces) for name in ("matern32", "periodic"))
    assert right is not None and wrong is not None
    # 20 held-out traces of 80 numbers: 1,600 residuals, standard errors .035 and .025; six of them
    assert abs(right.variance - 1.0) < 0.22 and abs(right.neighbours) < 0.16 and right.beyond_three < 0.02
    assert wrong.neighbours > 0.3 and wrong.held_out < right.held_out - 0.2


def test_quantiles_beyond_the_bound_are_said_to_be_lower_bounds() -> None:
    def fit(length: float, end: str) -> Fit:
        return Fit(RBF(length), np.eye(1), 0.0, 1, end)

    fits = [fit(2.0, ""), fit(4.0, ""), fit(8.0, "upper"), fit(8.0, "upper"), fit(8.0, "upper")]
    found = censored_quantiles(fits, (0.2, 0.5, 0.75))
    assert [(each.seconds, each.censored) for each in found] == [(2.0, False), (8.0, True), (8.0, True)]
    assert all(each.censored for each in censored_quantiles(fits[2:]))
    in_points = censored_quantiles(fits, (0.2, 0.5), periods=[0.5, 4.0, 2.0, 2.0, 2.0])  # 4, 1, and at least 4 points
    assert [(each.seconds, each.censored) for each in in_points] == [(1.0, False), (4.0, True)]


def test_a_trace_that_ends_at_its_bound_says_so() -> None:
    line = Trace.of("line", np.arange(10.0), np.arange(10.0))
    assert fit_kernel(kernel_of("matern32", length=3.0), [line]).at_bound == "upper"


def test_a_trace_on_a_line_in_the_plane_has_no_covariance_and_says_so() -> None:
    line = Trace.of("line", np.arange(10.0), np.column_stack([np.arange(10.0), 2 * np.arange(10.0)]))
    with pytest.raises(DataError, match="one line"):
        fit_kernel(kernel_of("matern32", length=3.0), [line])
    with pytest.raises(DataError, match="no length-scale"):
        fit_kernel(kernel_of("white", length=3.0), drawn(Matern32(60.0), 1, "no length"))


def test_what_does_not_move_is_refused() -> None:
    still = Trace.of("still", np.arange(5.0), np.ones((5, 2)))
    with pytest.raises(DataError, match="do not move"):
        fit_kernel(RBF(3.0), [still])


@pytest.mark.exhaust
def test_fits_of_single_traces_have_quartiles_in_seconds_and_in_points(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw, rows = np.random.default_rng(4), []
    for number in range(6):
        times = 15.0 * np.arange(25)
        walk = np.linalg.cholesky(RBF(60.0).matrix(times) + 1e-6 * np.eye(25)) @ draw.normal(size=(25, 2))
        rows += [f"{number},{t:g},{x:.3f},{y:.3f}" for t, (x, y) in zip(times, 100.0 * walk, strict=True)]
    (tmp_path / "traces.csv").write_text("\n".join(["trace,time,x,y", *rows]) + "\n")
    asked = ["trace", "fit", str(tmp_path / "traces.csv"), "--kernel", "rbf", "--by", "trace"]
    assert invoke([*asked, "--out", str(tmp_path / "prior.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["lengths"]
    pairs = list(zip(found["quantiles"], found["effective_quantiles"], strict=True))
    assert len(pairs) == 3 and found["fits"] == 6
    for one, other in pairs:
        assert other["points"] == pytest.approx(one["seconds"] / 15.0) and other["level"] == one["level"]
    assert 2.0 < pairs[1][1]["points"] < 8.0  # drawn with four
    assert invoke([*asked, "--out", str(tmp_path / "again.json")]) == 0
    assert "effective, in points" in " ".join(capsys.readouterr().out.split())
