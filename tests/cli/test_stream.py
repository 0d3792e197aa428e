"""Streams on the command line: run, demo, and the stages of the budget-aware randomizer on files."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.job.streams import loads
from tests.job.surveys import survey

import dovetail as dt
from dovetail.cli.main import invoke

CONFIG = """schema_version = 1
mode = "{mode}"
[data]
path = "loads.csv"
person = "device"
time = "minute"
private = "watts"
lower = 4.0
upper = 104.0
[randomize]
randomizer = "budget_laplace"
epsilon = 1.0
beta = 0.5
rho = 0.9
[shuffle]
shuffler = "rase"
graph = "edges.csv"
[promise]
cap = 8.0
[estimate]
window = 4
"""
KEYS = {"local", "central", "order", "leakage", "attack", "estimates", "files", "rounds", "windows"}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a stream, a graph of its devices, and a ledger of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOVETAIL_LEDGER", str(tmp_path / "ledger"))
    loads().write_csv("loads.csv")
    survey().write_csv("survey.csv")
    pl.DataFrame({"a": ["kettle", "lamp", "pump"], "b": ["oven", "fridge", "heater"]}).write_csv("edges.csv")
    Path("release.toml").write_text(CONFIG.format(mode="release"))
    Path("rehearsal.toml").write_text(CONFIG.format(mode="rehearsal"))
    return tmp_path


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON that a verb prints."""
    assert invoke([*arguments, "--json"]) == 0, capsys.readouterr().err
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


def test_a_stream_runs_from_files_to_report_and_table(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "run", "release.toml", "--out", "out")
    assert set(told) >= KEYS and told == json.loads(Path("out/report.json").read_text())
    assert sorted(path.name for path in Path("out").iterdir()) == ["report.html", "report.json", "sanitized.parquet"]
    table = pl.read_parquet("out/sanitized.parquet")
    assert table.columns == ["minute", "report"] and table.height == told["rounds"]["reports"] == 48
    assert table["report"].is_between(4.0, 104.0).all(), "clamped reports stay in the range"
    assert told["rounds"]["largest_spent"] == told["rounds"]["cap"] == 8.0
    again = document(capsys, "run", "release.toml", "--out", "again")
    assert again["rounds"] == told["rounds"] and again["release"]["releases"] == 1


@pytest.mark.exhaust
def test_rounds_of_a_released_file_are_estimated_as_the_report_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "run", "release.toml", "--out", "out")["rounds"]["series"]
    groups = document(capsys, "estimate", "out/sanitized.parquet", "--by", "minute", "--min-group-size", "2")[
        "groups"
    ]
    by_minute = {int(entry["group"]): entry["value"][0] for entry in groups}
    assert [by_minute.get(t) for t in told["t"]] == pytest.approx(told["value"])


@pytest.mark.exhaust
def test_the_terminal_tells_the_rounds_the_windows_and_the_cost(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", "rehearsal.toml", "--out", "out", "--full"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in ("Round by round", "Windows", "5 to 8", "What the rounds cost", "Budget of a device: ε = 8",
                  "6 of 6 devices have reached the cap", "24 times it was held back"):  # fmt: skip
        assert words in text


def test_a_wrong_row_is_one_line_with_status_two(capsys: pytest.CaptureFixture[str]) -> None:
    loads().with_columns(pl.col("watts") * 2).write_csv("loads.csv")
    assert invoke(["run", "release.toml", "--out", "out"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "values lie outside the declared [4, 104]" in line and not Path("out").exists()


@pytest.mark.exhaust
def test_demo_shows_a_stream_without_any_download(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "demo", "--stream", "--out", "demo")
    assert told["rounds"]["devices"] == 64 and told["rounds"]["series"]["t"] == list(range(1, 121))
    document(capsys, "demo", "--stream", "--save-table", "fleet.csv")
    assert pl.read_csv("fleet.csv").columns == ["device", "house", "minute", "watts"]


@pytest.mark.parametrize("beta", ["0.5", "0.05"])
def test_clamped_reports_survive_the_way_through_files(beta: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["--randomizer", "budget_laplace", "--epsilon", "2", "--lower", "4", "--upper", "104", "--beta", beta,
            "--rho", "0.9"]  # fmt: skip
    document(capsys, "randomize", "loads.csv", "--private", "watts", "--out", "y.parquet", *told)
    document(capsys, "shuffle", "y.parquet", "--out", "z.parquet")
    answer = document(capsys, "estimate", "z.parquet")["overall"]
    reports = pl.read_parquet("z.parquet")["report"]
    device = dt.BudgetLaplace(4.0, 104.0, 2.0, beta=float(beta), rho=0.9)
    steps = ((reports - 4.0) / device.step).round().to_numpy().astype(int)
    expected = dt.estimate_mean(device, steps)
    assert answer["value"][0] == float(expected.value) and reports.is_between(4.0, 104.0).all()
    pl.DataFrame({"report": reports}).write_csv("plain.csv")
    assert document(capsys, "estimate", "plain.csv", *told)["overall"] == answer


def test_rase_shuffles_a_file_inside_its_groups(capsys: pytest.CaptureFixture[str]) -> None:
    document(capsys, "randomize", "survey.csv", "--private", "secret", "--categories", "no,yes", "--epsilon", "3",
             "--public", "age", "--out", "y.parquet")  # fmt: skip
    own = document(capsys, "shuffle", "y.parquet", "--shuffler", "rase", "--labels", "age", "--out", "z.parquet")
    assert own["shuffler"] == "rase" and own["alpha"] == 0.0 and own["summary"]["mechanism"] == "within_groups"
    before = pl.read_parquet("y.parquet").group_by("age", "report").len().sort("age", "report")
    assert pl.read_parquet("z.parquet").group_by("age", "report").len().sort("age", "report").equals(before)
    assert len(document(capsys, "estimate", "z.parquet", "--by", "age")["groups"]) == 4
    refined = document(capsys, "shuffle", "y.parquet", "--shuffler", "rase", "--labels", "age", "--refine", "blocks",
                       "--k", "6", "--alpha", "3000", "--out", "w.parquet")  # fmt: skip
    assert refined["summary"]["mechanism"] == "mallows" and refined["alpha"] == 3000.0


def test_a_fitted_rase_is_saved_by_its_mechanism(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "plan-shuffle", "--labels", "survey.csv", "--columns", "town", "--alpha", "1",
                    "--shuffler", "rase", "--out", "fitted.npz")  # fmt: skip
    assert told["shuffler"] == "rase" and told["alpha"] == 0.0
    assert dt.load_shuffler("fitted.npz").name == "within_groups"


MISTAKES = {
    "beta": (["--beta", "1.5", "--rho", "0.9"], "must be less than 1"),
    "rho missing": (["--beta", "0.5"], "`randomize.rho` is missing"),
    "a range that holds zero": (["--beta", "0.5", "--rho", "0.9", "--lower=-1"], "No epsilon guarantees"),
    "outside the range": (["--beta", "0.5", "--rho", "0.9", "--upper", "50"], "outside the declared [4, 50]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line_and_status_two(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, hint = MISTAKES[mistake]
    told = ["randomize", "loads.csv", "--private", "watts", "--randomizer", "budget_laplace", "--epsilon", "1",
            "--out", "y.parquet", "--lower", "4", "--upper", "104", *options]  # fmt: skip
    assert invoke(told) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: ") and hint in line and not Path("y.parquet").exists()
