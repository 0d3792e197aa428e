"""What noise drowns is refused with the number of people that it takes, and told before: of every question, once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.collect.analyzer.test_asked import made
from tests.job.test_together import CELLS, question_of

import dovetail as dt
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.terms import draft_campaign, too_few
from dovetail.core.errors import ConfigError, ParameterError, UnsupportedError
from dovetail.core.noise import Noise, People
from dovetail.core.question import QUESTIONS, WEAK, Question
from dovetail.job.build import build_noise, build_question
from dovetail.job.check_config import check_config
from dovetail.job.config import parse_config
from dovetail.job.question_plan import plan_question, question_rows
from dovetail.job.together import CAMPAIGN, MEMORY, REHEARSAL, Choices
from dovetail.report.html import render_html

SLOW = ("covariance", "regression", "tables")
ONE = [
    pytest.param(one, marks=[pytest.mark.exhaust] if one.question in SLOW else [])
    for one, why in CELLS
    if why is None
    and (one.order, one.engine, one.mode) == ("uniform", MEMORY, REHEARSAL)
    and one.question in QUESTIONS.names()
]
N = 200
TABLE = pl.DataFrame({"id": range(N), "x": np.linspace(1.0, 99.0, N)})
CONFIG: dict[str, Any] = {
    "schema_version": 1,
    "mode": "release",
    "data": {"person": "id", "private": "x", "lower": 0.0, "upper": 100.0},
    "question": {"ask": "distribution", "bins": 64},
    "randomize": {"randomizer": "krr", "epsilon": 1.0},
}


def of(one: Choices, n: int) -> tuple[Question, Noise, People]:
    raw = question_of(one)
    if one.noise in ("local", "memoized"):
        raw["randomize"]["epsilon"] = 0.5
    elif one.noise not in ("classes", "users"):
        raw["promise"] |= {"epsilon": 0.1, "delta": 1e-6}
    settings = parse_config(raw)
    question = build_question(settings, settings.data.categories)
    ages = {str(age): n // 4 for age in range(20, 24)}
    return question, build_noise(settings, question, n=n), People(n, counted=ages if one.noise == "classes" else {})


@pytest.mark.parametrize("one", ONE, ids=str)
def test_what_is_said_to_be_enough_people_is_enough_and_no_more_than_it_takes(one: Choices) -> None:
    question, noise, people = of(one, 2000)
    told = question.too_few(noise, people, ratio := 0.7 * question.noise_ratio(noise, people))
    assert told is not None
    needed = int(told.split()[-2].replace(",", ""))
    assert needed > people.n and question.noise_ratio(noise, noise.more(people, needed)) < ratio
    less = noise.more(people, int(needed / 1.003) - 4)
    assert question.noise_ratio(noise, less) >= ratio
    assert question.too_few(noise, noise.more(people, 2 * needed), ratio) is None


def drowned(ask: str, n: int, **settings: Any) -> Any:
    """What is learned of tallies that are as expected of people who give all answers alike."""
    raw = {**CONFIG, "mode": "rehearsal", "question": {"ask": ask, **settings}}
    if QUESTIONS[ask].several:
        raw["promise"] = {"trust": "shuffler", "epsilon": 0.2, "delta": 1e-6}
        del raw["randomize"]
    asked = parse_config(raw)
    question, people = build_question(asked, None), People(n)
    noise = build_noise(asked, question, n=n)
    shares = np.full(question.domain["k"], question.symbols / question.domain["k"])
    return question.noise_ratio(noise, people), lambda: question.learned(
        noise, noise.expected(shares, people), people
    )


def test_intervals_of_what_is_drowned_are_all_that_was_known_before() -> None:
    ratio, learned = drowned("distribution", 40, bins=16)
    low, high = learned().interval()
    assert ratio >= 1.0 and (low[1:4] == 0.0).all() and (high[1:4] == 100.0).all()
    ratio, learned = drowned("distribution", 30_000, bins=16)
    low, high = learned().interval()
    assert ratio < 0.5 and low[2] > 0.0 and high[2] < 100.0  # of the median
    for n, expected in ((60, True), (3_000_000, False)):
        ratio, learned = drowned("covariance", n, other="y", other_lower=0.0, other_upper=10.0)
        assert (ratio >= 1.0) == expected
        assert np.isfinite(learned().standard_error)
        assert (1.96 * learned().standard_error >= 0.5 * 250.0) == expected  # a covariance lies within 250
    ratio, learned = drowned("regression", 300, others="y = 0..10", points=3)
    with pytest.raises(UnsupportedError, match="linearly dependent"):
        learned()
    assert ratio >= 1.0


@pytest.mark.parametrize(
    "numbers", [(0.0, 0.0), (0.5, -0.5), (0.5, 0.5, -0.5, -0.5), tuple(np.linspace(-0.5, 0.5, 9))]
)
def test_no_numbers_in_a_range_are_farther_from_dependent_than_a_quarter(numbers: tuple[float, ...]) -> None:
    z = np.column_stack([np.ones(len(numbers)), numbers])
    assert np.linalg.eigvalsh(z.T @ z / len(z))[0] <= 0.25


def test_a_release_is_refused_before_anything_is_drawn_and_a_rehearsal_tells(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    with pytest.raises(UnsupportedError, match=r"noise drowns the distribution .* of 200 people: .* 1,5\d\d people"):
        dt.run(CONFIG, table=TABLE, ledger=ledger)
    assert not ledger.exists() or not any(ledger.rglob("*.parquet"))
    report = dt.run({**CONFIG, "mode": "rehearsal", "seed": 1}, table=TABLE)
    told = report.document()["collection"]["too_few"]
    assert "hides most of the distribution" in told and "Noise hides most of" in render_html(report.document())


@pytest.mark.exhaust
def test_a_release_in_files_and_one_of_several_questions_are_refused_alike(tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "t.parquet")
    ledger = tmp_path / "ledger"
    filed = {**CONFIG, "data": {**CONFIG["data"], "path": str(tmp_path / "t.parquet")}}
    with pytest.raises(UnsupportedError, match=r"noise drowns the distribution .* of 200 people"):
        dt.engine.run(filed, out=tmp_path / "out", ledger=ledger, workers=1)
    both = {key: value for key, value in CONFIG.items() if key not in ("question", "randomize")}
    first = {"column": "x", "lower": 0.0, "upper": 100.0, **CONFIG["question"], **CONFIG["randomize"]}
    both |= {"data": {"person": "id"}, "ask": "all", "questions": [first, {**first, "column": "y"}]}
    with pytest.raises(UnsupportedError, match=r"noise drowns the distribution .* of 200 people"):
        dt.run(both, table=TABLE.with_columns(y="x"), ledger=ledger)


def test_check_and_plan_say_so(tmp_path: Path) -> None:
    TABLE.write_csv(tmp_path / "t.csv")
    place, text = tmp_path / "c.toml", "schema_version = 1\nmode = '{}'\n[data]\npath = 't.csv'\nprivate = 'x'\n"
    text += "lower = 0.0\nupper = 100.0\n[question]\nask = 'distribution'\nbins = 64\n[randomize]\nepsilon = 1.0\n"
    for mode, status in (("release", "STOPS"), ("rehearsal", "NOTE")):
        place.write_text(text.format(mode))
        found = {problem.status.name for problem in check_config(place).problems if "noise" in problem.what}
        assert found == {status}
    data = {"lower": 0.0, "upper": 100.0}
    with pytest.raises(ParameterError, match=r"with as much noise it takes [\d,]+ people, or a larger epsilon"):
        plan_question("distribution", settings={"bins": 64}, data=data, n=200, epsilon0=1.0)
    rows = question_rows(plan_question("distribution", settings={"bins": 64}, data=data, n=5000, epsilon0=1.0))
    assert any("hides most of the distribution" in row for row in rows.values())
    rows = question_rows(plan_question("distribution", settings={"bins": 64}, data=data, n=10**6, epsilon0=1.0))
    assert not any("hides most" in row for row in rows.values())


def test_a_campaign_whose_smallest_batch_is_drowned_is_no_draft() -> None:
    one = Choices("distribution", "local", "uniform", CAMPAIGN, "release")
    (enough, _), (few, _) = made(one, 80), made(one, 4)
    assert too_few(enough, WEAK) is None
    with pytest.raises(ConfigError, match=r"`batch.minimum`: noise drowns the distribution"):
        draft_campaign(few.signed)
    assert [told for told in explain(few).warnings if told.startswith("in a batch of the minimum noise hides most")]
    shares, _ = made(replace(one, question="shares"), 4)
    assert draft_campaign(shares.signed) and not QUESTIONS["shares"].drowns  # told, and not refused
    assert str(too_few(shares, WEAK)).startswith("noise hides most of shares")
