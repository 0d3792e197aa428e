"""`dovetail check CONFIG.toml` lists at once what `run` would refuse, and lets pass what `run` reads."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.messy_tables import TABLES, Messy

from dovetail.cli.main import invoke
from dovetail.core.entropy import system_entropy
from dovetail.core.errors import DovetailError
from dovetail.job.build import build_collection
from dovetail.job.config import load_config

CONFIG = """schema_version = 1
mode = "rehearsal"
[data]
path = "t.csv"
person = "id"
private = "answer"
public = ["town"]
categories = ["no", "yes"]
[randomize]
randomizer = "krr"
epsilon = 2.0
"""
GOOD = "id,town,answer,hours\n" + "\n".join(
    f"{i},{'NS'[i % 2]},{'yes' if i % 3 else 'no'},{i % 9}" for i in range(60)
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a table and its configuration."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(GOOD)
    Path("t.toml").write_text(CONFIG)
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], config: str = "t.toml") -> dict[str, Any]:
    """The JSON that `check` prints."""
    assert invoke(["check", config, "--json"]) == 0, capsys.readouterr().err
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


def stopping(printed: dict[str, Any]) -> list[str]:
    """Each problem that stops a run, with its remedy."""
    return [
        f"{one['where']}: {one['what']} -> {one['remedy']}" for one in printed["problems"] if one["status"] == "stops"
    ]


def run_reads(config: str) -> bool:
    """Whether `run` would take it."""
    try:
        build_collection(load_config(config), system_entropy())
    except DovetailError:
        return False
    return True


def test_a_table_that_fits_has_no_problem_and_nothing_is_written(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = check(capsys)
    assert not printed["stops"] and not stopping(printed) and printed["n"] == 60
    assert sorted(path.name for path in place.iterdir()) == ["t.csv", "t.toml"]
    assert invoke(["check", "t.toml"]) == 0
    assert "Next:\n  dovetail run t.toml\n" in capsys.readouterr().out


@pytest.mark.parametrize("messy", TABLES, ids=lambda messy: messy.name)
def test_what_stops_is_what_run_refuses(messy: Messy, capsys: pytest.CaptureFixture[str]) -> None:
    messy.write(Path("survey.csv"))
    assert invoke(["check", "survey.csv", *messy.arguments]) == 0
    capsys.readouterr()
    assert check(capsys, "survey.toml")["stops"] == (not run_reads("survey.toml"))
    text = Path("survey.toml").read_text()
    for old, new in messy.edits:
        text = text.replace(old, new, 1)
    Path("survey.toml").write_text(text)
    if messy.corrects is not None:
        messy.corrects(Path("survey.csv"))
    assert stopping(check(capsys, "survey.toml")) == []


def test_all_faults_are_listed_at_once_in_the_words_of_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_bytes(
        "id;tówn;town;answer\n1;x;N;yes\n2;x;S;Yes \n2;x;;no\n4;x;N;maybe\n5;x;N;\n".encode("cp1252")
    )
    Path("t.toml").write_text(CONFIG.replace('["town"]', '["town", "hurs"]') + "[estimat]\nby = []\n")
    found = stopping(check(capsys))
    for part in (
        "configuration: unknown key `estimat`",
        "file: is not UTF-8 text (byte 4) -> say how it is written",
        "column 'hurs': the table has no such column",
        "column 'id', rows 2, 3: 1 person stands in more than one row, with different values",
        "column 'town', row 3: 1 of 5 values is missing",
        "column 'answer', row 5: 1 of 5 values is missing",
        "is spelled otherwise than 'yes': 'Yes ' -> map them in [data.labels.\"answer\"]",
        "1 value is not among the declared categories: 'maybe'",
    ):
        assert any(part in one for one in found), (part, found)
    assert invoke(["check", "t.toml", "--strict"]) == 1
    said = capsys.readouterr().out
    assert "Next: decide what stops a run" in said
    assert all(len(line) <= 80 or "dovetail check t.toml --set" in line for line in said.splitlines())


MEAN = CONFIG.replace('"answer"', '"hours"').replace('categories = ["no", "yes"]', "lower = 0\nupper = 10")
MEAN = MEAN.replace('"krr"', '"laplace"')
FAULTS = {
    "decimal commas": ("7", '"7,5"', MEAN, 'they are numbers with decimal = ","'),
    "a text among numbers": ("7", "seven", MEAN, "of a column of numbers are none"),
    "a number outside its bounds": ("7", "17", MEAN, "lie outside the declared [0, 10]"),
    "a missing number": ("7", "", MEAN, "values are missing"),
    "a grid of another kind": ("7", "7", MEAN.replace("upper = 10", "upper = 10\ngrid = 20.0"), "run: "),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_numbers_are_checked_against_their_bounds_and_spelling(
    fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, config, part = FAULTS[fault]
    Path("t.csv").write_text(GOOD.replace(f",{old}\n", f",{new}\n"))
    Path("t.toml").write_text(config)
    found = stopping(check(capsys))
    assert len(found) == 1 and part in found[0], found
    assert not run_reads("t.toml")


def test_what_the_configuration_settles_is_said_and_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text(GOOD + "\n3,N,,2\n77,S,,2")
    config = CONFIG.replace('person = "id"', 'person = "id"\nduplicates = "first"\nmissing = "none"\n')
    Path("t.toml").write_text(config.replace('["no", "yes"]', '["no", "yes", "none"]\nunconfirmed = ["categories"]'))
    printed = check(capsys)
    found = [(one["status"], one["what"]) for one in printed["problems"]]
    assert ("settled", "1 person stands in more than one row") in found
    assert ("settled", "1 of 61 values is missing") in found
    assert ("confirm", "`categories` was read off the table") in found and not printed["stops"]
    assert run_reads("t.toml")


def test_a_stream_is_checked_by_person_and_round(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": person, "day": day, "hours": 1.0} for day in (1, 2) for person in range(40)]
    config = MEAN.replace('public = ["town"]', 'time = "day"')
    Path("t.toml").write_text(config)
    pl.DataFrame(rows).write_csv("t.csv")
    assert stopping(check(capsys)) == []
    pl.DataFrame([*rows, rows[-1]]).write_csv("t.csv")
    assert "1 person stands in more than one row of a round" in stopping(check(capsys))[0]
    pl.DataFrame([*rows[1:], {"id": 3, "day": 1, "hours": 1.0}]).write_csv("t.csv")
    assert stopping(check(capsys))


MISTAKES = {
    "an option of tables": (["t.toml", "--private", "answer"], "says itself what is in the table"),
    "a place to write to": (["t.toml", "--out", "o.toml"], "says itself what is in the table"),
    "no such file": (["no.toml"], "no such file"),
    "no [data]": (["empty.toml"], "is missing"),
    "no table": (["lost.toml"], "lost.csv: no such file"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, message = MISTAKES[mistake]
    Path("empty.toml").write_text('schema_version = 1\nmode = "rehearsal"\n')
    Path("lost.toml").write_text(CONFIG.replace("t.csv", "lost.csv"))
    assert invoke(["check", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
