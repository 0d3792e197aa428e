"""The covariance of two numbers: its answers, its estimate, its interval, wherever it is asked."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import dovetail as dt
from dovetail.core.errors import ConfigError, DataError, ParameterError
from dovetail.core.noise import Noise, People
from dovetail.noise.local import Local
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.noise.users import UserNoise
from dovetail.question.covariance import Covariance
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies

N, REPEATS = 400, 600
X = np.linspace(4.0, 10.0, N)  # its mean is not that of the range
PAIRS = np.column_stack([X, np.where(np.arange(N) % 3 == 0, 5.0 - 0.4 * X, 0.2 * X)])
ASKED = Covariance(0.0, 10.0, "other", 0.0, 5.0, points=3)
NOISES: list[Noise] = [
    Local(KRR(9, 4.0)),
    ShufflerNoise(Dummies(9, 1.0, 1e-3), OpenAnswers(9)),
    UserNoise(UserDummies(9, 0.5), OpenAnswers(9)),
]


def test_an_answer_is_a_pair_of_grid_points_that_is_right_on_average() -> None:
    rng, (low, high) = dt.simulation(1), (2, 7)
    pairs = np.tile([2.5, 3.75], (200_000, 1))
    codes = ASKED.answer(pairs, rng)
    ends = np.array([[float(one) for one in name.split(" and ")] for name in ASKED.names or []])
    assert ends.shape == (9, 2) and ends[low].tolist() == [0.0, 5.0] and ends[high].tolist() == [10.0, 2.5]
    drawn = ends[codes]
    error = ends.max(axis=0) / 2 / np.sqrt(len(pairs))
    assert (np.abs(drawn.mean(axis=0) - pairs[0]) < 6 * error).all()  # chance 4e-9
    assert abs((drawn.prod(axis=1)).mean() - 2.5 * 3.75) < 6 * 25 / np.sqrt(len(pairs))


@pytest.mark.exhaust
@pytest.mark.parametrize("noise", NOISES, ids=lambda one: one.name)
def test_estimates_are_right_on_average_and_intervals_cover(noise: Noise) -> None:
    """A right implementation fails with a chance below 1e-7: six standard errors, and a binomial tail of 1e-8."""
    rng, people, truth = dt.simulation(2), People(N, pl.DataFrame()), ASKED.truth(PAIRS)[0]
    found = []
    for _ in range(REPEATS):
        batch = noise.complete(noise.randomize(ASKED.answer(PAIRS, rng), people, rng), rng)
        found.append(ASKED.learned(noise, noise.tally(batch), people))
    values = np.array([float(one.value) for one in found])
    errors = np.array([float(one.standard_error) for one in found])
    assert abs(values.mean() - truth) < 6 * values.std() / np.sqrt(REPEATS)
    assert values.std() < errors.mean() * 1.1
    covered = sum(bool(one.interval(0.95)[0] <= truth <= one.interval(0.95)[1]) for one in found)
    assert covered >= binom.ppf(1e-8, REPEATS, 0.95)


@pytest.mark.exhaust
def test_intervals_cover_where_few_people_decide() -> None:
    """Numbers at the ends of their ranges, behind dummies: a right implementation fails with a chance of 1e-8."""
    drawn = np.random.default_rng(5)
    noise, people = ShufflerNoise(Dummies(4, 2.0, 1e-4), OpenAnswers(4)), People(3000, pl.DataFrame())
    asked, rng = Covariance(0.0, 1.0, "other", 0.0, 1.0), dt.simulation(4)
    pairs = np.column_stack([drawn.beta(0.3, 8.0, 3000), drawn.beta(8.0, 0.3, 3000)])
    truth, covered = asked.truth(pairs)[0], 0
    for _ in range(REPEATS):
        batch = noise.complete(noise.randomize(asked.answer(pairs, rng), people, rng), rng)
        low, high = asked.learned(noise, noise.tally(batch), people).interval(0.95)
        covered += bool(low <= truth <= high)
    assert covered >= binom.ppf(1e-8, REPEATS, 0.95) and covered > 0.94 * REPEATS


@pytest.mark.exhaust
def test_a_collection_asks_it_from_objects() -> None:
    asked = dt.Covariance(0.0, 10.0, "y", 0.0, 5.0, points=3)
    made = dt.Collection.of(
        TABLE, private="x", person="id", question=asked, randomizer=dt.KRR(k=9, epsilon=4.0), rng=dt.simulation(1)
    )
    report = dt.rehearse(made, rng=dt.simulation(2))
    overall = report.evaluation.estimates.overall
    assert overall.truth == pytest.approx(asked.truth(PAIRS)) and not made.inferred
    assert abs(overall.value[0] - overall.truth[0]) < 6 * overall.standard_error[0]
    with pytest.raises(ParameterError, match="k = 4"):
        dt.Collection.of(TABLE, private="x", question=asked, randomizer=dt.KRR(k=4, epsilon=4.0))
    with pytest.raises(ParameterError, match="cannot carry the covariance of two numbers"):
        dt.Collection.of(TABLE, private="x", question=asked, randomizer=dt.Laplace(0.0, 10.0, epsilon=1.0))
    with pytest.raises(ParameterError, match="leave out `categories`"):
        dt.Collection.of(TABLE, private="x", question=asked, categories=["a"], randomizer=dt.KRR(k=9, epsilon=4.0))


def test_uncorrelated_means_are_taken_off() -> None:
    """The mean of products alone is far off: a broken estimate is told."""
    rng, people, noise = dt.simulation(3), People(N, pl.DataFrame()), NOISES[1]
    batch = noise.complete(noise.randomize(ASKED.answer(PAIRS, rng), people, rng), rng)
    one = ASKED.learned(noise, noise.tally(batch), people)
    products = float(np.mean(PAIRS.prod(axis=1)))
    assert abs(products - float(one.value)) > 10 * float(one.standard_error)


TABLE = pl.DataFrame({"id": range(N), "x": PAIRS[:, 0], "y": PAIRS[:, 1]})
CONFIG: dict[str, Any] = {
    "schema_version": 1,
    "mode": "release",
    "data": {"person": "id", "private": "x", "lower": 0.0, "upper": 10.0},
    "question": {"ask": "covariance", "other": "y", "other_lower": 0.0, "other_upper": 5.0},
    "randomize": {"epsilon": 3.0},
}


def test_a_release_says_what_was_asked_and_is_repeated(tmp_path: Path) -> None:
    first, again = (dt.run(CONFIG, table=TABLE, ledger=tmp_path) for _ in range(2))
    assert first.sanitized.equals(again.sanitized)
    document = first.document()
    assert document["estimates"]["measure"] == "covariance" and document["collection"]["kind"] == "covariance"
    assert document["collection"]["domain"] == "two numbers: x between 0 and 10 and y between 0 and 5"
    assert "categories" in document["leakage"]["reason"] or "two numbers" in document["leakage"]["reason"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"randomize": {"epsilon": 3.0, "randomizer": "unary"}}, "needs reports that name an answer"),
        (
            {"question": {"ask": "covariance", "other": "y", "other_lower": 5.0, "other_upper": 0.0}},
            "`other_upper` must be above",
        ),
        ({"question": {**CONFIG["question"], "other": "x"}}, "another column"),
        ({"question": {"ask": "covarianze"}}, "covariance"),
        ({"question": {"ask": "shares"}}, "declare `categories`"),
        ({"data": {"private": "x", "categories": ["a", "b"]}}, "declare `lower` and `upper`"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        dt.run({**CONFIG, **changes}, table=TABLE, ledger=tmp_path)
    assert "\n" not in str(refused.value)


def test_a_second_number_outside_its_range_is_counted(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"private column 'y': 1 value lies outside the declared \[0, 5\]"):
        dt.run(
            CONFIG, table=TABLE.with_columns(y=pl.when(pl.col("id") == 3).then(9.0).otherwise("y")), ledger=tmp_path
        )


@pytest.mark.exhaust
@pytest.mark.parametrize("ask", ["all", "joint", "one"])
def test_it_is_asked_beside_other_questions(ask: str, tmp_path: Path) -> None:
    questions = [
        {"column": "x", "lower": 0.0, "upper": 10.0, "epsilon": 3.0, **CONFIG["question"]},
        {"column": "z", "categories": ["no", "yes"], "epsilon": 1.0},
    ]
    asked = {"schema_version": 1, "mode": "rehearsal", "seed": 1, "ask": ask, "data": {"person": "id"}}
    table = TABLE.with_columns(z=pl.when(pl.col("id") % 2 == 0).then(pl.lit("no")).otherwise(pl.lit("yes")))
    report = dt.run({**asked, "questions": questions}, table=table, out=tmp_path / "out", ledger=tmp_path / "ledger")
    first, second = report.document()["questions"]
    overall = first["estimates"]["overall"]
    assert first["estimates"]["measure"] == "covariance" and second["estimates"]["measure"] == "share"
    assert abs(overall["value"][0] - overall["truth"][0]) < 6 * overall["standard_error"][0]
    assert overall["truth"] == pytest.approx(ASKED.truth(PAIRS))
