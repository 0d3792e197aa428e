"""`dovetail compose`: four ways to collect answers to several questions."""

import json

import pytest

from dovetail.cli.main import invoke

ASKED = ["compose", "--n", "1e4", "--delta", "1e-6"]
TWO = ["--question", "krr:k=3,epsilon=1", "--question", "krr:epsilon=0.5"]


@pytest.mark.exhaust
def test_four_ways_are_ordered_as_theory_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*ASKED, *TWO, "--json"]) == 0
    ways = json.loads(capsys.readouterr().out)["ways"]
    assert ways["chance"]["epsilon"] < ways["separate"]["epsilon"] < ways["joint"]["epsilon"]
    assert all(0.0 < way["attack_lower"] <= way["epsilon"] <= way["budget"] for way in ways.values())
    assert ways["joint"]["budget"] == pytest.approx(1.5) and ways["chance"]["budget"] == pytest.approx(1.0)
    assert [one["n"] for one in ways["groups"]["each"]] == [5000, 5000]
    assert ways["groups"]["epsilon"] == max(one["epsilon"] for one in ways["groups"]["each"])


@pytest.mark.exhaust
def test_rounds_cost_more_and_groups_may_have_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    sized = ["--question", "krr:k=3,epsilon=1,people=2e3", "--question", "krr:epsilon=0.5,people=8e3"]
    assert invoke([*ASKED, *sized, "--rounds", "3", "--json"]) == 0
    many = json.loads(capsys.readouterr().out)["ways"]
    assert invoke([*ASKED, *sized]) == 0
    table = capsys.readouterr().out
    assert many["groups"]["n"] == 2000 and many["joint"]["budget"] == pytest.approx(4.5)
    assert "1. krr: 2,000 people" in table and "all answers in one report" in table


WRONG = {
    "one question": (TWO[:2], "--question must be given two times or more"),
    "no epsilon": ([*TWO, "--question", "krr"], "needs epsilon=NUMBER"),
    "unknown randomizer": ([*TWO, "--question", "kr:epsilon=1"], "did you mean 'krr'"),
    "unknown setting": ([*TWO, "--question", "krr:epsilon=1,foo=3"], "must have epsilon, k, people as key=value"),
    "no number": ([*TWO, "--question", "krr:epsilon=x"], "`epsilon` must be a number"),
    "half a value": ([*TWO, "--question", "krr:epsilon=1,k=2.5"], "`k` must be a whole number"),
    "some people": ([*TWO, "--question", "krr:epsilon=1,people=3"], "for every --question or for none"),
    "too few people": ([*TWO[:2] * 3, "--n", "2"], "n must be at least the number of questions, 3, got 2"),
    "no rounds": ([*TWO, "--rounds", "0"], "--rounds must be"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=list(WRONG))
def test_a_bad_question_is_one_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*ASKED, *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
