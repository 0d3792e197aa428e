"""A linear regression from means of products: its answers, its coefficients, its refusal."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import dovetail as dt
from dovetail.account.dummies import dummies_for_rounds, sparse_for_rounds
from dovetail.core.errors import ConfigError, ParameterError, UnsupportedError
from dovetail.core.noise import Noise, People
from dovetail.estimate.moments import Products
from dovetail.job.question_plan import plan_question
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.noise.sparse import SparseNoise
from dovetail.question.regression import Regression
from dovetail.randomize.sampling.open_reports import OpenAnswers

N = 4000
DRAWN = np.random.default_rng(5)
A, B = DRAWN.uniform(0.0, 100.0, N), DRAWN.beta(0.6, 0.6, N) * 15.0
Y = np.clip(20.0 + 0.4 * A - 1.5 * B + DRAWN.normal(0.0, 6.0, N), 0.0, 80.0)
ROWS = np.column_stack([Y, A, B])
TABLE = pl.DataFrame({"id": range(N), "y": Y, "a": A, "b": B})
OTHERS = "a = 0..100, b = 0..15"
ASKED = Regression(0.0, 80.0, OTHERS, points=5)
CONFIG: dict[str, Any] = {
    "schema_version": 1,
    "mode": "release",
    "data": {"person": "id", "private": "y", "lower": 0.0, "upper": 80.0},
    "question": {"ask": "regression", "others": OTHERS, "points": 5},
    "promise": {"trust": "shuffler", "epsilon": 4.0, "delta": 1e-3},
}


def noise_of(epsilon: float, asked: Regression = ASKED) -> ShufflerNoise:
    k = asked.domain["k"]
    return ShufflerNoise(
        dummies_for_rounds(k=k, epsilon=epsilon, delta=1e-3, rounds=asked.symbols, law="geometric"),
        OpenAnswers(k),
        asked.symbols,
    )


def test_without_noise_it_is_least_squares() -> None:
    products = Products(3, 5)
    centred = ROWS / [80.0, 100.0, 15.0] - 0.5
    factors = np.column_stack([centred, np.ones(N)])
    means = np.array([(factors[:, i] * factors[:, j]).mean() for i, j in products.pairs])
    assert len(products.pairs) == 8 and (0, 0) not in products.pairs
    beta, spread = products.least_squares(means, np.zeros((8, 8)))
    value = ASKED._scale @ beta + [40.0, 0.0, 0.0]
    np.testing.assert_allclose(value, ASKED.truth(ROWS), rtol=1e-9)
    assert not spread.any()


def test_errors_of_means_are_carried_to_the_coefficients() -> None:
    """The derivative by differences: every entry of the matrix stands in it twice."""
    products, rng = Products(3, 5), np.random.default_rng(2)
    factors = np.column_stack([rng.uniform(-0.5, 0.5, (50, 3)), np.ones(50)])
    means = np.array([(factors[:, i] * factors[:, j]).mean() for i, j in products.pairs])
    tiny, none = 1e-7, np.zeros((8, 8))
    by = np.array([
        (products.least_squares(means + step, none)[0] - products.least_squares(means - step, none)[0]) / 2e-7
        for step in tiny * np.eye(8)
    ])  # fmt: skip
    covariance = 1e-9 * (np.eye(8) + 0.3)
    np.testing.assert_allclose(
        products.least_squares(means, covariance)[1], by.T @ covariance @ by, rtol=1e-5, atol=1e-15
    )


def test_each_product_is_rounded_right_on_average() -> None:
    people = 40_000
    products, values = Products(2, 4), np.tile([0.3, -0.45], (people, 1))
    sent = products.symbols(values, dt.simulation(3))
    assert sent.shape == (people, 4) and (sent // 4 == np.arange(4)).all()
    found = np.bincount(sent.ravel(), minlength=products.size) @ products.weights.T / people + products.middles
    true = [{(0, 2): 0.3, (0, 1): -0.135, (1, 1): 0.2025, (1, 2): -0.45}[pair] for pair in products.pairs]
    assert (np.abs(found - true) < 6.0 * np.sqrt(products.rounding / people)).all()  # chance 1e-8


SPARSE = SparseNoise(
    sparse_for_rounds(k=ASKED.domain["k"], epsilon=8.0, delta=1e-3, rounds=8), OpenAnswers(ASKED.domain["k"]), 8
)


@pytest.mark.parametrize("noise", [noise_of(4.0), SPARSE], ids=lambda one: one.name)
def test_coefficients_are_right_on_average_and_intervals_cover(noise: Noise) -> None:
    """A right implementation fails with a chance below 1e-7: six standard errors, and binomial tails of 1e-8."""
    people, rng, repeats = People(N, pl.DataFrame()), dt.simulation(4), 120
    truth, covered, values, errors = np.array(ASKED.truth(ROWS)), np.zeros(3), [], []
    for _ in range(repeats):
        batch = noise.complete(noise.randomize(ASKED.answer(ROWS, rng), people, rng), rng)
        one = ASKED.learned(noise, noise.tally(batch), people)
        low, high = one.interval(0.95)
        covered += (low <= truth) & (truth <= high)
        values.append(one.value)
        errors.append(one.standard_error)
    spread, said = np.std(values, axis=0), np.mean(errors, axis=0)
    assert (np.abs(np.mean(values, axis=0) - truth) < 6.0 * spread / np.sqrt(repeats) + 0.05 * said).all()
    assert (spread < 1.4 * said).all() and (spread > 0.5 * said).all()
    assert (covered >= binom.ppf(1e-8, repeats, 0.95)).all()


@pytest.mark.exhaust
def test_it_is_refused_where_noise_could_make_the_numbers_dependent() -> None:
    noise, people, rng = noise_of(0.04), People(N, pl.DataFrame()), dt.simulation(5)
    batch = noise.complete(noise.randomize(ASKED.answer(ROWS, rng), people, rng), rng)
    with pytest.raises(UnsupportedError, match="noise alone could make these numbers linearly dependent") as refused:
        ASKED.learned(noise, noise.tally(batch), people)
    assert "times as many people" in str(refused.value)


def test_behind_sparse_dummies_errors_fall_with_the_root_and_the_refusal_says_how_many_people_that_takes() -> None:
    people, means = People(N), np.zeros(8)
    more = [ASKED.noise_ratio(SPARSE, People(n)) for n in (N, 4 * N)]
    assert more[0] == pytest.approx(2.0 * more[1], rel=0.05)
    ends = SPARSE.expected(np.tile([0.5, 0.0, 0.0, 0.0, 0.5], 8), people)  # where all people are, it is largest
    largest = np.diag(SPARSE.moments(ends, ASKED.products.weights, people)[1]) + ASKED.products.rounding / N
    assert ASKED.error(SPARSE, people) == pytest.approx(np.sqrt(largest.max()), rel=1e-9)
    means[[i for i, pair in enumerate(ASKED.products.pairs) if pair[0] == pair[1]]] = 0.1
    loud = 4.0 * 0.1**2 / 4.0 / 8.0 * np.eye(8)  # the least eigenvalue is .1, and doubted up to .2
    for power, times in ((1.0, "about 4 times"), (0.5, "about 8 times")):
        with pytest.raises(UnsupportedError, match=times):
            ASKED.products.least_squares(means, loud, power=power)


def test_a_column_that_is_another_is_refused() -> None:
    same = np.column_stack([Y, A, A * 0.15])
    noise, people, rng = noise_of(4.0), People(N, pl.DataFrame()), dt.simulation(6)
    batch = noise.complete(noise.randomize(ASKED.answer(same, rng), people, rng), rng)
    with pytest.raises(UnsupportedError, match="linearly dependent"):
        ASKED.learned(noise, noise.tally(batch), people)


@pytest.mark.exhaust
def test_a_release_has_coefficients_and_no_error_of_a_population(tmp_path: Path) -> None:
    first, again = (dt.run(CONFIG, table=TABLE, ledger=tmp_path) for _ in range(2))
    assert first.evaluation.estimates == again.evaluation.estimates
    document = first.document()
    overall = document["estimates"]["overall"]
    assert overall["labels"] == ["intercept", "a", "b"] and overall["population_error"] == ["inf"] * 3
    assert all(low < value < high for value, (low, high) in zip(overall["value"], overall["interval"], strict=True))
    assert document["collection"]["kind"] == "regression" and document["central"]["epsilon"] <= 4.0


@pytest.mark.exhaust
def test_it_runs_in_many_files(tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "table.parquet")
    config = {**CONFIG, "data": {**CONFIG["data"], "path": str(tmp_path / "table.parquet")}}
    report = dt.engine.run(config, out=tmp_path / "out", ledger=tmp_path / "ledger", engine="processes", workers=1)
    overall = report.evaluation.estimates.overall
    errors = np.array(overall.standard_error)
    assert (np.abs(np.array(overall.value) - ASKED.truth(ROWS)) < 6.0 * errors).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": {"ask": "regression", "others": "a"}}, "`others` must be columns with their ranges"),
        ({"question": {"ask": "regression", "others": "a = 5..1"}}, "`a` must be above 5"),
        ({"question": {"ask": "regression", "others": "y = 0..80"}}, "other columns than 'y'"),
        ({"promise": {}, "randomize": {"epsilon": 3.0}}, "takes several symbols of a person"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        dt.run({**CONFIG, **changes}, table=TABLE, ledger=tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.exhaust
def test_a_plan_chooses_the_grid() -> None:
    plan = plan_question(
        "regression", settings={"others": OTHERS}, data={"lower": 0.0, "upper": 80.0}, n=20_000, trust="shuffler",
        epsilon=1.0,
    )  # fmt: skip
    assert isinstance(plan.question, Regression) and plan.question.points > 2 and plan.central.epsilon <= 1.0
    coarse = Regression(0.0, 80.0, OTHERS, points=2)
    assert plan.standard_error < coarse.error(noise_of(1.0, coarse), plan.people)


def test_ranges_are_given_in_a_notebook() -> None:
    assert dt.Regression(0.0, 1.0, {"a": (0.0, 2.0)}).others == (("a", 0.0, 2.0),)
    with pytest.raises(ParameterError, match="1 to 11 different columns"):
        dt.Regression(0.0, 1.0, {})
