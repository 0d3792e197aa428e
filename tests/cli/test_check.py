"""`dovetail check` lists every problem of a table at once, and what it writes is what `run` takes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.cli.messy_tables import TABLES, Messy

from dovetail.cli.main import invoke
from dovetail.core.entropy import system_entropy
from dovetail.pipeline.config.run_config import load_config
from dovetail.pipeline.files.table import Survey, read_survey


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder and a ledger of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOVETAIL_LEDGER", str(tmp_path / "ledger"))
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON that `check` prints."""
    assert invoke(["check", *arguments, "--json"]) == 0, capsys.readouterr().err
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


def problems(printed: dict[str, Any]) -> list[tuple[str, str]]:
    """Status and text of each problem."""
    for problem in printed["problems"]:
        assert set(problem) == {"what", "where", "remedy", "status"} and all(problem.values())
    return [(problem["status"], problem["what"]) for problem in printed["problems"]]


def read(config: str) -> Survey:
    """The survey that `run` would read."""
    return read_survey(load_config(config).data, system_entropy())


def held(survey: Survey) -> dict[str, float]:
    """Shares of the categories that somebody holds, or the mean."""
    if survey.categories is None:
        return {"mean": float(survey.values.mean())}
    shares = np.bincount(survey.values, minlength=len(survey.categories)) / survey.n
    return {name: float(share) for name, share in zip(survey.categories, shares, strict=True) if share}


@pytest.mark.parametrize("messy", TABLES, ids=lambda messy: messy.name)
def test_a_messy_table_goes_from_check_through_edits_to_run(messy: Messy, capsys: pytest.CaptureFixture[str]) -> None:
    messy.write(Path("survey.csv"))
    printed = check(capsys, "survey.csv", *messy.arguments)
    assert printed["config"] == "survey.toml"
    found = problems(printed)
    for status, part in messy.found:
        assert any(each == status and part in what for each, what in found), (status, part, found)
    assert printed["stops"] == any(status == "stops" for status, _ in found)
    text = Path("survey.toml").read_text()
    for old, new in messy.edits:
        assert old in text
        text = text.replace(old, new, 1)
    Path("survey.toml").write_text(text)
    if messy.corrects is not None:
        messy.corrects(Path("survey.csv"))
    elif printed["stops"]:
        assert messy.edits
    assert held(read("survey.toml")) == pytest.approx(messy.truth, abs=1e-9)


@pytest.mark.parametrize("name", ["german_excel", "french_excel"])
def test_a_release_waits_until_the_marked_lines_are_confirmed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    messy = next(each for each in TABLES if each.name == name)
    messy.write(Path("survey.csv"))
    unconfirmed = check(capsys, "survey.csv", *messy.arguments)["unconfirmed"]
    assert invoke(["run", "survey.toml", "--out", "rehearsed"]) == 0
    text = Path("survey.toml").read_text().replace('mode = "rehearsal"', 'mode = "release"')
    Path("survey.toml").write_text(text)
    capsys.readouterr()
    if unconfirmed:
        assert invoke(["run", "survey.toml", "--out", "released"]) == 2
        assert "confirm or correct them, then delete `unconfirmed`" in capsys.readouterr().err
        lines = [line for line in text.splitlines() if not line.startswith("unconfirmed")]
        Path("survey.toml").write_text("\n".join(lines))
    assert invoke(["run", "survey.toml", "--out", "released"]) == 0
    assert pl.read_parquet("released/sanitized.parquet").height == 240
