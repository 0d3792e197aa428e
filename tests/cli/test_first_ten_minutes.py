"""From nothing to a report in four commands, with a table as people have it; no error needs the documentation."""

import json
from pathlib import Path
from typing import Any

import pytest

from dovetail.cli.main import invoke


def messy(place: Path, n: int = 400) -> None:
    """An export as a spreadsheet writes it: semicolons, Windows-1252, spellings that differ, a trailing separator."""
    answers = ["ja", "nein", "nein ", " Ja", "weiß nicht"]
    rows = ["Nr;Ort;Antwort;", *(f"{row};{'Köln' if row % 3 else 'Bonn'};{answers[row % 5]};" for row in range(n))]
    place.write_bytes("\r\n".join(rows).encode("cp1252"))


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON that a command prints."""
    assert invoke([*arguments, "--json"]) == 0, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_survey_goes_from_a_question_to_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    messy(tmp_path / "survey.csv")
    asked = ["plan", "--question", "frequency", "--k", "3", "--randomizer", "krr", "--epsilon", "0.5"]
    plan = told(capsys, *asked, "--n", "400")
    epsilon0 = repr(plan["epsilon0"])
    problems = told(capsys, "check", "survey.csv", "--private", "Antwort", "--person", "Nr", "--epsilon", epsilon0)
    assert (problems["config"] == "survey.toml" and problems["stops"] is False) or problems["stops"] == 0
    report = told(capsys, "run", "survey.toml", "--out", "report")
    assert report["central"]["epsilon"] == plan["epsilon"] and report["local"]["epsilon"] == plan["epsilon0"]
    assert report["collection"]["categories"] == ["Ja", "nein", "weiß nicht"]
    assert sum(report["estimates"]["overall"]["possible"]) == pytest.approx(1.0)
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Promised" in page and "What to do" in page and " Ja" not in json.dumps(report["config"])


@pytest.mark.exhaust
def test_every_probability_of_a_guess_names_its_prior(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    messy(tmp_path / "survey.csv", n=120)
    told(capsys, "check", "survey.csv", "--private", "Antwort", "--epsilon", "1")
    report = told(capsys, "run", "survey.toml", "--out", "report")
    assert report["leakage"]["prior_law"] == "uniform" and report["leakage"]["prior"] == pytest.approx(1 / 3)
    assert report["leakage"]["at_hand"]["prior_law"] == "empirical"
    assert report["leakage"]["at_hand"]["prior"] == max(report["estimates"]["overall"]["truth"])
    asked = ["plan", "--question", "frequency", "--k", "3", "--n", "120", "--epsilon0", "1", "--randomizer", "krr"]
    assert told(capsys, *asked)["leakage"]["prior_law"] == "uniform"
