"""`dovetail compare` answers in JSON and in a readable table, and refuses bad input with one line."""

import json
from typing import Any

import pytest

from dovetail.cli.main import invoke
from dovetail.core.entropy import simulation
from dovetail.plan.compare.mechanisms import compare_mechanisms

ASKED = ["compare", "--n", "2e3", "--k", "3", "--error", "0.06"]


def test_the_document_is_the_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*ASKED, "--honest", "1500", "--delta", "1e-6", "--seed", "4", "--json"]
    assert invoke(arguments) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    found = compare_mechanisms(n=2000, k=3, error=0.06, honest=1500, delta=1e-6, rng=simulation(4))
    assert told == {"schema_version": 1, **found.document()}


def test_the_table_ranks_every_mechanism_and_says_why_numbers_are_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert invoke([*ASKED, "--seed", "4"]) == 0
    text = capsys.readouterr().out
    lines = {line.strip().split("  ")[0]: line for line in text.splitlines()}
    assert "100%, x 3" in lines["shuffle only"] and "∞" in lines["shuffle only"]
    assert "1. " in lines["krr and shuffle"] and "at most" in lines["krr and shuffle"]
    assert "– local_hashing and shuffle: A report of local hashing" in text
    assert "* shuffle only leaks less to the uninformed adversary but more to the strong one" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "--n", "10.5", "--k", "4", "--error", "0.1"], "`n` must be"),
        (["compare", "--n", "nan", "--k", "4", "--error", "0.1"], "`n` must be"),
        (["compare", "--n", "10", "--k", "1", "--error", "0.1"], "`k` must be"),
        (["compare", "--n", "10", "--k", "1e9", "--error", "0.1"], "`k` must be"),
        (["compare", "--n", "10", "--k", "4", "--error", "2"], "`error` must be"),
        ([*ASKED, "--delta", "1"], "`delta` must be"),
        ([*ASKED, "--honest", "2001"], "`honest` must be"),
        (["compare", "--n", "many", "--k", "4", "--error", "0.1"], "a valid number"),
        (["compare", "--n", "10", "--k", "4"], "--error"),
    ],
)
def test_bad_input_is_one_clear_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(arguments) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1 and "Traceback" not in error
