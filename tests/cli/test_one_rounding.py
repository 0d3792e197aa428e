"""One quantity is written with the same digits wherever it is shown: plan, notebook, terminal, report."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest

import dovetail as dt
from dovetail.cli.main import invoke
from dovetail.core.display import error_in_words, guess_in_words, upward
from dovetail.report.html import render_html
from dovetail.report.terminal import print_report

N, ASKED = 400, ["--question", "frequency", "--k", "3", "--randomizer", "krr"]


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).replace("&#39;", "'").split())


def spoken(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert invoke([*words]) == 0
    return " ".join(re.sub("[│┃┌┐└┘─━]", " ", capsys.readouterr().out).split())


@pytest.mark.exhaust
def test_a_plan_its_notebook_the_run_and_its_report_write_the_same_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    Path("survey.csv").write_text("answer\n" + "".join(f"{'abc'[row % 3]}\n" for row in range(N)))
    plan = dt.plan_collection(question="frequency", k=3, n=N, epsilon=0.5, randomizer="krr")
    told = spoken(capsys, "plan", *ASKED, "--n", str(N), "--epsilon", "0.5")
    assert invoke(["check", "survey.csv", "--private", "answer", "--epsilon", repr(plan.epsilon0)]) == 0
    assert invoke(["run", "survey.toml", "--out", "report"]) == 0
    capsys.readouterr()
    document = json.loads(Path("report/report.json").read_text())
    written = StringIO()
    page = text_of(render_html(document))
    print_report(document, Console(width=400, file=written))
    terminal = " ".join(written.getvalue().split())
    counted = spoken(capsys, "account", "--epsilon0", repr(plan.epsilon0), "--n", str(N), "--delta",
                     repr(plan.central.delta), "--randomizer", "krr", "--k", "3")  # fmt: skip
    leaked = spoken(capsys, "leak", "--n", str(N), "--k", "3", "--epsilon0", repr(plan.epsilon0))

    local, central = upward(plan.epsilon0), upward(plan.epsilon)
    assert plan.risk.exact is not None
    guess = guess_in_words(plan.risk.exact.randomized_shuffled, plan.risk.exact.prior)
    notebook = f"{plan!r} {text_of(plan._repr_html_())}"  # type: ignore[attr-defined]
    seen = f"{plan.risk.exact!r} {text_of(plan.risk.exact._repr_html_())}"  # type: ignore[attr-defined]
    for shown in (told, notebook, page, terminal, counted, text_of(plan.central._repr_html_())):  # type: ignore[attr-defined]
        assert local in shown and central in shown
    for shown in (told, seen, page, terminal, leaked):
        assert guess.best in shown and guess.blind in shown
    error = error_in_words(plan.error95, share=True)
    assert error in told and error in notebook


@pytest.mark.parametrize("value", [0.500659, 2.35821, 123.4567, 1.00001e-6])
def test_a_loss_has_one_form(value: float) -> None:
    shown = upward(value)
    assert shown in repr(dt.LocalDP(value)) and shown in repr(dt.OrderPrivacy(value))
