"""A question of several columns from plan to report: what a plan leaves open, and what a person reads at last."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.cli.main import invoke
from dovetail.report.html import render_html

N = 3000
PAIR = ["--question", "covariance", "--lower", "0", "--upper", "10", "--other-lower", "0", "--other-upper", "20"]
REST = ["--n", str(N), "--epsilon", "1", "--trust", "shuffler", "--out", "plan.toml"]


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    """People with two numbers that go together, and two columns of answers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOVETAIL_LEDGER", str(tmp_path / "ledger"))
    x = np.linspace(0.0, 10.0, N)
    half = x > 5.0
    made = pl.DataFrame({"x": x, "y": 2.0 * x, "a": np.where(half, "hi", "lo"), "b": np.where(half, "M", "F")})
    made.write_csv("people.csv")
    return made


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert invoke(list(words)) == 0, capsys.readouterr().err
    return " ".join(capsys.readouterr().out.split())


def test_what_a_plan_leaves_open_of_a_question_stops_and_further_columns_are_looked_at(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said(capsys, "plan", *PAIR, *REST)
    check = ["check", "people.csv", "--private", "x", "--plan", "plan.toml"]
    told = said(capsys, *check)
    assert "the plan leaves `question.other` open" in told and "No problems" not in told
    assert "dovetail check people.toml --set 'question.other = \"COLUMN\"'" in told
    assert "No problems" in said(capsys, "check", "people.toml", "--set", 'question.other = "y"')
    assert "covariance" in said(capsys, "run", "people.toml")
    assert "correct the name in the configuration" in said(
        capsys, "check", "people.toml", "--set", "question.other = 'z'"
    )
    plan = Path("plan.toml")
    plan.write_text(plan.read_text().replace("FILL IN TOO", "y").replace("other_upper = 20", "other_upper = 12"))
    told = said(capsys, *check, "--force")
    assert "column 'y'" in told and "numbers lie outside the declared [0, 12]" in told and "No problems" not in told


def test_several_numbers_are_named_in_their_order_with_all_private_columns(
    table: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"private": "x", "lower": 0.0, "upper": 10.0}
    promise = {"trust": "shuffler", "epsilon": 2.0, "delta": 1e-6}
    asked = {"schema_version": 1, "mode": "rehearsal", "seed": 1, "data": data, "promise": promise}
    page = dt.run({**asked, "question": {"ask": "distribution", "bins": 16}}, table=table)
    words = render_html(page.document())
    assert "The estimated quantile “median” is" in words and "and the quantiles are then estimated" in words
    assert "one private column: x" in words
    page = dt.run({**asked, "question": {"ask": "regression", "others": "y = 0..40", "points": 5}}, table=table)
    words = render_html(page.document())
    assert "2 private columns: x, y" in words and "The estimated coefficient “y” is" in words
    Path("c.toml").write_text(
        "schema_version = 1\nmode = 'rehearsal'\nseed = 1\n[data]\npath = 'people.csv'\nprivate = 'x'\nlower = 0.0\n"
        "upper = 10.0\n[question]\nask = 'distribution'\nbins = 16\n[promise]\ntrust = 'shuffler'\nepsilon = 2.0\n"
    )
    told = said(capsys, "run", "c.toml")
    assert -1 < told.index("lower quartile") < told.index("median") < told.index("upper quartile")


def test_tables_tell_on_the_terminal_and_in_a_notebook_which_columns_go_together(
    table: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.toml").write_text(
        "schema_version = 1\nmode = 'rehearsal'\nseed = 1\n[data]\npath = 'people.csv'\nprivate = 'a'\n"
        "categories = ['hi', 'lo']\n[question]\nask = 'tables'\nothers = 'b: F | M'\n[promise]\n"
        "trust = 'shuffler'\nepsilon = 1.0\n"
    )
    told = said(capsys, "run", "t.toml", "--full", "--out", "out")
    assert "How columns go together" in told and "p of independence" in told and "a and b" in told
    report: Any = dt.run("t.toml", table=table)
    shown = report._repr_html_()
    assert "a and b" in shown and "p of independence 0.005" in shown
