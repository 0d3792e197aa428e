"""One scale on the command line: words and warnings of plans and accounts are those that a report has."""

import json
from typing import Any

import pytest

from dovetail.cli.main import invoke

OPEN = "it is all but an open answer"
LARGE = "is not below 1/"
ALONE = "one person alone"


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Any:
    """The JSON answer of a command, and what it prints for people."""

    def ask(*arguments: str) -> tuple[dict[str, Any], str]:
        assert invoke([*arguments, "--json"]) == 0, capsys.readouterr().err
        document = json.loads(capsys.readouterr().out)
        assert invoke(list(arguments)) == 0
        return document, " ".join(capsys.readouterr().out.replace("│", " ").split())

    return ask


@pytest.mark.parametrize(
    "asked",
    [
        ("account", "--epsilon0", "34.7", "--n", "1"),
        ("account", "--invert", "--epsilon", "34.7", "--n", "1"),
        ("account", "--epsilon0", "34.7", "--group", "town=1", "--group", "village=1"),
        ("plan", "--question", "frequency", "--k", "2", "--n", "1", "--epsilon0", "34.7"),
    ],
)
def test_plan_and_account_warn_of_what_the_report_warns_of(asked: tuple[str, ...], told: Any) -> None:
    document, printed = told(*asked, "--delta", "0.5")
    assert document["verdict"]["word"] == "none"
    assert "protects nobody but by trust in the shuffler" in document["verdict"]["sentence"]
    notes = " ".join(document["notes"])
    for warning in (OPEN, LARGE, ALONE):
        assert warning in notes and warning in printed, warning
    assert document["verdict"]["sentence"] in printed


@pytest.mark.exhaust
def test_an_error_of_a_billionth_is_planned_with_its_price_named(told: Any) -> None:
    document, printed = told("plan", "--question", "frequency", "--k", "2", "--n", "4200", "--error", "1e-9")
    assert document["epsilon0"] > 30 and document["verdict"]["word"] == "none" and OPEN in printed


def test_what_promises_enough_is_not_warned_of(told: Any) -> None:
    document, printed = told("account", "--invert", "--epsilon", "1", "--n", "1e3", "--delta", "1e-6")
    assert document["notes"] == [] and document["verdict"]["rows"][0]["epsilon"] == document["epsilon0"]
    assert document["verdict"]["rows"][-1]["epsilon"] == 1.0 and document["verdict"]["sentence"] in printed


@pytest.mark.exhaust
def test_ways_to_ask_several_questions_are_judged_one_by_one(told: Any) -> None:
    two = ("--question", "krr:epsilon=0.5,people=1", "--question", "krr:epsilon=9,people=9")
    document, printed = told("compose", *two, "--n", "10", "--delta", "0.5")
    ways = document["ways"]
    assert {name: way["verdict"]["word"] for name, way in ways.items()} == dict.fromkeys(ways, "none")
    assert [one["verdict"]["word"] for one in ways["groups"]["each"]] == ["strong", "none"]
    assert LARGE in document["notes"][0] and ALONE in document["notes"][1] and LARGE in printed
    assert "protection" in printed
