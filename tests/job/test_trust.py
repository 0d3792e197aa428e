"""A configuration that trusts the shuffler with the noise: what is released, promised and refused."""

import json
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.tiers import EXHAUST
from typer.testing import CliRunner

import dovetail as dt
from dovetail.cli.main import app
from dovetail.core.errors import ConfigError, ParameterError, UnsupportedError
from dovetail.job.config import EstimateSection
from dovetail.job.run import run
from dovetail.plan.dummies import plan_mean_with_dummies, plan_with_dummies, plan_with_user_dummies
from dovetail.randomize.sampling.open_reports import OpenNumbers
from dovetail.report.html import render_html
from dovetail.report.sentences import over_all_releases
from dovetail.report.tables import summary
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies

TABLE = pl.DataFrame({"id": range(600), "answer": ["no", "yes", "yes"] * 200})
ASKED: dict[str, Any] = {
    "schema_version": 1,
    "mode": "release",
    "data": {"private": "answer", "categories": ["no", "yes", "maybe"], "person": "id"},
    "promise": {"trust": "shuffler", "epsilon": 1.0, "delta": 1e-6},
}
USERS = {"trust": "users", "epsilon": 1.0, "delta": 1e-6, "honest": 500}


def test_a_release_draws_its_dummies_once_and_says_who_is_trusted(tmp_path: Path) -> None:
    first, again = (run(ASKED, table=TABLE, ledger=tmp_path) for _ in range(2))
    central, local = first.evaluation.central, first.evaluation.local
    assert (central.trust, central.colluding, local.epsilon) == ("shuffler", float("inf"), float("inf"))
    assert 0.99 < central.epsilon <= 1.0
    assert first.sanitized.equals(again.sanitized) and first.release["releases"] == again.release["releases"] == 1
    assert 600 < first.sanitized.height <= 600 + 3 * 54
    shares = first.evaluation.estimates.overall
    assert shares.n == 600 and shares.truth is None
    assert all(abs(value - true) <= 27 / 600 for value, true in zip(shares.value, (1 / 3, 2 / 3, 0), strict=True))
    document = first.document()
    assert document["central"]["trust"] == "shuffler" and document["local"]["epsilon"] == "inf"
    assert any("A shuffler that adds none voids the promise" in line for line in document["assumptions"])
    other = run({**ASKED, "promise": {**ASKED["promise"], "epsilon": 2.0}}, table=TABLE, ledger=tmp_path / "other")
    assert other.evaluation.central.epsilon > 1.9


def test_the_promise_of_a_second_draw_is_the_sum_where_both_are_on_record(tmp_path: Path) -> None:
    first = run(ASKED, table=TABLE, ledger=tmp_path).evaluation.central
    second = run(ASKED, table=TABLE, ledger=tmp_path, new_release=True)
    both, told = second.evaluation.central, second.document()
    assert 2 * first.epsilon <= both.epsilon <= 2.001 * first.epsilon and 2 * first.delta <= both.delta < 2.001e-6
    assert (
        both.trust == "shuffler" and "the last: [" in both.source and second.release["total_epsilon"] == float("inf")
    )
    assert over_all_releases(told) in " ".join(summary(told)) and "of all of them" in over_all_releases(told)
    forget_batch(tmp_path, 1)
    told = run(ASKED, table=TABLE, ledger=tmp_path).document()
    assert (
        told["central"]["value"] is None and "release 1 has no promise about its batch" in told["central"]["reason"]
    )
    assert over_all_releases(told) in " ".join(summary(told)) and "no promise" in over_all_releases(told)
    assert "∞" not in over_all_releases(told) + told["central"]["reason"]


def forget_batch(ledger: Path, number: int) -> None:
    """Make an entry one of a ledger that kept no promises about batches."""
    place = ledger / f"{number:06d}" / "record.json"
    record = json.loads(place.read_text())
    del record["batch"]
    place.write_text(json.dumps(record))


@EXHAUST
def test_local_noise_may_lie_underneath_in_a_rehearsal() -> None:
    asked = {**ASKED, "mode": "rehearsal", "seed": 1, "randomize": {"randomizer": "krr", "epsilon": 6.0}}
    report = run(asked, table=TABLE)
    assert report.evaluation.central.colluding == report.evaluation.local.epsilon == 6.0
    assert report.evaluation.central.trust == "shuffler"
    assert report.evaluation.estimates.overall.truth == [1 / 3, 2 / 3, 0.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"promise": {"trust": "users"}}, "give both or neither"),
        ({"promise": {"trust": "users", "epsilon": 1.0, "honest": 40}}, r"\[promise\] `honest` must be at least 12"),
        ({"promise": USERS, "randomize": {"randomizer": "krr", "epsilon": 1.0}}, "people send their answers as they"),
        (
            {"promise": USERS, "data": {"private": "id", "lower": 0.0, "upper": 999.0, "grid": 400.0}},
            "`grid` must be a",
        ),
        ({"data": {"private": "id", "lower": 0.0, "upper": 999.0, "grid": 0.001}}, "`grid` must be at least 0.0152"),
        ({"promise": {"trust": "shuffler"}}, "give both or neither"),
        ({"promise": {"epsilon": 1.0}}, "give both or neither"),
        ({"promise": {"trust": "local"}}, r"\[randomize\] is missing"),
        ({"promise": {"trust": "shuffler", "epsilon": 1e-4}}, r"\[promise\] `epsilon` must be larger"),
        (
            {
                "data": {"private": "id", "lower": 0.0, "upper": 1.0},
                "randomize": {"randomizer": "krr", "epsilon": 1.0},
            },
            r"goes without \[randomize\] for numbers",
        ),
        (
            {"data": {"private": "answer", "person": "id", "lower": 0.0, "upper": 1.0, "time": "t"}},
            r"\[data\] time does not go with",
        ),
        (
            {"data": {"private": "id", "lower": 0.0, "upper": 1.0}, "estimate": {"estimator": "best"}},
            r"\[estimate\] estimator does not go with",
        ),
        ({"randomize": {"randomizer": "unary", "epsilon": 1.0}}, "as a second layer"),
        ({"mode": "rehearsal", "shuffle": {"shuffler": "identity"}}, "does not go with"),
    ],
)
def test_what_does_not_go_with_dummies_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        run({**ASKED, **changes}, table=TABLE)
    assert "\n" not in str(refused.value)


def test_dummies_go_with_a_uniform_shuffle_and_symbols_alone() -> None:
    groups = dt.Groups.from_labels(["a", "b"] * 300)
    asked = {"private": "answer", "categories": ["no", "yes", "maybe"], "dummies": Dummies(3, 1.0, 1e-6)}
    grouped = dt.Collection.of(
        TABLE, randomizer=dt.KRR(k=3, epsilon=1.0), shuffler=lambda public: dt.WithinGroups(groups), **asked
    )
    with pytest.raises(UnsupportedError, match="uniform shuffle of everybody"):
        dt.rehearse(grouped, rng=dt.simulation(1))
    with pytest.raises(ParameterError, match="need reports that are symbols"):
        dt.Collection.of(TABLE, randomizer=dt.Unary(k=3, epsilon=1.0), **asked)


def test_the_planner_and_run_promise_the_same(tmp_path: Path) -> None:
    out = tmp_path / "plan.toml"
    words = ["plan", "--question", "frequency", "--k", "3", "--n", "600", "--epsilon", "1", "--delta", "1e-6"]
    done = CliRunner().invoke(app, [*words, "--trust", "shuffler", "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)
    assert plan["trust"] == "shuffler" and plan["epsilon0"] == "inf" and 'trust = "shuffler"' in out.read_text()
    report = run({**ASKED, "mode": "rehearsal", "seed": 1}, table=TABLE)
    assert report.evaluation.central.epsilon == plan["epsilon"]
    assert report.evaluation.estimates.overall.standard_error == pytest.approx([plan["standard_error"]] * 3)


@EXHAUST
def test_the_least_epsilon_reaches_the_error() -> None:
    plan = plan_with_dummies(n=10_000, k=4, error=0.001, delta=1e-6)
    assert plan.accuracy.error95 <= 0.001
    assert plan_with_dummies(n=10_000, k=4, epsilon=0.98 * plan.dummies.epsilon, delta=1e-6).accuracy.error95 > 0.001


@pytest.mark.exhaust
@pytest.mark.parametrize("n", [20_011, 21_500, 22_000, 31_000])  # rounded to the nearest, errors go up and down
def test_the_least_error_that_a_refusal_names_is_an_error_that_is_reached(n: int) -> None:
    asked: dict[str, Any] = {"n": n, "epsilon": 1.0, "delta": 1e-6}
    planners: list[Callable[..., Any]] = [
        partial(plan_with_dummies, k=4, **asked),
        partial(plan_with_user_dummies, k=4, **asked),
        partial(plan_mean_with_dummies, trust="shuffler", lower=0.0, upper=1.0, **asked),
    ]
    for planner in planners:
        with pytest.raises(ParameterError, match="`error` must be at least") as refused:
            planner(error=1e-7)
        least = float(str(refused.value).partition("at least ")[2].split()[0])
        assert planner(error=least).accuracy.error95 <= least


@pytest.mark.exhaust
def test_a_release_with_dummies_of_people_says_whom_it_counts_on(tmp_path: Path) -> None:
    asked = {**ASKED, "promise": USERS}
    first, again = (run(asked, table=TABLE, ledger=tmp_path) for _ in range(2))
    assert first.sanitized.equals(again.sanitized) and first.release["releases"] == again.release["releases"] == 1
    assert 650 < first.sanitized.height < 800  # 600 answers, and dummies with probability 0.25
    central = first.evaluation.central
    assert (central.trust, central.honest_n, central.colluding) == ("users", 500, float("inf"))
    assert 0.999 < central.epsilon <= 1.0 and central.all < 0.95
    document = first.document()
    assert document["central"]["trust"] == "users" and document["local"]["epsilon"] == "inf"
    assert any("counts on 500 honest ones" in line for line in document["assumptions"])
    other = run({**asked, "promise": {**USERS, "honest": 400}}, table=TABLE, ledger=tmp_path / "other")
    assert other.sanitized.height > 650 and other.evaluation.central.honest_n == 400
    with pytest.raises(UnsupportedError, match="released"):  # another rate is another release
        run({**asked, "promise": {**USERS, "honest": 400}}, table=TABLE, ledger=tmp_path)


@pytest.mark.exhaust
def test_what_is_planned_for_people_is_what_run_promises(tmp_path: Path) -> None:
    out = tmp_path / "plan.toml"
    words = ["plan", "--question", "frequency", "--k", "3", "--n", "600", "--epsilon", "1", "--delta", "1e-6"]
    words += ["--trust", "users", "--honest", "500"]
    done = CliRunner().invoke(app, [*words, "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)
    assert plan["trust"] == "users" and plan["epsilon0"] == "inf" and plan["most_messages_per_person"] == 2
    assert 'trust = "users"' in out.read_text() and "honest = 500" in out.read_text()
    report = run({**ASKED, "promise": USERS, "mode": "rehearsal", "seed": 1}, table=TABLE)
    assert report.evaluation.central.epsilon == plan["epsilon"]
    assert report.evaluation.estimates.overall.standard_error == pytest.approx([plan["standard_error"]] * 3)
    shown = CliRunner().invoke(app, [*words, "--full"])
    text = " ".join(shown.stdout.replace("│", " ").split())
    assert "who does not send takes noise away" in text and "at most 2, 1.26 on average" in text
    with pytest.raises(ParameterError, match=r"`honest` must be at least 123 for 3 values .* got 10"):
        plan_with_user_dummies(n=600, k=3, epsilon=1.0, delta=1e-6, honest=10)


def test_local_noise_does_not_lie_under_dummies_of_people() -> None:
    with pytest.raises(ParameterError, match="go without local noise"):
        dt.Collection.of(
            TABLE, private="answer", categories=["no", "yes", "maybe"], randomizer=dt.KRR(k=3, epsilon=1.0),
            dummies=UserDummies(3, 0.25),
        )  # fmt: skip


NUMBERS = pl.DataFrame({"id": range(3000), "hours": [3.0, 4.5, 9.0] * 1000})
MEAN: dict[str, Any] = {
    "schema_version": 1, "mode": "rehearsal", "seed": 1,
    "data": {"private": "hours", "person": "id", "lower": 0.0, "upper": 10.0},
}  # fmt: skip


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("trust", "honest", "grid"),
    [
        ("shuffler", None, None),
        ("shuffler", None, 0.5),
        ("users", 2500, None),
        pytest.param("users", 2500, 0.5, marks=EXHAUST),
    ],
)
def test_means_have_the_promise_and_the_error_of_their_plan(
    trust: str, honest: int | None, grid: float | None, tmp_path: Path
) -> None:
    out = tmp_path / "plan.toml"
    words = ["plan", "--question", "mean", "--lower", "0", "--upper", "10", "--n", "3000", "--epsilon", "1"]
    words += ["--delta", "1e-6", "--trust", trust, "--out", str(out), "--json"]
    words += [] if grid is None else ["--grid", str(grid)]
    words += [] if honest is None else ["--honest", str(honest)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    plan, written = json.loads(done.stdout), tomllib.loads(out.read_text())
    assert written["data"]["grid"] == plan["grid"] == (plan["grid"] if grid is None else grid)
    promise = {"trust": trust, "epsilon": 1.0, "delta": 1e-6} | ({} if honest is None else {"honest": honest})
    data = {**MEAN["data"], **({} if grid is None else {"grid": grid})}
    report = run({**MEAN, "data": data, "promise": promise}, table=NUMBERS)
    again = run({**MEAN, "data": {**data, "grid": plan["grid"]}, "promise": written["promise"]}, table=NUMBERS)
    for one in (report, again):
        found = one.evaluation.estimates
        assert one.evaluation.central.epsilon == plan["epsilon"] <= 1.0
        assert found.measure == "mean" and found.overall.truth == [5.5]
        assert found.overall.standard_error == pytest.approx([plan["standard_error"]])
        assert abs(found.overall.value[0] - 5.5) < 6.2 * plan["standard_error"]  # false alarm below 1e-9
    assert report.randomizer["parameters"]["points"] == plan["k"]
    page = render_html(report.document())
    assert "the mean is then estimated" in page and "no local promise" in page


@pytest.mark.parametrize("trust", ["shuffler", pytest.param("users", marks=EXHAUST)])
def test_a_release_of_a_mean_is_rounded_and_drawn_once(trust: str, tmp_path: Path) -> None:
    promise = {"trust": trust, "epsilon": 1.0, "delta": 1e-6}
    asked = {**MEAN, "mode": "release", "promise": promise}
    del asked["seed"]
    first, again = (run(asked, table=NUMBERS, ledger=tmp_path) for _ in range(2))
    assert first.sanitized.equals(again.sanitized) and first.release["releases"] == 1
    assert 3000 < first.sanitized.height <= 6000 and first.sanitized.columns == ["report"]
    assert first.evaluation.estimates.overall.truth is None
    assert first.evaluation.local.epsilon == float("inf")
    second = run(asked, table=NUMBERS, ledger=tmp_path, new_release=True)
    assert second.evaluation.central.epsilon == pytest.approx(2 * first.evaluation.central.epsilon)


@EXHAUST
@pytest.mark.parametrize("trust", ["shuffler", pytest.param("users", marks=EXHAUST)])
def test_a_mean_is_planned_for_an_error(trust: Any) -> None:
    asked = {"n": 20_000, "lower": 0.0, "upper": 1.0, "delta": 1e-6}
    plan = plan_mean_with_dummies(trust=trust, error=0.002, **asked)
    assert plan.accuracy.error95 <= 0.002
    assert plan_mean_with_dummies(trust=trust, epsilon=0.97 * plan.asked, **asked).accuracy.error95 > 0.002
    with pytest.raises(ParameterError, match="`error` must be at least"):
        plan_mean_with_dummies(trust=trust, error=1e-7, **asked)


def test_a_mean_is_not_planned_without_its_range_and_a_wish() -> None:
    for trust in ("shuffler", "users"):
        refused = CliRunner().invoke(app, ["plan", "--question", "mean", "--n", "100", "--trust", trust])
        assert isinstance(refused.exception, ParameterError) and "--lower and --upper" in str(refused.exception)
    with pytest.raises(ParameterError, match="give `epsilon` or `error`"):
        plan_mean_with_dummies(trust="users", n=100, lower=0.0, upper=1.0)


@EXHAUST
def test_the_mean_of_people_with_dummies_has_the_error_of_the_theory_note() -> None:
    for trust, kind, error, points in (
        ("shuffler", "geometric", 6.6e-5, 43), ("shuffler", "digits", 4.28e-5, 15), ("users", "best", 1.18e-4, 25)
    ):  # fmt: skip
        plan = plan_mean_with_dummies(
            trust=trust, n=100_000, lower=0.0, upper=1.0, epsilon=1.0, delta=1e-6, dummies=kind
        )
        assert plan.accuracy.standard_error == pytest.approx(error, rel=0.01) and abs(plan.dummies.k - points) <= 1


def test_an_estimator_of_local_noise_is_not_used_where_dummies_are_counted() -> None:
    table, grid = pl.DataFrame({"x": np.linspace(2.0, 3.0, 400)}), OpenNumbers(0.0, 10.0, 5)
    made = dt.Collection.of(
        table, private="x", randomizer=grid, delta=1e-3, dummies=Dummies(5, 1.0, 1e-3), rng=dt.simulation(1)
    )
    found = [
        dt.rehearse(made, estimate=EstimateSection(estimator=name), rng=dt.simulation(2)).evaluation.estimates.overall
        for name in ("rao-blackwell", "best")
    ]
    assert found[0].value == found[1].value and abs(found[0].value[0] - 2.5) < 6 * found[0].standard_error[0]
