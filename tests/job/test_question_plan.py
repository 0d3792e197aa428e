"""Plans of any question: the predicted error is what the worst people show, and `run` keeps what a plan says."""

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

import dovetail as dt
from dovetail.core.errors import ParameterError
from dovetail.core.noise import Noise, People
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.job.plan_file import question_toml
from dovetail.job.question_plan import QuestionPlan, plan_question, question_rows
from dovetail.noise.classes import EpsilonClasses
from dovetail.noise.local import Local
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.noise.users import UserNoise
from dovetail.plan.dummies import plan_mean_with_dummies, plan_with_dummies, plan_with_user_dummies
from dovetail.question.covariance import Covariance
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies

N, REPEATS = 400, 1500
PEOPLE = People(N, pl.DataFrame())
HALVES = np.where(np.arange(N) < N // 2, 0.0, 10.0)


def asked(points: int) -> Covariance:
    return Covariance(0.0, 10.0, "other", 0.0, 10.0, points=points)


def behind_dummies(points: int) -> ShufflerNoise:
    return ShufflerNoise(Dummies(points**2, 2.0, 1e-3), OpenAnswers(points**2))


def of_people(points: int) -> UserNoise:
    return UserNoise(UserDummies(points**2, 0.5), OpenAnswers(points**2))


# where the error is largest: all near one corner (at it, means are cut to the range, which helps), one number in the
# middle of a step, or both
WORST: list[tuple[int, Noise, Any, Any]] = [
    (2, Local(KRR(4, 1.5)), 9.5, 9.5),
    (2, behind_dummies(2), 5.0, 5.0),
    (3, behind_dummies(3), 7.5, HALVES),
    (7, of_people(7), 9.5, 9.5),
    (3, EpsilonClasses(9, "class", {"a": 2.0}, 4.0), 9.5, 9.5),
]


@pytest.mark.exhaust
@pytest.mark.parametrize(("points", "noise", "first", "second"), WORST, ids=lambda one: getattr(one, "name", None))
def test_the_predicted_error_is_what_collections_of_the_worst_people_show(
    points: int, noise: Noise, first: Any, second: Any
) -> None:
    """Observed variances are near chi-squared: a right implementation fails with a chance of about 1e-8 a case."""
    question, rng = asked(points), dt.simulation(5)
    people = People(N, pl.DataFrame({"class": ["a", "b"] * (N // 2)}))
    pairs = np.column_stack([np.broadcast_to(first, N), np.broadcast_to(second, N)])
    found = []
    for _ in range(REPEATS):
        batch = noise.complete(noise.randomize(question.answer(pairs, rng), people, rng), rng)
        found.append(float(question.learned(noise, noise.tally(batch), people).value))
    observed, predicted = np.var(found, ddof=1), question.error(noise, people) ** 2
    low, high = chi2.ppf([5e-9, 1.0 - 5e-9], REPEATS - 1) / (REPEATS - 1)
    assert observed <= high * predicted
    assert predicted <= 1.2**2 * observed / low


def exact(question: Covariance, noise: Noise, u: np.ndarray, v: np.ndarray, law: np.ndarray) -> float:
    """Variance of the estimate where these shares of people hold u and v, in ranges from the middle."""
    step = np.linspace(-0.5, 0.5, question.points)
    near = [np.clip(1.0 - np.abs(one[:, None] - step) * (question.points - 1), 0.0, None) for one in (u, v)]
    each = np.einsum("pi,pj->pij", *near).reshape(len(u), -1)
    weights = np.array([np.repeat(step, question.points), np.tile(step, question.points)])
    weights = np.vstack([weights, weights.prod(axis=0)])
    _, sigma = noise.moments(noise.expected(law @ each, PEOPLE), weights, PEOPLE)
    slope = np.array([-(law @ v), -(law @ u), 1.0])
    worth = slope @ weights
    rounding = law @ (each @ worth**2 - (each @ worth) ** 2) / N
    return float(slope @ sigma @ slope + sigma[0, 0] * sigma[1, 1] + sigma[0, 1] ** 2 + rounding) * 1e4


@pytest.mark.parametrize("points", [2, 3, 5])
@pytest.mark.parametrize("make", [behind_dummies, of_people, lambda points: Local(KRR(points**2, 1.0 + points))])
def test_no_population_that_is_tried_has_an_error_larger_by_four_percent(points: int, make: Any) -> None:
    """A thousand populations of one to four kinds of people, half of them at ends and middles of steps."""
    rng, noise = np.random.default_rng(1), make(points)
    most = asked(points).error(noise, PEOPLE) ** 2
    for trial in range(1000):
        kinds = rng.integers(1, 5)
        u, v = rng.uniform(-0.5, 0.5, (2, kinds))
        if trial % 2:
            u, v = (np.round(one * 2 * (points - 1)) / (2 * (points - 1)) for one in (u, v))
        assert exact(asked(points), noise, u, v, rng.dirichlet(np.ones(kinds))) <= most * 1.04**2


@pytest.mark.exhaust
def test_shares_and_means_are_planned_as_their_own_searches_plan_them() -> None:
    n, names = 20_000, {"categories": ["a", "b", "c"]}
    shares = {trust: planned("shares", names, n=n, trust=trust, epsilon=0.7) for trust in ("shuffler", "users")}
    for trust, other in (("shuffler", plan_with_dummies), ("users", plan_with_user_dummies)):
        expected = other(n=n, k=3, epsilon=0.7)
        assert shares[trust].standard_error == pytest.approx(expected.accuracy.standard_error, rel=1e-9)
        assert shares[trust].central.epsilon == expected.central.epsilon
        mean = plan_mean_with_dummies(trust=trust, n=n, lower=0.0, upper=5.0, epsilon=0.7)
        found = planned("number", {"lower": 0.0, "upper": 5.0}, n=n, trust=trust, epsilon=0.7)
        assert found.standard_error == pytest.approx(mean.accuracy.standard_error, rel=1e-9)
    local = planned("shares", names, n=n, epsilon0=1.0)
    assert local.error95 == predict_accuracy(KRR(3, 1.0), n=n).error95


def planned(ask: str, data: dict[str, Any], **wishes: Any) -> QuestionPlan:
    return plan_question(ask, settings={}, data=data, **wishes)


def of_two(**wishes: Any) -> QuestionPlan:
    settings = {"other_lower": 0.0, "other_upper": 40.0}
    return plan_question("covariance", settings=settings, data={"lower": 0.0, "upper": 10.0}, **wishes)


@pytest.mark.exhaust
@pytest.mark.parametrize("trust", ["local", "shuffler", "users"])
def test_a_wanted_error_is_reached_with_the_least_epsilon(trust: str) -> None:
    plan = of_two(n=10_000, error=2.0, trust=trust)
    assert 1.97 <= plan.error95 <= 2.0
    strength = {"epsilon0": plan.noise.local.epsilon} if trust == "local" else {"epsilon": plan.central.epsilon}
    again = of_two(n=10_000, trust=trust, **strength)
    assert again.question == plan.question and again.error95 == pytest.approx(plan.error95, rel=2e-3)


@pytest.mark.exhaust
def test_a_wanted_central_epsilon_is_kept_and_nearly_spent() -> None:
    assert 0.98 <= of_two(n=10_000, epsilon=1.0).central.epsilon <= 1.0


@pytest.mark.exhaust
def test_the_least_number_of_people_meets_both_wishes_and_fewer_do_not() -> None:
    plan = of_two(error=20.0, epsilon0=2.0)
    assert plan.error95 <= 20.0 < of_two(n=int(0.99 * plan.people.n), epsilon0=2.0).error95


@pytest.mark.exhaust
def test_the_points_are_those_of_the_least_error() -> None:
    for trust, n, strength in (("local", 1_000_000, {"epsilon0": 1.0}), ("shuffler", 10_000, {"epsilon": 1.0})):
        plan = of_two(n=n, trust=trust, **strength)  # so many that no number of points drowns
        assert isinstance(plan.question, Covariance)
        errors = {}
        for points in Covariance.planned["points"][:9]:
            settings = {"other_lower": 0.0, "other_upper": 40.0, "points": points}
            data = {"lower": 0.0, "upper": 10.0}
            made = plan_question("covariance", settings=settings, data=data, n=n, trust=trust, **strength)
            errors[points] = made.error95
        assert errors[plan.question.points] == min(errors.values()) == plan.error95
        assert (plan.question.points == 2) == (trust == "local")


@pytest.mark.parametrize("trust", ["local", "shuffler", "users"])
def test_a_written_plan_is_run_and_keeps_what_it_said(trust: str, tmp_path: Path) -> None:
    n = 4_000
    plan = of_two(n=n, trust=trust, **({"epsilon0": 2.0} if trust == "local" else {"epsilon": 1.0}))
    text = question_toml(plan.config).replace("FILL IN TOO", "y").replace('"FILL IN"', '"x"')
    x = np.linspace(0.0, 10.0, n)
    config = {**tomllib.loads(text), "seed": 3}
    config["data"].pop("path")
    report = dt.run(config, table=pl.DataFrame({"x": x, "y": 4.0 * x}), out=tmp_path / "out", ledger=tmp_path / "l")
    overall = report.document()["estimates"]["overall"]
    assert report.document()["central"]["epsilon"] == plan.central.epsilon
    assert 0.0 < overall["standard_error"][0] <= plan.standard_error * 1.2  # a report bounds the rounding
    assert abs(overall["value"][0] - overall["truth"][0]) < 6 * overall["standard_error"][0]


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"n": 1000, "error": 0.01}, "cannot be had from 1,000 people: allow an error of"),
        pytest.param({"n": 1000, "error": 2.0, "epsilon": 0.1}, "or allow epsilon", marks=pytest.mark.exhaust),
        ({"n": 1000}, "give one of"),
        ({"error": 1.0}, "give two of"),
        ({"n": 1000, "epsilon0": 1.0, "trust": "users"}, "no report promises anything by itself"),
        ({"error": 1e-9, "epsilon0": 1.0}, "cannot both hold"),
    ],
)
def test_what_cannot_be_had_is_refused_with_what_to_relax(wishes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        of_two(**wishes)


def test_a_plan_says_of_whom_and_of_what_its_error_is() -> None:
    shapes: list[tuple[str, dict[str, Any], str]] = [
        ("covariance", {"other_lower": 0.0, "other_upper": 1.0}, "whatever people hold"),
        ("correlation", {"other_lower": 0.0, "other_upper": 1.0}, "where all pairs of numbers are as frequent"),
        ("regression", {"others": "x = 0..1"}, "of a mean product in ranges"),
        ("distribution", {}, "of the share of people below any one number"),
    ]
    for ask, settings, of in shapes:
        plan = plan_question(
            ask, settings=settings, data={"lower": 0.0, "upper": 1.0}, n=9000, trust="shuffler", epsilon=1.0,
            dummies="geometric",
        )  # fmt: skip
        assert f" with 95 % probability, {of}" in question_rows(plan)["error"]


def test_what_no_table_can_fill_in_is_asked_for() -> None:
    with pytest.raises(ParameterError, match="`others` must be given for a plan of a linear regression"):
        plan_question(
            "regression", settings={}, data={"lower": 0.0, "upper": 1.0}, n=900, trust="shuffler", epsilon=1.0
        )
    with pytest.raises(ParameterError, match="`k` must be given for a plan of all two-way tables"):
        plan_question("tables", settings={"others": "a: b | c"}, data={}, n=900, trust="shuffler", epsilon=1.0)


def test_the_error_of_a_question_falls_with_people_and_is_finite() -> None:
    errors = [of_two(n=n, epsilon0=1.0).standard_error for n in (200, 1000, 10_000)]
    assert math.isfinite(errors[0]) and errors == sorted(errors, reverse=True)
