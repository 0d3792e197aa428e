"""`dovetail study`: a name, a table, a picture and a verdict."""

import json
import tomllib
from pathlib import Path

import polars as pl
import pytest

from dovetail.cli import study
from dovetail.cli.main import invoke


def test_all_studies_are_listed_with_their_claims(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["study", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"fig7", "transposition", "walkthrough"} <= listed.keys() and all(listed.values())


def test_a_study_answers_with_its_rows_what_was_expected_and_a_verdict(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert invoke(["study", "walkthrough", "--out", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["expected"] == tomllib.loads((study.HOME / "walkthrough" / "expected.toml").read_text())
    assert [row["width"] for row in answer["rows"]] == answer["expected"]["width"]
    assert answer["verdict"] and all(answer["verdict"].values())
    assert answer["figure"] is not None and answer["size"] == "toy"


@pytest.mark.exhaust
def test_a_panel_is_the_part_of_its_study(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    assert invoke(["study", "fig4b", "--out", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["study"] == "fig4b" and {row["set"] for row in answer["rows"]} == {"twitch"}
    assert answer["verdict"] and all(claim.startswith("twitch: ") for claim in answer["verdict"])
    assert pl.read_csv(tmp_path / "fig4b.csv", infer_schema_length=None).height == len(answer["rows"])
    assert study.study_of("fig4d") == ("fig4", "d") and study.study_of("fig1a") == ("fig1a", None)


@pytest.mark.exhaust
def test_every_study_has_a_readme_and_a_verdict() -> None:
    for name in study.studies():
        assert (study.HOME / name / "README.md").read_text().startswith("# Claim: "), name
        assert callable(study.module(name).verdict), name


def test_a_verdict_can_be_negative() -> None:
    run = study.module("walkthrough")
    table = pl.DataFrame({"width": [1, 2, 3], "sensitivity": [9, 9, 9], "paper_sensitivity": [1, 1, 1]})
    assert not any(run.verdict(table).values())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["study", "fig77"], "did you mean 'fig7'"),
        (["study", "fig4e"], "no study is called 'fig4e'"),
        (["study", ""], "no study is called ''"),
        (["study", "fig7", "--data", "no-such-folder"], "no such folder"),
        (["study", "fig7", "--out", "/dev/null/x"], "cannot be written"),
    ],
)
def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert invoke(arguments) == 2
    error = capsys.readouterr().err
    assert words in error and len(error.splitlines()) == 1


@pytest.mark.parametrize("written", [False, True])
def test_a_study_that_is_interrupted_leaves_no_empty_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], written: bool
) -> None:
    def interrupted(name: str, *, full: bool, out: Path) -> None:
        if written:
            (out / "cells.jsonl").write_text("")
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "reproduce", interrupted)
    assert invoke(["study", "fig8", "--out", str(tmp_path / "out")]) == 1
    assert (tmp_path / "out").exists() == written
    assert capsys.readouterr().err.count("\n") == 1
