"""Each row of docs/errata.md names a test, or a doctest, that exists."""

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest
from tests.trees import tree_of

import dovetail

ROOT = Path(__file__).parent.parent
ROWS = [
    line for line in (ROOT / "docs" / "errata.md").read_text().splitlines() if re.match(r"\| (?!where |---)", line)
]


@cache
def functions_of(path: str) -> set[str]:
    tree = tree_of(ROOT / path)
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def missing(row: str) -> list[str]:
    """What is wrong with the evidence in the last cell of a row."""
    cells = [cell.strip() for cell in row.strip().strip("|").split(" | ")]
    if len(cells) != 4 or not all(cells):
        return [f"{len(cells)} cells instead of where, printed, right, evidence"]
    if found := re.fullmatch(r"doctest of `dovetail\.(\w+)`", cells[3]):
        shown = inspect.getdoc(getattr(dovetail, found[1], None)) or ""
        return [] if ">>>" in shown else [f"{cells[3]}: there is none"]
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", cells[3])
    if not named or len(named) != cells[3].count("`") / 2:
        return [f"no test is named: {cells[3]}"]
    return [
        f"{path}::{name}" for path, name in named if not (ROOT / path).is_file() or name not in functions_of(path)
    ]


def test_the_page_has_rows() -> None:
    assert len(ROWS) > 40


def test_each_row_names_tests_that_exist() -> None:
    assert {row: wrong for row in ROWS if (wrong := missing(row))} == {}


@pytest.mark.parametrize(
    "evidence",
    [
        "",
        "a paper",
        "doctest of `dovetail.Nothing`",
        "`tests/oracles/test_order.py::test_nothing`",
        "`tests/no_file.py::test_it`",
        "`tests/test_docs_errata.py::test_the_page_has_rows`, `and this`",
    ],
)
def test_a_row_without_evidence_would_be_found(evidence: str) -> None:
    assert missing(f"| here | this | that | {evidence} |")
    assert not missing("| here | this | that | `tests/test_docs_errata.py::test_the_page_has_rows` |")
