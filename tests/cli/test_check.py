"""`dovetail check` lists every problem of a table at once, and what it writes is what `run` takes."""

import json
import re
import tomllib
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.cells import cell_len
from tests.cli.messy_tables import TABLES, Messy
from tests.tiers import one_in

from dovetail.cli.main import invoke
from dovetail.core.entropy import system_entropy
from dovetail.job.config import load_config
from dovetail.table.reader import Survey, read_survey


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
        assert set(problem) == {"what", "where", "remedy", "status", "fixes", "texts"}
        assert all(problem[key] for key in ("what", "where", "remedy", "status"))
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


@pytest.mark.exhaust
@pytest.mark.parametrize("name", ["german_excel", "french_excel"])
def test_a_release_waits_until_the_marked_lines_are_confirmed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    messy = next(each for each in TABLES if each.name == name)
    messy.write(Path("survey.csv"))
    unconfirmed = check(capsys, "survey.csv", *messy.arguments)["unconfirmed"]
    assert unconfirmed == (["categories"] if name == "german_excel" else [])  # the other one's bounds are declared
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


@pytest.mark.exhaust
def test_what_check_prints_is_read_by_people_and_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for messy in TABLES:
        messy.write(Path(f"{messy.name}.csv"))
        assert invoke(["check", f"{messy.name}.csv", *messy.arguments]) == 0
        printed = capsys.readouterr().out
        lines = [line for line in printed.splitlines() if not line.lstrip().startswith("dovetail ")]
        assert max(map(cell_len, lines)) <= 80  # commands to paste stand in one line, however long
        assert f"Configuration: {messy.name}.toml" in printed and "Next" in printed


def test_no_row_is_quoted_and_nothing_that_people_wrote_freely(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{i},person{i}@example.org,+49 170 {1234567 + i},I live in house {i} near the old mill,{'ab'[i % 2]}"
            for i in range(60)]  # fmt: skip
    Path("t.csv").write_text("id,mail,phone,story,answer\n" + "\n".join(rows))
    for arguments in (["--private", "answer"], ["--private", "story"], ["--private", "mail"], []):
        assert invoke(["check", "t.csv", *arguments, "--force"]) == 0
        said = capsys.readouterr().out + Path("t.toml").read_text()
        assert "example.org" not in said and "mill" not in said and "170" not in said


@pytest.mark.exhaust
def test_a_table_that_nobody_has_named_a_private_column_of_is_checked_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("t.csv").write_text(
        "id,town,answer\n" + "\n".join(f"{i},{'NS'[i % 2]},{'ab'[i % 3 // 2]}" for i in range(90))
    )
    assert check(capsys, "t.csv")["problems"] == []
    text = Path("t.toml").read_text()
    assert 'CONFIRM: the column to protect, one of "town", "answer"' in text
    assert invoke(["run", "t.toml"]) == 2
    assert "`private` must name the column to protect" in capsys.readouterr().err
    Path("t.toml").write_text(text.replace('private = ""', 'private = "answer"'))
    assert invoke(["run", "t.toml"]) == 0


def test_strict_fails_when_something_stops_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("id,answer\n1,a\n1,b\n2,b\n")
    for extra, status in (([], 0), (["--strict"], 1)):
        assert invoke(["check", "t.csv", "--private", "answer", "--person", "id", "--force", *extra]) == status
        assert "Decide before you run" in capsys.readouterr().out
    assert invoke(["check", "t.csv", "--private", "answer", "--force", "--person", "answer"]) == 2
    assert "more than once among" in capsys.readouterr().err


MISTAKES = {
    "no such column": (["--private", "answr"], "has no column 'answr'; did you mean 'answer'?"),
    "one bound": (["--private", "answer", "--lower", "1"], "declared together"),
    "bounds upside down": (["--lower", "2", "--upper", "1"], "--lower must be below --upper"),
    "both domains": (["--lower", "1", "--upper", "2", "--categories", "a,b"], "not both"),
    "one category": (["--categories", "a"], "--categories must name at least two"),
    "no budget": (["--epsilon", "0"], "--epsilon must be"),
    "an existing configuration": (["--out", "there.toml"], "there.toml: exists already; use --force"),
    "a missing folder": (["--out", "no/t.toml"], "there is no folder"),
    "another encoding": (["--text-encoding", "utf-32"], "is not utf-32 text"),
    "no encoding": (["--text-encoding", "utf-99"], "`encoding` must be a text encoding"),
    "an encoding with a null": (["--text-encoding", "\0"], "`encoding` must be a text encoding"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line_and_writes_nothing(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, message = MISTAKES[mistake]
    Path("t.csv").write_text("id,answer\n1,a\n2,b\n3,c\n")
    Path("there.toml").write_text("mine")
    assert invoke(["check", "t.csv", *arguments]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and message in lines[0], lines
    assert not Path("t.toml").exists() and Path("there.toml").read_text() == "mine"


def test_a_parquet_file_is_checked_too(capsys: pytest.CaptureFixture[str]) -> None:
    table = {"id": range(100), "answer": ["a", "A"] * 50, "nested": [[1]] * 100, "age": [20.5, None] * 50}
    pl.DataFrame(table).write_parquet("t.parquet")
    found = problems(check(capsys, "t.parquet", "--private", "answer", "--public", "age"))
    assert ("note", "has type List(Int64)") in found and ("settled", "50 of 100 values are missing") in found
    assert tomllib.loads(Path("t.toml").read_text())["data"]["labels"]["age"] == {"": "not stated"}
    assert ("stops", "all values mean one label") in found
    assert invoke(["run", "t.toml"]) == 2
    assert "has one category, 'A'; a constant needs no collection" in capsys.readouterr().err


COLUMNS = {
    "lists": pl.Series([[1, 2]] * 40), "structs": pl.Series([{"a": 1}] * 40), "arrays": pl.Series([[1.0, 2.0]] * 40),
    "dates": pl.Series([date(2020, 1, 1 + row % 5) for row in range(40)]),
    "durations": pl.Series([timedelta(seconds=row % 5) for row in range(40)]),
    "decimals": pl.Series([Decimal(row % 5) / 4 for row in range(40)]), "booleans": pl.Series([True, False] * 20),
    "categoricals": pl.Series(["a", "b"] * 20, dtype=pl.Categorical), "nothing": pl.Series([None] * 40),
    "bytes": pl.Series([b"a", b"b"] * 20), "huge": pl.Series([1e308, -1.7e308, 0.0, 1.0] * 10),
    "tiny": pl.Series([5e-324, 1.0] * 20), "infinite": pl.Series([float("inf"), 1.0, 2.0, float("-inf")] * 10),
    "gaps": pl.Series([float("nan"), 1.0] * 20), "texts": pl.Series(["x" * 5000, ""] * 20),
}  # fmt: skip


@pytest.mark.parametrize("kind", one_in(5, COLUMNS))
@pytest.mark.parametrize("role", ["private", "public", "person"])
@pytest.mark.parametrize("numeric", [False, True])
def test_a_column_of_any_type_is_checked_and_run_or_refused_in_one_line(
    kind: str, role: str, numeric: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    people = {"who": range(40), "said": ["no", "yes"] * 20, "age": [20, 21] * 20}
    pl.DataFrame({**people, "odd": COLUMNS[kind]}).write_parquet("survey.parquet")
    roles = {"private": "said", "person": "who", "public": "age"} | {role: "odd"}
    bounds = ["--lower", "0", "--upper", "1"] if numeric and role == "private" else []
    found = check(capsys, "survey.parquet", *(word for name in roles for word in (f"--{name}", roles[name])), *bounds)
    problems(found)
    assert not any(re.search(r"rows? ?$", problem["where"]) for problem in found["problems"]), "rows without a number"
    status = invoke(["run", "survey.toml", "--out", "report"])
    said = capsys.readouterr().err.strip()
    assert (status, said) == (0, "") or (status == 2 and said.startswith("error: ") and "\n" not in said)


def test_infinite_numbers_stop_a_run_until_they_are_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = [float("inf"), 0.25, float("-inf"), 0.5] * 50
    pl.DataFrame({"score": numbers}).write_parquet("survey.parquet")
    found = check(capsys, "survey.parquet", "--private", "score")
    stops = [problem for problem in found["problems"] if problem["status"] == "stops"]
    assert [problem["what"].split(",")[0] for problem in stops] == ["50 values are inf", "50 values are -inf"]
    assert invoke(["run", "survey.toml"]) == 2 and "let `dovetail check` say" in capsys.readouterr().err
    for problem in stops:
        settings = [word for line in problem["fixes"][0]["set"] for word in ("--set", line)]
        assert invoke(["check", "survey.toml", *settings]) == 0
    capsys.readouterr()
    assert held(read("survey.toml")) == {"mean": 0.375}


def test_categories_that_nobody_holds_are_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    Path("survey.csv").write_text("answer\n" + "no\nyes\n" * 20)
    found = check(capsys, "survey.csv", "--private", "answer", "--categories", "a,b")
    assert ("stops", "40 values are not among the declared categories: 'no', 'yes'") in problems(found)


@pytest.mark.parametrize("which", ["first", "last"])
def test_repeated_people_are_decided_on_only_where_a_column_names_them(
    which: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("survey.csv").write_text("said,age\n" + "no,20\nyes,21\n" * 20)
    decided = ["check", "survey.csv", "--private", "said", "--set", f'duplicates = "{which}"']
    assert invoke(decided) == 2 and not Path("survey.toml").exists()
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "name their column, with --person." in said
    assert invoke([*decided, "--person", "age"]) == 0
    assert read("survey.toml").n == 2


def test_odd_names_survive_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    name = 'a "b" \\ [c]\u200b\t#'
    pl.DataFrame({name: ["x", "y # z\n", "=\u00a0'"] * 20}).write_parquet("t.parquet")
    check(capsys, "t.parquet", "--private", name)
    data = load_config("t.toml").data
    assert data.private == name and data.categories == ["= '", "x", "y # z"]


def test_the_configuration_finds_its_table_from_another_folder(capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("data", "configs"):
        Path(folder).mkdir()
    Path("data/t.csv").write_text("answer\n" + "a\nb\n" * 20)
    check(capsys, "data/t.csv", "--private", "answer", "--out", "configs/t.toml")
    assert read("configs/t.toml").n == 40
