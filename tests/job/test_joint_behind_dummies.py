"""All answers in one report among dummies of their combinations: what is promised, and how right estimates are."""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import tomlkit
from numpy.typing import NDArray
from tests.statistics import expect_caught, expect_law, expect_mean, expect_standard_error, rng_of

import dovetail as dt
from dovetail.account.dummies import user_dummies_for
from dovetail.core.errors import ConfigError, UnsupportedError
from dovetail.core.estimate import Tally
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise import People
from dovetail.estimate.dummies import KeptCounts
from dovetail.job.check_config import check_config
from dovetail.job.questions import QuestionsCollection, questions_of
from dovetail.job.questions_plan import plan_questions
from dovetail.noise.shuffler import DummyNoise
from dovetail.shuffle.sampling.dummies import SummedLaw, TruncatedGaussian, TruncatedGeometric
from dovetail.table.columns import Status

NOISES = ("users", "geometric", "gaussian", "sparse")
N = 90
TABLE = pl.DataFrame(
    {
        "id": range(N),
        "smokes": ["no", "yes", "no"] * (N // 3),
        "drinks": ["a", "a", "b", "c", "c", "c"] * (N // 6),
        "height": np.linspace(150.0, 190.0, N),
    }
)
LISTS = [{"column": "smokes", "categories": ["no", "yes"]}, {"column": "drinks", "categories": ["a", "b", "c"]}]
HEIGHT = {"column": "height", "lower": 140.0, "upper": 200.0}


def asked(noise: str, mode: str = "rehearsal", more: Any = HEIGHT, **promise: Any) -> dict[str, Any]:
    own = {"trust": "users"} if noise == "users" else {"trust": "shuffler", "dummies": noise}
    questions = LISTS if more is None or noise == "sparse" else [*LISTS, more]
    return {
        "schema_version": 1, "mode": mode, "ask": "joint", "data": {"person": "id"}, "questions": questions,
        "promise": {"epsilon": 2.0 if noise == "users" else 4.0, "delta": 0.05} | own | promise,
    }  # fmt: skip


def collection(noise: str, **promise: Any) -> QuestionsCollection:
    settings = questions_of(asked(noise, more=None, **promise))
    assert settings is not None
    return QuestionsCollection.of(settings, rng_of(noise), table=TABLE)


def dummies_of(made: QuestionsCollection) -> Any:
    """Those of the combinations."""
    (message,), carrier = made.messages, made.parts[0].noise.carrier
    assert isinstance(carrier, DummyNoise) and message.noise is carrier and carrier.kinds == math.prod(message.sizes)
    return carrier.dummies


def numbers_of(answers: Iterable[Any]) -> NDArray[np.int64]:
    """Combinations of an answer of two and one of three."""
    first, second = answers
    return np.asarray(3 * first + second)


# What is promised: all batches of a few people, enumerated


def counts_of_one(dummies: Any, held: int, most: int) -> NDArray[np.float64]:
    """The law of the count (most,) of a combination that so many people hold: by hand, from the parameters."""
    if hasattr(dummies, "more"):
        kept, more = float(dummies.kept), float(dummies.more)
        own = [math.comb(held, j) * kept**j * (1.0 - kept) ** (held - j) for j in range(held + 1)]
        return np.convolve(own, (1.0 - more) * more ** np.arange(most, dtype=float))[:most]
    masses = dummies.noise.error_law(1.0)[1]
    return np.pad(masses, (held, most))[:most]


def delta_of(here: NDArray[np.float64], there: NDArray[np.float64], epsilon: float) -> float:
    """The hockey-stick divergence."""
    return float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())


@pytest.mark.parametrize("noise", ["geometric", "gaussian", "sparse"])
def test_no_batch_tells_more_of_all_answers_together_than_is_promised(noise: str) -> None:
    """Counts of combinations are independent, and two of them change, however many of a person's answers do.

    Others are subtracted, or up to two of them hold each of the two combinations.
    """
    made = collection(noise)
    promise, dummies = made.central, dummies_of(made)
    assert isinstance(promise, CentralDP) and dummies.k == 6 and 3.9 < promise.epsilon <= 4.0
    assert promise.delta == (0.0 if noise == "sparse" else 0.05)
    worst = 0.0
    for a, b in product(range(3), range(3)):
        laws = [counts_of_one(dummies, held, 60) for held in (a + 1, b, a, b + 1)]
        both = np.outer(*laws[:2]), np.outer(*laws[2:])
        assert delta_of(*both, promise.epsilon * (1.0 + 1e-12)) <= promise.delta + 1e-12
        worst = max(worst, delta_of(*both, 0.9 * promise.epsilon))
    assert worst > promise.delta  # the promise is no larger than it has to be


def test_no_batch_with_dummies_of_people_tells_more_of_all_answers_together_than_is_promised() -> None:
    """All histograms of the four combinations of six people's messages, exactly; other people are subtracted.

    The rate that hides one of the answers by itself hides all of them less: it is caught.
    """
    six = TABLE.head(6).with_columns(drinks=pl.col("smokes"))
    lists = [{"column": column, "categories": ["no", "yes"]} for column in ("smokes", "drinks")]
    settings = questions_of(asked("users", epsilon=2.0, delta=0.3) | {"questions": lists})
    assert settings is not None
    made = QuestionsCollection.of(settings, rng_of("six"), table=six)
    promise, sent = made.central, dummies_of(made)
    assert isinstance(promise, CentralDP) and (sent.k, promise.delta) == (4, 0.3) and promise.epsilon <= 2.0
    alone = user_dummies_for(k=2, epsilon=2.0, delta=0.3, honest=6).rate

    def told(rate: float, own: int, other: int) -> float:
        """By hand: every way in which the six send dummies."""
        worlds: list[Counter[tuple[int, ...]]] = [Counter(), Counter()]
        for drawn in product(range(5), repeat=6):  # 4: none
            chance = math.prod(1.0 - rate if one == 4 else rate / 4.0 for one in drawn)
            for world, held in zip(worlds, (own, other), strict=True):
                world[tuple(drawn.count(one) + (one == held) for one in range(4))] += chance  # type: ignore[assignment]
        here, there = worlds
        return sum(max(0.0, mass - math.exp(promise.epsilon) * there[seen]) for seen, mass in here.items())

    for own, other in ((0, 3), (0, 1), (1, 2)):  # of (no, no), (no, yes), (yes, no), (yes, yes)
        assert 0.2 < told(sent.rate, own, other) <= promise.delta < told(alone, own, other)


@pytest.mark.parametrize("noise", NOISES)
def test_dummies_stand_beside_combinations_and_not_beside_answers(noise: str) -> None:
    """Each of the six combinations has dummies of its own; fails by chance once in a billion."""
    made, rng = collection(noise, epsilon=1.0 if noise == "sparse" else 2.0), rng_of(f"{noise} rows")
    held = np.bincount(numbers_of(part.survey.values for part in made.parts), minlength=6)
    rows = [made.release(rng) for _ in range(2000 if noise == "sparse" else 500)]
    counts = np.array([np.bincount(numbers_of(part.read(one) for part in made.sent), minlength=6) for one in rows])
    dummies = dummies_of(made)
    mean = N * dummies.rate / 6.0 if noise == "users" else dummies.total / 6.0
    expect_mean(counts - float(getattr(dummies, "kept", 1.0)) * held, mean, against=[mean])


# What is learned: marginals of the law


@pytest.mark.parametrize(
    "each", [TruncatedGeometric.calibrated(epsilon=2.0, delta=1e-3), TruncatedGaussian(Fraction(7, 2), 9)], ids=repr
)
@pytest.mark.parametrize("times", [1, 2, 5])
def test_the_law_of_an_answer_is_that_of_the_sum_of_its_combinations(each: Any, times: int) -> None:
    law, (_, masses) = SummedLaw(each, times), each.error_law(1.0)
    exact = masses
    for _ in range(times - 1):
        exact = np.convolve(exact, masses)
    places, found = law.error_law(0.5)
    assert np.allclose(found, exact, rtol=0.0, atol=1e-15) and places[-1] == 0.5 * law.reach
    angles = np.linspace(-3.0, 3.0, 41)
    assert np.allclose(law.characteristic(angles), np.cos(np.outer(angles, 2.0 * places)) @ exact, atol=1e-13)
    assert law.variance == pytest.approx(float((2.0 * places) ** 2 @ exact))
    drawn = law.sample(20_000, rng_of(f"{each} {times}"))
    expect_law(np.bincount(drawn, minlength=2 * law.reach + 1), exact)


@pytest.mark.parametrize("times", [1, 3, 40])
def test_sparse_dummies_of_an_answer_are_those_of_its_combinations(times: int) -> None:
    exact = one = 0.7 * 0.3 ** np.arange(200, dtype=float)
    for _ in range(times - 1):
        exact = np.convolve(exact, one)[:200]
    places, masses = KeptCounts(np.array([3]), 0.5, 0.3, 9, times=times)._dummies
    found = np.bincount(places, masses, minlength=200)
    assert np.allclose(found[:200], exact, rtol=1e-9, atol=1e-18) and math.isclose(masses.sum(), 1.0)


@pytest.mark.parametrize("noise", NOISES)
def test_intervals_cover_at_every_truth(noise: str) -> None:
    """Exactly, of an answer that so many of ninety people give, by the law of its count: at least 95 %, or nearly."""
    part = collection(noise).parts[1]
    each: Any = part.noise
    for held in (0, 1, 45):
        if noise == "users":
            law, below = (
                np.array(
                    [math.comb(N, j) * (r := each.dummies.rate / 3) ** j * (1 - r) ** (N - j) for j in range(N + 1)]
                ),
                held,
            )
        elif noise == "sparse":
            law, below = counts_of_one(each.dummies, held, 120), 0
            law = np.convolve(law, counts_of_one(each.dummies, 0, 120))[:200]  # of two combinations
        else:
            law, below = each.dummies.noise.error_law(1.0)[1], held
        counts = below + np.flatnonzero(law > 1e-6)
        n = each.expected(np.full(3, 1 / 3), People(N)).n
        ends = [each.shares(Tally(np.full(3, one), n), People(N)).interval(0.95) for one in counts]
        low, high = np.array(ends)[:, :, 0].T
        covered = law[counts - below][(low <= held / N) & (held / N <= high)].sum()
        assert covered >= (0.93 if noise == "users" else 0.95)


@pytest.mark.exhaust
@pytest.mark.parametrize("noise", NOISES)
def test_every_question_is_answered_right_on_average_and_as_exactly_as_is_said(noise: str) -> None:
    """Fails by chance once in a billion; a standard error a third too small is caught."""
    made, rng, off = collection(noise), rng_of(f"{noise} learned"), []
    for _ in range(2400):
        rows, row = made.release(rng), list[float]()
        for part, sent in zip(made.parts, made.sent, strict=True):
            found = part.question.learned(part.noise, part.noise.tally(sent.read(rows)), part.people)
            truth = np.array(part.question.truth(part.survey.values))
            row += list((found.value - truth) / found.standard_error)
        off.append(row)
    errors = np.array(off)
    expect_mean(errors, 0.0, against=[0.3])
    if noise != "sparse":  # whose error is said by the counts themselves
        expect_standard_error(errors, 1.0)
        expect_caught(expect_standard_error, errors, 1.0 / 1.33)


# What is released, planned and refused


@pytest.mark.parametrize("noise", NOISES)
def test_a_release_is_told_again_by_its_ledger(noise: str, tmp_path: Path) -> None:
    first, again = (dt.run(asked(noise, "release"), table=TABLE, ledger=tmp_path).document() for _ in range(2))
    assert [one["estimates"] for one in first["questions"]] == [one["estimates"] for one in again["questions"]]
    assert "with her answers to all questions, each sent as it is" in first["assumptions"][0]


@pytest.mark.parametrize("noise", NOISES)
def test_a_ledger_expects_as_many_reports_as_combinations_have(noise: str) -> None:
    """Of lists whose combinations are many times as long."""
    for part in collection(noise).parts:
        assert part.noise.most_added(part.people) == part.noise.carrier.most_added(part.people)


@pytest.mark.parametrize("noise", NOISES)
def test_files_hold_what_memory_does(noise: str, tmp_path: Path) -> None:
    """The same promise, and as many rows of dummies, in tasks."""
    TABLE.write_parquet(tmp_path / "table.parquet")
    settings = asked(noise)
    there = settings | {"data": settings["data"] | {"path": str(tmp_path / "table.parquet")}}
    report = dt.engine.run(there, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1)
    here = dt.run(settings, table=TABLE)
    assert report.document()["central"]["epsilon"] == here.document()["central"]["epsilon"]
    for one, other in zip(report.document()["questions"], here.document()["questions"], strict=True):
        ours, theirs = (np.atleast_1d(each["estimates"]["overall"]["truth"]) for each in (one, other))
        assert np.allclose(ours, theirs)


def test_a_plan_compares_one_report_with_reports_of_their_own() -> None:
    """Two answers of two and three: three combinations for each of two pay less than half an epsilon each."""
    settings = questions_of(asked("geometric", more=None))
    assert settings is not None
    ways = {one.ask: one for one in plan_questions(settings, 1000)}
    assert set(ways) == {"all", "joint", "one"} and ways["joint"].messages == 1
    made = collection("geometric")
    for planned, part in zip(ways["joint"].questions, made.parts, strict=True):
        assert planned.accuracy.standard_error == pytest.approx(part.noise.error(People(1000)))
    smokes = {ask: one.questions[0].accuracy.standard_error for ask, one in ways.items()}
    assert smokes["joint"] < smokes["all"]


@pytest.mark.parametrize(
    ("noise", "more", "promise", "told"),
    [
        ("users", [{"column": f"q{q}", "categories": list("abcdef")} for q in range(4)], {}, "7,776 combinations"),
        ("geometric", [{"column": f"q{q}", "categories": list("abcdef")} for q in range(12)], {}, "combinations"),
        ("geometric", [HEIGHT | {"ask": "distribution", "levels": 2}], {"delta": 0.01}, "takes 2 symbols"),
        ("geometric", [HEIGHT | {"randomizer": "krr", "epsilon": 1.0}], {}, "hide answers as they are"),
    ],
)
def test_what_is_too_much_for_one_report_is_refused_in_one_line(
    noise: str, more: list[dict[str, Any]], promise: dict[str, Any], told: str
) -> None:
    table = TABLE.with_columns(pl.lit("a").alias(f"q{q}") for q in range(12))
    settings = asked(noise, more=None, **promise) | {"questions": [*LISTS, *more]}
    with pytest.raises(ConfigError, match=told) as refused:
        dt.run(settings, table=table)
    assert "\n" not in str(refused.value)
    if "epsilon" not in more[0]:
        assert '`ask` = "all"' in str(refused.value)
        if noise != "users":  # of whom there are too few for so many
            every = dt.run(settings | {"ask": "all"}, table=table)
            assert len(every.document()["questions"]) == len(LISTS) + len(more)


def test_a_release_that_noise_drowns_says_how_many_combinations_there_are() -> None:
    with pytest.raises(
        UnsupportedError, match=r"noise drowns .* 12 combinations, .*`ask` = \"all\".*nothing was drawn"
    ):
        dt.run(asked("geometric", "release", epsilon=0.2, delta=1e-6), table=TABLE)


def test_a_check_says_what_a_release_would_refuse(tmp_path: Path) -> None:
    TABLE.write_csv(tmp_path / "people.csv")
    settings = asked("geometric", "release", more=None, epsilon=0.2, delta=1e-6)
    settings |= {"data": settings["data"] | {"path": "people.csv"}}
    (tmp_path / "asked.toml").write_text(tomlkit.dumps(settings))
    stops = [one for one in check_config(tmp_path / "asked.toml").problems if one.status is Status.STOPS]
    assert len(stops) == 1 and "6 combinations" in stops[0].what
