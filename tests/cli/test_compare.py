"""`dovetail compare` answers in JSON and in a readable table, and refuses bad input with one line."""

import json
import re
from typing import Any

import pytest

from dovetail.cli.main import invoke
from dovetail.core.entropy import simulation
from dovetail.plan.compare import ADVERSARIES, compare_mechanisms

ASKED = ["compare", "--n", "2e3", "--k", "3", "--error", "0.06"]


def test_the_document_is_the_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*ASKED, "--honest", "1500", "--delta", "1e-6", "--seed", "4", "--json"]
    assert invoke(arguments) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    found = compare_mechanisms(n=2000, k=3, error=0.06, honest=1500, delta=1e-6, rng=simulation(4))
    assert told == {"schema_version": 1, **found.document()}


def tables(text: str) -> dict[str, list[list[str]]]:
    """Rows of the table of each adversary; a mechanism's name may have blanks, numbers have none."""
    found: dict[str, list[list[str]]] = {}
    for block in re.split(r"\n(?=Uninformed|Strong|Colluding)", text)[1:]:
        rows = re.findall(r"^ *([\d–]+)  (\S.*?)  +(\S+) +((?:≤ )?\S+) +(\S+) *$", block, re.M)
        found[block.split()[0].lower()] = [list(row) for row in rows]
    return found


@pytest.mark.exhaust
def test_each_adversary_has_a_table_by_rank_with_numbers_rounded_up_and_signs_explained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert invoke([*ASKED, "--seed", "4"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80  # and no cell is wrapped: every row below is one line
    told = tables(text)
    found = compare_mechanisms(n=2000, k=3, error=0.06, rng=simulation(4))
    for adversary in ADVERSARIES:
        ranked = [(one.name.replace("_", " "), str(found.rank(one, adversary))) for one in found.order(adversary)]
        assert [(row[1], row[0]) for row in told[adversary][: len(ranked)]] == ranked
        assert len(told[adversary]) == len(found.mechanisms)
        for (*_, chance, factor), one in zip(told[adversary], found.order(adversary), strict=False):
            leak = one.leak(adversary)
            assert not isinstance(leak, str) and float(chance.strip("≤ %")) >= 100 * leak.vulnerability * (1 - 1e-12)
            assert float(factor) >= leak.multiplicative * (1 - 1e-12)  # both are rounded up
    assert told["strong"][-1][1:] == ["shuffle only", "∞", "100%", "3"]
    assert told["uninformed"][-1] == ["–", "local hashing and shuffle", told["uninformed"][-1][2], "–", "–"]
    below = " ".join(text.split())
    assert "≤: upper end of an interval, which decides the rank" in below
    assert "– local hashing and shuffle: not computed. A report of local hashing" in below
    assert "leaks less to one adversary may leak more to another" in below


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "--n", "10.5", "--k", "4", "--error", "0.1"], "--n must be"),
        (["compare", "--n", "nan", "--k", "4", "--error", "0.1"], "--n must be"),
        (["compare", "--n", "10", "--k", "1", "--error", "0.1"], "--k must be"),
        (["compare", "--n", "10", "--k", "1e9", "--error", "0.1"], "--k must be"),
        (["compare", "--n", "10", "--k", "4", "--error", "2"], "--error must be"),
        ([*ASKED, "--delta", "1"], "--delta must be"),
        ([*ASKED, "--honest", "2001"], "--honest must be"),
        (["compare", "--n", "many", "--k", "4", "--error", "0.1"], "must be a number"),
        (["compare", "--n", "10", "--k", "4"], "--error"),
    ],
)
def test_bad_input_is_one_clear_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(arguments) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1 and "Traceback" not in error
