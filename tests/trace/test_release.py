"""Releases: the sampler has its law, the grid is public, leaking plans are refused, conditions are printed."""

import json
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, kstest
from tests.statistics import FALSE_ALARM, rng_of
from tests.trace.priors import KERNELS

from dovetail.core.entropy import simulation, system_entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.trace.kernels import Floats, Matern32
from dovetail.trace.loss import Information, condition, information, worst_move
from dovetail.trace.mechanisms import correlated_noise, standard_normals
from dovetail.trace.noise import design_trace
from dovetail.trace.plan import CONDITIONS, TracePlan, TracePrior
from dovetail.trace.release_design import draw_noise, error_for, release_trace
from dovetail.trace.trace import SecretTimes, Trace

TIMES = np.arange(12.0) * 15.0
PRIOR = TracePrior(Matern32(120.0), np.array([[900.0, 200.0], [200.0, 400.0]]))
SECRET = SecretTimes(((60.0, 75.0),))
PLAN = TracePlan(PRIOR, SECRET, radius=50.0, error=20.0, noise="mixed")
TRACE = Trace.of("a", TIMES, np.column_stack([TIMES, 2.0 * TIMES]))


def mahalanobis_p_value(draws: Floats, covariance: Floats) -> float:
    """Chance of a sum of squared whitened draws (m, n) this far from its mean, both sides."""
    white = np.linalg.solve(np.linalg.cholesky(covariance), draws.T)
    total = float((white**2).sum())
    return 2.0 * float(min(chi2.cdf(total, draws.size), chi2.sf(total, draws.size)))


@pytest.mark.exhaust
def test_normal_numbers_are_normal_in_the_middle_and_in_the_tail() -> None:
    drawn = standard_normals(200_000, rng_of("normal numbers"))
    assert kstest(drawn, "norm").pvalue > FALSE_ALARM
    assert kstest(drawn * 1.04, "norm").pvalue < FALSE_ALARM  # the test would see four percent


def test_the_noise_has_the_covariance_of_the_design() -> None:
    covariance = 0.5 * KERNELS[0].matrix(np.arange(10.0)) + 0.01 * np.eye(10)
    rng = rng_of("covariance of noise")
    draws = np.array([correlated_noise(covariance, rng) for _ in range(4000)])
    assert mahalanobis_p_value(draws, covariance) > FALSE_ALARM
    independent = np.array([np.sqrt(0.51) * standard_normals(10, rng) for _ in range(4000)])
    assert mahalanobis_p_value(independent, covariance) < FALSE_ALARM  # the same variances, no correlation: caught


@pytest.mark.exhaust
def test_a_release_differs_from_the_trace_by_the_stated_noise_along_turned_axes() -> None:
    made, rng = design_trace(PLAN, TIMES), rng_of("turned axes")
    # eigenvectors may come as a reflection, which is its own transpose; a turn is not
    turn = np.array([[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]])
    design = replace(made, axes=turn, noises=(made.noises[0], 4.0 * made.noises[1]))
    draws = np.array([draw_noise(design, rng=rng) for _ in range(3000)])
    for k, axis in enumerate(design.axes):
        along = draws @ axis
        assert mahalanobis_p_value(along, design.noises[k] * design.variances[k]) > FALSE_ALARM
    budget = sum(np.trace(noise) * v for noise, v in zip(made.noises, made.variances, strict=True)) / len(TIMES)
    assert budget == pytest.approx(PLAN.error**2, rel=1e-9)


def test_what_is_released_lies_on_the_public_grid() -> None:
    design = design_trace(PLAN, TIMES)
    points = release_trace(TRACE, PLAN, design)
    assert np.array_equal(points, np.rint(points / PLAN.grid) * PLAN.grid) and PLAN.grid == 2.0**-13
    assert not np.array_equal(points, release_trace(TRACE, PLAN, design))


def test_the_noise_of_a_plan_does_not_depend_on_the_trace() -> None:
    design = design_trace(PLAN, TIMES)
    moved = Trace.of("b", TIMES, 1e3 * TRACE.points + 5.0)
    first, second = (release_trace(each, PLAN, design, rng=simulation(3)) - each.points for each in (TRACE, moved))
    assert np.abs(first - second).max() <= 2 * PLAN.grid


@pytest.mark.parametrize("name", ["robust", "mixed", "full", "all", "uniform"])
def test_the_stated_mu_is_that_of_the_joint_covariance_in_the_plane(name: str) -> None:
    plan = replace(PLAN, noise=name, secrets=SecretTimes(((60.0, 60.0),)))
    design = design_trace(plan, TIMES)
    whole = np.kron(PRIOR.kernel.matrix(TIMES), PRIOR.covariance)
    noise: Any = sum(
        np.kron(g * v, np.outer(axis, axis))
        for g, v, axis in zip(design.noises, design.variances, design.axes, strict=True)
    )
    found = information(condition(whole, [8, 9]), noise).largest.upper
    exact = PLAN.radius * np.sqrt(found)
    assert exact <= design.guarantee.mu <= exact * (1 + 1e-6) + PLAN.grid * np.sqrt(24 / 1.9)


def test_the_axes_share_the_budget_so_that_neither_is_weaker() -> None:
    plan = replace(PLAN, noise="full", secrets=SecretTimes(((60.0, 60.0),)))
    design = design_trace(plan, TIMES)
    seen = condition(PRIOR.kernel.matrix(TIMES), [4])
    losses = [information(seen, g).matrix[0, 0] / v for g, v in zip(design.noises, design.variances, strict=True)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_every_condition_is_printed_and_a_simulation_says_that_it_protects_nobody() -> None:
    guarantee = design_trace(PLAN, TIMES).guarantee
    assert len(guarantee.secrets) == 2 and guarantee.mu == max(one.mu for one in guarantee.secrets)
    assert set(CONDITIONS) <= set(guarantee.lines()) and len(CONDITIONS) >= 10
    assert any("one sighting" in line for line in guarantee.lines())
    assert "protects nobody" in guarantee.drawn_from("simulation").caveats[0]
    assert guarantee.drawn_from(system_entropy().provenance).caveats == ()
    assert guarantee.delta(guarantee.epsilon(1e-5)) <= 1e-5 and guarantee.renyi(2.0) == guarantee.mu**2


def test_axes_of_tiny_variances_are_told_apart_so_that_the_statement_has_no_unit() -> None:
    small, large = (
        replace(PLAN, prior=TracePrior(Matern32(120.0), np.diag([1.0, 1e-3]) * unit**2), radius=unit, error=unit)
        for unit in (1e-6, 1.0)
    )
    assert design_trace(small, TIMES).guarantee.mu == pytest.approx(design_trace(large, TIMES).guarantee.mu, rel=1e-3)
    assert small.prior.axes()[0] == pytest.approx([1e-15, 1e-12], abs=0.0)


def test_a_trace_that_the_kernel_was_fitted_on_is_refused() -> None:
    prior = replace(PRIOR, salt="00" * 16)
    seen = replace(prior, fitted_on=prior.digests(TRACE))
    plan = replace(PLAN, prior=seen)
    with pytest.raises(UnsupportedError, match="on this trace or on points of it"):
        release_trace(TRACE, plan, design_trace(plan, TIMES))
    for part in (slice(1, None), slice(None, 6)):
        less = Trace.of("less", TIMES[part], TRACE.points[part])
        with pytest.raises(UnsupportedError, match="points of it"):
            release_trace(less, plan, design_trace(plan, TIMES))
    with pytest.raises(UnsupportedError, match="points of it"):  # another clock
        release_trace(Trace.of("later", TIMES + 3600.0, TRACE.points), plan, design_trace(plan, TIMES))
    rounded = np.round(TRACE.points / 1.1) * 1.1  # as five decimals of a degree do
    for part in (slice(1, None), slice(None, -1)):  # and cropped, on another clock
        with pytest.raises(UnsupportedError, match="points of it"):
            release_trace(Trace.of("cut", TIMES[part] - 3600.0, rounded[part]), plan, design_trace(plan, TIMES[part]))
    still = Trace.of("still", TIMES, 0.0 * TRACE.points)
    assert len(prior.digests(still)) == 1 + 12  # whole, and exact points: of a place alone nothing can be tried
    other = Trace.of("c", TIMES, TRACE.points + 500.0)
    assert release_trace(other, plan, design_trace(plan, TIMES)).shape == (12, 2)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"floor": 1e-7}, "`floor` must be at least"),
        ({"step": 1e-9}, "`step` must lie between"),
        ({"step": 100.0}, "`step` must lie between"),
        ({"error": 1e9}, "`error` must lie between"),
        ({"error": 1e-9}, "`error` must lie between"),
        ({"window": 3}, "`window` must be"),
        ({"error": 0.0}, "`error` must be"),
        ({"radius": -1.0}, "`radius` must be"),
        ({"radius": 1e308}, "`radius` must be at most"),
        ({"noise": "magic"}, "`noise` must be"),
    ],
)
def test_a_plan_that_would_leak_or_is_absurd_is_refused(change: dict[str, Any], word: str) -> None:
    with pytest.raises((ParameterError, UnsupportedError), match=word):
        replace(PLAN, **change)


def test_secrets_are_times_and_lie_inside_the_trace() -> None:
    assert SECRET.places(TIMES) == [(4,), (5,)]
    assert replace(SECRET, together=True).places(TIMES) == [(4, 5)]
    assert SecretTimes().places(TIMES) == [(i,) for i in range(12)]
    assert SECRET.places(TIMES + 1e9) == SECRET.places(TIMES)
    clock = SecretTimes.parse(["1970-01-01T00:01:00..1970-01-01T00:01:10"], together=False)
    assert clock.places(TIMES) == [(4,)] and not clock.from_start
    for text, word in (
        ("5", "START..END"),
        ("9..1", "end before"),
        ("a..b", "two numbers or two ISO"),
        ("stops..x", "two numbers"),
        ("-inf..inf", "finite ends"),
    ):
        with pytest.raises(ParameterError, match=word):
            SecretTimes.parse([text], together=False)
    with pytest.raises(ParameterError, match="holds no time stamp"):
        SecretTimes(((500.0, 600.0),)).places(TIMES)
    with pytest.raises(ParameterError, match="got both"):
        SecretTimes.parse(["1..2", "2013-07-01T00:10..2013-07-01T00:11"], together=False)


def test_separate_windows_are_one_secret_where_commas_join_them() -> None:
    joined = SecretTimes.parse(["0..15,150..165", "60..60"], together=True)
    assert joined.places(TIMES) == [(0, 1, 10, 11), (4,)]
    assert SecretTimes.parse(["0..15", "150..165"], together=True).places(TIMES) == [(0, 1), (10, 11)]
    plan = replace(PLAN, secrets=SecretTimes.parse(["0..0,165..165"], together=True))
    again = TracePlan.from_dict(json.loads(json.dumps(plan.as_dict())))
    assert (
        again.secrets == plan.secrets
        and again.terms() != replace(plan, secrets=replace(plan.secrets, secret_of=())).terms()
    )
    assert "secret_of" not in PLAN.as_dict()["secrets"], "plans without it, and releases of them, stay what they were"
    with pytest.raises(ParameterError, match="add --together"):
        SecretTimes.parse(["0..15,150..165"], together=False)
    with pytest.raises(ParameterError, match="must number each window"):
        SecretTimes(((0.0, 1.0), (5.0, 6.0)), together=True, secret_of=(0,))


@pytest.mark.exhaust
def test_a_compound_secret_of_two_windows_has_the_loss_of_its_scattered_points() -> None:
    plan = replace(PLAN, noise="uniform", secrets=SecretTimes.parse(["0..0,165..165"], together=True))
    design = design_trace(plan, TIMES)
    seen = condition(PRIOR.kernel.matrix(TIMES), (0, 11))
    told = [information(seen, noise) for noise in design.noises]
    own = worst_move([Information(one.matrix / v, one.error) for one, v in zip(told, design.variances, strict=True)])
    apart = design_trace(replace(plan, secrets=replace(plan.secrets, secret_of=())), TIMES)
    charge = design.guarantee.mu - 50.0 * np.sqrt(own.upper)
    assert 0.0 <= charge < 1e-3  # what rounding to the grid may tell besides
    assert design.guarantee.mu > apart.guarantee.mu  # together they also tell the way between


def test_times_without_a_zone_are_utc_wherever_the_machine_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        found = SecretTimes.parse(["1970-01-01T00:01:00..1970-01-01T00:01:10"], together=False)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found.windows == ((60.0, 70.0),)


def test_the_budget_for_a_wanted_guarantee_is_the_smallest() -> None:
    plan = error_for(1.5, PRIOR, SECRET, TIMES, radius=50.0, noise="mixed")
    assert design_trace(plan, TIMES).guarantee.mu <= 1.5
    assert design_trace(replace(plan, error=plan.error / 1.01), TIMES).guarantee.mu > 1.5


def test_a_guarantee_out_of_reach_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="out of reach"):
        error_for(1e-3, PRIOR, SECRET, TIMES, radius=1e4, noise="uniform")


def test_priors_and_plans_survive_their_files() -> None:
    again = TracePlan.from_dict(PLAN.as_dict())
    assert again.as_dict() == PLAN.as_dict()
    for broken in ({}, {**PLAN.as_dict(), "schema_version": 2}, {**PLAN.as_dict(), "radius": None}, []):
        with pytest.raises((DataError, ParameterError)):
            TracePlan.from_dict(broken)
    with pytest.raises(DataError, match="positive definite"):
        TracePrior(Matern32(1.0), np.array([[1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(DataError, match="`salt` must be hexadecimal"):
        replace(PRIOR, salt="zz")
    with pytest.raises(DataError, match="trace 'x': has 2 time stamps"):
        Trace.of("x", [0.0, 1.0], [[1.0, 2.0]])
