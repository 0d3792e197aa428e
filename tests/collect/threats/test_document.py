"""The threat model names a test in every line, and the data model is what the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.collect.threats.generated import BLOCKS, PAGE, filled
from tests.mutants.catalogue import load_mutants

ROOT = Path(__file__).parents[3]
MODEL = ROOT / "docs" / "threat-model.md"
RUNBOOK = ROOT / "docs" / "runbook.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows(text: str) -> list[str]:
    """Lines of the tables about the service, without their heads."""
    service = text.partition("## The collection service")[2]
    lines = service.splitlines()
    heads = {place for place, line in enumerate(lines) if line.startswith("| ---")}
    return [
        line
        for place, line in enumerate(lines)
        if line.startswith("|") and place not in heads and place + 1 not in heads
    ]


def missing(row: str) -> list[str]:
    """Tests that a row names and that do not exist; a row that names none misses one."""
    named = NAMED.findall(row)
    absent = [name for file, name in named if not exists(ROOT / file, name)]
    return absent if named else ["a test"]


def exists(file: Path, test: str) -> bool:
    return file.is_file() and re.search(rf"^def {test}\(", file.read_text(), re.M) is not None


def test_every_line_of_the_threat_model_names_a_test_that_exists() -> None:
    found = rows(MODEL.read_text())
    assert len(found) > 50
    assert {row: absent for row in found if (absent := missing(row))} == {}


def unprotected(row: str, killed: frozenset[str]) -> bool:
    """Whether a row's protection could be removed unseen: none of its tests stands in the list of mutants."""
    named = {f"{file}::{name}" for file, name in NAMED.findall(row)}
    return not named & (killed | REMAINS)


REMAINS = {  # rows that show what is not protected: there is nothing to remove
    "tests/collect/threats/test_separation.py::test_who_records_messages_and_gets_the_shufflers_key_later_can_link_them",
    # what no single line gives to a shuffler: it would need the analyzer's key, which a test of its own refuses
    "tests/collect/threats/test_separation.py::test_the_shufflers_memory_holds_no_opened_report",
}


def test_for_every_line_of_the_threat_model_a_mutant_removes_the_protection_and_its_test_fails() -> None:
    killed = frozenset(test.partition("[")[0] for mutant in load_mutants() for test in mutant.tests)
    lines = [line for line in RUNBOOK.read_text().splitlines() if NAMED.search(line)]
    found = [*rows(MODEL.read_text()), *lines]
    assert [row for row in found if unprotected(row, killed)] == []


def test_a_line_whose_test_kills_no_mutant_is_caught() -> None:
    row = "| a threat | `tests/collect/test_web.py::test_it` |"
    assert unprotected(row, frozenset({"tests/collect/test_web.py::test_another"}))
    assert not unprotected(row, frozenset({"tests/collect/test_web.py::test_it"}))


def test_every_promise_of_the_runbook_names_a_test_that_exists() -> None:
    lines = [line for line in RUNBOOK.read_text().splitlines() if "`tests/" in line]
    assert len(lines) > 3 and {line: absent for line in lines if (absent := missing(line))} == {}


def test_a_line_without_a_test_or_with_a_wrong_one_is_caught() -> None:
    assert missing("| a threat | nothing |") == ["a test"]
    assert missing("| a threat | `tests/collect/test_web.py::test_of_nothing` |") == ["test_of_nothing"]
    assert missing("| a threat | `tests/collect/test_nowhere.py::test_it` |") == ["test_it"]


def test_the_threat_model_speaks_of_everybody() -> None:
    text = MODEL.read_text()
    for who in ("device", "network observer", "broker", "shuffler", "analyzer", "subscribers", "owner", "backups"):
        assert f"| {who}" in text or f", {who}" in text, who


def test_the_data_model_is_what_the_code_has() -> None:
    page = PAGE.read_text()
    assert page == filled(page), "python -m tests.collect.threats.generated writes it anew"


def test_every_generated_part_stands_in_the_data_model() -> None:
    assert re.findall(r"<!-- generated: (.+?) -->", PAGE.read_text()) == list(BLOCKS)


@pytest.mark.parametrize("old", ["| waiting | due |", "`spent`", "held --> releasing", "`seal`, `malformed`"])
def test_a_data_model_that_lies_is_caught(old: str) -> None:
    lie = PAGE.read_text().replace(old, "| nothing |")
    assert lie != PAGE.read_text() and filled(lie) != lie
