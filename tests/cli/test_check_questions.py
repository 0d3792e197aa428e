"""`dovetail check CONFIG.toml` with [[questions]]: all faults at once, and the promises of `run`."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.job.surveys import survey

from dovetail.account.amplify import amplify
from dovetail.cli.main import invoke
from dovetail.job.run import run

HEAD = """schema_version = 1
mode = "rehearsal"
ask = "one"
[data]
path = "survey.csv"
person = "id"
"""
GROUPS = """public = ["town"]
[shuffle]
shuffler = "within_groups"
groups = { labels = "town" }
"""
SECRET = """[[questions]]
column = "secret"
categories = ["no", "yes"]
epsilon = 2.0
"""
HOURS = """[[questions]]
column = "hours"
lower = 0
upper = 10
randomizer = "window"
epsilon = 1.0
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    survey().write_csv("survey.csv")
    monkeypatch.setattr(
        "dovetail.job.questions.questions_guarantee",
        lambda parts, *, n, delta, **_: amplify(float(len(parts)), n=n, delta=delta),
    )


def check(capsys: pytest.CaptureFixture[str], text: str, *options: str) -> dict[str, Any]:
    Path("asked.toml").write_text(text)
    assert invoke(["check", "asked.toml", "--json", *options]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


@pytest.mark.parametrize("groups", ["", GROUPS])
def test_what_is_promised_is_what_run_promises(groups: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = check(capsys, HEAD + groups + SECRET + HOURS)
    central: Any = run("asked.toml").evaluation.central
    assert told["problems"] == [] and not told["stops"] and told["n"] == 600
    said = told["promises"]
    assert (said["epsilon"], said["batch"], said["local"]) == (central.epsilon, central.n, 2.0)
    assert invoke(["check", "asked.toml"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "No problems." in shown and "Promised to each person, of her answers to all questions" in shown
    assert ("in the smallest group" in shown) == bool(groups)
    assert not Path("asked-report").exists()


@pytest.mark.exhaust
def test_all_that_is_wrong_with_file_and_table_is_listed_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    bad = HEAD.replace('"one"', '"both"') + GROUPS.replace('labels = "town"', 'labels = "twon"')
    bad += SECRET.replace('"yes"', '"maybe"') + HOURS.replace("upper = 10", "upper = 5")
    told = check(capsys, bad + HOURS.replace("hours", "age").replace('"window"', '"windw"'))
    found = "\n".join(f"{one['status']} {one['where']} {one['what']}" for one in told["problems"])
    for words in (
        "stops configuration `ask` must be 'all', 'joint' or 'one'",
        "stops configuration [shuffle] groups: column 'twon' is not listed",
        "stops configuration question 3 ('age'): `randomizer` must be one of",
        "stops column 'secret' ",
        "stops column 'hours', rows",
    ):
        assert words in found, found
    assert "promises" not in told and told["stops"]
    assert invoke(["check", "asked.toml", "--strict"]) == 1


def test_people_and_public_columns_are_complained_about_once(capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("survey.csv").read_text().splitlines()
    Path("survey.csv").write_text("\n".join([*text, text[-1].replace("south", "").replace("north", "")]))
    told = check(capsys, HEAD + GROUPS + SECRET + HOURS)
    places = [one["where"].split(",")[0] for one in told["problems"] if one["status"] == "stops"]
    assert sorted(places) == ["column 'id'", "column 'town'"]


def test_categories_that_are_read_off_the_table_are_to_be_confirmed(capsys: pytest.CaptureFixture[str]) -> None:
    told = check(capsys, HEAD + SECRET.replace('categories = ["no", "yes"]\n', "") + HOURS)
    assert [one["status"] for one in told["problems"]] == ["confirm"]


@pytest.mark.exhaust
def test_rare_answers_are_measured_against_those_who_draw_the_question(capsys: pytest.CaptureFixture[str]) -> None:
    rare = SECRET.replace("epsilon = 2.0", "epsilon = 0.5")
    for share, caught in (("weight = 1000\n", False), ("", True)):
        told = check(capsys, HEAD + rare + share + HOURS + ("" if share else "weight = 1000\n"))
        assert any("column 'secret'" in one["where"] for one in told["problems"]) == caught


def test_a_file_without_a_readable_table_or_question_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for text, words in (
        (HEAD.replace("person", "persn") + SECRET + HOURS, "unknown key `data.persn`"),
        (HEAD + SECRET.replace("2.0", "-2") + HOURS.replace("1.0", "0"), "question 2 ('hours')"),
        (HEAD.replace("survey.csv", "none.csv") + SECRET + HOURS, "none.csv"),
    ):
        Path("asked.toml").write_text(text)
        assert invoke(["check", "asked.toml"]) == 2
        printed = capsys.readouterr().err
        assert words in printed and "Traceback" not in printed


PAIR = """column = "hours"
lower = 0
upper = 10
ask = "covariance"
other = "age"
other_lower = 0
other_upper = 22
randomizer = "krr"
epsilon = 1.0
"""
ALONE = """schema_version = 1
mode = "rehearsal"
[data]
path = "survey.csv"
private = "hours"
lower = 0
upper = 10
[question]
ask = "covariance"
other = "age"
other_lower = 0
other_upper = 22
[randomize]
epsilon = 1.0
"""


@pytest.mark.parametrize("text", [HEAD + SECRET + "[[questions]]\n" + PAIR, ALONE])
def test_every_private_column_of_a_question_is_looked_at(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Ages go up to 23: the second column of a covariance has values that its range leaves out."""
    survey().with_columns(age=survey()["age"].cast(str).replace("20", "twenty")).write_csv("survey.csv")
    found = check(capsys, text)["problems"]
    about = [one for one in found if "'age'" in one["where"]]
    assert any("outside" in one["what"] or "above" in one["what"] for one in about), found
    assert any("twenty" in json.dumps(one) or "numbers" in one["what"] for one in about), found
