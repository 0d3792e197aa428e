"""Gaussian, digit and sparse noise of the shuffler: what they estimate, promise, and refuse."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engine.test_draw import draw, reports
from tests.statistics import expect_caught, expect_mean, expect_standard_error
from typer.testing import CliRunner

import dovetail as dt
from dovetail.account.gaussian_dummies import Message, message_delta, message_for
from dovetail.cli.main import app
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError, DataError, ParameterError
from dovetail.core.estimate import Tally
from dovetail.core.noise import People
from dovetail.job.config import parse_config
from dovetail.job.run import run
from dovetail.noise.digits import DigitNoise
from dovetail.noise.gaussian import GaussianNoise
from dovetail.noise.sparse import SparseNoise
from dovetail.noise.users import UserNoise
from dovetail.plan.dummies import plan_mean_with_dummies, plan_with_dummies
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers, OpenNumbers
from dovetail.shuffle.sampling.dummies import GaussianDummies, SparseDummies, TruncatedGaussian, UserDummies

PEOPLE = pl.DataFrame(
    {"id": range(300), "answer": ["a", "b", "b"] * 100, "hours": [30.0, 42.5, 60.0] * 100, "age": [20, 30, 40] * 100}
)
MESSAGE = message_for(weights=(1, 3, 9), epsilon=2.0, delta=1e-3)
NUMBERS = OpenNumbers(0.0, 26.0, 27)


def asked(question: str, **promise: Any) -> dict[str, Any]:
    numeric = {"private": "hours", "lower": 0.0, "upper": 80.0}
    data = {"private": "answer", "categories": ["a", "b", "c"]} if question == "shares" else numeric
    made = {"schema_version": 1, "mode": "release", "data": {"person": "id", **data}}
    if question == "covariance":
        made["question"] = {"ask": "covariance", "other": "age", "other_lower": 0.0, "other_upper": 100.0}
    return {**made, "promise": {"trust": "shuffler", "epsilon": 1.0, "delta": 1e-6, **promise}}


# the digits of a number


def test_digits_carry_the_mean_exactly_but_for_dummies() -> None:
    noise, people = DigitNoise(MESSAGE, NUMBERS), People(5, pl.DataFrame())
    places = np.array([0, 26, 13, 7, 22])
    messages = noise.messages(places, dt.simulation(1))
    assert len(messages) == 3 and all(who.tolist() == [0, 1, 2, 3, 4] for who, _ in messages)
    digits = np.array([sent - 3 * k for k, (_, sent) in enumerate(messages)])
    assert (digits >= 0).all() and (digits <= 2).all() and (3 ** np.arange(3) @ digits == places).all()
    reaches = np.repeat(MESSAGE.reaches, 3)
    counts = noise.tally(np.concatenate([sent for _, sent in messages])).counts + reaches
    exact = noise.mean(Tally(counts, 15 + int(reaches.sum())), people)
    assert float(exact.value) == pytest.approx(places.mean(), abs=1e-12)
    shares = np.bincount(places, minlength=27) / 5
    expected = noise.expected(shares, people)
    np.testing.assert_allclose(expected.counts, counts)
    assert expected.n == 15 + int(reaches.sum())
    held = noise.randomize(places.astype(float), people, dt.simulation(1))
    assert held.tolist() == places.tolist()  # on the grid nothing is rounded


def test_digits_are_mixed_over_all_people() -> None:
    """In the batch a place tells neither whose digit it is nor which: every order occurs, dummies between them."""
    noise, values = DigitNoise(MESSAGE, NUMBERS), np.arange(27)
    batch = noise.complete(values, dt.simulation(1))
    own = np.concatenate([sent for _, sent in noise.messages(values, dt.simulation(1))])
    assert batch.size > own.size
    assert batch[: own.size].tolist() != own.tolist() and (np.diff(batch) < 0).sum() > batch.size // 4


@pytest.mark.exhaust
def test_the_error_of_a_mean_by_digits_is_what_is_said(rng: Entropy) -> None:
    noise, n, runs = DigitNoise(MESSAGE, NUMBERS), 200, 1000
    people = People(n, pl.DataFrame())
    places = noise.randomize(np.full(n * runs, 12.5), people, rng).reshape(runs, n)  # rounding is at its worst
    drawn = [law.sample(3 * runs, rng).reshape(runs, 3) for law in MESSAGE.laws]
    found = []
    for run_ in range(runs):
        digits = [places[run_] // 3**k % 3 for k in range(3)]
        own = [np.bincount(one, minlength=3) for one in digits]
        counts = np.concatenate([held + dummies[run_] for held, dummies in zip(own, drawn, strict=True)])
        found.append(float(noise.mean(Tally(counts, int(counts.sum())), people).value))
    off = np.array(found) - 12.5
    expect_mean(off, 0.0)
    expect_standard_error(off, noise.error(people))
    expect_caught(expect_standard_error, off, noise.error(people) / 1.3)
    assert noise.error(people) == float(noise.mean(noise.expected(np.eye(27)[12], people), people).standard_error)


@pytest.mark.exhaust
def test_the_target_of_a_mean_is_reached() -> None:
    """docs/theory/several-symbols.md: RMSE as part of the range, against 4.22e-5 of central Gaussian noise."""
    plan = plan_mean_with_dummies(trust="shuffler", n=100_000, lower=0.0, upper=1.0, epsilon=1.0, delta=1e-6)
    assert (plan.kind, plan.reports) == ("digits", 5)
    assert plan.accuracy.standard_error <= 4.3e-5 and 0.99 < plan.central.epsilon <= 1.0
    few = plan_mean_with_dummies(trust="shuffler", n=1_000, lower=0.0, upper=1.0, epsilon=1.0, delta=1e-6)
    assert few.kind == "geometric"


def test_dummies_of_other_digits_are_refused() -> None:
    for message, own in ((MESSAGE, OpenNumbers(0.0, 1.0, 9)), (Message(MESSAGE.scale, (1, 1), (9, 9)), NUMBERS)):
        with pytest.raises(ParameterError, match="must be of the ternary digits"):
            DigitNoise(message, own)
    with pytest.raises(DataError, match="its shuffler adds others, or none"):
        DigitNoise(MESSAGE, NUMBERS).mean(Tally(np.zeros(9), 15), People(5, pl.DataFrame()))
    with pytest.raises(ParameterError, match="must be of the 3 answers"):
        SparseNoise(SparseDummies(4, 1.0), OpenAnswers(3))
    with pytest.raises(ParameterError, match="without local noise"):
        SparseNoise(SparseDummies(3, 1.0), KRR(3, 1.0))


# Gaussian and sparse noise


def test_gaussian_intervals_cover_by_the_law_of_the_dummies() -> None:
    """Exactly: over all numbers of dummies of one answer."""
    law = TruncatedGaussian(message_for(weights=(1,), epsilon=1.0, delta=1e-4).scale, 30)
    noise, people = GaussianNoise(GaussianDummies(2, law), OpenAnswers(2)), People(100, pl.DataFrame())
    for level in (0.5, 0.95):
        covered = 0.0
        for off, mass in zip(*law.error_law(1.0), strict=True):
            found = noise.shares(Tally(np.array([40 + 30 + off, 60 + 30 - off]), 160), people)
            low, high = found.interval(level)
            covered += mass * bool(low[0] <= 0.4 <= high[0])
        assert level <= covered < level + 0.1


@pytest.mark.exhaust
def test_covariances_behind_sparse_dummies_vary_as_is_said(rng: Entropy) -> None:
    dummies = SparseDummies(3, 2.0)
    noise, people = SparseNoise(dummies, OpenAnswers(3)), People(60, pl.DataFrame())
    values, weights = np.repeat([0, 1, 2], [10, 20, 30]), np.array([[1.0, -2.0, 0.5]])
    held = np.array([10.0, 20.0, 30.0])
    sd = math.sqrt(float(weights[0] ** 2 @ dummies.variance(held))) / 60
    found = [
        float(noise.moments(noise.tally(noise.complete(values, rng)), weights, people)[0][0]) for _ in range(1500)
    ]
    off = np.array(found) - float(weights[0] @ held) / 60
    expect_mean(off, 0.0)
    expect_standard_error(off, sd)
    _, said = noise.moments(noise.expected(held / 60, people), weights, people)
    assert math.sqrt(said[0, 0]) == pytest.approx(sd, rel=1e-9)


@pytest.mark.exhaust
@pytest.mark.parametrize("extreme", [False, True])
def test_means_behind_sparse_dummies_are_unbiased_and_vary_as_is_said(extreme: bool, rng: Entropy) -> None:
    noise, people = SparseNoise(SparseDummies(5, 2.0), OpenNumbers(0.0, 8.0, 5)), People(60, pl.DataFrame())
    values = np.zeros(60) if extreme else np.repeat([0.0, 4.0, 8.0], [10, 20, 30])  # on the grid: nothing is rounded
    found = [
        noise.mean(noise.tally(noise.complete(noise.randomize(values, people, rng), rng)), people)
        for _ in range(1500)
    ]
    held = np.bincount((values / 2.0).astype(np.int64), minlength=5)
    sd = 2.0 * math.sqrt(float(np.arange(-2, 3) ** 2 @ noise.dummies.variance(held))) / 60
    off = np.array([float(one.value) for one in found]) - values.mean()
    expect_mean(off, 0.0)
    expect_standard_error(off, sd)
    rounding = 2.0 / math.sqrt(4.0 * 60)  # of which it cannot know that there is none
    said = noise.mean(noise.expected(held / 60, people), people).standard_error
    assert float(said) == pytest.approx(math.hypot(sd, rounding), rel=1e-9)
    assert noise.error(people) >= float(said) * (1.0 - 1e-9)


def test_a_sparse_plan_of_a_mean_has_no_delta_and_the_error_of_its_noise(tmp_path: Path) -> None:
    plan = plan_mean_with_dummies(trust="shuffler", n=300, lower=0.0, upper=80.0, epsilon=1.0, dummies="sparse")
    assert isinstance(plan.dummies, SparseDummies) and plan.kind == "sparse" and plan.central.delta == 0.0
    noise = SparseNoise(plan.dummies, OpenNumbers(0.0, 80.0, plan.dummies.k))
    assert plan.accuracy.standard_error == pytest.approx(noise.error(People(300, pl.DataFrame())), rel=1e-9)
    finer = plan_mean_with_dummies(
        trust="shuffler", n=300, lower=0.0, upper=80.0, error=plan.accuracy.error95 / 2.0, dummies="sparse"
    )
    assert 1.0 < finer.asked < 4.0 and finer.accuracy.error95 <= plan.accuracy.error95 / 2.0
    told = run(asked("number", dummies="sparse"), table=PEOPLE, ledger=tmp_path).document()
    assert told["central"]["delta"] == 0.0 and told["central"]["epsilon"] <= 1.0
    options = ["--n", "300", "--lower", "0", "--upper", "80", "--epsilon", "1", "--dummies", "sparse", "--full"]
    said = CliRunner().invoke(app, ["plan", "--question", "number", "--trust", "shuffler", *options])
    assert said.exit_code == 0 and "sparse" in said.output, said.output


# rounds, and what a configuration may ask for


KINDS = [("shares", "gaussian"), ("number", "digits"), ("shares", "geometric")]


@pytest.mark.parametrize(("question", "dummies"), KINDS)
def test_rounds_keep_one_promise_together_and_no_more_of_them_do(question: str, dummies: str, tmp_path: Path) -> None:
    settings = asked(question, dummies=dummies, rounds=2)
    promised, said = [], []
    for place in range(3):
        table = PEOPLE.with_columns(pl.col("hours") + place)
        report = run(settings, table=table, ledger=tmp_path, new_release=place > 0 and question == "shares")
        told = report.document()
        promised.append(told["central"].get("epsilon"))
        said.append(any("Up to 2 releases about the same people, each" in line for line in told["assumptions"]))
    assert promised[0] == promised[1] <= 1.0 and promised[0] > 0.99
    assert promised[2] == pytest.approx(3 * promised[0])  # a third one is more than was paid for: they add up
    assert said == [True, True, True]


@pytest.mark.exhaust
def test_rounds_of_another_law_do_not_keep_the_promise(tmp_path: Path) -> None:
    run(asked("shares", dummies="gaussian", rounds=2), table=PEOPLE, ledger=tmp_path)
    other = run(asked("shares", dummies="gaussian", rounds=3), table=PEOPLE, ledger=tmp_path, new_release=True)
    assert other.document()["central"]["epsilon"] > 1.9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (asked("shares", dummies="digits"), "digits carry the mean of a number"),
        (asked("shares", dummies="sparse", rounds=2), "`rounds` must be 1"),
        (asked("shares", trust="users", rounds=2), 'go with `trust` = "shuffler"'),
        (asked("shares", rounds=2) | {"randomize": {"epsilon": 2.0}}, "beside `rounds`"),
        (asked("shares", dummies="sparse") | {"randomize": {"epsilon": 2.0}}, r"goes without \[randomize\]"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        parse_config(settings)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("question", "dummies"),
    [
        ("shares", "gaussian"),
        ("covariance", "gaussian"),
        ("number", "digits"),
        ("shares", "sparse"),
        ("number", "sparse"),
    ],
)
def test_a_released_table_says_what_was_added_to_it(question: str, dummies: str, tmp_path: Path) -> None:
    """`dovetail estimate` finds the numbers of the report again, from the released file alone."""
    report = run(asked(question, dummies=dummies), table=PEOPLE, out=tmp_path / "out", ledger=tmp_path / "ledger")
    said = CliRunner().invoke(app, ["estimate", str(tmp_path / "out" / "sanitized.parquet"), "--json"])
    assert said.exit_code == 0, said.output
    overall = report.evaluation.estimates.overall
    again = json.loads(said.stdout)["overall"]
    assert again["value"] == pytest.approx(overall.value) and again["standard_error"] == pytest.approx(
        overall.standard_error
    )
    assert again["n"] == 300


@pytest.mark.exhaust
def test_digits_and_kept_reports_in_files_depend_on_the_secret_alone(tmp_path: Path) -> None:
    """Whatever the batches and partitions; each digit of a person has a place of its own."""
    for question, dummies in (("number", "digits"), ("shares", "sparse")):
        settings, place = asked(question, dummies=dummies), tmp_path / dummies
        (place / "in").mkdir(parents=True)
        for part in range(3):
            PEOPLE[100 * part : 100 * (part + 1)].write_parquet(place / "in" / f"{part}.parquet")
        settings["data"]["path"] = str(place / "in")
        job, census, found = draw(settings, place / "four", parts=4, rows=100)
        draw(settings, place / "one", parts=1, rows=17)
        whole = reports(place / "four")
        assert whole.equals(reports(place / "one"))
        noise, beside = job.parts(census.n)[0].noise, found.summaries[-1]["beside"]
        if isinstance(noise, DigitNoise):
            assert beside == 300 * (noise.digits - 1)
            tally = noise.tally(whole["report"].to_numpy())
            assert abs(float(noise.mean(tally, People(300, pl.DataFrame())).value) - 132.5 / 3) < 10.0
        else:
            assert -300 < beside < 0  # reports that were dropped


def test_the_characteristic_function_of_gaussian_dummies_is_that_of_their_law() -> None:
    """The recurrence loses about s^2 roundings of a double where the cosine is near 1 or -1."""
    for scale, reach in ((3, 8), (429, 124), (2362, 400)):
        law = TruncatedGaussian(Fraction(scale), reach)
        angles = np.concatenate([[0.0, 1e-9, 1e-6, 1e-3, np.pi, np.pi - 1e-6], np.linspace(0.0, np.pi, 501)])
        summed = np.cos(np.outer(angles, np.arange(-reach, reach + 1))) @ law.masses
        assert np.abs(law.characteristic(angles) - summed).max() < (reach + 1) ** 2 * 2.0**-52


# plans


@pytest.mark.exhaust
def test_plans_take_the_better_dummies_and_write_a_configuration_that_run_keeps(tmp_path: Path) -> None:
    place = tmp_path / "plan.toml"
    options = ["plan", "--trust", "shuffler", "--n", "300", "--epsilon", "1", "--delta", "1e-6", "--out", str(place)]
    said = CliRunner().invoke(app, [*options, "--question", "frequency", "--k", "3", "--rounds", "12", "--json"])
    assert said.exit_code == 0, said.output
    document = json.loads(said.stdout)
    assert (document["kind"], document["rounds"]) == ("gaussian", 12)
    assert document["count_standard_deviation"] == pytest.approx(20.7, rel=3e-3)
    text = place.read_text()
    assert 'dummies = "gaussian"' in text and "rounds = 12" in text
    filled = text.replace("FILL IN.csv", "t.csv").replace('"FILL IN"', '"answer"')
    for number, name in ((1, "a"), (2, "b"), (3, "c")):
        filled = filled.replace(f'"FILL IN {number}"', f'"{name}"')
    (tmp_path / "run.toml").write_text(filled)
    report = run(tmp_path / "run.toml", table=PEOPLE, ledger=tmp_path / "ledger")
    assert report.evaluation.central.epsilon == pytest.approx(document["epsilon"], rel=1e-6)
    error = report.evaluation.estimates.overall.standard_error[0]
    assert error == pytest.approx(document["standard_error"], rel=1e-6)


def test_sparse_plans_say_that_frequent_answers_pay() -> None:
    plan = plan_with_dummies(n=10_000, k=1 << 20, epsilon=1.0, dummies="sparse")
    assert plan.central.delta == 0.0 and plan.added == pytest.approx(0.61 * 2**20, rel=0.01)
    assert plan.accuracy.standard_error * 10_000 == pytest.approx(124, rel=0.01)
    options = ["--n", "10000", "--k", "1000000", "--epsilon", "1", "--dummies", "sparse", "--full"]
    said = CliRunner().invoke(app, ["plan", "--trust", "shuffler", "--question", "frequency", *options])
    assert "frequent answers pay" in said.output and "an answer that everybody gives" in said.output
    refused = CliRunner().invoke(app, ["plan", "--question", "frequency", *options[:6], "--rounds", "2"])
    assert "--rounds goes with --trust shuffler" in str(refused.exception)


@pytest.mark.exhaust
def test_a_covariance_is_planned_for_rounds() -> None:
    settings, data = {"other_lower": 0.0, "other_upper": 40.0}, {"lower": 0.0, "upper": 10.0}
    from dovetail.job.question_plan import plan_question

    plan = plan_question(
        "covariance", settings=settings, data=data, n=10_000, trust="shuffler", epsilon=1.0, delta=1e-6, rounds=12
    )
    promise = {"delta": 1e-6, "trust": "shuffler", "epsilon": 1.0, "rounds": 12, "dummies": "gaussian"}
    assert plan.config["promise"] == promise
    assert 0.99 < plan.central.epsilon <= 1.0
    assert message_delta(MESSAGE, 2.0) <= 1e-3


@pytest.mark.parametrize(
    ("symbols", "size", "why"), [(1, 201, "at most 200"), (2, 301, "at most 300"), (2, 190, "or more")]
)
def test_a_batch_that_people_with_dummies_cannot_have_sent_is_refused(symbols: int, size: int, why: str) -> None:
    noise = UserNoise(UserDummies(4, 0.5), OpenAnswers(4), symbols)
    people = People(100, pl.DataFrame())
    assert noise.shares(Tally(np.full(4, 65), 260 if symbols == 2 else 160), people).value.shape == (4,)
    with pytest.raises(DataError, match=why):
        noise.shares(Tally(np.full(4, size // 4), size), people)
