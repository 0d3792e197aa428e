"""No answer of a number is an answer, too: as protected as any, with estimates that are right by enumeration."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError, ParameterError
from dovetail.core.estimate import Tally
from dovetail.core.noise import Noise, People
from dovetail.job.config import parse_config
from dovetail.job.question_plan import plan_question
from dovetail.noise.local import Local
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.question.nonresponse import Nonresponse
from dovetail.question.shares import Shares
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.shuffle.sampling.dummies import Dummies
from dovetail.shuffle.uniform import Uniform

GONE = np.nan


class Words(Entropy):
    """Every word of 256 even ones in its turn, so that what is counted is the law itself."""

    provenance = "simulation"

    def words(self, count: int) -> np.ndarray:
        return np.array([place % 256 << 56 for place in range(count)], dtype=np.uint64)


def sent(asked: Nonresponse, number: float) -> np.ndarray:
    """The law (k,) of the symbol of a person, before any noise."""
    codes = asked.answer(np.full(256, number), Words())
    return np.bincount(codes, minlength=asked.domain["k"]) / 256


@pytest.mark.parametrize("points", [2, 3, 5])
def test_no_report_tells_more_than_epsilon_of_a_number_or_of_its_absence(points: int) -> None:
    asked, epsilon = Nonresponse(0.0, 8.0, points=points), 1.5
    channel = KRR(asked.domain["k"], epsilon).channel().matrix()
    numbers = [GONE, *np.linspace(0.0, 8.0, 33)]
    reports = np.array([sent(asked, number) @ channel for number in numbers])
    loss = np.log(reports[:, None] / reports[None]).max()
    assert loss == pytest.approx(epsilon, abs=1e-12)  # an upper bound, and reached
    answered = np.log(reports[0] / reports[1:]).max()
    assert answered == pytest.approx(epsilon, abs=1e-12)  # by the absence, too


def test_rounding_is_right_on_average_and_no_answer_is_one_symbol() -> None:
    asked = Nonresponse(0.0, 8.0, points=5)
    for number in (0.0, 1.0, 3.5, 8.0):
        assert sent(asked, number)[:5] @ np.linspace(0.0, 8.0, 5) == pytest.approx(number, abs=1e-12)
    assert sent(asked, GONE).tolist() == [0.0] * 5 + [1.0]


def test_a_batch_promises_what_as_many_answers_of_a_list_do() -> None:
    people, asked = People(500, pl.DataFrame()), Nonresponse(0.0, 8.0)
    for noise in (Local(KRR(3, 1.0)), ShufflerNoise(Dummies(3, 1.0, 1e-6), OpenAnswers(3))):
        table = pl.DataFrame({"x": [None, 1.0] * 250})
        made = dt.Collection.of(
            table, private="x", question=asked, randomizer=noise.randomizer,
            dummies=noise.dummies if isinstance(noise, ShufflerNoise) else None, rng=dt.simulation(1),
        )  # fmt: skip
        assert made.central == noise.central(Uniform(500), people, delta=1e-6) and made.local == noise.local


PEOPLE = [0.0] * 8 + [5.0] * 12 + [8.0] * 4 + [GONE] * 16


def enumerated(noise: Noise, asked: Nonresponse) -> tuple[np.ndarray, list[Any]]:
    """Chances of the counts of three symbols that these people can send, and what is learned from each."""
    own: Any = noise.randomizer
    krr, n = own.channel().matrix(), len(PEOPLE)
    law = np.zeros((n + 1, n + 1))
    law[0, 0] = 1.0
    for number in PEOPLE:
        low, high, none = sent(asked, number) @ krr
        grown = none * law
        grown[1:] += low * law[:-1]
        grown[:, 1:] += high * law[:, :-1]
        law = grown
    places = np.argwhere(law > 1e-12)
    people = People(n, pl.DataFrame())
    found = [asked.learned(noise, Tally(np.array([a, b, n - a - b]), n), people) for a, b in places]
    return law[tuple(places.T)], found


def test_estimates_are_unbiased_and_intervals_cover_by_enumeration() -> None:
    asked = Nonresponse(0.0, 8.0)
    noise = Local(KRR(3, 2.5))
    chances, found = enumerated(noise, asked)
    values = np.array([one.value for one in found])
    truth = np.array(asked.truth(np.array(PEOPLE)))
    assert truth == pytest.approx([92.0 / 24.0, 0.4])
    bias, spread = chances @ values - truth, np.sqrt(chances @ (values - chances @ values) ** 2)
    assert abs(bias[1]) < 1e-9 and abs(bias[0]) < 0.02 * spread[0]
    plain = np.array([8.0 * (0.5 + one.spread.sums[1] / one.spread.sums[0]) for one in found])
    assert abs(chances @ plain - truth[0]) > 3.0 * abs(bias[0])  # what is taken off
    errors = np.array([one.standard_error for one in found])
    said = np.sqrt(chances @ errors**2)
    assert spread[0] <= said[0] <= 1.3 * spread[0]  # half of them lie on a point, where rounding adds nothing
    assert said[1] == pytest.approx(spread[1], rel=0.02)
    ends = np.array([one.interval(0.95) for one in found])
    covered = chances @ ((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    assert (covered > 0.94).all()  # counts are whole numbers: 95 % in the limit


def test_the_share_without_an_answer_has_the_noise_of_one_count_among_dummies() -> None:
    asked, n, dummies = Nonresponse(0.0, 8.0, points=9), 400, Dummies(10, 1.0, 1e-4)
    noise, people, shares = (
        ShufflerNoise(own=OpenAnswers(10), dummies=dummies),
        People(n, pl.DataFrame()),
        np.full(10, 0.05),
    )
    shares[-1] = 0.55
    found = asked.learned(noise, noise.expected(shares, people), people)
    assert found.value == pytest.approx([4.0, 0.55], abs=1e-9)
    assert found.standard_error[1] == pytest.approx(np.sqrt(float(dummies.noise.variance)) / n, rel=1e-9)


def test_nothing_is_said_of_a_mean_where_noise_could_be_all_of_the_answers() -> None:
    asked, noise, n = Nonresponse(0.0, 8.0), Local(KRR(3, 0.5)), 60
    one = asked.learned(noise, Tally(np.array([20, 15, 25]), n), People(n, pl.DataFrame()))
    low, high = one.interval(0.95)
    assert (one.value[0], low[0], high[0], one.standard_error[0]) == (4.0, 0.0, 8.0, 4.0)
    assert asked.truth(np.array([GONE, GONE])) == [4.0, 1.0]


def config(**data: Any) -> dict[str, Any]:
    return {
        "schema_version": 1, "mode": "rehearsal", "seed": 4,
        "data": {"private": "hours", "person": "id", "lower": 0.0, "upper": 10.0, "missing": "no answer", **data},
        "randomize": {"epsilon": 4.0},
    }  # fmt: skip


HOURS = pl.DataFrame(
    {"id": range(900), "hours": [None if i % 3 == 0 else f"{i % 9},5" for i in range(900)], "sex": ["f", "m"] * 450}
)
DATA = config()["data"]
TRUTH = [float(np.mean([i % 9 + 0.5 for i in range(900) if i % 3])), 1.0 / 3.0]


def test_a_missing_number_is_randomized_by_naming_what_it_is_called(tmp_path: Path) -> None:
    asked = config(decimal=",", public=["sex"]) | {"estimate": {"by": ["sex"]}}
    asked["shuffle"] = {"shuffler": "within_groups", "groups": {"labels": "sex"}}
    document = dt.run(asked, table=HOURS, ledger=tmp_path).document()
    estimates = document["estimates"]
    assert document["collection"]["n"] == 900 and document["collection"]["kind"] == "nonresponse"
    for each in (estimates["overall"], *estimates["groups"]):
        assert each["labels"] == ["mean", "no answer"] and each["truth"] == pytest.approx(TRUTH, abs=0.05)
        for (low, high), truth, (least, most) in zip(each["interval"], each["truth"], [(0, 10), (0, 1)], strict=True):
            assert least <= low <= truth <= high <= most
    assert "number between 0 and 10, or 'no answer'" in document["collection"]["domain"]


@pytest.mark.exhaust
def test_files_and_memory_know_the_same_truth(tmp_path: Path) -> None:
    plain = HOURS.with_columns(pl.col("hours").str.replace(",", ".").cast(pl.Float64))
    plain.write_parquet(tmp_path / "t.parquet")
    asked = config(path=str(tmp_path / "t.parquet"))
    del asked["seed"]
    report = dt.engine.run(asked, out=tmp_path / "out", ledger=tmp_path / "led", engine="processes", workers=1)
    overall = report.document()["estimates"]["overall"]
    assert overall["truth"] == pytest.approx(TRUTH) and overall["n"] == 900


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"randomize": {"randomizer": "laplace", "epsilon": 1.0}}, "does not fit the private column: use krr.$"),
        ({"question": {"ask": "number"}}, "of numbers goes with their mean alone"),
        ({"question": {"ask": "distribution"}}, "of numbers goes with their mean alone"),
        ({"data": {**DATA, "missing": "drop"}, "question": {"ask": "nonresponse"}}, "say what that is called"),
        ({"data": {**DATA, "time": "t"}}, '"drop" for streams'),
    ],
)  # fmt: skip
def test_what_has_no_word_for_no_answer_is_refused_in_one_line(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        parse_config(config() | change)
    assert "\n" not in str(refused.value)


def test_bad_grids_and_means_of_gaps_are_refused() -> None:
    for bad in ({"points": 1}, {"upper": 0.0}):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            Nonresponse(**{"lower": 0.0, "upper": 1.0, **bad})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"dt\.Nonresponse"):
        dt.Collection.of(
            HOURS, private="hours", missing="none", randomizer=dt.Laplace(lower=0.0, upper=1.0, epsilon=1.0)
        )


def test_a_plan_chooses_the_grid_and_counts_on_half_of_the_people() -> None:
    data = {"lower": 0.0, "upper": 10.0}
    trusted = plan_question("nonresponse", settings={}, data=data, n=20_000, trust="shuffler", epsilon=1.0)
    local = plan_question("nonresponse", settings={}, data=data, n=20_000, epsilon0=1.0)
    assert isinstance(trusted.question, Nonresponse) and isinstance(local.question, Nonresponse)
    assert trusted.question.points > local.question.points == 2
    assert trusted.config["data"]["missing"] == "no answer" and trusted.error95 < local.error95
    assert Shares(tuple(local.question.names or ())).domain == local.question.domain
