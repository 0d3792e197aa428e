"""`dovetail plan` answers in JSON and in a readable table, and refuses bad input with one line."""

import json
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dovetail.cli.main import invoke
from dovetail.core.stages import RANDOMIZERS
from dovetail.plan.planner import plan_collection

SHARE = ["plan", "--question", "frequency", "--k", "4", "--n", "1e5", "--delta", "1e-8"]
MEAN = ["plan", "--question", "mean", "--lower", "0", "--upper", "10", "--n", "1e4", "--delta", "1e-6"]

COVARIANCE = ["plan", "--question", "covariance", "--lower", "0", "--upper", "10", "--other-lower", "0"]
COVARIANCE += ["--other-upper", "1", "--n", "1e4"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["plan", "--question", "covarian", "--n", "9"],
            "'covarian' is not one of 'frequency', 'mean', 'correlation', 'covariance'",
        ),
        (
            ["plan", "--question", "covariance", "--n", "9", "--epsilon", "1"],
            "--question covariance needs --lower and --upper and --other-lower and --other-upper.",
        ),
        (["plan", "--question", "regression", "--n", "9", "--lower", "0", "--upper", "1"], "needs --others."),
        (["plan", "--question", "tables", "--n", "9", "--others", "a: b | c"], "needs --k."),
        (["plan", "--question", "distribution", "--n", "9", "--lower", "0"], "needs --upper."),
        ([*COVARIANCE, "--epsilon", "1", "--groups", "4"], "--groups does not go with --question covariance"),
        (
            [*SHARE, "--epsilon", "1", "--points", "4"],
            "--points goes with --question correlation or covariance or nonresponse or regression",
        ),
        (
            [*COVARIANCE, "--error", "3%"],
            "--error of the covariance of two numbers must be a number, not a percentage",
        ),
    ],
)
def test_options_that_do_not_go_with_a_question_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(arguments) == 2
    told = capsys.readouterr().err
    assert message in " ".join(told.split()) and "Traceback" not in told


@pytest.mark.parametrize("question", ["distribution", "tables"])
def test_errors_that_are_shares_may_be_written_in_percent(question: str, capsys: pytest.CaptureFixture[str]) -> None:
    of = {"distribution": ["--lower", "0", "--upper", "9"], "tables": ["--k", "2", "--others", "sex: F | M"]}[
        question
    ]
    trust = ["--trust", "shuffler", "--epsilon", "1", "--delta", "1e-7"]
    told = []
    for error in ("1%", "0.01"):
        assert invoke(["plan", "--question", question, *of, *trust, "--error", error, "--json"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]


def test_an_option_of_two_questions_is_explained_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["plan", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert 'regression: The other columns, private too, with their ranges: "age = 0..100, income = 0..15".' in told
    assert 'tables: Further private columns with all their categories: "sex: F | M; income: low | high".' in told


def test_a_question_of_the_registry_is_planned_and_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = tmp_path / "plan.toml"
    told = document(capsys, *COVARIANCE, "--epsilon", "1", "--trust", "shuffler", "--out", str(place))
    assert told["measure"] == "covariance" and told["files"] == {"config": str(place)}
    assert told["error95"] == pytest.approx(1.96 * told["standard_error"], rel=1e-4)
    assert f"points = {told['question']['points']}" in place.read_text() and told["question"]["points"] > 2


@pytest.mark.exhaust
def test_names_of_a_configuration_plan_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    shares = ["plan", "--k", "4", "--n", "1e4", "--epsilon", "1", "--trust", "shuffler", "--question"]
    assert document(capsys, *shares, "shares") == document(capsys, *shares, "frequency")


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON that the verb prints."""
    assert invoke([*arguments, "--json"]) == 0, capsys.readouterr().err
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


def test_the_document_is_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, *SHARE, "--error", "0.01", "--epsilon", "0.1", "--honest", "5e4")
    plan = plan_collection(question="frequency", k=4, n=100_000, delta=1e-8, error=0.01, epsilon=0.1, honest=50_000)
    for key in ("epsilon0", "epsilon", "standard_error", "error95", "smallest_n", "report_bits"):
        assert told[key] == getattr(plan, key), key
    assert told["vulnerability"] == plan.vulnerability and told["gain"] == plan.risk.gain
    assert told["randomizer"] == "krr" and told["parameters"] == {"k": 4, "epsilon": plan.epsilon0}
    assert told["question"]["error"] == 0.01 and told["question"]["lower"]["value"] is None
    central = told["central"]
    assert central["all"] < central["honest"] == told["epsilon"] < central["colluding"] == told["epsilon0"]
    assert central["delta"] == 1e-8 and len(central["lines"]) == 3 and "50,000" in central["lines"][1]
    assert len(told["tradeoff"]) == 12 and told["tradeoff"][6]["epsilon0"] == told["epsilon0"]
    assert {row["randomizer"] for row in told["alternatives"]} == {
        kind.name for kind in RANDOMIZERS if kind.question == "frequency" and kind.name != "krr"
    }


@pytest.mark.exhaust
def test_what_does_not_apply_is_null_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, *MEAN, "--epsilon", "0.5")
    for block in (told["vulnerability"], told["gain"], told["leakage"], told["flat_error95"], told["smallest_n"]):
        assert block["value"] is None and block["reason"]
    assert told["tradeoff"][0]["vulnerability"]["reason"]
    assert [row["randomizer"] for row in told["alternatives"]] == ["laplace"]
    few = document(capsys, *SHARE, "--error", "0.005", "--n", "20000")
    unable = [row for row in few["alternatives"] if isinstance(row["epsilon0"], dict)]
    assert unable and all("no epsilon0" in row["epsilon0"]["reason"] for row in unable)


@pytest.mark.exhaust
@pytest.mark.parametrize("question", [[*SHARE, "--error", "0.02"], [*MEAN, "--epsilon0", "2"]], ids=["share", "mean"])
def test_the_table_has_the_three_lines_and_the_tradeoff(
    question: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([*question, "--full"]) == 0
    text = capsys.readouterr().out
    for words in (
        "honest shuffler",
        "shuffler colludes",
        "95 % probability",
        "Trade-off",
        "best guess",
        "smallest n",
    ):
        assert words in text, words


def test_a_fault_about_a_setting_begins_with_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*COVARIANCE, "--epsilon0", "2", "--points", "900"]) == 2
    assert capsys.readouterr().err == "error: --points must be less than or equal to 64, got 900.\n"


@pytest.mark.parametrize(
    "question",
    [
        [*SHARE, "--epsilon0", "9", "--randomizer", "krr"],
        [*MEAN, "--epsilon0", "1", "--randomizer", "laplace"],
        ["plan", "--question", "frequency", "--n", "1e5", "--k", "4", "--epsilon", "1", "--trust", "shuffler"],
        ["plan", "--question", "vector", "--n", "1e4", "--dimension", "9", "--clip", "1", "--epsilon0", "1"],
        [*COVARIANCE, "--epsilon0", "2"],
    ],
    ids=["share", "mean", "dummies", "vectors", "covariance"],
)
def test_a_plan_has_five_rows_and_its_warnings(
    question: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    told = document(capsys, *question)
    assert invoke(question) == 0
    rows = [line.split("│")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert rows[0] == "protection" and {"epsilon", "error"} <= set(rows)
    assert len([name for name in rows if not name.startswith("note ")]) == 5
    assert len([name for name in rows if name.startswith("note ")]) == len(told.get("notes", []))


@pytest.mark.exhaust
def test_the_tradeoff_is_written_as_table_and_picture(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = document(capsys, *SHARE, "--error", "0.02", "--csv", "t.csv")
    written = pl.read_csv("t.csv")
    assert told["files"] == {"csv": "t.csv"}
    assert written["epsilon"].to_list() == [row["epsilon"] for row in told["tradeoff"]]
    assert invoke([*SHARE, "--error", "0.02", "--csv", "t.csv"]) == 2
    assert "use --force" in capsys.readouterr().err
    pytest.importorskip("matplotlib")
    assert document(capsys, *SHARE, "--error", "0.02", "--plot", "t.svg")["files"] == {"plot": "t.svg"}
    assert Path("t.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.exhaust
def test_other_randomizers_take_a_line_each_and_what_speaks_against_them_stands_below(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert invoke(["plan", "--question", "frequency", "--n", "1e3", "--k", "1e5", "--epsilon0", "1", "--full"]) == 0
    told = capsys.readouterr().out.split("Other randomizers")[1]
    assert max(map(len, told.splitlines())) <= 80
    rows = [line.split() for line in told.splitlines()[2:] if line.strip()]
    kinds = {kind.name for kind in RANDOMIZERS if kind.question == "frequency"}
    assert [len(row) for row in rows if row[0] in kinds] == [5] * (len(kinds) - 1)  # nothing is wrapped into a cell
    assert "subset_selection, unary: a report would have 100,000 bits" in told


@pytest.mark.exhaust
def test_an_alternative_that_is_refused_is_told_in_the_table_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*SHARE, "--error", "1e-9", "--n", "1000", "--full"]) == 0
    assert "no epsilon0" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (SHARE, "give one of"),
        ([*SHARE, "--error", "0.1", "--epsilon0", "1"], "give one of"),
        ([*SHARE, "--epsilon0", "1", "--epsilon0", "2"], "model H"),
        ([*SHARE, "--epsilon0", "1,2"], "model H"),
        ([*SHARE, "--epsilon0", "much"], "--epsilon0 must be a number"),
        ([*SHARE, "--epsilon0", "nan"], "--epsilon0 must be"),
        ([*SHARE, "--error", "nan"], "--error must be"),
        ([*SHARE, "--error", "0.1", "--k", "1"], "--k must be"),
        ([*SHARE, "--error", "0.1", "--n", "10.5"], "--n must be"),
        ([*SHARE, "--error", "0.1", "--honest", "2e5"], "--honest must be"),
        ([*SHARE, "--error", "0.1", "--randomizer", "magic"], "--randomizer must be one of"),
        pytest.param(
            [*SHARE, "--error", "0.0001", "--epsilon", "0.01"], "cannot both hold", marks=pytest.mark.exhaust
        ),
        ([*SHARE, "--error", "1e-300"], "--error must be at least"),
        ([*MEAN, "--error", "0.1", "--grid", "0.3"], "--grid must be"),
        ([*MEAN, "--error", "0.1", "--grid", "1e-12"], "--grid must be"),
        ([*MEAN, "--error", "0.1", "--upper", "0"], "--upper must be above"),
        ([*MEAN[:3], "--n", "10", "--delta", "1e-6", "--error", "0.1"], "--lower must be"),
        ([*SHARE, "--error", "0.1", "--plot", "a.txt"], "a picture is one of"),
        (["plan", "--question", "median", "--n", "10", "--delta", "0.1"], "question"),
    ],
)
def test_bad_input_is_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.exhaust
def test_the_least_number_of_people_is_the_answer_where_n_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "plan",
        "--question",
        "frequency",
        "--k",
        "2",
        "--error",
        "0.02",
        "--epsilon",
        "0.1",
        "--randomizer",
        "krr",
    ]
    told = document(capsys, *asked)
    assert told["n"] == told["smallest_n"] and told["epsilon"] <= 0.1 and told["error95"] <= 0.02
    assert told["delta"] == 1e-6 and told["shuffler"] == "uniform" and told["leakage"]["prior_law"] == "uniform"
    again = document(capsys, *asked, "--n", str(told["n"]))
    assert again["epsilon0"] == told["epsilon0"]


@pytest.mark.exhaust
def test_groups_are_planned_with_their_smallest_and_written_for_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = tmp_path / "plan.toml"
    asked = [
        *SHARE,
        "--randomizer",
        "krr",
        "--epsilon0",
        "2",
        "--smallest-group",
        "500",
        "--shuffler",
        "within_groups",
        "--honest",
        ".999",
    ]
    told = document(capsys, *asked, "--out", str(place))
    assert told["shuffler"] == "within_groups" and told["group_error95"] > told["error95"]
    assert told["central"]["n"] == 500 and told["central"]["honest_n"] == 400
    assert told["files"] == {"config": str(place)} and 'shuffler = "within_groups"' in place.read_text()
    assert invoke([*asked, "--out", str(place)]) == 2 and "use --force" in capsys.readouterr().err
    assert invoke([*SHARE, "--epsilon0", "2", "--shuffler", "mallows"]) == 2
    assert "plan-shuffle" in capsys.readouterr().err


@pytest.mark.parametrize(
    "question", [[*SHARE, "--epsilon0", "2"], [*COVARIANCE, "--epsilon0", "2"]], ids=["share", "covariance"]
)
def test_a_plan_of_constant_values_promises_for_all_rounds_what_it_does_for_one(
    question: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.toml"
    once, always = document(capsys, *question), document(capsys, *question, "--constant-values", "--out", str(file))
    assert always["epsilon"] == once["epsilon"] and always["error95"] == once["error95"]
    written = tomllib.loads(file.read_text())
    assert written["memoize"] == {"constant_values": True} and written["randomize"]["epsilon"] == 2.0
    assert invoke([*question, "--constant-values"]) == 0
    assert "one permanent answer" in " ".join(capsys.readouterr().out.replace("│", " ").split())
    trusted = [word for word in question if word not in ("--epsilon0", "2")]
    assert invoke([*trusted, "--epsilon", "2", "--trust", "shuffler", "--constant-values"]) == 2
    assert "dummies are drawn for each round" in capsys.readouterr().err
