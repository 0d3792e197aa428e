"""`dovetail leak`: every adversary, prior and gain from the command line, curves as files, mistakes in one line."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dovetail.cli.main import invoke
from dovetail.core.channel import KRRChannel
from dovetail.leak.vulnerability import vulnerability

BASE = ["leak", "--n", "100", "--k", "3", "--p", "0.8"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert invoke([*arguments, "--json"]) == 0, capsys.readouterr().err
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


@pytest.mark.parametrize(
    ("options", "question"),
    [
        ([], {}),
        (["--tries", "2"], {"tries": 2}),
        (["--gain", "distance"], {"gain": "distance"}),
        (["--prior", "0.5,0.25,0.25"], {"prior": [0.5, 0.25, 0.25]}),
        (["--adversary", "strong", "--known", "50,40,9"], {"adversary": "strong", "known": (50, 40, 9)}),
        (["--adversary", "strong", "--known", "5,0,0"], {"adversary": "strong", "known": (5, 0, 0)}),
        (["--adversary", "strong"], {"adversary": "strong"}),
    ],
)
def test_the_command_answers_like_the_function(
    options: list[str], question: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    told = document(capsys, *BASE, *options)
    seen = vulnerability(KRRChannel.of(3, 0.8), n=100, **question)
    names = (
        "prior",
        "randomized",
        "shuffled",
        "randomized_shuffled",
        "error_bound",
        "method",
        "rounding",
        "adversary",
    )
    assert {name: told[name] for name in names} == {name: getattr(seen, name) for name in names}
    ends = seen.randomized_shuffled_bracket
    assert told["randomized_shuffled_bracket"] == [ends.lower, ends.upper]


def test_a_million_people_are_a_number_that_may_be_written_in_any_way(capsys: pytest.CaptureFixture[str]) -> None:
    short = document(capsys, "leak", "--n", "1e6", "--k", "100", "--p", "0.8")
    assert short == document(capsys, "leak", "--n", "1000000", "--k", "100", "--p", "0.8")
    assert short["n"] == 10**6 and short["method"] == "exact sum"


def test_certified_numbers_say_that_they_are_proved(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("flint")
    proved, plain = document(capsys, *BASE, "--certified"), document(capsys, *BASE)
    assert (proved["rounding"], plain["rounding"]) == ("proved", "estimated")
    assert proved["randomized_shuffled"] == pytest.approx(plain["randomized_shuffled"], abs=1e-14)


@pytest.mark.exhaust
def test_what_is_sampled_says_so_and_repeats_with_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    question = ["leak", "--n", "1000", "--k", "5", "--p", "0.6", "--prior", "0.3,0.3,0.2,0.1,0.1", "--seed", "3"]
    told = document(capsys, *question)
    assert told["method"] == "sampled" and told["level"] == 1 - 1e-6
    assert told == document(capsys, *question)
    low, high = told["randomized_shuffled_bracket"]
    assert low < told["randomized_shuffled"] < high
    assert invoke(question) == 0
    assert "between" in capsys.readouterr().out


@pytest.mark.exhaust
def test_a_curve_is_written_as_table_and_picture(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    told = document(capsys, *BASE, "--curve", "n", "--csv", "leak.csv", "--plot", "leak.svg")
    table = pl.read_csv("leak.csv")
    assert table.columns == ["n", "prior", "randomized", "shuffled", "randomized_shuffled"]
    assert table["n"][-1] == 100 and table["randomized_shuffled"][-1] == told["randomized_shuffled"]
    assert table["shuffled"].is_sorted(descending=True)
    assert told["curve"]["n"] == table["n"].to_list()
    assert "<svg" in Path("leak.svg").read_text()
    assert told["files"] == {"csv": "leak.csv", "plot": "leak.svg"}
    assert invoke([*BASE, "--curve", "n", "--csv", "leak.csv"]) == 2
    assert "--force" in capsys.readouterr().err


MISTAKES = {
    "prior of the wrong length": (["--prior", "0.5,0.5"], "--prior must hold one probability per value"),
    "prior that does not sum to one": (["--prior", "0.5,0.5,0.5"], "--prior must sum to 1"),
    "prior of words": (["--prior", "a,b,c"], "--prior must be numbers"),
    "more known than there are": (["--adversary", "strong", "--known", "50,50,50"], "at most the n - 1"),
    "half a person": (["--adversary", "strong", "--known", "0.5,1,1"], "--known must be"),
    "known without a strong adversary": (["--known", "1,1,1"], "goes with"),
    "more values than fit": (["--k", "1e300"], "--k must be a whole number, at least 2 and at most 16777216"),
    "nearness in a crowd too large": (["--n", "1e12", "--gain", "distance"], "smaller n gives an upper bound"),
    "too many tries": (["--tries", "4"], "--tries must be"),
    "an unknown gain": (["--gain", "near"], "near"),
    "a plot of no curve": (["--plot", "leak.svg"], "add --curve n"),
    "a curve of one knowledge": (["--curve", "n", "--adversary", "strong", "--known", "1,1,1"], "--known"),
    "a picture of an unknown kind": (["--curve", "n", "--plot", "leak.doc"], "leak.doc"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, hint = MISTAKES[mistake]
    assert invoke([*BASE, *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and hint in captured.err
    assert len(captured.err.strip().splitlines()) == 1


def test_a_report_that_speaks_against_its_value_has_no_bracket_for_every_knowledge(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["leak", "--n", "10", "--k", "3", "--p", "0.1", "--adversary", "strong"]) == 2
    assert "p >= 1/k" in capsys.readouterr().err
    told = document(capsys, "leak", "--n", "10", "--k", "3", "--p", "0.1")
    assert told["prior"] < told["randomized_shuffled"] < told["randomized"]
