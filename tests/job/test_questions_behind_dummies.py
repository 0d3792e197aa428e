"""Several questions behind sparse dummies and behind digits: what is promised of all, and how right estimates are."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.statistics import expect_caught, expect_mean, expect_standard_error

import dovetail as dt
from dovetail.core.errors import ConfigError
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise import People
from dovetail.job.build import build_noise, build_question
from dovetail.job.questions import composed_guarantee, questions_of
from dovetail.noise.digits import DigitNoise
from dovetail.noise.sparse import SparseNoise
from dovetail.shuffle.uniform import Uniform

N = 90
CATEGORIES = {"smokes": ("no", "yes"), "drinks": ("a", "b", "c")}
TABLE = pl.DataFrame(
    {
        "id": range(N),
        "smokes": ["no", "yes", "no"] * (N // 3),
        "drinks": ["a", "a", "b", "c", "c", "c"] * (N // 6),
        "height": np.linspace(150.0, 190.0, N),
        "weight": np.linspace(55.0, 95.0, N)[::-1],
    }
)


def asked(dummies: str, mode: str = "rehearsal", epsilon: float = 4.0, delta: float = 0.05) -> dict[str, Any]:
    lists = [{"column": "smokes", "categories": ["no", "yes"]}, {"column": "drinks", "categories": ["a", "b", "c"]}]
    ranges = {"height": (140.0, 200.0), "weight": (50.0, 110.0)}
    numbers = [{"column": name, "lower": low, "upper": high} for name, (low, high) in ranges.items()]
    promise = {"trust": "shuffler", "epsilon": epsilon, "delta": delta, "dummies": dummies}
    return {
        "schema_version": 1, "mode": mode, "ask": "all", "data": {"person": "id"}, "promise": promise,
        "questions": lists if dummies == "sparse" else numbers,
    }  # fmt: skip


def parts_of(dummies: str) -> Any:
    settings = questions_of(asked(dummies))
    assert settings is not None
    return [
        build_noise(one.settings, build_question(one.settings, CATEGORIES.get(one.column)), n=N)
        for one in settings.questions
    ]


def promised(dummies: str, noises: Any, delta: float) -> CentralDP:
    found = composed_guarantee([(one, People(N)) for one in noises], Uniform(N), delta=delta)
    assert isinstance(found, CentralDP) and (found.delta == 0.0) == (dummies == "sparse")
    return found


# What is promised of all answers together


def test_no_two_batches_behind_sparse_dummies_tell_more_than_is_promised() -> None:
    """All histograms with at most four entries of a symbol, in floats of exact laws: both answers of a person change.

    Others are subtracted: at most two of them give each answer.
    """
    noises = parts_of("sparse")
    epsilon = promised("sparse", noises, 0.05).epsilon
    assert 3.999 < epsilon <= 4.0

    def chance(law: Any, held: int, seen: int) -> float:
        kept, more = float(law.kept), float(law.more)
        return sum(
            math.comb(held, one) * kept**one * (1.0 - kept) ** (held - one) * (1.0 - more) * more ** (seen - one)
            for one in range(min(held, seen) + 1)
        )

    worst, halves = 0.0, []
    for noise in noises:
        assert isinstance(noise, SparseNoise)
        ratios = [
            chance(noise.dummies, a + 1, h)
            * chance(noise.dummies, b, i)
            / (chance(noise.dummies, a, h) * chance(noise.dummies, b + 1, i))
            for a, b, h, i in product(range(3), range(3), range(5), range(5))
        ]
        halves.append(max(map(abs, np.log(ratios))))
    worst = sum(halves)  # batches of two questions are independent, given who says what
    assert epsilon * (1.0 - 1e-6) <= worst <= epsilon * (1.0 + 1e-12)
    assert worst > halves[0] + 1.9  # one of them alone tells half


def test_no_two_batches_of_digits_tell_more_than_is_promised() -> None:
    """Exactly, by the law of the loss of every digit of both numbers, all of which change."""
    noises = parts_of("digits")
    promise = promised("digits", noises, 0.05)
    assert promise.epsilon <= 4.0 and promise.delta == 0.05
    losses: dict[float, float] = {0.0: 1.0}
    certain = 1.0
    for noise in noises:
        assert isinstance(noise, DigitNoise)
        for law in noise.dummies.laws:
            for turn in (1, -1):  # the count that she raises, and the one that she raises in the other world
                here = np.append(law.masses, 0.0) if turn < 0 else np.insert(law.masses, 0, 0.0)
                there = np.insert(law.masses, 0, 0.0) if turn < 0 else np.append(law.masses, 0.0)
                both = (here > 0.0) & (there > 0.0)
                certain *= float(here[both].sum())
                made: dict[float, float] = {}
                for (loss, mass), (one, more) in product(
                    losses.items(), zip(np.log(here[both] / there[both]), here[both], strict=True)
                ):
                    at = round(loss + float(one), 9)
                    made[at] = made.get(at, 0.0) + mass * float(more)
                losses = made
    delta = 1.0 - certain + sum(mass * max(0.0, -math.expm1(promise.epsilon - loss)) for loss, mass in losses.items())
    assert 0.0 < delta <= promise.delta
    assert sum(losses.values()) == pytest.approx(certain)


# What is learned


@pytest.mark.exhaust
@pytest.mark.parametrize("dummies", ["sparse", "digits"])
def test_every_question_is_answered_right_on_average_and_as_exactly_as_is_said(dummies: str) -> None:
    """Fails by chance once in a billion; a standard error a third too small is caught."""
    off: list[list[float]] = []
    for _ in range(1200 if dummies == "digits" else 900):
        row = list[float]()
        for one in dt.run(asked(dummies), table=TABLE).document()["questions"]:
            told = one["estimates"]["overall"]
            value, truth, said = (np.atleast_1d(told[name])[0] for name in ("value", "truth", "standard_error"))
            row.append(float((value - truth) / said))
        off.append(row)
    found = np.array(off)
    expect_mean(found, 0.0, against=[0.3])
    if dummies == "digits":  # of counts behind sparse dummies the error is said by the counts themselves
        expect_standard_error(found, 1.0)
        expect_caught(expect_standard_error, found, 1.0 / 1.33)


# What is released


@pytest.mark.parametrize("dummies", ["sparse", "digits"])
def test_a_release_is_told_again_by_its_ledger(dummies: str, tmp_path: Path) -> None:
    first = dt.run(asked(dummies, "release"), table=TABLE, ledger=tmp_path).document()
    again = dt.run(asked(dummies, "release"), table=TABLE, ledger=tmp_path).document()
    assert [one["estimates"] for one in first["questions"]] == [one["estimates"] for one in again["questions"]]
    assert first["central"]["trust"] == "shuffler" and first["central"]["epsilon"] <= 4.0


def test_digits_carry_no_answers_of_a_list() -> None:
    mixed = asked("digits")
    mixed["questions"] = [mixed["questions"][0], *asked("sparse")["questions"][:1]]
    with pytest.raises(ConfigError, match="digits carry the mean of a number") as refused:
        dt.run(mixed, table=TABLE)
    assert "\n" not in str(refused.value)
