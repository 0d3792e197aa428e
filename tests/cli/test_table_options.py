"""Verbs read tables as [data] does: separator, encoding and decimal mark are options, and errors name them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dovetail.cli.main import invoke

WRITTEN = ["--separator", ";", "--text-encoding", "windows-1252", "--decimal", ","]
RNG = np.random.default_rng(3)
PEOPLE = pl.DataFrame({
    "straße": [("Süd", "Nord")[i % 2] for i in range(60)],
    "income": np.round(RNG.random(60) * 9, 1),
    "report": [("ja", "nein")[int(one)] for one in RNG.integers(0, 2, 60)],
})  # fmt: skip
FLEET = pl.DataFrame({
    "device": ["ä", "b"] * 60, "value": [x + (i % 2) * 5 for i, x in enumerate(np.round(RNG.random(120), 1))],
    "minute": [i // 2 for i in range(120)],
})  # fmt: skip


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with each table twice: as programs write it, and as a German spreadsheet does."""
    monkeypatch.chdir(tmp_path)
    for name, table in {"people": PEOPLE, "fleet": FLEET, "next": FLEET}.items():
        table.write_csv(f"{name}.csv")
        text = table.write_csv(separator=";").replace(".", ",")
        Path(f"{name}-de.csv").write_bytes(text.encode("cp1252"))
    PEOPLE.write_parquet("people.parquet")
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> dict[str, Any]:
    """The JSON of a verb, without the names of files."""
    assert invoke([*arguments, "--json"]) == 0, capsys.readouterr().err
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {key: value for key, value in printed.items() if key != "files"}


MADE = ["--randomizer", "krr", "--epsilon", "2", "--categories", "ja,nein"]
ATTACK = ["--private", "report", "--epsilon", "2", "--labels", "straße", "--seed", "3"]
VERBS = {
    "estimate": ["estimate", "people.csv", *MADE, "--by", "straße", "--min-group-size", "2"],
    "shuffle": ["shuffle", "people.csv", "--labels", "straße", "--shuffler", "within_groups", "--seed", "3", "--out",
                "z.parquet", "--force"],
    "attack majority": ["attack", "majority", "people.csv", *ATTACK, "--targets", "9", "--shuffles", "2",
                        "--randomizations", "1"],
    "attack subset": ["attack", "subset", "people.csv", *ATTACK, "--people", "3,7", "--draws", "5", "--trials", "5"],
    "attack reidentify": ["attack", "reidentify", "fleet.csv", "next.csv", "--batch", "minute", "--trees", "3",
                          "--permutations", "9", "--seed", "3"],
    "plan-shuffle": ["plan-shuffle", "--points", "people.csv", "--columns", "income", "--radius", "1",
                     "--alpha", "2"],
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_a_spreadsheet_s_file_gives_what_a_program_s_gives(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = VERBS[verb]
    german = [word.replace(".csv", "-de.csv") for word in arguments]
    assert told(capsys, [*german, *WRITTEN]) == told(capsys, arguments)
    assert invoke(german) == 2
    error = capsys.readouterr().err
    assert "save it as UTF-8, or give its --text-encoding (`dovetail check` finds out" in error
    assert "[data]" not in error
    assert invoke([*german, "--text-encoding", "windows-1252"]) == 2
    assert 'is separated by semicolons: give --separator ";"' in capsys.readouterr().err


def test_released_files_are_parquet_and_the_truth_beside_them_is_a_spreadsheet_s(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["attack", "released", "people.parquet", "--truth", "people.csv", "--private", "report",
                 "--labels", "straße", "--randomizer", "krr", "--epsilon", "2", "--seed", "3"]  # fmt: skip
    german = [word.replace("people.csv", "people-de.csv") for word in arguments]
    assert told(capsys, [*german, *WRITTEN]) == told(capsys, arguments)


def test_tabs_have_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    PEOPLE.write_csv("people.tsv", separator="\t")
    arguments = VERBS["estimate"]
    tabs = [word.replace(".csv", ".tsv") for word in arguments]
    assert told(capsys, [*tabs, "--separator", "tab"]) == told(capsys, arguments)
    assert invoke(tabs) == 2
    assert "give --separator tab" in capsys.readouterr().err


MISTAKES = {
    "two letters": (["people.csv", "--separator", "::"], "--separator must be one letter or tab"),
    "no encoding": (["people.csv", "--text-encoding", "utf-99"], "`encoding` must be a text encoding"),
    "no decimal mark": (["people.csv", "--decimal", "x"], "--decimal"),
    "Parquet": (["people.parquet", "--separator", ";"], "Parquet says itself how it is written"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, message = MISTAKES[mistake]
    assert invoke(["estimate", *arguments, *MADE]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and message in lines[0], lines
